/* SPDX-License-Identifier: Apache-2.0 */
/* The preloaded library in front of fake runtimes: lookup by caller, pass-through, errors, fork.
 *
 * Runs with LD_PRELOAD=libgml.so; the argument names the case. The fakes need no driver, so every
 * request is forwarded and only the way there is tested. */
#define _GNU_SOURCE
#include "fake_cudart.h"
#include "telemetry/layout.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bound to the preloaded library: this program is linked with no CUDA runtime. */
extern cudaError_t cudaMalloc(void **out, size_t bytes) __attribute__((weak));
extern cudaError_t cudaFree(void *address) __attribute__((weak));
extern cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) __attribute__((weak));

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

typedef struct caller {
    fake_books *(*books)(void);
    cudaError_t (*malloc)(void **, size_t);
    cudaError_t (*malloc_async)(void **, size_t);
    cudaError_t (*free)(void *);
    cudaError_t (*free_async)(void *);
    cudaError_t (*mem_info)(size_t *, size_t *);
} caller;

static void load_symbol(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL);
    memcpy(out, &symbol, sizeof symbol);
}

static caller load(const char *path)
{
    caller c;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    load_symbol(library, "caller_books", &c.books);
    load_symbol(library, "caller_malloc", &c.malloc);
    load_symbol(library, "caller_malloc_async", &c.malloc_async);
    load_symbol(library, "caller_free", &c.free);
    load_symbol(library, "caller_free_async", &c.free_async);
    load_symbol(library, "caller_mem_info", &c.mem_info);
    return c;
}

static char *telemetry_path(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/telemetry/%d.gml", getenv("GML_RUN_DIR"), (int)getpid());
    return path;
}

