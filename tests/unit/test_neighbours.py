# SPDX-License-Identifier: Apache-2.0
"""What others hold on a device: as the driver's management library says it, or not known."""

import ctypes
import subprocess

import pytest
from telemetry_files import device, write_process

from gml_run.telemetry.neighbours import Neighbours
from gml_run.telemetry.nvml import Nvml, Shares
from gml_run.telemetry.reader import TelemetryReader

# A library that tells the text of the variable NVML_FAKE: per device "pid=bytes pid=bytes;...", "?" for an error.
SOURCE = r"""
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } info;
static const char *device_text(unsigned index) {
    const char *text = getenv("NVML_FAKE");
    for (; index > 0; index--) text = strchr(text, ';') + 1;
    return text;
}
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    for (const char *p = getenv("NVML_FAKE"); *p; p++) *count += *p == ';';
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) { *out = (void *)device_text(index); return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, info *out) {
    const char *p = device;
    if (*p == '?') return 3;
    *count = 0;
    while (*p && *p != ';') {
        char *end;
        out[*count].pid = (unsigned)strtoul(p, &end, 10);
        out[*count].used = end[1] == '-' ? ~0ull : strtoull(end + 1, &end, 10);
        *count += 1;
        p = end + strcspn(end, " ;");
        p += *p == ' ';
    }
    return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, info *out) { *count = 0; return 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "fake.c").write_text(SOURCE)
    command = ["gcc", "-shared", "-fPIC", "-w", str(folder / "fake.c"), "-o", str(folder / "fake.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "fake.so"))


def say(text):
    ctypes.CDLL(None).setenv(b"NVML_FAKE", text.encode(), 1)


@pytest.mark.parametrize(
    ("text", "pids", "shares"),
    [
        ("10=500", [10], {10: Shares(500, 0)}),
        ("10=500 77=40 78=2", [10], {10: Shares(500, 42)}),
        ("10=500 11=300 77=1", [10, 11], {10: Shares(500, 1), 11: Shares(300, 1)}),
        ("10=500;11=300 77=9", [10, 11], {10: Shares(500, 0), 11: Shares(300, 9)}),
        ("10=500 77=-", [10], {10: None}),  # one has no figure
        ("88=500", [10], {10: None}),  # a container: its ids are others
        ("10=500;10=4", [10], {10: None}),  # on two devices
        ("10=500;?", [10], {10: None}),  # a device that does not tell
        ("?", [10], {10: None}),
    ],
)
def test_shares(library, text, pids, shares):
    say(text)
    assert Nvml(library).shares(pids) == shares


def test_asked_when_the_device_is_fuller_than_ever(library, tmp_path):
    neighbours = Neighbours(lambda: Nvml(library))

    def look(used, others, at, **more):
        write_process(tmp_path, pid=10, devices={0: device(peak_used_bytes=used, **more)})
        say(f"10={used} 77={others}")
        neighbours.look(TelemetryReader(str(tmp_path)).read(), at)
        return neighbours.others

    assert look(100, 5, 0.0) == {10: 5}
    assert look(100, 50, 5.0) == {10: 5}  # no fuller than before
    assert look(200, 60, 5.5) == {10: 60}
    assert look(300, 70, 6.0) == {10: 60}  # not twice within a second
    assert look(300, 80, 7.0) == {10: 80}


def test_a_simulated_device_is_not_asked(tmp_path):
    def never():
        raise AssertionError("asked")

    write_process(tmp_path, pid=10, simulated=1, devices={0: device(peak_used_bytes=100)})
    neighbours = Neighbours(never)
    neighbours.look(TelemetryReader(str(tmp_path)).read(), 0.0)
    assert neighbours.others == {}


def test_no_driver(tmp_path):
    write_process(tmp_path, pid=10, devices={0: device(peak_used_bytes=100)})
    neighbours = Neighbours(lambda: None)
    neighbours.look(TelemetryReader(str(tmp_path)).read(), 0.0)
    assert neighbours.others == {}
