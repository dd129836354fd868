/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of host memory, straight from the kernel. */
#define _GNU_SOURCE
#include "base/pages.h"

#include <errno.h>
#include <sys/mman.h>

void *gml_pages_map(size_t bytes)
{
    /* A hooked call must leave errno as the program left it. */
    int saved = errno;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return pages == MAP_FAILED ? NULL : pages;
}

void gml_pages_unmap(void *pages, size_t bytes)
{
    int saved = errno;
    if (pages != NULL)
        (void)munmap(pages, bytes);
    errno = saved;
}