static const gml_telemetry *telemetry(void)
{
    int file = open(telemetry_path(), O_RDONLY);
    CHECK(file >= 0);
    const gml_telemetry *t = mmap(NULL, sizeof *t, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    CHECK(t != MAP_FAILED);
    CHECK(memcmp(t->magic, GML_TELEMETRY_MAGIC, 8) == 0);
    CHECK(t->version == GML_TELEMETRY_VERSION && t->total_bytes == sizeof *t);
    return t;
}

/* ---- cases ---- */

static void case_none(void)
{
    void *p = (void *)1;
    CHECK(cudaMalloc != NULL);
    CHECK(cudaMalloc(&p, 64) == cudaErrorInsufficientDriver);
    CHECK(cudaMallocAsync(&p, 64, NULL) == cudaErrorInsufficientDriver);
    CHECK(cudaFree(NULL) == cudaErrorInsufficientDriver);
    CHECK(p == (void *)1);
    CHECK(access(telemetry_path(), F_OK) != 0);
}

static void case_local(void)
{
    caller c = load(CALLER_13);
    void *p = NULL;
    CHECK(dlsym(RTLD_DEFAULT, "fake_books_get") == NULL); /* the runtime is in no global scope */
    CHECK(c.malloc(&p, 64) == cudaSuccess && p != NULL);
    CHECK(c.books()->mallocs == 1 && c.books()->live == 1);
    CHECK(c.free(p) == cudaSuccess);
    CHECK(c.books()->frees == 1 && c.books()->live == 0);
    CHECK(telemetry()->forwarded_calls == 1);
    CHECK(telemetry()->pid == (uint64_t)getpid());
    /* A caller without a runtime of its own gets the one that is loaded. */
    CHECK(cudaMalloc(&p, 64) == cudaSuccess);
    CHECK(c.books()->mallocs == 2);
}

static void case_two(void)
{
    caller c13 = load(CALLER_13);
    caller c12 = load(CALLER_12);
    void *a = NULL;
    void *b = NULL;
    CHECK(c13.books()->version == 13 && c12.books()->version == 12);
    for (int i = 1; i <= 3; i++) {
        CHECK(c12.malloc(&b, 64) == cudaSuccess);
        CHECK(c13.malloc(&a, 64) == cudaSuccess);
        CHECK(c12.books()->mallocs == i && c13.books()->mallocs == i);
        CHECK(c12.free(b) == cudaSuccess && c13.free(a) == cudaSuccess);
    }
    CHECK(c12.books()->live == 0 && c13.books()->live == 0);
}

static void case_mixed(void)
{
    caller c = load(CALLER_12);
    void *p[4] = {NULL, NULL, NULL, NULL};
    CHECK(c.malloc(&p[0], 64) == cudaSuccess && c.free_async(p[0]) == cudaSuccess);
    CHECK(c.malloc_async(&p[1], 64) == cudaSuccess && c.free(p[1]) == cudaSuccess);
    CHECK(c.malloc_async(&p[2], 64) == cudaSuccess && c.free_async(p[2]) == cudaSuccess);
    CHECK(c.books()->live == 0);
    CHECK(c.books()->frees == 1 && c.books()->async_frees == 2);
    CHECK(telemetry()->async_seen == 1);
}

static void case_errors(void)
{
    caller c = load(CALLER_13);
    void *p = (void *)1;
    c.books()->fail_next = cudaErrorMemoryAllocation;
    CHECK(c.malloc(&p, 64) == cudaErrorMemoryAllocation);
    CHECK(p == (void *)1);
    CHECK(c.books()->last_error == cudaErrorMemoryAllocation);
    /* A success neither clears the last error nor sets one. */
    CHECK(c.malloc(&p, 64) == cudaSuccess);
    CHECK(c.books()->last_error == cudaErrorMemoryAllocation);
    c.books()->last_error = cudaSuccess;
    CHECK(c.free(p) == cudaSuccess);
    CHECK(c.books()->last_error == cudaSuccess);
    CHECK(c.malloc(NULL, 64) == cudaErrorInvalidValue);
    c.books()->last_error = cudaSuccess;
    int before = c.books()->mallocs;
    CHECK(c.malloc(&p, 0) == cudaSuccess && p == NULL && c.books()->mallocs == before + 1);
    before = c.books()->frees;
    CHECK(c.free(NULL) == cudaSuccess && c.books()->frees == before + 1);
}

static void case_first_free(void)
{
    caller c = load(CALLER_13);
    CHECK(c.free(NULL) == cudaSuccess && c.books()->frees == 1);
    CHECK(c.free_async(NULL) == cudaSuccess && c.books()->async_frees == 1);
    CHECK(access(telemetry_path(), F_OK) != 0); /* nothing of ours appears for that */
}

/* The loader's own lock stands for any lock under which somebody else may call us: while one thread asks
 * the loader for a symbol, a second thread must get its memory. Each look-up of the first use gets its turn. */
static void *(*real_dlsym)(void *library, const char *name);
static pthread_t first_thread;
static int lookups_left;
static caller second_caller;

static void *second_thread(void *ignored)
{
    void *p = NULL;
    CHECK(second_caller.malloc(&p, 64) == cudaSuccess);
    return ignored;
}

__attribute__((visibility("default"))) void *dlsym(void *restrict library, const char *restrict name)
{
    pthread_t thread;
    if (real_dlsym == NULL) {
        void *symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        memcpy(&real_dlsym, &symbol, sizeof symbol);
    }
    if (lookups_left > 0 && pthread_equal(pthread_self(), first_thread) && --lookups_left == 0) {
        CHECK(pthread_create(&thread, NULL, second_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    /* The program is the first in order: from here "next" would be the preloaded library, not what follows it. */
    return library == RTLD_NEXT ? NULL : real_dlsym(library, name);
}

static void case_loader_lock(void)
{
    second_caller = load(CALLER_13);
    first_thread = pthread_self();
    for (int lookup = 1; lookup < 200; lookup++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            void *p = NULL;
            (void)alarm(5);
            lookups_left = lookup;
            CHECK(second_caller.malloc(&p, 64) == cudaSuccess);
            _exit(lookups_left == 0 ? 0 : 77);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            return; /* there are no more */
        CHECK(WEXITSTATUS(status) == 0);
    }
}

static void case_reenter(void)
{
    caller c = load(CALLER_13);
    void *p = NULL;
    c.books()->reenter = 1;
    CHECK(c.malloc(&p, 64) == cudaSuccess && p != NULL);
    CHECK(c.books()->mallocs == 1 && c.books()->async_mallocs == 1);
    CHECK(telemetry()->forwarded_calls == 1); /* counted once, at the outer call */
}

static void case_fork(void)
{
    caller c = load(CALLER_13);
    void *p = NULL;
    CHECK(c.malloc(&p, 64) == cudaSuccess);
    const gml_telemetry *t = telemetry();
    uint64_t before = t->forwarded_calls;
    pid_t child = fork();
    if (child == 0) {
        int mallocs = c.books()->mallocs;
        CHECK(c.malloc(&p, 64) == cudaSuccess && c.books()->mallocs == mallocs + 1);
        CHECK(c.free(p) == cudaSuccess);
        CHECK(access(telemetry_path(), F_OK) != 0);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(t->forwarded_calls == before);
    CHECK(c.malloc(&p, 64) == cudaSuccess && t->forwarded_calls == before + 1);
}

static void case_fork_first(void)
{
    caller c = load(CALLER_13);
    pid_t child = fork();
    if (child == 0) {
        void *p = NULL;
        CHECK(c.malloc(&p, 64) == cudaSuccess);
        CHECK(telemetry()->forwarded_calls == 1 && telemetry()->parent_pid == (uint64_t)getppid());
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(access(telemetry_path(), F_OK) != 0);
}

static void case_mem_info(void)
{
    caller c = load(CALLER_12);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(c.mem_info(&free_bytes, &total_bytes) == cudaSuccess);
    CHECK(free_bytes == 1000 && total_bytes == 2000);
}

/* PyTorch's library asks for segments although its tensors were expected: said, unless they came. */
static void case_segments(void)
{
    caller torch = load(CALLER_TORCH);
    void *p = NULL;
    bool serving = strcmp(getenv("GML_ALLOCATOR"), "vms") == 0;
    CHECK(torch.malloc(&p, 64) == cudaSuccess);
    CHECK((strstr(telemetry()->message, "segments") != NULL) == serving);
}

static void case_no_segments(void)
{
    caller torch = load(CALLER_TORCH);
    caller other = load(CALLER_13);
    void *p = NULL;
    CHECK(other.malloc(&p, 64) == cudaSuccess && telemetry()->message[0] == '\0');
    CHECK(torch.malloc_async(&p, 64) == cudaSuccess);
    CHECK(torch.malloc(&p, 64) == cudaSuccess && telemetry()->message[0] == '\0');
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"none", case_none},         {"local", case_local},     {"two", case_two},
                 {"mixed", case_mixed},       {"errors", case_errors},   {"first_free", case_first_free},
                 {"loader_lock", case_loader_lock},
                 {"reenter", case_reenter},   {"fork", case_fork},       {"fork_first", case_fork_first},
                 {"mem_info", case_mem_info},
                 {"segments", case_segments}, {"no_segments", case_no_segments}};
    char directory[] = "shim-run-XXXXXX"; /* in the build folder, where ctest runs it */
    CHECK(argc == 2 && mkdtemp(directory) != NULL);
    setenv("GML_RUN_DIR", directory, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            printf("ok %s\n", argv[1]);
            return 0;
        }
    }
    fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
