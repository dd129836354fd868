# SPDX-License-Identifier: Apache-2.0
"""Programs on the simulated GPU under the preloaded library: what they may expect, what we share."""

import subprocess
import sys

import pytest
from shim import PROGRAMS, preload, run_program, run_shim

PROGRAM = "shim_cases.py"
CASES = [
    "first_call", "threads", "edges", "mixed_frees", "plain_calls", "out_of_memory", "mem_info", "pool",
    "release_threshold", "from_pool", "streams_end", "capture", "reset", "fork", "ipc", "pitch", "other_kinds",
    "late_free", "churn",
]  # fmt: skip


def test_every_case_is_run():
    words = (PROGRAMS / PROGRAM).read_text().splitlines()
    named = [
        word.removeprefix("def ").removesuffix("():")
        for word in words
        if word.startswith("def ") and "_take" not in word and "own_pool" not in word
    ]
    assert sorted(named) == sorted([*CASES, "limit", "devices", "make_room", "graph_memory"])


@pytest.mark.parametrize("case", CASES)
def test_case(case, tmp_path):
    """Each case with the heap's invariants checked after every call."""
    run = run_program(PROGRAM, case, folder=tmp_path, GML_CHECK="1")
    assert run.code == 0 and run.stdout == f"ok {case}\n", run.stderr
    assert run.process.counters.served_calls > 0 or case in ("pitch", "other_kinds")
    assert run.process.counters.degraded == 0, run.process.message


