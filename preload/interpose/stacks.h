/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: charges live memory to the line of Python that asked for it (`--stacks`).
 *
 * The line is that of the innermost frame outside PyTorch's own package. Thread-safe by one lock, inside which
 * nothing is taken and nobody is called but the kernel. All functions do nothing when `stacks` is NULL. */
#ifndef GML_INTERPOSE_STACKS_H
#define GML_INTERPOSE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gml_stacks gml_stacks;

/* NULL when lines were not asked for (or without memory). Takes the loader's lock. */
gml_stacks *gml_stacks_new(void);
void gml_stacks_destroy(gml_stacks *stacks);

/* Makes the file beside the telemetry of this process; false when it cannot be made. */
bool gml_stacks_open(gml_stacks *stacks, const char *run_directory);

/* A block that this thread asked for, and its end; an address that is not known is passed over. */
void gml_stacks_alloc(gml_stacks *stacks, int device, uintptr_t address, uint64_t bytes);
void gml_stacks_free(gml_stacks *stacks, uintptr_t address);

/* Notes who holds most, and that this thread asked in vain. `number` is the failure's in the telemetry file. */
void gml_stacks_note_oom(gml_stacks *stacks, int device, uint64_t number);

/* Forgets what lies on a device (it was reset). */
void gml_stacks_drop_device(gml_stacks *stacks, int device);

#endif
