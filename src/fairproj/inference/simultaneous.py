"""Chances of error of the intervals of a report, each by itself or all together.

A report states an interval of each rate of each of K groups, and of each gap. For all of them to
hold together with probability ``1 - alpha``, statements that follow from others need no error of
their own:

- A rate that is another one, or 1 minus another one (the false negative rate is 1 minus the true
  positive rate): Clopper & Pearson's intervals mirror each other.
- A gap that is the largest of several gaps (equalized odds): its bounds are the largest of theirs.
- The gap of a ratio. If the intervals [l_g, u_g] of a rate hold in all groups, then
  1 - min p / max p is at least max_{a,b} (1 - u_a / l_b) and at most max_{a,b} (1 - l_a / u_b).

What is left are R rates in K groups and D gaps by difference, N = R K + D two-sided statements.

- A gap has the error alpha / N. A half of it is for the upper bound, and a half for the lower.
- The K intervals of one rate rest on rows of different groups. Given the number of rows that the
  rate is taken over in each group, they are independent. With the confidence
  (1 - K alpha / N)^(1 / K) each (Sidak), they hold together with 1 - K alpha / N, whatever these
  numbers are, and therefore also on average over them.

Whatever the dependence between the rates and the gaps, the chance that any statement fails is at
most R (K alpha / N) + D (alpha / N) = alpha (Bonferroni). Nothing is asymptotic. If all intervals
of a rate hold, its gap by difference also lies between max_{a,b} (l_a - u_b) and
max_{a,b} (u_a - l_b), so the narrower of these and its own bounds is stated.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fairproj.constraints import Rate, Requirement

_SMALLEST = 1e-8  # chance of error for which the bounds can be computed


@dataclass(frozen=True)
class Errors:
    """The chance of error of each interval.

    Attributes
    ----------
    rate, gap : float
        Of the interval of one rate in one group, and of one gap.
    together : bool
        Whether they are so small that all intervals hold together.
    """

    rate: float
    gap: float
    together: bool

    @classmethod
    def alone(cls, confidence: float) -> Errors:
        """For intervals that hold each by itself."""
        return cls(1 - confidence, 1 - confidence, False)

    @classmethod
    def joint(
        cls,
        confidence: float,
        rates: Collection[Rate],
        requirements: Collection[Requirement],
        n_groups: int,
    ) -> Errors:
        """For intervals that hold together."""
        n_rates = len({rate.statement for rate in rates})
        n_gaps = len({each for each in requirements if each.kind == "difference"})
        n_statements = n_rates * n_groups + n_gaps
        error = (1 - confidence) / n_statements
        if error < _SMALLEST:
            raise ValueError(
                f"confidence={confidence!r} leaves each of {n_statements} statements an error of "
                f"{error:.1g}, and at least {_SMALLEST:g} is needed; lower it, merge groups, or "
                "leave out simultaneous"
            )
        return cls(sidak(n_groups * error, n_groups), error, True)


def sidak(error: float, n: int) -> float:
    """The error of each of n independent statements that all hold with 1 - ``error``.

    1 - (1 - error)^(1 / n), without loss of digits where that is small.
    """
    return -math.expm1(math.log1p(-error) / n)
