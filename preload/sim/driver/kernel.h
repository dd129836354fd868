/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are understood: simple ones of PyTorch, by the names that they are registered with.
 *
 * A kernel's mangled name says its template arguments: what it computes, on which types, and by which of PyTorch's
 * loops. How a loop lays its parameters out stands in the headers that every PyTorch comes with (ATen/native/cuda:
 * CUDALoops.cuh, Loops.cuh, Reduce.cuh, MemoryAccess.cuh, ATen/cuda/detail/OffsetCalculator.cuh). Parameters are
 * read only where they prove themselves (arguments.c); any doubt, and the kernel counts as one that may have
 * written anything, as all kernels did. */
#ifndef GML_SIM_KERNEL_H
#define GML_SIM_KERNEL_H

#include "sim/driver/known.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_form { /* the loop */
    SIM_FORM_NONE,
    SIM_FORM_FLAT,    /* vectorized_elementwise_kernel(N, functor, pointers) */
    SIM_FORM_CAST,    /* unrolled_elementwise_kernel(N, functor, pointers, _, _, loader, storer) */
    SIM_FORM_STRIDED, /* elementwise_kernel(N, {offsets, pointers, functor, types}) */
    SIM_FORM_INDEX,   /* elementwise_kernel_with_index(N, functor, pointer) */
    SIM_FORM_REDUCE,  /* reduce_kernel(ReduceOp) */
    SIM_FORM_CAT,     /* CatArrayBatchedCopy…(output, inputs, _, dimension, stride) */
    SIM_FORM_SCALER   /* amp_update_scale_cuda_kernel(scale, tracker, found, growth, backoff, interval) */
};

enum sim_action { /* what is computed of each element */
    SIM_DO_NOTHING, /* not understood: the result is unknown, but where it lies is known */
    SIM_DO_FILL,
    SIM_DO_COPY,
    SIM_DO_ADD,
    SIM_DO_MULTIPLY,
    SIM_DO_AND,
    SIM_DO_OR,
    SIM_DO_XOR,
    SIM_DO_NOT,         /* of bits; of a boolean, its opposite */
    SIM_DO_LOGICAL_AND, /* of anything but 0 */
    SIM_DO_LOGICAL_OR,
    SIM_DO_LOGICAL_NOT,
    SIM_DO_EQUAL,   /* or not equal, by the functor */
    SIM_DO_COMPARE, /* one of four orders, by the functor */
    SIM_DO_NEGATE,
    SIM_DO_ABSOLUTE,
    SIM_DO_REMAINDER, /* by a number; only by 1, which whole numbers leave nothing of */
    SIM_DO_SUM, /* from here on: over elements */
    SIM_DO_MAX,
    SIM_DO_MIN,
    SIM_DO_ALL,
    SIM_DO_ANY
};

enum sim_type { SIM_OTHER, SIM_BOOL, SIM_U8, SIM_I8, SIM_I16, SIM_I32, SIM_I64, SIM_F16, SIM_BF16, SIM_F32, SIM_F64 };

/* Bytes of an element; 0 for SIM_OTHER. */
size_t sim_type_bytes(enum sim_type type);

struct sim_plan {
    unsigned char form, action;
    unsigned char arity;  /* inputs in memory */
    unsigned char scalar; /* the argument that the functor holds itself: 1, 2, or 0 for none */
    unsigned char type[2], result;
    unsigned char operands; /* pointers, the result first */
    unsigned char width;    /* concatenation: bytes of an element */
    bool casts;             /* a loop that takes the types in memory as parameters */
    bool wide;              /* a reduction with 64-bit offsets */
    unsigned char batch;    /* concatenation: most inputs of a launch */
};

/* The type that the n-th input has in the functor, whose first argument may be one that it holds itself. */
static inline enum sim_type sim_plan_type(const struct sim_plan *plan, unsigned input)
{
    unsigned argument = plan->scalar == 1 ? 1 : input;
    return (enum sim_type)plan->type[argument < 2 ? argument : 1];
}

/* The plan of a kernel of this mangled name. */
struct sim_plan sim_plan_of(const char *name);

enum { SIM_DIMS = 6, SIM_OPERANDS = 4 };

struct sim_operand {
    uintptr_t va;
    enum sim_type type;
    uint32_t stride[SIM_DIMS]; /* bytes */
};

struct sim_value {
    int64_t i; /* for booleans and integers */
    double f;  /* for floating point */
};

/* A launch of a kernel that is understood. */
struct sim_computation {
    unsigned refs;
    struct sim_plan plan;
    uint64_t count; /* elements of the result */
    unsigned dims;
    uint32_t size[SIM_DIMS];
    struct sim_operand operand[SIM_OPERANDS];
    uint64_t over; /* a reduction: inputs for each element */
    unsigned over_dims;
    uint32_t over_size[SIM_DIMS], over_stride[SIM_DIMS];
    struct sim_value scalar; /* of the functor */
    bool scalar_unknown;     /* it has one whose type is not certain */
    struct sim_value scale;  /* of an addition: what the second argument is multiplied with */
    unsigned order;          /* of a comparison */
    unsigned parts;          /* a concatenation */
    struct sim_part {
        uintptr_t from;
        uint64_t at, bytes; /* place in the result */
    } part[];
};

/* What a launch with these parameters computes, with one reference; NULL when it may have written anything. */
struct sim_computation *sim_arguments_read_locked(const struct sim_plan *plan, void *const *params,
                                                  const unsigned grid[3], const unsigned block[3]);
void sim_computation_unref_locked(struct sim_computation *computation);
/* Computes what can be, and forgets the rest of what the kernel writes. */
void sim_compute_locked(const struct sim_computation *computation);
/* The step of a loss scaler (scaler.c): operands are the scale, the steps since it grew and whether a gradient was not
 * finite; `scalar` and `scale` hold the factors of growth and backoff, `order` the steps from growth to growth. */
void sim_scaler_step_locked(const struct sim_computation *computation);

/* Memory of one element as a value, and back. */
struct sim_value sim_value_load(enum sim_type type, const void *from);
void sim_value_store(enum sim_type type, struct sim_value value, void *to);
bool sim_type_floats(enum sim_type type);
/* A value of one type as another. */
struct sim_value sim_value_cast(enum sim_type from, enum sim_type to, struct sim_value value);

#endif
