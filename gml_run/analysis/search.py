# SPDX-License-Identifier: Apache-2.0
"""Bisection over a yes-or-no question that is monotone: fits, or does not fit."""

from __future__ import annotations

from collections.abc import Callable


def smallest_that_fits(low: int, high: int, step: int, fits: Callable[[int], bool]) -> int:
    """The smallest multiple of `step` in (low, high] that fits, to within one step.

    Pre: `high` fits. `low` need not be tried: it is taken not to fit. O(log((high - low) / step)) tries.
    """
    bad, good = low // step, -(-high // step)
    while good - bad > 1:
        middle = (bad + good) // 2
        if fits(middle * step):
            good = middle
        else:
            bad = middle
    return good * step


def largest_that_fits(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """The largest whole number in [low, high] that fits; None when not even `low` does.

    Doubles from `low` until one does not fit, then bisects: small values are cheap to try, large ones
    may run long.
    """
    if not fits(low):
        return None
    good, bad = low, high + 1
    while good < high and bad > high:
        ask = min(max(good + 1, 2 * good), high)
        if fits(ask):
            good = ask
        else:
            bad = ask
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good
