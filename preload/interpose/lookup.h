/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup: which CUDA runtime a hooked call was meant for, found by who called.
 *
 * Two runtimes may live in one process (a framework's and an extension's), and one loaded RTLD_LOCAL
 * is invisible to RTLD_NEXT. So the caller's return address leads to its library, and that library's
 * own dependencies to the runtime. Thread-safe; a known caller costs one load and one compare. */
#ifndef GML_INTERPOSE_LOOKUP_H
#define GML_INTERPOSE_LOOKUP_H

#include "interpose/hooks.h"

#include <stdbool.h>

typedef struct gml_caller {
    const gml_real *real; /* NULL: no runtime in the process */
    bool is_torch;        /* the call came from PyTorch's allocator library */
} gml_caller;

gml_caller gml_lookup_caller(const void *return_address);

/* The function `name` that a caller without us would have reached: through its own dependencies, then
 * in the first of `libraries` (NULL-terminated) that is loaded, then behind us in the global order.
 * `own` is our definition, which is never the answer. NULL when there is none. */
void *gml_lookup_symbol(const void *return_address, const char *name, const char *const *libraries,
                        const void *own);

/* True when the simulated runtime is preloaded. */
bool gml_lookup_simulated(void);

/* The name of another preloaded library that replaces cudaMalloc, or NULL. */
const char *gml_lookup_rival(void);

#endif
