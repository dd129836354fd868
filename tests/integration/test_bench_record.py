# SPDX-License-Identifier: Apache-2.0
"""A recorded trace has every allocation and free of the program, in the order in which the allocator saw them."""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import record
from common import build_folder
from runs import PROGRAMS


def test_a_recorded_trace_replays_to_the_programs_own_peak(tmp_path, capfd):
    (trace,) = record.record(PROGRAMS / "torch_small.py", tmp_path)
    said = json.loads(capfd.readouterr().out.splitlines()[-1])
    live, streams = set(), set()
    for line in trace.read_text().splitlines():
        kind, block, *rest = line.split()
        if kind == "A":
            assert block not in live
            live.add(block)
        else:
            live.remove(block)
        streams.add(rest[-1])
    assert len(streams) > 1 and "0" in streams  # the program has a side stream
    with trace.open() as events:
        command = [str(build_folder() / "tools" / "replay_trace")]
        replayed = json.loads(subprocess.run(command, stdin=events, capture_output=True, check=True).stdout)
    assert replayed["peak_live_bytes"] == said["peak_allocated"]
