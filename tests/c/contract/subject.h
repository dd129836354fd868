/* SPDX-License-Identifier: Apache-2.0 */
/* A device under the contract suite: how to open it, and how to touch its memory where it has any. */
#ifndef GML_TESTS_CONTRACT_SUBJECT_H
#define GML_TESTS_CONTRACT_SUBJECT_H

#include "device/device.h"

#include <stdbool.h>

typedef struct subject {
    gml_device *dev;
    /* Writes `bytes` times `value`; true when all of them read `value`. NULL: there is no data to look at. */
    bool (*fill)(uintptr_t va, size_t bytes, unsigned char value);
    bool (*holds)(uintptr_t va, size_t bytes, unsigned char value);
    /* The first rule that the test itself broke, or NULL; NULL as a function: the device keeps no such record. */
    const char *(*violation)(const gml_device *dev);
    const char *name;
} subject;

/* A fresh device, one at a time. False: it cannot be had here, and `out_why` says why. */
bool subject_open_model(subject *out_subject, const char **out_why);
bool subject_open_cuda(subject *out_subject, const char **out_why);
void subject_close_model(subject *s);
void subject_close_cuda(subject *s);

#endif
