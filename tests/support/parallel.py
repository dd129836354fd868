# SPDX-License-Identifier: Apache-2.0
"""How the processes of a parallel run (`pytest -n 2`) share the tests: what uses the same runs stays together.

A file goes to one process as a whole, so that what its fixtures make is made once and no folder has two writers. Two
kinds of files are dealt in smaller pieces, since they take minutes: those whose tests have nothing in common, and
those whose first parameter says which runs a test reads.
"""

from __future__ import annotations

import pytest

SINGLY = {"test_frameworks.py", "test_sim_torch.py"}
BY_FIRST_PARAMETER = {"test_workloads.py", "test_acceptance_shared.py"}


def piece_of(nodeid: str) -> str:
    """Tests with the same piece run in one process, one after the other."""
    file, _, rest = nodeid.partition("::")
    name = file.rpartition("/")[2]
    if name in SINGLY:
        return nodeid
    if name in BY_FIRST_PARAMETER:
        _, bracket, parameters = rest.partition("[")
        return f"{file}[{parameters.rstrip(']').split('-')[0]}" if bracket else nodeid
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The marks of xdist_group would do, but xdist 3.8 does not see them under pytest 9."""
    from xdist.scheduler import LoadScopeScheduling

    class ByPiece(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return piece_of(nodeid)

    return ByPiece(config, log)
