"""Boosting rounds: what both methods share, and what each of them is.

`loop` runs rounds of an objective. `projected` is that of the paper, with `weights`, `projection`,
`parity` and `dual`; `signed_costs` is ours, with `losses`, `costs`, `multipliers`, `rows`,
`monitor` and `operating_point`. `record`, `bounds`, `certificate` and `finish` tell what came out.
"""

from fairproj.boosting.losses import Loss, register_loss, sum_segments
from fairproj.boosting.record import Bias, Observation

__all__ = ["Bias", "Loss", "Observation", "register_loss", "sum_segments"]