@pytest.mark.parametrize("case", ["mixed_frees", "plain_calls", "streams_end", "churn", "threads", "capture"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_case_in_adversarial_time(case, seed, tmp_path):
    run = run_program(PROGRAM, case, folder=tmp_path, GML_CHECK="1", GML_SIM_TIME=f"adversarial:{seed}")
    assert run.code == 0 and run.stdout == f"ok {case}\n", run.stderr
    assert run.process.counters.degraded == 0, run.process.message


@pytest.mark.parametrize("allocator", ["native", "observe", "cuda-async", "raw"])
@pytest.mark.parametrize(
    "case", ["threads", "edges", "mixed_frees", "out_of_memory", "fork", "pitch", "late_free", "churn"]
)
def test_case_forwarded(allocator, case, tmp_path):
    """The same cases hold for the runtime itself, and nothing is served."""
    run = run_program(PROGRAM, case, folder=tmp_path, GML_ALLOCATOR=allocator)
    assert run.code == 0, run.stderr
    assert run.process.counters.served_calls == 0
    assert run.process.counters.forwarded_calls > 0


def test_limit(tmp_path):
    run = run_program(PROGRAM, "limit", folder=tmp_path, GML_LIMIT="1GiB", GML_CHECK="1")
    assert run.code == 0, run.stderr
    stats = run.process.devices[0].stats
    assert stats.peak_reserved_bytes <= 1 << 30
    assert run.process.oom_count == 2
    record = run.process.ooms[-1]
    assert (record.request_bytes, record.source) == (700 << 20, 0)
    assert record.live_bytes == 512 << 20
    assert stats.ooms == 2 and stats.ladder_forward == 0


def test_other_calls_get_our_idle_memory(tmp_path):
    """Failures of the driver that giving idle memory back survives; others reach the program."""
    faults = "cuStreamCreateWithPriority:1=2,cuStreamCreateWithPriority:3=2,cuStreamCreateWithPriority:5=2"
    run = run_program(PROGRAM, "make_room", folder=tmp_path, GML_SIM_FAULTS=faults, GML_CHECK="1")
    assert run.code == 0, run.stderr
    assert run.process.devices[0].stats.ladder_other == 3


def test_a_graph_gets_our_idle_memory(tmp_path):
    run = run_program(PROGRAM, "graph_memory", folder=tmp_path, GML_CHECK="1")
    assert run.code == 0, run.stderr
    assert run.process.devices[0].stats.ladder_other == 1


def test_two_devices(tmp_path):
    run = run_program(PROGRAM, "devices", folder=tmp_path, GML_SIM_DEVICES="2", GML_CHECK="1")
    assert run.code == 0, run.stderr
    zero, one = run.process.devices
    assert zero.stats.peak_live_bytes == 404 << 20 and one.stats.peak_live_bytes == 300 << 20
    assert one.stats.live_bytes == 0


def test_ipc_is_said_once(tmp_path):
    run = run_program(PROGRAM, "ipc", folder=tmp_path)
    assert "cudaIpcGetMemHandle" in run.process.message
    assert run.stderr == "" or "cudaIpc" not in run.stderr


def test_driver_memory_is_counted(tmp_path):
    run = run_program(PROGRAM, "other_kinds", folder=tmp_path)
    figures = run.process.devices[0].figures
    assert figures.driver_live_bytes == 0
    assert figures.peak_driver_live_bytes in range(1000 * 20 * 3, 4096 * 20 * 3)


def test_captured_calls_are_forwarded(tmp_path):
    run = run_program(PROGRAM, "capture", folder=tmp_path)
    assert run.process.counters.captures == 2  # begun; one of them was refused
    assert run.process.counters.forwarded_calls == 2  # the allocation inside, and its free


def test_pool_of_the_programs_own_is_forwarded(tmp_path):
    run = run_program(PROGRAM, "from_pool", folder=tmp_path)
    assert run.process.counters.served_calls == 4
    assert run.process.counters.forwarded_calls == 4
    assert run.process.devices[0].figures.driver_live_bytes == 0
    assert run.process.devices[0].figures.peak_driver_live_bytes == 4 << 20


def test_forked_child_leaves_no_trace(tmp_path):
    run = run_program(PROGRAM, "fork", folder=tmp_path)
    assert run.process.counters.served_calls == 2
    assert len(list((tmp_path / "telemetry").iterdir())) == 1


def test_figures_agree_with_the_device(tmp_path):
    """What we claim is what the simulated device counted on its own."""
    run = run_program(PROGRAM, "churn", folder=tmp_path)
    figures, stats = run.process.devices[0].figures, run.process.devices[0].stats
    assert 79 << 30 < figures.total_bytes <= 80 << 30
    assert figures.peak_used_bytes - stats.peak_reserved_bytes == 520 << 20  # the context
    assert stats.allocs >= stats.frees > 500
    assert run.process.devices[0].name.startswith("NVIDIA H100")


@pytest.mark.parametrize(
    "fault", ["cuMemSetAccess:5=600", "cuMemMap:4=2", "cuMemCreate:6=2", "cuMemAddressReserve:2=2"]
)
def test_a_failing_driver_call_does_no_harm(fault, tmp_path):
    run = run_program(PROGRAM, "churn", folder=tmp_path, GML_SIM_FAULTS=fault, GML_CHECK="1")
    assert run.code == 0, run.stderr
    assert run.process.counters.degraded == 0, run.process.message


def test_a_device_that_cannot_be_served_is_forwarded(tmp_path):
    """Every reservation fails from the first on: not one request is served, and the program runs."""
    run = run_program(PROGRAM, "mixed_frees", folder=tmp_path, GML_SIM_FAULTS="cuMemAddressReserve:1=801")
    assert run.code == 0, run.stderr


def test_programs_that_never_call_cuda_leave_nothing(tmp_path):
    script = "echo out; echo err >&2; git --version >/dev/null; exit 7"
    run = run_shim(["bash", "-c", script], tmp_path, simulate=False)
    assert (run.code, run.stdout, run.stderr) == (7, "out\n", "err\n")
    assert list(tmp_path.iterdir()) == []


def test_compilers_behave(tmp_path):
    source = tmp_path / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    program = tmp_path / "hello"
    assert run_shim(["gcc", "-o", str(program), str(source)], tmp_path, simulate=False).code == 0
    run = run_shim([str(program)], tmp_path, simulate=False)
    assert (run.code, run.stdout) == (3, "hello\n")


def test_without_a_run_directory_the_run_goes_on(tmp_path):
    run = run_program(PROGRAM, "mixed_frees", folder=tmp_path, GML_RUN_DIR="")
    assert run.code == 0 and run.processes == []
    run = run_program(PROGRAM, "mixed_frees", folder=tmp_path, GML_RUN_DIR="/proc/nowhere")
    assert run.code == 0, run.stderr


def test_another_preloaded_allocator_makes_us_step_aside(tmp_path):
    source = tmp_path / "rival.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n"
        "int rival_calls;\nint rival_count(void) { return rival_calls; }\n"
        "int cudaMalloc(void **out, size_t bytes) { rival_calls++;\n"
        '  int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");\n'
        "  return next(out, bytes); }\n"
    )
    rival = tmp_path / "librival.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", rival, source], check=True)
    shim, *simulated = preload().split()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import cuda; cuda.malloc(999); print(cuda.lib.rival_count())"
    run = run_shim(
        [sys.executable, "-c", code, str(PROGRAMS)], tmp_path, LD_PRELOAD=" ".join([shim, str(rival), *simulated])
    )
    assert run.stdout == "1\n", run.stderr
    assert "librival.so" in run.process.message
    assert run.process.counters.served_calls == 0
