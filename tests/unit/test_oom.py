# SPDX-License-Identifier: Apache-2.0
"""Failures that people reported publicly are told apart: the figures are in MiB."""

import pytest

from gml_run._abi import OomRecord
from gml_run.analysis.oom import classify

TOTAL = 80 * 1024


def failure(request, free, idle, total=TOTAL, others=600, stream_held=0, source=1):
    """A failure with `idle` reserved but not allocated, and `others` outside the allocator."""
    reserved = total - free - others
    values = dict.fromkeys(OomRecord._fields, 0)
    values.update(
        request_bytes=request << 20,
        free_bytes=free << 20,
        reserved_bytes=reserved << 20,
        live_bytes=(reserved - idle) << 20,
        stream_held_bytes=stream_held << 20,
        total_bytes=total << 20,
        source=source,
    )
    return OomRecord(**values)


@pytest.mark.parametrize(
    ("request_mib", "free", "idle"),
    [
        (11100, 10506, 11745),
        (1905, 1311, 5202),
        (152, 6, 5949),
        (7997, 6410, 3942),
        (19005, 17613, 4577),
        (1741, 0, 2355),
        (20, 0, 236),
        (2304, 662, 2099),
        (202, 59, 379),
    ],
)
def test_fragmentation(request_mib, free, idle):
    verdict = classify(failure(request_mib, free, idle))
    assert verdict.kind == "fragmentation"
    assert "vms" in verdict.advice


@pytest.mark.parametrize(("request_gib", "total_gib"), [(77.4, 38.6), (400, 44.5)])
def test_larger_than_the_device(request_gib, total_gib):
    verdict = classify(failure(int(request_gib * 1024), 1000, 30000, total=int(total_gib * 1024)))
    assert verdict.kind == "impossible"


def test_genuinely_full():
    verdict = classify(failure(15360, 11418, 1010))
    assert verdict.kind == "full"
    assert "2.86 GiB is missing" in verdict.sentence


def test_held_outside():
    verdict = classify(failure(4096, 300, 200, total=24 * 1024, others=23 * 1024))
    assert verdict.kind == "others"
    assert classify(failure(4096, 300, 200, total=24 * 1024, others=23 * 1024), alone=True).kind == "full"
    assert "22 GiB" in verdict.sentence


@pytest.mark.parametrize(("request_mib", "free"), [(100, 100), (512, 9000)])
def test_enough_was_free(request_mib, free):
    assert classify(failure(request_mib, free, 10)).kind == "refused"


def test_pytorchs_own_limit_is_thought_of():
    by_torch, by_driver = (classify(failure(256, 6900, 0, source=source)) for source in (1, 2))
    assert (
        by_torch.sentence.startswith("PyTorch did not get 256 MiB")
        and "set_per_process_memory_fraction" in by_torch.advice
    )
    assert by_driver.sentence.startswith("the driver refused") and "fraction" not in by_driver.advice


def test_waiting_on_another_stream():
    verdict = classify(failure(4096, 100, 5000, stream_held=4500, source=0))
    assert verdict.kind == "stream"


def test_stream_held_memory_that_would_not_help_is_no_cause():
    assert classify(failure(4096, 100, 5000, stream_held=50)).kind == "fragmentation"


def test_a_limit_is_named():
    verdict = classify(failure(4096, 40000, 100), limit_bytes=30 << 30)
    assert verdict.kind == "limit"
    assert classify(failure(4096, 40000, 100)).kind == "refused"


def test_our_own_heap_does_not_advise_itself():
    verdict = classify(failure(300, 100, 5000, source=0))
    assert verdict.kind == "fragmentation"
    assert "--allocator vms" not in verdict.advice


def test_every_sentence_has_figures_and_advice():
    for case in (failure(1905, 1311, 5202), failure(15360, 11418, 1010), failure(10, 20, 0)):
        verdict = classify(case)
        assert any(unit in verdict.sentence for unit in ("MiB", "GiB"))
        assert verdict.advice
