/* SPDX-License-Identifier: Apache-2.0 */
/* Computed values: kernels do nothing, so what a program reads of their results is zeros. This counts where
 * that decided something, and lets loops end that wait for a computed flag.
 *
 * Shapes: kernels whose results have a size that depends on data are known by their names.
 *
 * Flags: a loop such as transformers' generate() asks the device after every round whether all is done, and
 * would be told no for ever. A flag is one byte that only kernels can have written; flags behind the same last
 * kernels form a row (generate() also asks, in every round, whether a mask is all ones). The GML_SIM_FLAG_AFTER-th
 * read of a row is answered with yes, once, and the row begins anew. What shows that the program is no such loop
 * breaks all rows: data that the host gives to the device, reads of other sizes, and launches by another thread
 * than the one that reads (PyTorch's backward passes run on threads of their own, so training that looks for
 * `isnan(loss)` is never told yes). Reads of 8 bytes break none: a streamer that prints tokens reads each of them. */
#include "sim/driver/driver.h"

#include <string.h>

enum { MOST_READ = 16, ROWS = 64 };

/* Results by the parts that a kernel's mangled name has; the first that fits. CUB's kernels are named after
 * the algorithm, PyTorch's nonzero() counts with one that has its own functor. */
static const struct {
    const char *result, *part, *other, *without;
} known[] = {
    {"nonzero", "DeviceReduce", "NonZeroOp", NULL},
    {"unique", "DeviceSelectSweepKernel", "equal_to", NULL},
    {"unique", "DeviceReduceByKeyKernel", "encode", NULL},
    {"unique", "UniqueAgent", "", NULL},
    {"unique_by_key", "DeviceUniqueByKeySweepKernel", "", NULL},
    {"select", "DeviceSelectSweepKernel", "", "NonZeroOp"}, /* nonzero() selects after it has counted */
    {"select", "DevicePartitionSweepKernel", "", NULL},
    {"run_lengths", "DeviceRleSweepKernel", "", NULL},
    {"repeat_interleave", "compute_cuda_kernel", "", NULL},
    {"multinomial", "sampleMultinomial", "", NULL},
};
enum { KNOWN = sizeof known / sizeof *known };

/* The flags that were read behind the same kernels. */
struct row {
    const struct sim_function *trail[SIM_TRAIL];
    uint64_t epoch; /* of an earlier one: broken */
    uint64_t flags;
};

static struct {
    uint64_t launches[KNOWN];
    uint64_t reads[MOST_READ + 1]; /* by size */
    struct row rows[ROWS];
    unsigned next; /* the row to give up when there are too many */
    uint64_t epoch;
    uint64_t answered; /* flags that were answered with yes */
    uint64_t held;     /* checks that were taken to hold */
    pthread_t reader;  /* who read the last flag */
    bool has_reader;
} values;

int sim_values_result(const char *name)
{
    for (int i = 0; i < KNOWN; i++)
        if (strstr(name, known[i].part) && strstr(name, known[i].other) &&
            (!known[i].without || !strstr(name, known[i].without)))
            return i;
    return -1;
}

void sim_values_launched_locked(const struct sim_function *function)
{
    if (function && function->result >= 0) values.launches[function->result]++;
    if (values.has_reader && !pthread_equal(values.reader, pthread_self())) {
        values.has_reader = false;
        values.epoch++;
    }
}

void sim_values_exchanged_locked(bool to_host, size_t bytes)
{
    if (to_host && bytes == 1) {
        values.reader = pthread_self();
        values.has_reader = true;
    } else if (!to_host || bytes != 8) {
        values.epoch++;
    }
}

void sim_values_executed_locked(struct sim_stream *stream, const struct sim_function *function)
{
    memmove(&stream->trail[1], &stream->trail[0], sizeof stream->trail - sizeof *stream->trail);
    stream->trail[0] = function;
}

static struct row *row_of(const struct sim_stream *stream)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (!memcmp(values.rows[i].trail, stream->trail, sizeof stream->trail)) return &values.rows[i];
    struct row *row = &values.rows[values.next++ % ROWS];
    *row = (struct row){.epoch = values.epoch};
    memcpy(row->trail, stream->trail, sizeof row->trail);
    return row;
}

bool sim_values_read_locked(const struct sim_stream *stream, size_t bytes, bool holds)
{
    const uint64_t after = sim_config_get()->flag_after;
    if (bytes <= MOST_READ) values.reads[bytes]++;
    if (bytes == 1 && holds) values.held++;
    if (bytes != 1 || holds || !after) return bytes == 1 && holds;
    struct row *row = row_of(stream);
    if (row->epoch != values.epoch) row->flags = 0;
    row->epoch = values.epoch;
    if (++row->flags < after) return false;
    row->flags = 0;
    values.answered++;
    return true;
}

void sim_values_write(FILE *out)
{
    const char *comma = "";
    fprintf(out, "\"flags\": {\"after\": %llu, \"answered\": %llu, \"held\": %llu},\n \"reads\": {",
            (unsigned long long)sim_config_get()->flag_after, (unsigned long long)values.answered,
            (unsigned long long)values.held);
    for (int i = 1; i <= MOST_READ; i++) {
        if (!values.reads[i]) continue;
        fprintf(out, "%s\"%d\": %llu", comma, i, (unsigned long long)values.reads[i]);
        comma = ", ";
    }
    fprintf(out, "},\n \"data_dependent\": {");
    comma = "";
    for (int i = 0; i < KNOWN; i++) {
        uint64_t launches = values.launches[i];
        if (i && !strcmp(known[i].result, known[i - 1].result)) continue; /* counted with the one before */
        for (int j = i + 1; j < KNOWN && !strcmp(known[j].result, known[i].result); j++) launches += values.launches[j];
        if (!launches) continue;
        fprintf(out, "%s\"%s\": %llu", comma, known[i].result, (unsigned long long)launches);
        comma = ", ";
    }
    fprintf(out, "}");
}
