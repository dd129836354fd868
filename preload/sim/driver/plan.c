/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels: what the simple ones of PyTorch compute (kernel.h). */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum sim_type type;
    size_t bytes;
} types[] = {
    {"bool", SIM_BOOL, 1},     {"unsigned char", SIM_U8, 1}, {"signed char", SIM_I8, 1}, {"short", SIM_I16, 2},
    {"int", SIM_I32, 4},       {"long", SIM_I64, 8},         {"Half", SIM_F16, 2},       {"BFloat16", SIM_BF16, 2},
    {"float", SIM_F32, 4},     {"double", SIM_F64, 8},
};
enum { TYPES = sizeof types / sizeof *types };

size_t sim_type_bytes(enum sim_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type) return types[i].bytes;
    return 0;
}

/* ---- text ---- */

/* A piece of a name. */
struct text {
    const char *at;
    size_t length;
};

static bool is(struct text text, const char *word)
{
    return text.length == strlen(word) && !memcmp(text.at, word, text.length);
}

static bool begins(struct text text, const char *word)
{
    size_t length = strlen(word);
    return text.length >= length && !memcmp(text.at, word, length);
}

static bool has(struct text text, const char *word)
{
    return memmem(text.at, text.length, word, strlen(word)) != NULL;
}

static enum sim_type type_of(struct text text)
{
    for (int i = 0; i < TYPES; i++)
        if (is(text, types[i].name)) return types[i].type;
    return SIM_OTHER;
}

/* The n-th of the arguments that stand between the first `open` and its end: `a<b, c<d>>` has b and c<d>. */
static struct text argument(struct text text, char open, unsigned n)
{
    const char *at = memchr(text.at, open, text.length), *end = text.at + text.length;
    int depth = 0;
    if (!at) return (struct text){"", 0};
    for (const char *p = at, *start = at + 1; p < end; p++) {
        bool closes = *p == '>' || *p == ')' || *p == '}';
        if (*p == '<' || *p == '(' || *p == '{') depth++;
        if (closes) depth--;
        if (depth == 0 || (depth == 1 && *p == ',')) {
            if (n-- == 0) {
                while (start < p && *start == ' ') start++;
                while (p > start && p[-1] == ' ') p--;
                return (struct text){start, (size_t)(p - start)};
            }
            start = p + 1;
        }
        if (depth == 0) break;
    }
    return (struct text){"", 0};
}

/* The n-th argument's type of the lambda that the text ends with. */
static enum sim_type lambda_type(struct text text, unsigned n)
{
    static const char start[] = "{lambda(";
    const char *last = NULL;
    for (const char *p = text.at, *end = text.at + text.length; p < end; p++) {
        p = memmem(p, (size_t)(end - p), start, sizeof start - 1);
        if (!p) break;
        last = p;
    }
    if (!last) return SIM_OTHER;
    struct text tail = {last + 1, text.length - (size_t)(last + 1 - text.at)};
    return type_of(argument(tail, '(', n));
}

/* Takes names of scopes out, so that those of several versions look alike. */
static void strip(char *name)
{
    static const char *const scopes[] = {"at::native::",  "(anonymous namespace)::", "binary_internal::",
                                         "at::detail::",  "at::cuda::detail::",      "memory::",
                                         "c10::",         "std::"};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        size_t length = strlen(scopes[i]);
        for (char *p = name; (p = strstr(p, scopes[i]));) memmove(p, p + length, strlen(p + length) + 1);
    }
}

/* By the C++ library of the program: PyTorch brought it, a program without has no kernels of PyTorch's. */
static char *demangle(const char *name)
{
    static char *(*function)(const char *, char *, size_t *, int *);
    int status = 0;
    if (!function) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&function, &found, sizeof found);
    }
    return function ? function(name, NULL, NULL, &status) : NULL;
}

/* ---- what is computed ---- */

