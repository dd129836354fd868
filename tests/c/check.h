/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for the C tests: they print both values and end the test program at the first failure. */
#ifndef GML_TESTS_CHECK_H
#define GML_TESTS_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                         \
    do {                                                                                      \
        uint64_t actual_ = (uint64_t)(actual), expected_ = (uint64_t)(expected);              \
        if (actual_ != expected_) {                                                           \
            fprintf(stderr, "%s:%d: %s is %" PRIu64 ", not %" PRIu64 "\n", __FILE__, __LINE__, \
                    #actual, actual_, expected_);                                             \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* Runs one test function and says so, so that a failing program names the test it died in. With
 * TEST=name in the environment only that function runs. */
#define RUN(test)                                           \
    do {                                                    \
        const char *only_ = getenv("TEST");                 \
        if (only_ == NULL || strcmp(only_, #test) == 0) {   \
            printf("%s\n", #test);                          \
            fflush(stdout);                                 \
            test();                                         \
        }                                                   \
    } while (0)

/* xorshift64*: the same numbers everywhere. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
    return (random_next(state) >> 11) % bound;
}

#endif
