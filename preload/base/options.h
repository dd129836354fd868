/* SPDX-License-Identifier: Apache-2.0 */
/* Options: the environment variables through which gml-run speaks to the libraries in the child. */
#ifndef GML_BASE_OPTIONS_H
#define GML_BASE_OPTIONS_H

/* X(NAME, default, meaning): the variable is GML_<NAME>. An unset or empty variable is the default. */
#define GML_OPTIONS(X)                                                                           \
    X(ALLOCATOR, "vms", "vms, native, expandable, cuda-async, raw or observe")                   \
    X(INTERCEPT, "tensors", "tensors, segments or uncached: what of PyTorch reaches the allocator") \
    X(GOAL, "balanced", "memory, balanced or throughput")                                        \
    X(LIMIT, "0", "most bytes to hold per device; 0 is no limit")                                \
    X(MAX_DRIVER_TIME, "1", "percent of elapsed time that stitching may cost")                   \
    X(DRIVER_COSTS, "", "what driver calls cost per 2 MiB, such as create=193us,map=1.5us; empty: as measured") \
    X(RELEASE_IDLE, "0", "give memory back to the driver that was idle for so many seconds; 0 keeps it") \
    X(RUN_DIR, "", "run directory, absolute; empty: no telemetry file is written")               \
    X(STACKS, "0", "1: charge live memory to the Python lines that asked for it")                 \
    X(CHECK, "0", "1: check the heap's invariants after every operation (slow; for tests)")      \
    X(SIM_PROFILE, "", "simulated device, such as h100; empty: the simulation is off")           \
    X(SIM_SIZE, "", "bytes per simulated device, from --simulate NAME:SIZE; wins over GML_SIM_MEMORY") \
    X(SIM_MEMORY, "", "bytes per simulated device; wins over the profile's own size")            \
    X(SIM_DEVICES, "1", "number of simulated devices")                                           \
    X(SIM_TIME, "fast", "fast, or adversarial:SEED for late and shuffled stream execution")      \
    X(SIM_STRICT, "0", "1: a call whose outputs are not filled stops the program")               \
    X(SIM_ORACLE, "1", "0: do not check that reuse is ordered after the free")                   \
    X(SIM_FLAG_AFTER, "1024", "a loop on a computed flag ends: its read that is answered with yes; 0: none") \
    X(SIM_FAULTS, "", "calls to fail on demand, such as cuMemMap:3=2")

#endif
