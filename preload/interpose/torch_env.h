/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's allocator settings: what its environment variables say under the chosen allocator. */
#ifndef GML_INTERPOSE_TORCH_ENV_H
#define GML_INTERPOSE_TORCH_ENV_H

#include <stdbool.h>
#include <stddef.h>

typedef enum gml_torch_backend {
    GML_TORCH_UNTOUCHED, /* the user's settings stand */
    GML_TORCH_ASYNC,     /* backend:cudaMallocAsync */
    GML_TORCH_NATIVE,    /* backend:native without expandable_segments */
    GML_TORCH_EXPANDABLE, /* expandable_segments:True */
    GML_TORCH_UNCACHED   /* no caching allocator at all */
} gml_torch_backend;

/* The backend that GML_ALLOCATOR and GML_INTERCEPT ask for; UNTOUCHED outside gml-run. */
gml_torch_backend gml_torch_env_backend(void);

/* Merges the user's settings ("key:value,key:[a:b,c:d]"; NULL is none) with a backend. Returns false
 * when `out` is too small. *out_dropped: a setting of the user's that means another backend went. */
bool gml_torch_env_merge(const char *user, gml_torch_backend backend, char *out, size_t capacity,
                         bool *out_dropped);

/* PyTorch asked for its settings; a setting of the user's was dropped. Of this process so far. */
bool gml_torch_env_asked(void);
bool gml_torch_env_dropped(void);

#endif
