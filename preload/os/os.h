/* SPDX-License-Identifier: Apache-2.0 */
/* OS: every system call that the preloaded library makes for itself, in one place.
 *
 * Blanket rules: nothing here prints, ends the process, takes a lock or allocates from malloc; every
 * function leaves errno as it found it. (Host pages: base/pages.h.) */
#ifndef GML_OS_OS_H
#define GML_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Monotonic time in nanoseconds; the coarse one costs a few ns and moves in steps of some ms. */
uint64_t gml_os_monotonic_ns(void);
uint64_t gml_os_coarse_ns(void);
uint64_t gml_os_realtime_ns(void);

/* Waits, at least so long; less than a second. */
void gml_os_pause_ns(uint32_t ns);

uint64_t gml_os_pid(void);
uint64_t gml_os_parent_pid(void);

/* Creates `path` anew (never over an existing file) with `bytes` of zeros and maps it shared. NULL
 * when that cannot be done; *out_exists tells whether a file of that name was the reason. */
void *gml_os_create_shared(const char *path, size_t bytes, bool *out_exists);

/* Creates a directory; an existing one is fine. */
void gml_os_make_directory(const char *path);

/* Reads at most `capacity` bytes of a file; returns how many. */
size_t gml_os_read_file(const char *path, void *buffer, size_t capacity);

/* Reads memory of this process itself. False, instead of a fault, when an address is not mapped, and where neither
 * process_vm_readv nor a pipe may be used. */
bool gml_os_read_memory(uintptr_t address, void *buffer, size_t bytes);

/* The thread that the process began with. */
bool gml_os_is_main_thread(void);

/* The name of the calling thread: at most 15 characters, the rest zeros. */
void gml_os_thread_name(char name[16]);

/* Writes one line to standard error. */
void gml_os_write_line(const char *text);

#endif
