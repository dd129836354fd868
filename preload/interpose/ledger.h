/* SPDX-License-Identifier: Apache-2.0 */
/* Ledger: what the real functions hold for the program, so that forwarded memory is counted.
 *
 * Thread-safe. An allocation that cannot be recorded for want of memory is simply not counted. */
#ifndef GML_INTERPOSE_LEDGER_H
#define GML_INTERPOSE_LEDGER_H

#include "base/lock.h"
#include "base/map.h"
#include "base/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gml_ledger {
    gml_lock lock;
    gml_map blocks; /* address -> device in the low bits, bytes above */
} gml_ledger;

typedef struct gml_ledger_entry {
    size_t bytes;
    int device;
} gml_ledger_entry;

void gml_ledger_init(gml_ledger *ledger);
bool gml_ledger_add(gml_ledger *ledger, uintptr_t address, gml_ledger_entry entry);
bool gml_ledger_remove(gml_ledger *ledger, uintptr_t address, gml_ledger_entry *out_entry);

/* Adds the sizes of all blocks that lie on a device. */
void gml_ledger_live_sizes(gml_ledger *ledger, int device, gml_tally *tally);

/* Forgets what lies on a device (it was reset). */
void gml_ledger_drop_device(gml_ledger *ledger, int device);

#endif
