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

/* The program begins to use CUDA: PyTorch, if it has asked, has its backend. */
void gml_torch_env_in_use(void);

/* PyTorch asked for its settings; a setting of the user's was dropped. Of this process so far. */
bool gml_torch_env_asked(void);
bool gml_torch_env_dropped(void);

#endif
