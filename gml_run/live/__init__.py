# SPDX-License-Identifier: Apache-2.0
"""The live view while the child runs."""
