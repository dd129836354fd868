# SPDX-License-Identifier: Apache-2.0
"""Keeps the child's terminal for what the child left behind on it: a server in the background, a job of its shell.

On the user's own terminal they would go on writing. Here their terminal would be gone with us.
"""

from __future__ import annotations

import os
import select
import signal
import termios

from gml_run.launch.descriptors import close_all_but
from gml_run.launch.process import name_process


def keep_open(master: int, terminal: int) -> bool:
    """Where somebody has the child's terminal open still, leaves a process behind that carries what they write to
    the user's `terminal`, until they or that terminal are gone. False where nobody has."""
    if _hung_up(master):
        return False
    try:
        keeper = os.fork()
    except OSError:
        return True  # they lose it
    if keeper == 0:
        try:
            _keep(master, terminal)
        finally:
            os._exit(0)
    return True


def _keep(master: int, terminal: int) -> None:
    os.setsid()
    close_all_but(master, terminal)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    name_process("gml-run-keeper")
    os.set_blocking(master, True)
    os.set_blocking(terminal, True)
    modes = termios.tcgetattr(master)
    modes[1] &= ~termios.OPOST  # the user's terminal does that from now on
    termios.tcsetattr(master, termios.TCSANOW, modes)
    poll = select.poll()
    poll.register(master, select.POLLIN)
    poll.register(terminal, 0)
    while not dict(poll.poll()).get(terminal):
        data = os.read(master, 65536)  # fails once the last of them is gone
        while data:
            data = data[os.write(terminal, data) :]


def _hung_up(master: int) -> bool:
    poll = select.poll()
    poll.register(master, 0)
    return bool(poll.poll(0))
