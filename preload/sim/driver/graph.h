/* SPDX-License-Identifier: Apache-2.0 */
/* Captures (capture.c), and graphs as lists of captured work (graph.c). */
#ifndef GML_SIM_GRAPH_H
#define GML_SIM_GRAPH_H

#include "sim/driver/stream.h"

#define SIM_CAPTURE_STREAMS 64

struct sim_graph {
    struct sim_object object;
    struct sim_op *head, *tail;
    size_t nodes;
    unsigned long long flags; /* of an executable graph: CUDA_GRAPH_INSTANTIATE_FLAG_* */
};

struct sim_capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid, to_existing_graph;
    struct sim_stream *origin;
    struct sim_graph *graph;
    unsigned members; /* streams that take part, the origin first */
    struct sim_stream *member[SIM_CAPTURE_STREAMS];
    struct sim_capture *next;
};

struct sim_capture *sim_capture_find_locked(uint64_t id);
void sim_capture_spoil_locked(struct sim_capture *capture);
/* A wait on an event that touches a capture on either side. `*done` says that it was dealt with here. */
CUresult sim_capture_wait_locked(struct sim_stream *stream, struct sim_event *event, bool *done);

/* Refuses a potentially unsafe call while a capture forbids it, and spoils that capture. */
CUresult sim_capture_unsafe_locked(void);
/* The same for a call that names a stream (synchronise, query). */
CUresult sim_capture_refuse_locked(struct sim_stream *stream);
CUresult sim_capture_add_locked(struct sim_stream *stream, const struct sim_op *op);
/* Refuses work on the legacy stream while a blocking stream of its context is captured. */
CUresult sim_capture_legacy_locked(struct sim_ctx *ctx);
struct sim_op *sim_op_clone(const struct sim_op *op);

bool sim_graph_add_locked(struct sim_graph *graph, const struct sim_op *op);
void sim_graph_free_locked(struct sim_graph *graph);

/* ---- memory of graphs (graph_memory.c) ---- */

/* An address for a captured allocation, without memory behind it; the graph's node is its first owner. */
CUresult sim_graph_memory_new_locked(struct sim_ctx *ctx, size_t bytes, struct sim_range **out);
/* A node that names the allocation goes. */
void sim_graph_memory_drop_locked(uintptr_t va, uint64_t id);
/* Allocates what the nodes of a graph allocate, all or nothing: refused while an earlier allocation was not
 * freed, unless the graph was instantiated to free it at the launch. */
CUresult sim_graph_memory_launch_locked(const struct sim_graph *exec);
/* A free of the `generation`-th allocation takes effect; nothing happens when a later launch allocated anew. */
void sim_graph_memory_free_locked(struct sim_range *range, uint64_t generation);

#endif
