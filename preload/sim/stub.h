/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs: what a library imports and the simulator does not model. Each is weak, so that a real
 * implementation in the same library takes its place, and each says that it was called. */
#ifndef GML_SIM_STUB_H
#define GML_SIM_STUB_H

/* Reports a call to the simulated driver; defined once in each library. */
void sim_stub_called(const char *name, int has_outputs);

/* Stands for device work: it succeeds, as there is nothing to give back. */
#define WORK_STUB(name)                                          \
    __attribute__((weak, visibility("default"))) int name(void); \
    int name(void)                                               \
    {                                                            \
        sim_stub_called(#name, 0);                               \
        return 0;                                                \
    }
/* Has outputs that nothing fills: it answers the library's "not supported". */
#define OUTPUT_STUB(name, status)                                \
    __attribute__((weak, visibility("default"))) int name(void); \
    int name(void)                                               \
    {                                                            \
        sim_stub_called(#name, 1);                               \
        return status;                                           \
    }

#endif
