"""The boosting loop: Algorithm 1 of the paper, as a generator of (learner, Round).

Both estimators run this loop; they differ in the policy that chooses the training weights. Whoever
consumes the generator shows progress, keeps checkpoints or stops early; the loop needs no
callbacks.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fairproj.boosting.losses import Loss
from fairproj.boosting.policies import WeightPolicy
from fairproj.boosting.record import Round, StopReason
from fairproj.engines.base import Engine, Learner

# The last learner picked again has error exactly 1/2 under the new q; without a tolerance,
# rounding would decide whether to go on with it.
CHANCE = 0.5 - 1e-9


def boost(
    engine: Engine,
    loss: Loss,
    policy: WeightPolicy,
    *,
    n_rounds: int,
    learning_rate: float = 1.0,
    may_fall_back: bool = True,
) -> Generator[tuple[Learner, Round], None, StopReason]:
    """Run at most ``n_rounds`` rounds, then return why the run ended.

    Each round: (1) q from the margin, kept by the loss; (2) the policy chooses w; (3) fit h on w;
    (4) its error under q: no better than chance ends the run, and the learner is not kept; (5) its
    vote from that error; f = f + vote h. Where the policy changes the loss (the closed loop), (4)
    and (5) are done under w instead.

    If the very first learner fails, the run falls back to the majority class (``may_fall_back``):
    a constant learner, whose round is recorded like any other.
    """
    for t in range(n_rounds):
        chosen = policy.choose(loss.log_mass)
        fitted = engine.fit(loss.targets(chosen.mass))
        q = np.exp(loss.log_mass)
        judge = chosen.mass if policy.vote_under_w else q
        errors = loss.errors(fitted.h)
        error = float(judge @ errors)
        fallback = error >= CHANCE and t == 0 and may_fall_back
        if error >= CHANCE and not fallback:
            return StopReason.NO_EDGE
        if fallback:
            fitted = engine.constant(loss.majority())
            errors = loss.errors(fitted.h)
            error = float(judge @ errors)
        vote = float(learning_rate * loss.step(errors, judge))
        loss.add(vote)
        observed = policy.observe(fitted, vote, loss)
        yield (
            fitted.learner,
            Round(
                error_q=float(q @ errors),
                error_w=float(chosen.mass @ errors),
                kl=chosen.kl,
                tv=chosen.tv,
                vote=vote,
                log_loss=float(loss.log_loss),
                multipliers=tuple(chosen.multipliers.tolist()),
                balance=tuple(chosen.balance.tolist()),
                balance_q=tuple(chosen.balance_q.tolist()),
                observed=observed,
            ),
        )
        if fallback:
            return StopReason.FALLBACK
        if error <= 0:
            return StopReason.PERFECT
    return StopReason.ALL_ROUNDS
