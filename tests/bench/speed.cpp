// SPDX-License-Identifier: Apache-2.0
// speed: plays a recorded allocation trace on one allocator and times every call.
//
// usage: speed direct|torch TRACE          direct: cudaMallocAsync and cudaFreeAsync, as a program calls them
//        speed direct|torch --hot PAIRS    CPU time of so many allocations and frees that need no driver memory
//        speed context --hot CALLS         no times: so many calls of cudaGetDevice
// torch: PyTorch's allocator (c10::cuda::CUDACachingAllocator) as the environment chooses it.
// Meant for the simulated GPU, whose counters tell which calls reached the driver's memory functions: these
// are left out of the percentiles. Prints one JSON object; the cost of reading the clock is taken off.
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

// Exported by libc10_cuda for libtorch_cuda, and in no header.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*function)(c10::DeviceIndex));
}

namespace {

struct Event {
    uint64_t bytes; // 0: a free
    uint32_t id, stream;
};

struct Trace {
    std::vector<Event> events;
    uint32_t ids = 0;
    std::vector<cudaStream_t> streams;
};

[[noreturn]] void fail(const char *what)
{
    std::fprintf(stderr, "speed: %s\n", what);
    std::exit(1);
}

Trace read_trace(const char *path)
{
    Trace trace;
    FILE *in = std::fopen(path, "r");
    if (in == nullptr)
        fail("the trace cannot be opened");
    char line[128];
    uint32_t streams = 1;
    while (std::fgets(line, sizeof line, in) != nullptr) {
        Event e{};
        bool ok = line[0] == 'A' ? std::sscanf(line, "A %" SCNu32 " %" SCNu64 " %" SCNu32, &e.id, &e.bytes, &e.stream) == 3
                                 : std::sscanf(line, "F %" SCNu32 " %" SCNu32, &e.id, &e.stream) == 2;
        if (!ok)
            fail("a line of the trace is no event");
        trace.events.push_back(e);
        trace.ids = std::max(trace.ids, e.id + 1);
        streams = std::max(streams, e.stream + 1);
    }
    std::fclose(in);
    trace.streams.resize(streams, nullptr); // stream 0 is the default one
    for (uint32_t i = 1; i < streams; i++)
        if (cudaStreamCreateWithFlags(&trace.streams[i], cudaStreamNonBlocking) != cudaSuccess)
            fail("no stream");
    return trace;
}

struct Direct {
    static void *allocate(size_t bytes, cudaStream_t stream)
    {
        void *address = nullptr;
        if (cudaMallocAsync(&address, bytes, stream) != cudaSuccess)
            fail("out of memory");
        return address;
    }
    static void release(void *address, cudaStream_t stream)
    {
        if (cudaFreeAsync(address, stream) != cudaSuccess)
            fail("a block could not be freed");
    }
};

struct Torch {
    static void *allocate(size_t bytes, cudaStream_t stream)
    {
        return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, stream);
    }
    static void release(void *address, cudaStream_t)
    {
        c10::cuda::CUDACachingAllocator::raw_delete(address);
    }
};

// The simulator's counters of the driver's memory functions.
class MemoryCalls {
    std::vector<std::atomic<uint64_t> *> counters;

public:
    MemoryCalls()
    {
        using counter_fn = std::atomic<uint64_t> *(*)(const char *);
        auto counter = reinterpret_cast<counter_fn>(dlsym(RTLD_DEFAULT, "gml_sim_counter"));
        if (counter == nullptr)
            fail("this needs the simulated GPU");
        for (const char *name : {"cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAddressReserve",
                                 "cuMemAddressFree", "cuMemAlloc", "cuMemFree", "cuMemAllocAsync", "cuMemFreeAsync", "cudaMalloc",
                                 "cudaFree"})
            counters.push_back(counter(name));
    }
    uint64_t total() const
    {
        uint64_t sum = 0;
        for (auto *counter : counters)
            sum += counter->load(std::memory_order_relaxed);
        return sum;
    }
};

uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC)
{
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t clock_cost()
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 2000; i++) {
        uint64_t start = now_ns(), end = now_ns();
        best = std::min(best, end - start);
    }
    return best;
}

struct Times {
    std::vector<uint32_t> hot; // ns of the calls that left the driver's memory alone
    uint64_t driver = 0;       // the other calls

