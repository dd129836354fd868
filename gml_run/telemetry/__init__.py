# SPDX-License-Identifier: Apache-2.0
"""Reading what the child shares about its GPU memory."""
