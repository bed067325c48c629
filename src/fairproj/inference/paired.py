"""An interval for the difference of the accuracies of two classifiers on the same rows."""

from __future__ import annotations

from fairproj.inference.intervals import check_confidence, exact_interval

DISCORDANT = 0.1  # of 1 - confidence, for the share of rows on which only one is right


def paired_difference_interval(
    only_first: int, only_second: int, n_rows: int, confidence: float = 0.95
) -> tuple[float, float]:
    """An interval for accuracy of the first less accuracy of the second, valid at any sample size.

    Only rows on which exactly one of the two is right matter. Let delta be the probability of such
    a row, and theta that the first is the one that is right there. Then

        accuracy_1 - accuracy_2 = delta (2 theta - 1),
        d = only_first + only_second ~ Binomial(n_rows, delta),
        only_first | d ~ Binomial(d, theta).

    Clopper & Pearson's interval of theta, given d, fails with a chance of at most 0.9 (1 -
    confidence), that of delta with at most 0.1 (1 - confidence). So all differences that both allow
    hold the true one with at least ``confidence``. If the interval of theta leaves out 1/2, as in
    McNemar's exact test, the interval of the difference leaves out 0.

    Parameters
    ----------
    only_first, only_second : int
        Rows that only the first, and only the second, predicts correctly.
    n_rows : int
        All rows.
    confidence : float, default=0.95

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> from fairproj.inference import paired_difference_interval
    >>> low, high = paired_difference_interval(40, 70, 1000)
    >>> print(f"{low:.3f} {high:.3f}")
    -0.064 -0.006
    """
    check_confidence(confidence)
    discordant = only_first + only_second
    if min(only_first, only_second) < 0 or discordant > n_rows:
        raise ValueError(
            f"only_first={only_first} and only_second={only_second} must be numbers of rows that "
            f"add up to at most n_rows={n_rows}"
        )
    error = 1 - confidence
    thetas = exact_interval(only_first, discordant, 1 - (1 - DISCORDANT) * error)
    deltas = exact_interval(discordant, n_rows, 1 - DISCORDANT * error)
    ends = [float(delta * (2 * theta - 1)) for delta in deltas for theta in thetas]
    return min(ends), max(ends)
