"""What the checks before training found, as a model file records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairproj.report._content import Content

_NAMES = {
    "proxy": "Proxy",
    "joint_proxy": "Proxy of several columns",
    "possible_proxy": "Possible proxy",
    "joint_strength": "All features together",
    "leak": "Leak of the label",
    "identifier": "Identifier",
    "small_group": "Small group",
    "missing_values": "Missing values",
}


def proxies_content(findings: Sequence[Mapping[str, Any]] | None) -> Content | None:
    """The findings, proxies first; None where the model file records no checks.

    Parameters
    ----------
    findings : sequence of mappings, optional
        With ``kind``, ``column``, ``measure`` and ``words``, as
        `fairproj.inspection.Finding` has them.
    """
    if findings is None:
        return None
    known = list(_NAMES)
    order = {kind: at for at, kind in enumerate(known)}
    rows = sorted(findings, key=lambda row: order.get(row["kind"], len(known)))
    return {
        "sentence": _sentence(
            [row["column"] for row in rows if row["kind"] == "proxy"],
            together=any(row["kind"] == "joint_proxy" for row in rows),
        ),
        "findings": [
            {
                **row,
                "name": _NAMES.get(row["kind"], row["kind"].replace("_", " ").capitalize()),
                "shown": _shown(row["measure"]),
            }
            for row in rows
        ],
    }


def _shown(measure: float | None) -> str:
    """A share or an AUC, or a number of rows."""
    if measure is None:
        return ""
    return f"{measure:z.3f}" if measure <= 1 else f"{measure:,.0f}"


def _sentence(proxies: Sequence[str], *, together: bool) -> str:
    where = "in the rows of training, as the model file records it"
    if not proxies and together:
        return f"Several features together nearly determine the sensitive columns {where}."
    if not proxies:
        return f"No single feature nearly determines the sensitive columns {where}."
    each = "feature nearly determines" if len(proxies) == 1 else "features each nearly determine"
    return f"{len(proxies)} {each} the sensitive columns {where}: {', '.join(proxies)}."
