/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks and the ordering oracle (oracle.c). */
#ifndef GML_SIM_ORACLE_H
#define GML_SIM_ORACLE_H

#include <stdint.h>

#define SIM_NO_STREAM UINT64_MAX

/* A vector clock, see oracle.c. */
struct sim_clock {
    unsigned count, room;
    uint64_t changes; /* grows with every change, so that nothing is joined twice */
    uint64_t *at;
};

struct sim_map;
struct sim_phys;

unsigned sim_slot_new_locked(void);
void sim_slot_free_locked(unsigned slot, uint64_t value);
void sim_clock_join(struct sim_clock *into, const struct sim_clock *from);
/* The same, for a pair of clocks that live on: `seen` is theirs alone, and 0 at first. */
void sim_clock_join_once(struct sim_clock *into, const struct sim_clock *from, uint64_t *seen);
void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t value);
uint64_t sim_clock_at(const struct sim_clock *clock, unsigned slot);
void sim_clock_clear(struct sim_clock *clock);
/* Everything `clock` covers has finished, as the host knows. */
void sim_host_knows_locked(const struct sim_clock *clock);
void sim_oracle_unmap_locked(const struct sim_map *map);
void sim_marks_free_locked(struct sim_phys *phys);

#endif
