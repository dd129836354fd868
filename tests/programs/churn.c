/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees on one stream, as often as the argument says; few blocks live at a time. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Found in the preloaded libraries. */
extern int cudaFree(void *address) __attribute__((weak));
extern int cudaMallocAsync(void **out, size_t bytes, void *stream) __attribute__((weak));
extern int cudaFreeAsync(void *address, void *stream) __attribute__((weak));

int main(int argc, char **argv)
{
    enum { LIVE = 64 };
    void *block[LIVE] = {NULL};
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, seed = 1;
    if (cudaMallocAsync == NULL || cudaFree(NULL) != 0)
        return 3;
    for (unsigned long i = 0; i < count; i++) {
        void **place = &block[i % LIVE];
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        if (*place != NULL && cudaFreeAsync(*place, NULL) != 0)
            return 4;
        if (cudaMallocAsync(place, ((seed >> 40) % 4096 + 1) * 4096, NULL) != 0)
            return 5;
    }
    printf("%lu\n", count);
    return 0;
}
