/* SPDX-License-Identifier: Apache-2.0 */
/* The shared file of a process: made whole or not at all, and never at the program's cost. */
#define _GNU_SOURCE
#include "check.h"
#include "os/os.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1u << 20)

static char path[64];

/* How a process ends that makes the file under this limit of file sizes: 0 with it, 1 without. */
static int ends_under(rlim_t limit)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limits = {limit, limit};
        bool exists = true;
        if (setrlimit(RLIMIT_FSIZE, &limits) != 0)
            _exit(2);
        _exit(gml_os_create_shared(path, BYTES, &exists) != NULL && !exists ? 0 : exists ? 3 : 1);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    return status;
}

static void test_a_limit_of_file_sizes_ends_no_program(void)
{
    int without = ends_under(BYTES - 1);
    CHECK(WIFEXITED(without));
    CHECK_EQUAL(WEXITSTATUS(without), 1);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQUAL(ends_under(BYTES), 0);
    CHECK(access(path, F_OK) == 0);
    CHECK_EQUAL(unlink(path), 0);
}

int main(void)
{
    (void)snprintf(path, sizeof path, "/tmp/gml-shared-%ld", (long)getpid());
    RUN(test_a_limit_of_file_sizes_ends_no_program);
    return 0;
}
