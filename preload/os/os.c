/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the preloaded library: clocks, the shared telemetry file, process facts. */
#define _GNU_SOURCE
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PIPE_PART 4096u /* a pipe holds at least so much */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gml_os_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t gml_os_coarse_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t gml_os_realtime_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

void gml_os_pause_ns(uint32_t ns)
{
    int saved = errno;
    struct timespec pause = {0, (long)ns};
    (void)nanosleep(&pause, NULL);
    errno = saved;
}

uint64_t gml_os_pid(void)
{
    return (uint64_t)getpid();
}

uint64_t gml_os_parent_pid(void)
{
    return (uint64_t)getppid();
}

/* A longer file is answered with SIGXFSZ, which ends most programs. */
static bool may_be_so_long(size_t bytes)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

void *gml_os_create_shared(const char *path, size_t bytes, bool *out_exists)
{
    int saved = errno;
    void *pages = NULL;
    *out_exists = false;
    if (!may_be_so_long(bytes))
        return NULL;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    *out_exists = file < 0 && errno == EEXIST;
    if (file >= 0) {
        /* Allocating the blocks now turns a full disk into an error here instead of a SIGBUS later. */
        if (posix_fallocate(file, 0, (off_t)bytes) == 0) {
            pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (pages == MAP_FAILED)
                pages = NULL;
        }
        if (pages == NULL)
            (void)unlink(path);
        (void)close(file);
    }
    errno = saved;
    return pages;
}

void gml_os_make_directory(const char *path)
{
    int saved = errno;
    (void)mkdir(path, 0755);
    errno = saved;
}

size_t gml_os_read_file(const char *path, void *buffer, size_t capacity)
{
    int saved = errno;
    size_t filled = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        while (filled < capacity) {
            ssize_t got = read(file, (char *)buffer + filled, capacity - filled);
            if (got <= 0)
                break;
            filled += (size_t)got;
        }
        (void)close(file);
    }
    errno = saved;
    return filled;
}

/* The kernel copies into the pipe, so that it meets a wrong address instead of us. */
static bool read_by_pipe(uintptr_t address, void *buffer, size_t bytes)
{
    int ends[2] = {-1, -1};
    size_t done = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    while (done < bytes) {
        size_t part = bytes - done < PIPE_PART ? bytes - done : PIPE_PART;
        ssize_t put = write(ends[1], (const void *)(address + done), part);
        if (put <= 0 || read(ends[0], (char *)buffer + done, (size_t)put) != put)
            break;
        done += (size_t)put;
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    return done == bytes;
}

bool gml_os_read_memory(uintptr_t address, void *buffer, size_t bytes)
{
    int saved = errno;
    struct iovec local = {buffer, bytes}, remote = {(void *)address, bytes};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    /* A sandbox may refuse this call, whatever the address. */
    bool read = got < 0 && errno != EFAULT ? read_by_pipe(address, buffer, bytes) : got >= 0 && (size_t)got == bytes;
    errno = saved;
    return read;
}

bool gml_os_is_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

void gml_os_thread_name(char name[16])
{
    int saved = errno;
    memset(name, 0, 16);
    (void)prctl(PR_GET_NAME, name);
    errno = saved;
}

void gml_os_write_line(const char *text)
{
    int saved = errno;
    char newline[] = "\n";
    char copy[512];
    size_t length = strlen(text) < sizeof copy ? strlen(text) : sizeof copy;
    memcpy(copy, text, length);
    struct iovec parts[2] = {{copy, length}, {newline, 1}};
    ssize_t ignored = writev(STDERR_FILENO, parts, 2);
    (void)ignored;
    errno = saved;
}
