# SPDX-License-Identifier: Apache-2.0
"""The reader takes consistent copies only, and survives every kind of bad file."""

import os
import struct
import threading
import time
from dataclasses import asdict

import pytest
from telemetry_files import device, oom, telemetry_bytes, write_process

from gml_run import _abi
from gml_run.analysis.steps import steps_of
from gml_run.live.paint import format_rate
from gml_run.report.summary import step_rows
from gml_run.telemetry.reader import TelemetryReader


def test_fields_come_back(tmp_path):
    write_process(
        tmp_path,
        pid=77,
        rank=3,
        simulated=1,
        counters={"served_calls": 10, "forwarded_calls": 2},
        devices={
            2: device(live_bytes=5, peak_reserved_bytes=9, driver_ns=7, total_bytes=80, sizes={4: 6}, cells=b"\1\2")
        },
        ooms=[oom(request_bytes=11, source=1)],
    )
    (process,) = TelemetryReader(str(tmp_path)).read()
    assert (process.pid, process.rank, process.local_rank, process.simulated) == (77, 3, None, True)
    assert process.command == ("python", "train.py")
    assert process.counters.served_calls == 10 and process.counters.forwarded_calls == 2
    (block,) = process.devices
    assert block.index == 2 and block.name == "NVIDIA H100 80GB HBM3" and not block.torn
    assert (block.stats.live_bytes, block.stats.peak_reserved_bytes, block.stats.driver_ns) == (5, 9, 7)
    assert block.figures.total_bytes == 80
    assert block.size_counts[4] == 6 and block.cells[:3] == b"\1\2\0"
    (failure,) = process.ooms
    assert (failure.request_bytes, failure.source) == (11, 1)


def test_files_that_appear_later_are_read(tmp_path):
    reader = TelemetryReader(str(tmp_path))
    assert reader.read() == []
    write_process(tmp_path, pid=2)
    write_process(tmp_path, pid=1)
    assert [process.pid for process in reader.read()] == [1, 2]


def test_more_failures_than_are_kept(tmp_path):
    records = [oom(request_bytes=number) for number in range(40)]
    write_process(tmp_path, ooms=records)
    (process,) = TelemetryReader(str(tmp_path)).read()
    assert process.oom_count == 40
    assert [record.request_bytes for record in process.ooms] == list(range(8, 40))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data.__setitem__(slice(0, 8), b"ELFELFEL"), "is no telemetry file"),
        (lambda data: struct.pack_into("<I", data, 8, 99), "layout version 99"),
        (lambda data: data.__delitem__(slice(_abi.FILE_BYTES - 1, None)), "is cut short"),
        (lambda data: struct.pack_into("<Q", data, 16, 1 << 40), "is cut short"),
    ],
)
def test_bad_files_are_told_and_skipped(tmp_path, change, problem):
    (tmp_path / "telemetry").mkdir()
    data = telemetry_bytes()
    change(data)
    (tmp_path / "telemetry" / "1.gml").write_bytes(data)
    write_process(tmp_path, pid=2)
    reader = TelemetryReader(str(tmp_path))
    assert [process.pid for process in reader.read()] == [2]
    assert problem in reader.problems["1.gml"]


def test_a_file_without_its_head_is_waited_for(tmp_path):
    path = tmp_path / "telemetry" / "1.gml"
    path.parent.mkdir()
    path.write_bytes(bytes(_abi.FILE_BYTES))
    reader = TelemetryReader(str(tmp_path))
    assert reader.read() == [] and reader.problems == {}
    path.write_bytes(telemetry_bytes(pid=1))
    assert [process.pid for process in reader.read()] == [1]


def test_a_writer_that_died_inside_an_update(tmp_path):
    path = write_process(tmp_path, devices={0: device(live_bytes=5)})
    with open(path, "r+b") as file:
        file.seek(_abi.DEVICE_OFFSET + _abi.SEQUENCE_OFFSET)
        file.write(struct.pack("<Q", 7))
    reader = TelemetryReader(str(tmp_path))
    assert reader.read()[0].devices == ()
    (block,) = reader.read(final=True)[0].devices
    assert block.torn and block.stats.live_bytes == 5


