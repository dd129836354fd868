# SPDX-License-Identifier: Apache-2.0
"""Starting the child so that it behaves as it would without us, and mirroring how it ended."""
