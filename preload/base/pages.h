/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of host memory for bookkeeping. Never from malloc: the program may have replaced it, and we
 * are called from inside other allocators. Implemented in os/pages.c. */
#ifndef GML_BASE_PAGES_H
#define GML_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, backed by the system only where it is touched. NULL when there is none. */
void *gml_pages_map(size_t bytes);
void gml_pages_unmap(void *pages, size_t bytes);

#endif
