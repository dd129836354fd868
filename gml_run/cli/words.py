# SPDX-License-Identifier: Apache-2.0
"""The first words that are ours, and never taken for a program."""

from __future__ import annotations

COMMANDS = ("report", "runs", "top", "diff", "doctor", "fit", "print-env")

# Kept for commands to come: refused, rather than run as a program by chance.
RESERVED = ("record", "replay", "compare", "trim")

OURS = frozenset((*COMMANDS, *RESERVED))