    void print(const char *name)
    {
        std::sort(hot.begin(), hot.end());
        double sum = 0;
        for (uint32_t ns : hot)
            sum += ns;
        size_t n = hot.size();
        std::printf("\"%s\": {\"hot\": %zu, \"driver\": %" PRIu64, name, n, driver);
        if (n != 0)
            std::printf(", \"p50\": %u, \"p99\": %u, \"p999\": %u, \"mean\": %.1f", hot[n / 2], hot[n * 99 / 100],
                        hot[n * 999 / 1000], sum / static_cast<double>(n));
        std::printf("}");
    }
};

template <class Allocator> void play(const Trace &trace)
{
    MemoryCalls memory_calls;
    std::vector<void *> address(trace.ids, nullptr);
    Times allocs, frees;
    allocs.hot.reserve(trace.events.size());
    frees.hot.reserve(trace.events.size());
    uint64_t cost = clock_cost(), calls = memory_calls.total();
    for (const Event &e : trace.events) {
        cudaStream_t stream = trace.streams[e.stream];
        uint64_t start = now_ns();
        if (e.bytes != 0)
            address[e.id] = Allocator::allocate(e.bytes, stream);
        else
            Allocator::release(address[e.id], stream);
        uint64_t ns = now_ns() - start;
        if (e.bytes == 0)
            address[e.id] = nullptr;
        Times &times = e.bytes != 0 ? allocs : frees;
        uint64_t calls_now = memory_calls.total();
        if (calls_now != calls)
            times.driver++;
        else
            times.hot.push_back(static_cast<uint32_t>(std::min<uint64_t>(ns > cost ? ns - cost : 0, UINT32_MAX)));
        calls = calls_now;
    }
    std::printf("{\"events\": %zu, \"clock_ns\": %" PRIu64 ", ", trace.events.size(), cost);
    allocs.print("alloc");
    std::printf(", ");
    frees.print("free");
    std::printf("}\n");
    for (void *block : address)
        if (block != nullptr)
            Allocator::release(block, nullptr);
}

// Eight sizes from 512 bytes to 64 MiB, a few blocks of each, freed and asked for again.
template <class Allocator> void repeat(uint64_t pairs)
{
    constexpr size_t sizes[] = {512, 4096, 49152, 262144, 1048576, 3145728, 20971520, 67108864};
    void *blocks[32] = {};
    for (size_t i = 0; i < 32; i++)
        blocks[i] = Allocator::allocate(sizes[i % 8], nullptr);
    uint64_t start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < pairs; i++) {
        Allocator::release(blocks[i % 32], nullptr);
        blocks[i % 32] = Allocator::allocate(sizes[i % 8], nullptr);
    }
    double ns = static_cast<double>(now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / static_cast<double>(pairs);
    std::printf("{\"pairs\": %" PRIu64 ", \"ns\": %.1f}\n", pairs, ns);
}

} // namespace

int main(int argc, char **argv)
{
    bool hot = argc == 4 && std::strcmp(argv[2], "--hot") == 0;
    std::string mode = argc > 1 ? argv[1] : "";
    bool torch = mode == "torch", context = mode == "context" && hot;
    if ((argc != 3 && !hot) || !(torch || context || mode == "direct")) {
        std::fprintf(stderr, "usage: speed direct|torch TRACE | speed direct|torch|context --hot COUNT\n");
        return 2;
    }
    if (cudaSetDevice(0) != cudaSuccess)
        fail("no device");
    if (torch) {
        // What libtorch_cuda does when it starts; loading all of it is not needed here.
        c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
        c10::cuda::CUDACachingAllocator::init(1);
    }
    if (hot) {
        uint64_t pairs = std::strtoull(argv[3], nullptr, 10);
        int device = 0;
        for (uint64_t i = 0; context && i < pairs; i++)
            if (cudaGetDevice(&device) != cudaSuccess)
                fail("no current device");
        if (context)
            std::printf("{\"calls\": %" PRIu64 "}\n", pairs);
        else
            torch ? repeat<Torch>(pairs) : repeat<Direct>(pairs);
        return 0;
    }
    Trace trace = read_trace(argv[2]);
    torch ? play<Torch>(trace) : play<Direct>(trace);
    return 0;
}
