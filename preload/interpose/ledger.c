/* SPDX-License-Identifier: Apache-2.0 */
/* A locked map from address to size and device, packed into the map's pointer value. */
#include "interpose/ledger.h"

#define DEVICE_BITS 8
#define DEVICE_MASK (((uint64_t)1 << DEVICE_BITS) - 1)

void gml_ledger_init(gml_ledger *ledger)
{
    *ledger = (gml_ledger){.lock = GML_LOCK_INIT};
}

bool gml_ledger_add(gml_ledger *ledger, uintptr_t address, gml_ledger_entry entry)
{
    /* The size is at least 1, so that the packed value is never the map's "absent". */
    uint64_t packed = (uint64_t)entry.bytes << DEVICE_BITS | ((uint64_t)entry.device & DEVICE_MASK);
    bool added = false;
    gml_lock_acquire(&ledger->lock);
    if (entry.bytes > 0 && address != 0 && gml_map_ensure(&ledger->blocks) == GML_OK) {
        (void)gml_map_remove(&ledger->blocks, address);
        gml_map_put(&ledger->blocks, address, (void *)(uintptr_t)packed);
        added = true;
    }
    gml_lock_release(&ledger->lock);
    return added;
}

bool gml_ledger_remove(gml_ledger *ledger, uintptr_t address, gml_ledger_entry *out_entry)
{
    gml_lock_acquire(&ledger->lock);
    uint64_t packed = (uint64_t)(uintptr_t)gml_map_remove(&ledger->blocks, address);
    gml_lock_release(&ledger->lock);
    if (packed == 0)
        return false;
    *out_entry = (gml_ledger_entry){(size_t)(packed >> DEVICE_BITS), (int)(packed & DEVICE_MASK)};
    return true;
}

void gml_ledger_live_sizes(gml_ledger *ledger, int device, gml_tally *tally)
{
    gml_lock_acquire(&ledger->lock);
    for (size_t i = 0; i < ledger->blocks.capacity; i++) {
        const gml_map_entry *entry = &ledger->blocks.entries[i];
        uint64_t packed = (uint64_t)(uintptr_t)entry->value;
        if (entry->key != 0 && (int)(packed & DEVICE_MASK) == device)
            gml_tally_add(tally, packed >> DEVICE_BITS, 1);
    }
    gml_lock_release(&ledger->lock);
}

void gml_ledger_drop_device(gml_ledger *ledger, int device)
{
    gml_lock_acquire(&ledger->lock);
    /* Removal moves entries, so the walk starts over after each; a reset is rare. */
    for (size_t i = 0; i < ledger->blocks.capacity;) {
        const gml_map_entry *entry = &ledger->blocks.entries[i];
        uint64_t packed = (uint64_t)(uintptr_t)entry->value;
        if (entry->key != 0 && (int)(packed & DEVICE_MASK) == device) {
            (void)gml_map_remove(&ledger->blocks, entry->key);
            i = 0;
        } else {
            i++;
        }
    }
    gml_lock_release(&ledger->lock);
}
