/* SPDX-License-Identifier: Apache-2.0 */
/* A plain mutex. Since glibc 2.34 it lives in libc itself, so no further library is needed. */
#ifndef GML_BASE_LOCK_H
#define GML_BASE_LOCK_H

#include <pthread.h>

typedef struct gml_lock {
    pthread_mutex_t mutex;
} gml_lock;

#define GML_LOCK_INIT {PTHREAD_MUTEX_INITIALIZER}

/* Neither call can fail on a lock that was initialised and is used in pairs. */
static inline void gml_lock_acquire(gml_lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
}

static inline void gml_lock_release(gml_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}

#endif
