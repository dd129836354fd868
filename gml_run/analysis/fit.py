# SPDX-License-Identifier: Apache-2.0
"""Which known cards a run would fit on, going by what it held at its peak."""

from __future__ import annotations

from gml_run._profiles import PROFILES, Profile


def smallest_card(peak_reserved: int) -> tuple[str, Profile] | None:
    """The smallest card whose memory takes this and a context; None when no known one does."""
    fitting = [
        (name, profile)
        for name, profile in PROFILES.items()
        if peak_reserved + profile.context_bytes <= profile.total_bytes
    ]
    return min(fitting, key=lambda entry: entry[1].total_bytes, default=None)