static const struct {
    const char *begin; /* of the functor's name */
    enum sim_action action;
    unsigned char arity;
    bool lambda; /* its types are those of its lambda; else of its template */
} functors[] = {
    {"FillFunctor<", SIM_DO_FILL, 0, false},
    {"BitwiseAndFunctor<", SIM_DO_AND, 2, false},
    {"BitwiseOrFunctor<", SIM_DO_OR, 2, false},
    {"BitwiseXorFunctor<", SIM_DO_XOR, 2, false},
    {"MulFunctor<", SIM_DO_MULTIPLY, 2, false},
    {"CompareEqFunctor<", SIM_DO_EQUAL, 2, false},
    {"CompareFunctor<", SIM_DO_COMPARE, 2, false},
    {"CUDAFunctor_add<", SIM_DO_ADD, 2, false},
    {"CUDAFunctorOnSelf_add<", SIM_DO_ADD, 1, false},
    {"CUDAFunctorOnOther_add<", SIM_DO_ADD, 1, false},
    {"AbsFunctor<", SIM_DO_ABSOLUTE, 1, false},
    {"compare_scalar_kernel<", SIM_DO_COMPARE, 1, true},
    {"direct_copy_kernel_cuda(", SIM_DO_COPY, 1, true},
    {"float16_copy_kernel_cuda(", SIM_DO_COPY, 1, true},
    {"bfloat16_copy_kernel_cuda(", SIM_DO_COPY, 1, true},
    {"bitwise_not_kernel_cuda(", SIM_DO_NOT, 1, true},
    {"logical_not_kernel_cuda(", SIM_DO_LOGICAL_NOT, 1, true},
    {"logical_and_kernel_cuda(", SIM_DO_LOGICAL_AND, 2, true},
    {"logical_or_kernel_cuda(", SIM_DO_LOGICAL_OR, 2, true},
    {"neg_kernel_cuda(", SIM_DO_NEGATE, 1, true},
    {"remainder_kernel_cuda(", SIM_DO_REMAINDER, 2, true},
};

static bool yields_bool(enum sim_action action)
{
    return action == SIM_DO_EQUAL || action == SIM_DO_COMPARE || action == SIM_DO_LOGICAL_NOT ||
           action == SIM_DO_LOGICAL_AND || action == SIM_DO_LOGICAL_OR;
}

/* A functor without wrapping. */
static void read_plain(struct sim_plan *plan, struct text functor)
{
    for (size_t i = 0; i < sizeof functors / sizeof *functors; i++) {
        if (!begins(functor, functors[i].begin)) continue;
        plan->action = functors[i].action;
        plan->arity = functors[i].arity;
        for (unsigned n = 0; n < 2; n++)
            plan->type[n] = (unsigned char)(functors[i].lambda ? lambda_type(functor, n < plan->arity ? n : 0)
                                                               : type_of(argument(functor, '<', 0)));
        plan->result = yields_bool(plan->action) ? SIM_BOOL : plan->type[0];
        if (begins(functor, "float16_copy")) plan->result = SIM_F16;
        if (begins(functor, "bfloat16_copy")) plan->result = SIM_BF16;
        if (begins(functor, "compare_scalar_kernel<") || begins(functor, "CUDAFunctorOnSelf_")) plan->scalar = 2;
        if (begins(functor, "CUDAFunctorOnOther_")) plan->scalar = 1;
        return;
    }
}

/* BinaryFunctor<A, B, R, F>, and the two that hold one of both arguments. */
static void read_functor(struct sim_plan *plan, struct text functor)
{
    bool both = begins(functor, "BinaryFunctor<");
    bool first = begins(functor, "AUnaryFunctor<"), second = begins(functor, "BUnaryFunctor<");
    plan->action = SIM_DO_NOTHING;
    if (!both && !first && !second) {
        read_plain(plan, functor);
    } else {
        const struct text inner = argument(functor, '<', 3);
        read_plain(plan, inner);
        if (plan->arity != 2) plan->action = SIM_DO_NOTHING;
        plan->arity = both ? 2 : 1;
        plan->scalar = first ? 1 : second ? 2 : 0;
        plan->result = (unsigned char)type_of(argument(functor, '<', 2));
        for (unsigned n = 0; n < 2; n++)
            if (type_of(argument(functor, '<', n)) != plan->type[n]) plan->action = SIM_DO_NOTHING;
    }
    bool known = plan->result && (!plan->arity || (plan->type[0] && plan->type[1]));
    if (!known || plan->arity + 1u != plan->operands) plan->action = SIM_DO_NOTHING;
}

/* array<char*, 3ul>, and Array<char*, 3> of older versions. */
static unsigned pointers_in(struct text array)
{
    struct text length = argument(array, '<', 1);
    if (!(begins(array, "array<char*") || begins(array, "Array<char*")) || !length.length) return 0;
    unsigned n = (unsigned)strtoul(length.at, NULL, 10);
    return n <= SIM_OPERANDS ? n : 0;
}

