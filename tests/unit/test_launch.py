# SPDX-License-Identifier: Apache-2.0
"""Finding the program, the environment and the run directory."""

import errno
import os
import signal
from unittest.mock import Mock

import pytest

from gml_run.config import Allocator, Goal, RunOptions, Simulation, make_options, parse_simulation
from gml_run.errors import GmlError
from gml_run.launch.command import find_program
from gml_run.launch.environment import preload_value, run_variables, safe_folders
from gml_run.launch.job import Job
from gml_run.launch.process import environment_entries
from gml_run.launch.relay import Relay
from gml_run.launch.rundir import command_name, expand_template, make_run_directory
from gml_run.launch.signals import Arrival
from gml_run.launch.supervisor import Supervisor
from gml_run.native import Native
from gml_run.report.mask import mask_command


def native_in(folder):
    for name in ("libgml.so", "sim/libgmlsim.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    parts = tuple(str(folder / "sim" / name) for name in ("libgmlsim.so", "libcuda.so.1", "libnvidia-ml.so.1"))
    return Native(str(folder / "libgml.so"), parts)


class TestProgram:
    def test_path_is_searched_in_order_and_past_what_cannot_run(self, tmp_path):
        for folder, mode in (("a", 0o644), ("b", 0o755)):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "tool").write_text("#!/bin/sh\n")
            (tmp_path / folder / "tool").chmod(mode)
        environ = {"PATH": f"{tmp_path}/none:{tmp_path}/a:{tmp_path}/b"}
        assert find_program("tool", environ) == f"{tmp_path}/b/tool"

    @pytest.mark.parametrize(
        ("word", "code"),
        [
            ("no-such-tool", 127),
            ("/no/such/tool", 127),
            ("/", 126),
            ("/etc/passwd", 126),
            ("/etc/passwd/x", 126),
            ("a\0b", 127),
        ],
    )
    def test_shell_codes(self, word, code):
        with pytest.raises(GmlError) as caught:
            find_program(word, {"PATH": "/usr/bin:/bin"})
        assert caught.value.exit_code == code


def test_a_program_that_changed_its_user_is_waited_for_all_the_same(monkeypatch):
    """sudo and su: what we may not send them is not sent, and is no fault."""

    def refuse(process, number):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "kill", refuse)
    inbox, witness = Mock(), Mock()
    witness.saw.return_value = False
    supervisor = Supervisor(inbox, witness, 12345)
    supervisor._handle(Arrival(signal.SIGTERM, True, 1))
    supervisor._handle(Arrival(signal.SIGUSR1, True, 12345))
    relay = Relay(inbox, witness, Mock(), Job(2, 12345, -1, -1, ""), Mock())
    for arrival in (Arrival(signal.SIGTERM, True, 1), Arrival(signal.SIGUSR1, True, 12345)):
        relay._handle(arrival)


def test_what_we_add_to_an_environment_replaces_what_was_there():
    given = [b"A=1", b"B=2", b"B=3", b"C=4", b"C=5", b"D=6", b"none"]
    wanted = {"A": "1", "B": "9", "C": "4", "E": "7"}
    assert environment_entries(wanted, given) == [b"A=1", b"C=4", b"C=5", b"none", b"B=9", b"E=7"]


class TestEnvironment:
    def test_our_libraries_come_first_and_the_users_stay(self, tmp_path):
        native = native_in(tmp_path)
        value = preload_value(native, True, "/lib/libuser.so /lib/other.so", safe_folders(native))
        assert value.split(":") == [native.shim, *native.simulated, "/lib/libuser.so", "/lib/other.so"]

    def test_a_sanitizers_runtime_stays_before_ours(self, tmp_path):
        native = native_in(tmp_path)
        value = preload_value(
            native, False, "libx.so:/usr/lib/libasan.so.8 /opt/libclang_rt.asan-x86_64.so", safe_folders(native)
        )
        names = [os.path.basename(path) for path in value.split(":")]
        assert names == ["libasan.so.8", "libclang_rt.asan-x86_64.so", "libgml.so", "libx.so"]

    def test_without_simulation_the_simulated_driver_stays_out(self, tmp_path):
        native = native_in(tmp_path)
        assert preload_value(native, False, "", safe_folders(native)) == native.shim

    def test_a_run_inside_a_run_names_each_library_once(self, tmp_path):
        native = native_in(tmp_path)
        folders = safe_folders(native)
        once = preload_value(native, True, "/lib/libuser.so", folders)
        assert preload_value(native, True, once, folders) == once

    def test_someone_elses_libcuda_stays(self, tmp_path):
        native = native_in(tmp_path / "ours")
        other = tmp_path / "libcuda.so.1"
        other.write_bytes(b"")
        assert preload_value(native, False, str(other), safe_folders(native)) == f"{native.shim}:{other}"

    @pytest.mark.parametrize("name", ["with space", "with:colon", "with$ORIGIN"])
    def test_a_folder_that_the_loader_cannot_take_is_reached_through_a_link(self, tmp_path, monkeypatch, name):
        links = tmp_path / "links"
        links.mkdir()
        monkeypatch.setenv("TMPDIR", str(links))
        native = native_in(tmp_path / name)
        for _ in range(2):  # the second time finds the links
            first, *_ = preload_value(native, True, "", safe_folders(native)).split(":")
            assert name not in first and os.path.samefile(first, native.shim)

    def test_a_foreign_link_is_not_trusted(self, tmp_path, monkeypatch):
        links = tmp_path / "links"
        links.mkdir()
        monkeypatch.setenv("TMPDIR", str(links))
        native = native_in(tmp_path / "with space")
        safe = safe_folders(native)[os.path.dirname(native.shim)]
        os.unlink(safe)
        os.symlink(tmp_path, safe)
        assert safe_folders(native)[os.path.dirname(native.shim)] != safe

    def test_variables(self):
        options = RunOptions(
            goal=Goal.MEMORY,
            limit_bytes=5,
            max_driver_time=0.5,
            driver_costs="map=2us",
            simulation=Simulation("h100", 1 << 30),
        )
        assert run_variables(options, "/runs/x") == {
            "GML_ALLOCATOR": "vms",
            "GML_INTERCEPT": "tensors",
            "GML_GOAL": "memory",
            "GML_LIMIT": "5",
            "GML_MAX_DRIVER_TIME": "0.5",
            "GML_DRIVER_COSTS": "map=2us",
            "GML_RUN_DIR": "/runs/x",
            "GML_SIM_PROFILE": "h100",
            "GML_SIM_SIZE": str(1 << 30),
        }
        assert "GML_SIM_SIZE" not in run_variables(RunOptions(simulation=Simulation("h100", None)), None)


