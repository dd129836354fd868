# SPDX-License-Identifier: Apache-2.0
"""The command line: the only part that prints and exits. One command per file."""
