# SPDX-License-Identifier: Apache-2.0
"""Turning counters into statements: figures, causes and kinds of failure."""