class TestRunDirectory:
    def test_default_place(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        one = make_run_directory(None, ["python", "-u", "train.py", "--x"], {})
        two = make_run_directory(None, ["python", "-u", "train.py", "--x"], {})
        assert one.path != two.path and "-train-" in one.id
        assert (tmp_path / "gml-runs" / ".gitignore").read_text() == "*\n"
        assert (tmp_path / "gml-runs" / "latest").resolve() == tmp_path / "gml-runs" / two.id
        assert os.path.isdir(os.path.join(two.path, "telemetry"))

    def test_falls_back_to_the_temporary_folder_then_to_nothing(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "gml-runs").write_text("in the way")
        (tmp_path / "tmp").mkdir()
        found = make_run_directory(None, ["x"], {"TMPDIR": str(tmp_path / "tmp")})
        assert found.path.startswith(str(tmp_path / "tmp")) and found.notice.count("\n") == 0 and found.notice
        nowhere = make_run_directory(None, ["x"], {"TMPDIR": str(tmp_path / "gml-runs")})
        assert nowhere.path is None and "can be made" in nowhere.notice

    def test_a_named_one_is_never_overwritten(self, tmp_path):
        first = make_run_directory(str(tmp_path / "run"), ["x"], {})
        (tmp_path / "run" / "run.json").write_text("{}")
        assert first.path == str(tmp_path / "run")
        with pytest.raises(GmlError) as caught:
            make_run_directory(str(tmp_path / "run"), ["x"], {})
        assert caught.value.exit_code == 125

    def test_template(self):
        environ = {"RANK": "3", "JOB": "a/b"}
        assert expand_template("r%r-%q{JOB}-%%", environ) == "r3-a_b-%"
        assert expand_template("%h-%p", {}) == f"{os.uname().nodename}-{os.getpid()}"
        for bad in ("%z", "%q{NONE}", "end%"):
            with pytest.raises(GmlError):
                expand_template(bad, environ)

    @pytest.mark.parametrize(
        ("command", "name"),
        [
            (["/usr/bin/python3.11", "-m", "torch.distributed.run", "x"], "torch.distributed.run"),
            (["python", "my script.py"], "my_script"),
            (["./train"], "train"),
            (["\udcff\udcfe"], "run"),
        ],
    )
    def test_names(self, command, name):
        assert command_name(command) == name


class TestOptions:
    def test_costs_of_driver_calls_reach_the_libraries_without_blanks(self):
        options = make_options({"driver_costs": " create = 193 us, unmap=0.5ms"})
        assert options.driver_costs == "create=193us,unmap=0.5ms"
        assert make_options({"driver_costs": ""}).driver_costs is None

    def test_observe_wins_over_the_variable(self):
        assert make_options({"allocator": "native", "observe": True}).allocator is Allocator.OBSERVE

    @pytest.mark.parametrize(
        "values",
        [
            {"allocator": "x"},
            {"goal": "fast"},
            {"live": "film"},
            {"simulate": "h900"},
            {"simulate": "h100:"},
            {"simulate": "h100:lots"},
            {"limit": "-1G"},
            {"max_driver_time": "101"},
            {"max_driver_time": "nan"},
            {"driver_costs": "create"},
            {"driver_costs": "create=5"},
            {"driver_costs": "create=5s"},
            {"driver_costs": "create=-5us"},
            {"driver_costs": "free=5us"},
            {"driver_costs": "map=5us,map=6us"},
            {"driver_costs": "map=5us,"},
            {"driver_costs": "map=1001ms"},
        ],
    )
    def test_bad_values_are_one_clear_line(self, values):
        with pytest.raises(GmlError) as caught:
            make_options(values)
        assert caught.value.exit_code == 125 and "--" in caught.value.line() and "\n" not in caught.value.line()


def test_secrets_are_masked():
    words = "x --api-key abc --hf_token=zz HF_TOKEN=1 --max-tokens 5 --tokenizer t --password --next https://u:p@h/x"
    assert (
        mask_command(words.split())
        == (
            "x --api-key *** --hf_token=*** HF_TOKEN=*** --max-tokens 5 --tokenizer t --password --next https://u:***@h/x"
        ).split()
    )


@pytest.mark.parametrize("size", ["999999999T", "513G", "100M"])
def test_sizes_that_no_device_has_are_refused(size: str) -> None:
    with pytest.raises(GmlError, match=r"no device of .* is simulated"):
        parse_simulation(f"h100:{size}")
