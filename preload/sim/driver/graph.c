/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: lists of captured work in capture order, replayed in that order on the launch stream. */
#include "sim/driver/driver.h"

#include <stdlib.h>

bool sim_graph_add_locked(struct sim_graph *graph, const struct sim_op *op)
{
    struct sim_op *copy = malloc(sizeof *copy);
    if (!copy) return false;
    *copy = *op;
    copy->next = NULL;
    struct sim_range *range = op->kind == SIM_OP_ALLOC ? sim_range_find_locked(op->u.free.va) : NULL;
    if (range) range->owners++;
    if (op->kind == SIM_OP_KERNEL && op->u.kernel.computation) op->u.kernel.computation->refs++;
    if (graph->tail) graph->tail->next = copy;
    else graph->head = copy;
    graph->tail = copy;
    graph->nodes++;
    return true;
}

void sim_graph_free_locked(struct sim_graph *graph)
{
    for (struct sim_op *op = graph->head, *next; op; op = next) {
        next = op->next;
        if (op->kind == SIM_OP_KERNEL) sim_computation_unref_locked(op->u.kernel.computation);
        if (op->kind == SIM_OP_ALLOC) sim_graph_memory_drop_locked(op->u.free.va, op->u.free.id);
        free(op);
    }
    sim_object_free_locked(graph);
}

DRIVER(cuGraphCreate, (CUgraph * out, unsigned flags))
{
    ENTER(cuGraphCreate);
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *graph = sim_object_new_locked(SIM_GRAPH);
    if (graph) *out = (CUgraph)(void *)graph;
    sim_unlock();
    return graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuGraphDestroy, (CUgraph handle))
{
    ENTER(cuGraphDestroy);
    sim_lock();
    struct sim_graph *graph = sim_object_get_locked(SIM_GRAPH, handle);
    if (graph) sim_graph_free_locked(graph);
    sim_unlock();
    return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A graph with memory of its own has at most one executable graph at a time. */
static bool instantiated_locked(const struct sim_graph *graph)
{
    for (struct sim_op *op = graph->head; op; op = op->next) {
        const struct sim_range *range = op->kind == SIM_OP_ALLOC ? sim_range_find_locked(op->u.free.va) : NULL;
        if (range && range->owners > 1) return true;
    }
    return false;
}

DRIVER(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph handle, unsigned long long flags))
{
    ENTER(cuGraphInstantiate);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *graph = sim_object_get_locked(SIM_GRAPH, handle);
    if (graph && instantiated_locked(graph)) graph = NULL;
    struct sim_graph *exec = graph && out ? sim_object_new_locked(SIM_EXEC) : NULL;
    if (exec) {
        bool ok = true;
        exec->flags = flags;
        for (struct sim_op *op = graph->head; op && ok; op = op->next) ok = sim_graph_add_locked(exec, op);
        result = ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (ok) *out = (CUgraphExec)(void *)exec;
        else sim_graph_free_locked(exec);
    }
    sim_unlock();
    return result;
}

DRIVER(cuGraphExecDestroy, (CUgraphExec handle))
{
    ENTER(cuGraphExecDestroy);
    sim_lock();
    struct sim_graph *exec = sim_object_get_locked(SIM_EXEC, handle);
    if (exec) sim_graph_free_locked(exec);
    sim_unlock();
    return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuGraphUpload, (CUgraphExec handle, CUstream stream))
{
    ENTER(cuGraphUpload);
    (void)stream;
    sim_lock();
    bool known = sim_object_get_locked(SIM_EXEC, handle) != NULL;
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuGraphLaunch, (CUgraphExec handle, CUstream stream_handle))
{
    ENTER_CTX(cuGraphLaunch, ctx);
    sim_lock();
    struct sim_stream *stream;
    CUresult result = sim_stream_get_locked(ctx, stream_handle, &stream);
    struct sim_graph *exec = sim_object_get_locked(SIM_EXEC, handle);
    if (result == CUDA_SUCCESS && !exec) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = sim_graph_memory_launch_locked(exec);
    for (struct sim_op *op = exec ? exec->head : NULL; op && result == CUDA_SUCCESS; op = op->next) {
        struct sim_op now = *op;
        struct sim_range *range = op->kind == SIM_OP_FREE ? sim_range_find_locked(op->u.free.va) : NULL;
        if (range && range->kind == SIM_RANGE_GRAPH) {
            now.u.free.generation = range->generation;
            range->live = false;
        }
        if (op->kind == SIM_OP_KERNEL && op->u.kernel.computation) op->u.kernel.computation->refs++;
        result = sim_submit_locked(stream, &now);
    }
    sim_unlock();
    return result;
}

/* Nodes have no handles of their own here; the count is true. */
DRIVER(cuGraphGetNodes, (CUgraph handle, CUgraphNode *nodes, size_t *count))
{
    ENTER(cuGraphGetNodes);
    sim_lock();
    struct sim_graph *graph = sim_object_get_locked(SIM_GRAPH, handle);
    CUresult result = graph && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct sim_op *op = graph->head;
        for (size_t i = 0; nodes && i < *count; i++, op = op ? op->next : NULL) nodes[i] = (CUgraphNode)(void *)op;
        if (!nodes || graph->nodes < *count) *count = graph->nodes;
    }
    sim_unlock();
    return result;
}

/* ---- user objects: a destructor that runs when the last reference goes ---- */

struct user_object {
    struct sim_object object;
    void *pointer;
    CUhostFn destroy;
    unsigned refs;
};

DRIVER(cuUserObjectCreate, (CUuserObject * out, void *pointer, CUhostFn destroy, unsigned refs, unsigned flags))
{
    ENTER(cuUserObjectCreate);
    (void)flags;
    if (!out || !destroy || !refs) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct user_object *user = sim_object_new_locked(SIM_USER_OBJECT);
    if (user) {
        user->pointer = pointer;
        user->destroy = destroy;
        user->refs = refs;
        *out = (CUuserObject)(void *)user;
    }
    sim_unlock();
    return user ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuUserObjectRetain, (CUuserObject handle, unsigned count))
{
    ENTER(cuUserObjectRetain);
    sim_lock();
    struct user_object *user = sim_object_get_locked(SIM_USER_OBJECT, handle);
    if (user) user->refs += count;
    sim_unlock();
    return user ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuUserObjectRelease, (CUuserObject handle, unsigned count))
{
    ENTER(cuUserObjectRelease);
    CUhostFn destroy = NULL;
    void *pointer = NULL;
    sim_lock();
    struct user_object *user = sim_object_get_locked(SIM_USER_OBJECT, handle);
    bool ok = user && user->refs >= count;
    if (ok && (user->refs -= count) == 0) {
        destroy = user->destroy;
        pointer = user->pointer;
        sim_object_free_locked(user);
    }
    sim_unlock();
    if (destroy) destroy(pointer);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Graphs keep the references they are given until the program ends: destructors run late, never early. */
DRIVER(cuGraphRetainUserObject, (CUgraph graph, CUuserObject handle, unsigned count, unsigned flags))
{
    ENTER(cuGraphRetainUserObject);
    sim_lock();
    struct user_object *user = sim_object_get_locked(SIM_USER_OBJECT, handle);
    bool ok = user && sim_object_get_locked(SIM_GRAPH, graph);
    if (ok && !(flags & 1)) user->refs += count; /* without the move flag the caller keeps its own */
    sim_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
