# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all Python tests, and the signals that they start with."""

import signal

pytest_plugins = ["launcher_fixtures", "parallel"]

# A suite that is started in the background inherits an ignored SIGINT, and every program under test would
# ignore ^C too: each begins as it would in a terminal.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
