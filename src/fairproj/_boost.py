"""THE loop: Algorithm 1 of the paper, as a generator of (learner, Round).

fairproj is AdaBoost whose weak learner sees w instead of q, where w is the distribution nearest to
q on which the groups balance. Whoever consumes the generator shows progress, keeps checkpoints or
stops early; the loop needs no callbacks.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fairproj._losses import ExponentialWeights, vote
from fairproj._projection import Array
from fairproj._rounds import Round, StopReason
from fairproj._tilt import Chooser
from fairproj.engines import Engine, Learner

# The last learner picked again has error exactly 1/2 under the new q; without a tolerance,
# rounding would decide whether to go on with it.
CHANCE = 0.5 - 1e-9


def boost(
    engine: Engine,
    weights: ExponentialWeights,
    choose: Chooser,
    features: Array,
    *,
    n_rounds: int,
    learning_rate: float = 1.0,
    may_fall_back: bool = True,
) -> Generator[tuple[Learner, Round], None, StopReason]:
    """Run at most ``n_rounds`` rounds, then return why the run ended.

    Each round: (1) q from the margin, kept in ``weights``; (2) w = ``choose`` (q); (3) fit h on w;
    (4) its error under q: no better than chance ends the run, and the learner is not kept; (5) its
    vote from that error; f = f + vote h. Where the tilt is part of the loss (the closed loop), (4)
    and (5) are done under w instead.

    If the very first learner fails, the run falls back to the majority class (``may_fall_back``):
    a constant learner, whose round is recorded like any other.
    """
    for t in range(n_rounds):
        projection = choose(weights.log_mass)
        learner, h = engine.fit(weights.spread(projection.mass))
        q = np.exp(weights.log_mass)
        judge = projection.mass if choose.part_of_the_loss else q
        errors = weights.errors(h)
        error = float(judge @ errors)
        fallback = error >= CHANCE and t == 0 and may_fall_back
        if error >= CHANCE and not fallback:
            return StopReason.NO_EDGE
        if fallback:
            learner, h = engine.constant(_majority(weights))
            errors = weights.errors(h)
            error = float(judge @ errors)
        step = learning_rate * vote(error)
        weights.add(step)
        seen = choose.observe(step, weights.log_mass, weights.log_loss)
        yield (
            learner,
            Round(
                error_q=float(q @ errors),
                error_w=float(projection.mass @ errors),
                kl=projection.kl,
                tv=projection.tv,
                vote=step,
                log_exp_loss=weights.log_loss,
                multipliers=tuple(projection.multipliers.tolist()),
                balance=tuple(projection.balance.tolist()),
                balance_q=tuple((q @ features).tolist()),
                seen=seen,
            ),
        )
        if fallback:
            return StopReason.FALLBACK
        if error <= 0:
            return StopReason.PERFECT
    return StopReason.ALL_ROUNDS


def _majority(weights: ExponentialWeights) -> float:
    """+1 or -1, whichever label has more mass under q."""
    return 1.0 if weights.spread(np.exp(weights.log_mass)) @ weights.y > 0 else -1.0