def test_no_torn_copy_while_the_writer_writes(tmp_path):
    """A writer keeps live == reserved under the sequence lock; no copy may show them apart."""
    path = write_process(tmp_path, devices={0: device()})
    start = _abi.DEVICE_OFFSET
    live = start + _abi.STATS_OFFSET
    reserved = live + 8 * _abi.Stats._fields.index("reserved_bytes")
    stop = threading.Event()

    def write():
        import mmap

        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            number = 0
            while not stop.is_set():
                number += 1
                struct.pack_into("<Q", memory, start, 2 * number - 1)
                struct.pack_into("<Q", memory, live, number)
                struct.pack_into("<Q", memory, reserved, number)
                struct.pack_into("<Q", memory, start, 2 * number)
                time.sleep(0.00001)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        reader = TelemetryReader(str(tmp_path))
        seen = set()
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            for block in reader.read()[0].devices:
                assert block.stats.live_bytes == block.stats.reserved_bytes
                seen.add(block.stats.live_bytes)
        assert len(seen) > 20
    finally:
        stop.set()
        thread.join()


def test_thousands_of_short_processes_do_not_use_up_descriptors(tmp_path):
    reader = TelemetryReader(str(tmp_path))
    pids = range(5_000_000, 5_000_400)  # beyond any real process id
    for pid in pids:
        write_process(tmp_path, pid=pid, devices={0: device(peak_reserved_bytes=pid)})
        if pid % 100 == 99:
            reader.read()
    before = len(os.listdir("/proc/self/fd"))
    reader.read()
    assert len(os.listdir("/proc/self/fd")) - before <= 0
    snapshots = reader.read(final=True)
    assert [process.pid for process in snapshots] == list(pids)
    assert all(process.devices[0].stats.peak_reserved_bytes == process.pid for process in snapshots)
    assert len(os.listdir("/proc/self/fd")) < 200


def test_step_times_in_order(tmp_path):
    write_process(tmp_path, devices={0: device(steps_ns=range(1, 101))})
    (process,) = TelemetryReader(str(tmp_path)).read()
    assert process.devices[0].step_times_ns == tuple(range(37, 101))
    assert process.devices[0].figures.step_count == 100


@pytest.mark.parametrize(
    ("source", "unit", "doubt"),
    [
        ("GRADIENTS", "steps", ""),
        ("PASSES", "backward passes", "no gradient was ever dropped"),
        ("TURNS", "rounds", "no backward pass of PyTorch's was seen"),
    ],
)
def test_what_may_be_no_steps_is_called_otherwise(tmp_path, source, unit, doubt):
    number = [name for name, _ in _abi.STEP_SOURCES].index(source)
    write_process(tmp_path, devices={0: device(steps_ns=[2_000_000] * 5, step_source=number, step_begun=1)})
    (process,) = TelemetryReader(str(tmp_path)).read()
    found = steps_of(process.devices[0])
    assert (
        (found.count, found.unit) == (6, unit) and found.doubt.startswith(doubt) and bool(found.doubt) == bool(doubt)
    )
    (row,) = step_rows(asdict(found))
    assert row[1].startswith(f"not known; 6 {unit}, 2 ms p50" if doubt else "6, 2 ms p50")
    assert format_rate(found) == f"500 {unit.split()[-1]}/s"


def test_steps_without_a_time_count_and_do_not_shift_the_median(tmp_path):
    write_process(tmp_path, devices={0: device(steps_ns=[0, 0, 0, 0, 2_000_000, 2_000_000])})
    (process,) = TelemetryReader(str(tmp_path)).read()
    found = steps_of(process.devices[0])
    assert (found.count, found.p50_s) == (6, 0.002)
