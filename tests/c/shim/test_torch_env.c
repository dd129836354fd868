/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's settings become under each allocator, and that getenv stays getenv otherwise.
 *
 * Runs with LD_PRELOAD=libgml.so. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(const char *what, const char *got, const char *wanted)
{
    if (got == NULL || wanted == NULL ? got == wanted : strcmp(got, wanted) == 0)
        return;
    fprintf(stderr, "%s: got %s, wanted %s\n", what, got == NULL ? "(none)" : got, wanted == NULL ? "(none)" : wanted);
    failures++;
}

static void set(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

static const struct {
    const char *allocator, *intercept, *cuda, *common, *wanted_cuda, *wanted_common, *wanted_no_caching;
} rows[] = {
    /* outside gml-run nothing changes */
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
    {NULL, NULL, "expandable_segments:True", "a:1", "expandable_segments:True", "a:1", NULL},
    {"vms", NULL, NULL, NULL, "backend:cudaMallocAsync", "backend:cudaMallocAsync", NULL},
    {"vms", "tensors", "expandable_segments:True", NULL, "backend:cudaMallocAsync", "backend:cudaMallocAsync", NULL},
    {"vms", NULL, "max_split_size_mb:128,backend:native", NULL, "max_split_size_mb:128,backend:cudaMallocAsync",
     "backend:cudaMallocAsync", NULL},
    /* a list in brackets is one setting */
    {"vms", NULL, "roundup_power2_divisions:[256:1,>:2],expandable_segments:True", NULL,
     "roundup_power2_divisions:[256:1,>:2],backend:cudaMallocAsync", "backend:cudaMallocAsync", NULL},
    /* the variable that PyTorch reads first must not hide the user's other one */
    {"vms", NULL, NULL, "garbage_collection_threshold:0.8", "garbage_collection_threshold:0.8,backend:cudaMallocAsync",
     "garbage_collection_threshold:0.8,backend:cudaMallocAsync", NULL},
    {"vms", NULL, " a:1 , b:2 ,, c:3 ", NULL, "a:1 ,b:2 ,c:3 ,backend:cudaMallocAsync", "backend:cudaMallocAsync", NULL},
    {"vms", "segments", "expandable_segments:True", NULL, "expandable_segments:True", NULL, NULL},
    {"vms", "uncached", NULL, NULL, "backend:native", "backend:native", "1"},
    {"native", NULL, "expandable_segments:True,a:1", NULL, "a:1,backend:native", "backend:native", NULL},
    {"expandable", NULL, "backend:cudaMallocAsync", NULL, "expandable_segments:True", "expandable_segments:True", NULL},
    {"expandable", NULL, NULL, NULL, "expandable_segments:True", "expandable_segments:True", NULL},
    {"cuda-async", NULL, NULL, NULL, "backend:cudaMallocAsync", "backend:cudaMallocAsync", NULL},
    {"raw", NULL, NULL, NULL, "backend:native", "backend:native", "1"},
    {"observe", NULL, "a:1", NULL, "a:1", NULL, NULL},
    {"observe", NULL, NULL, NULL, NULL, NULL, NULL},
};

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char what[64];
        snprintf(what, sizeof what, "row %zu", i);
        set("GML_ALLOCATOR", rows[i].allocator);
        set("GML_INTERCEPT", rows[i].intercept);
        set("PYTORCH_CUDA_ALLOC_CONF", rows[i].cuda);
        set("PYTORCH_ALLOC_CONF", rows[i].common);
        expect(what, getenv("PYTORCH_CUDA_ALLOC_CONF"), rows[i].wanted_cuda);
        expect(what, getenv("PYTORCH_ALLOC_CONF"), rows[i].wanted_common);
        expect(what, getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"), rows[i].wanted_no_caching);
    }
}

/* The answer for a value stays where it is, however often and in between whatever else it is asked. */
static void check_stable(void)
{
    set("GML_ALLOCATOR", "vms");
    set("GML_INTERCEPT", NULL);
    set("PYTORCH_CUDA_ALLOC_CONF", "x:1");
    char *first = getenv("PYTORCH_CUDA_ALLOC_CONF");
    set("PYTORCH_CUDA_ALLOC_CONF", "x:2");
    expect("second value", getenv("PYTORCH_CUDA_ALLOC_CONF"), "x:2,backend:cudaMallocAsync");
    expect("first value", first, "x:1,backend:cudaMallocAsync");
    set("PYTORCH_CUDA_ALLOC_CONF", "x:1");
    if (getenv("PYTORCH_CUDA_ALLOC_CONF") != first) {
        fprintf(stderr, "the same value was merged twice\n");
        failures++;
    }
}

/* More values than are kept, and one too long to merge: the user's own value is the answer. */
static void check_limits(void)
{
    static char longest[4096];
    memset(longest, 'x', sizeof longest - 1);
    set("PYTORCH_CUDA_ALLOC_CONF", longest);
    expect("too long", getenv("PYTORCH_CUDA_ALLOC_CONF"), longest);
    for (int i = 0; i < 100; i++) {
        char value[32];
        snprintf(value, sizeof value, "many:%d", i);
        set("PYTORCH_CUDA_ALLOC_CONF", value);
        char merged[64];
        snprintf(merged, sizeof merged, "%s,backend:cudaMallocAsync", value);
        const char *got = getenv("PYTORCH_CUDA_ALLOC_CONF");
        expect("many values", got, got != NULL && strcmp(got, value) == 0 ? value : merged);
    }
}

static void check_plain(void)
{
    set("SOME_NAME", "some value");
    expect("plain", getenv("SOME_NAME"), "some value");
    expect("prefix", getenv("SOME_NAM"), NULL);
    expect("longer", getenv("SOME_NAME_"), NULL);
    expect("empty name", getenv(""), NULL);
    expect("secure", secure_getenv("SOME_NAME"), "some value");
    set("SOME_NAME", "");
    expect("empty value", getenv("SOME_NAME"), "");
    clearenv();
    expect("no environment", getenv("SOME_NAME"), NULL);
}

int main(void)
{
    check_rows();
    check_stable();
    check_limits();
    check_plain();
    return failures == 0 ? 0 : 1;
}
