# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the launcher's tests: libraries to preload, an environment, and a way to run gml-run."""

import subprocess

import pytest
from launcher import GML_RUN, PATIENCE, environment, make_libraries


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    return make_libraries(tmp_path_factory.mktemp("native") / "libs")


@pytest.fixture
def env(libraries):
    return environment(libraries)


@pytest.fixture
def gml(env, tmp_path):
    """Runs gml-run with pipes; options and command are the arguments."""

    def run(*words, timeout=2 * PATIENCE, **kw):
        kw.setdefault("env", env)
        kw.setdefault("cwd", tmp_path)
        kw.setdefault("stdin", subprocess.DEVNULL if "input" not in kw else None)
        if kw["stdin"] is None:
            del kw["stdin"]
        return subprocess.run([*GML_RUN, *words], capture_output=True, timeout=timeout, **kw)

    return run
