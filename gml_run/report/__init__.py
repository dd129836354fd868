# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind: report.json and the summary."""
