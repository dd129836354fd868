# SPDX-License-Identifier: Apache-2.0
"""Run any command with a GPU memory allocator that stitches free memory, and see where the memory goes."""

__version__ = "0.1.0"
