# SPDX-License-Identifier: Apache-2.0
"""The history stays bounded, keeps its ends, and spreads its points evenly."""

import itertools

from telemetry_files import device, write_process

from gml_run.analysis.frame import make_frame
from gml_run.analysis.history import MOST_POINTS, History
from gml_run.telemetry.reader import TelemetryReader


def frame_with(tmp_path, **fields):
    write_process(tmp_path, counters={"served_calls": 1}, devices={0: device(**fields)})
    return make_frame(TelemetryReader(str(tmp_path)).read(), 10_000_000_000)


def test_a_long_run_stays_bounded_and_even(tmp_path):
    frame = frame_with(tmp_path, live_bytes=5, reserved_bytes=8, peak_reserved_bytes=8)
    history = History()
    for number in range(20_000):
        history.add(frame, number * 0.25)
    points = history.points
    assert MOST_POINTS // 2 < len(points) <= MOST_POINTS
    gaps = [after.t_s - before.t_s for before, after in itertools.pairwise(points)]
    assert points[0].t_s == 0 and points[-1].t_s > 0.95 * 5000
    assert max(gaps) < 4 * min(gaps)


def test_figures_of_a_frame(tmp_path):
    frame = frame_with(
        tmp_path,
        total_bytes=100,
        free_bytes=60,
        live_bytes=20,
        requested_bytes=18,
        reserved_bytes=30,
        peak_reserved_bytes=33,
        primitive_idle_bytes=3,
        stitched_idle_bytes=2,
        free_chunk_bytes=5,
        stream_held_bytes=1,
        updated_ns=4_000_000_000,
    )
    assert (frame.free, frame.outside, frame.idle, frame.rounding) == (60, 10, 5, 2)
    assert (frame.held_by_streams, frame.scattered, frame.headroom, frame.age_s) == (1, 4, 65, 6.0)
    assert frame.idle_by_pool == (6, 4)


def test_figures_that_do_not_fit_together_never_add_up_to_too_much(tmp_path):
    frame = frame_with(
        tmp_path,
        live_bytes=28,
        reserved_bytes=30,
        peak_reserved_bytes=30,
        primitive_idle_bytes=12,
        stitched_idle_bytes=13,
        free_chunk_bytes=25,
        stream_held_bytes=9,
    )
    assert sum(frame.idle_by_pool) == frame.usage.idle == 2
    assert frame.idle + frame.held_by_streams + frame.scattered == 2


def test_nothing_held_is_no_frame(tmp_path):
    assert frame_with(tmp_path, total_bytes=100) is None