static void read_elementwise(struct sim_plan *plan, struct text name)
{
    if (has(name, "complex<")) return;
    if (begins(name, "vectorized_elementwise_kernel<")) {
        plan->operands = (unsigned char)pointers_in(argument(name, '<', 2));
        if (plan->operands) plan->form = SIM_FORM_FLAT;
        read_functor(plan, argument(name, '<', 1));
    } else if (begins(name, "unrolled_elementwise_kernel<")) {
        static const char calculator[] = "TrivialOffsetCalculator<";
        const unsigned first = begins(argument(name, '<', 2), calculator) ? 2 : 3; /* torch 2.8 has a number before */
        const bool trivial = begins(argument(name, '<', first), calculator) &&
                             begins(argument(name, '<', first + 1), calculator);
        plan->operands = (unsigned char)pointers_in(argument(name, '<', 1));
        plan->casts = begins(argument(name, '<', first + 3), "StoreWithCast<");
        if (plan->operands && trivial) plan->form = plan->casts ? SIM_FORM_CAST : SIM_FORM_FLAT;
        read_functor(plan, argument(name, '<', 0));
    } else if (begins(name, "elementwise_kernel<")) {
        struct text loop = argument(name, '<', 2);
        plan->casts = begins(loop, "gpu_kernel_impl<");
        if (!plan->casts && !begins(loop, "gpu_kernel_impl_nocast<")) return;
        for (unsigned char n = 1; n <= 3 && !plan->action; n++) {
            plan->operands = n;
            read_functor(plan, argument(loop, '<', 0)); /* fits only the number of operands that it takes */
        }
        if (plan->action) plan->form = SIM_FORM_STRIDED;
    } else if (begins(name, "elementwise_kernel_with_index<")) {
        plan->form = SIM_FORM_INDEX;
        plan->operands = 1;
    }
}

static void read_reduction(struct sim_plan *plan, struct text name)
{
    static const struct {
        const char *begin;
        enum sim_action action;
    } operations[] = {
        {"sum_functor<", SIM_DO_SUM},       {"MaxNanFunctor<", SIM_DO_MAX}, {"MinNanFunctor<", SIM_DO_MIN},
        {"and_kernel_cuda(", SIM_DO_ALL}, {"or_kernel_cuda(", SIM_DO_ANY},
    };
    struct text op = argument(name, '<', 2), by = argument(op, '<', 1), inner = argument(by, '<', 1);
    if (!begins(op, "ReduceOp<") || has(argument(op, '<', 0), "complex<")) return;
    plan->form = SIM_FORM_REDUCE;
    plan->operands = 2;
    plan->arity = 1;
    plan->type[0] = plan->type[1] = (unsigned char)type_of(argument(op, '<', 0));
    plan->result = (unsigned char)type_of(argument(op, '<', 3));
    plan->wide = !is(argument(op, '<', 2), "unsigned int");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (begins(by, "func_wrapper_t<") && begins(inner, operations[i].begin)) plan->action = operations[i].action;
    if (!plan->type[0] || !plan->result) plan->action = SIM_DO_NOTHING;
}

static void read_concatenation(struct sim_plan *plan, struct text name)
{
    struct text element = argument(name, '<', 0), size = argument(element, '<', 0);
    size_t bytes = begins(element, "OpaqueType<") && size.length ? strtoul(size.at, NULL, 10)
                                                                  : sim_type_bytes(type_of(element));
    unsigned long batch = strtoul(argument(name, '<', 3).at, NULL, 10);
    if (!bytes || bytes > 16 || batch < 1 || batch > 128) return;
    if (!is(argument(name, '<', 1), "unsigned int")) return;
    plan->form = SIM_FORM_CAT;
    plan->width = (unsigned char)bytes;
    plan->batch = (unsigned char)batch;
}

struct sim_plan sim_plan_of(const char *name)
{
    struct sim_plan plan = {.form = SIM_FORM_NONE};
    if (!strcmp(name, "_ZN2at6native28amp_update_scale_cuda_kernelEPfPiPKfddi")) {
        plan.form = SIM_FORM_SCALER; /* the types of its parameters are in its name */
        return plan;
    }
    static const char *const kinds[] = {"elementwise_kernel", "reduce_kernel", "CatArrayBatchedCopy"};
    bool worth = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) worth |= strstr(name, kinds[i]) != NULL;
    char *demangled = worth ? demangle(name) : NULL;
    if (!demangled) return plan;
    strip(demangled);
    struct text text = {demangled, strlen(demangled)};
    if (begins(text, "void ")) text.at += 5, text.length -= 5;
    if (begins(text, "reduce_kernel<")) read_reduction(&plan, text);
    else if (begins(text, "CatArrayBatchedCopy")) read_concatenation(&plan, text);
    else read_elementwise(&plan, text);
    free(demangled);
    return plan;
}
