"""The sentences of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairproj.boosting.certificate import Certificate, GapCertificate
from fairproj.constraints import STATISTICS, Constraint, find_statistic, named, statistic_names
from fairproj.data.checks import counted, percent
from fairproj.report._content import Content
from fairproj.report._training import error_weights, limit_words, opposite_labels

_MOST_NAMES = 8  # of groups in a sentence


def constraint(constraints: Any) -> str:
    """The ``constraints`` parameter of an estimator, in words."""
    if constraints is None:
        return "none"
    if isinstance(constraints, str):
        # The model may come from a session in which a statistic was registered.
        known = constraints in statistic_names()
        return find_statistic(constraints).title if known else constraints.replace("_", " ")
    if isinstance(constraints, list | tuple):
        return ", ".join(map(constraint, constraints))
    if isinstance(constraints, Constraint):
        for statistic in STATISTICS.values():
            if statistic.constrainable and statistic.constraint == constraints:
                return statistic.title
    return f"the user's own ({type(constraints).__name__})"


def confidence_words(value: float) -> str:
    """Never rounded up to certainty."""
    return f"{100 * value:g} %"


def interval_name(content: Content) -> str:
    """What the intervals are called; without "simultaneous" each holds by itself."""
    joint = "simultaneous " if content["simultaneous"] else ""
    return f"{joint}{confidence_words(content['confidence'])} interval"


def how_intervals_hold(content: Content) -> str:
    """By themselves, or together."""
    if content["simultaneous"]:
        return (
            "All intervals of rates and gaps hold together with the stated confidence, so each is "
            "wider than an interval on its own."
        )
    return (
        "Each interval holds with the stated confidence by itself. Looking at many of them, some "
        "will be wrong."
    )


def points(value: float, digits: int = 1) -> str:
    """A gap for a general reader."""
    return f"{100 * value:.{digits}f} percentage points"


def not_shown(targets: Sequence[Content]) -> str:
    """Which gap is shown where there is room for one, and which are not; empty if all are."""
    if len(targets) < 2:
        return ""
    others = " and ".join(f"the {one['name']}" for one in targets[1:])
    return f"The gap shown here is the {targets[0]['name']}; {others} is not shown."


def target_gap(content: Content) -> Content:
    """The row of the gap that the report looks at."""
    target: Content = next(
        row for row in content["gaps"] if row["gap"] == content["target"]["metric"]
    )
    return target


def sentences(content: Content) -> list[str]:
    """The summary, for a reader who knows no statistics."""
    return [_accuracy(content), *_of_no_use(content), *target_sentences(content)]


def _of_no_use(content: Content) -> list[str]:
    """What is said of predictions that do not tell the labels apart."""
    if content["constant"]:
        return [_CONSTANT]
    if (chance := content["chance"]) is None:
        return []
    positive = content["data"]["positive_label"]
    rates = (
        f"{percent(chance['true_positive_rate'])} of the rows with the label '{positive}' get the "
        f"prediction '{positive}', and {percent(chance['false_positive_rate'])} of the others do"
    )
    if chance["reversed"]:
        return [
            f"The predictions point the wrong way: {rates}. Check which label the predictions, or "
            "high scores, stand for, and which one counts as positive."
        ]
    return [f"On these rows the predictions tell the labels no better than chance: {rates}."]


def target_sentences(content: Content) -> list[str]:
    """What the summary states about the gap that the report looks at."""
    gap = target_gap(content)
    digits = _digits(content["target"]["max_gap"], gap["estimate"], gap["low"], gap["high"])
    return [
        _measured(content, gap, digits),
        *_missing(content),
        _judged(content, gap, digits),
    ]


def threshold(model: Any) -> str:
    """Where a fitted `FairBoostClassifier` decides."""
    positive = model.classes_[-1] if model.pos_label is None else model.pos_label
    certificate = model.certificate_
    text = f"'{positive}' when the probability of '{positive}' exceeds {model.threshold_:.4g}"
    if certificate.bias:
        text += f", after a bias of {certificate.bias:+.3f} was added to the score"
    return text


def decision(model: Any, metric: str | None = None) -> list[str]:
    """At which threshold the gap was limited, and whether the model is useful there.

    ``metric`` is the gap that a report looks at; by default, all gaps of training are meant.
    """
    if not model.history_.closed_loop:
        return []
    certificate = model.certificate_
    limited = limit_words(model, metric) if certificate.event else "."
    texts = [f"The model predicts {threshold(model)}{limited}"]
    if not certificate.useful:
        texts.append(_NOT_USEFUL.format(rows=watched(certificate)))
    elif certificate.event and not certificate.within:
        texts.append(
            f"Training did not reach its limit: on the {watched(certificate)} the gap in "
            f"{named(certificate.event)} was {points(certificate.gap)}, {side(certificate)} "
            f"{points(certificate.max_gap)}."
        )
    return texts


_CONSTANT = (
    "Every row, or nearly every row, gets the same prediction: for that reason alone the "
    "differences between groups are small, and the model is not useful."
)
_NOT_USEFUL = (
    "The model is not useful, whatever its gap: on the {rows} it says the same to nearly everyone, "
    "or its errors cost no less than those of the same prediction for everyone."
)


def _accuracy(content: Content) -> str:
    scores = {row["name"]: row["value"] for row in content["scores"]}
    data = content["data"]
    which = f" ({data['which']})" if data["which"] else ""
    return (
        f"Of {counted(data['rows'], 'person', 'people')}{which}, the model labels "
        f"{percent(scores['accuracy'])} "
        "correctly; always predicting the more common label would be correct for "
        f"{percent(scores['accuracy of the majority label'])}."
    )


def _measured(content: Content, gap: Content, digits: int) -> str:
    name, seen = content["target"]["name"], content["data"]["seen"]
    confidence = _with_confidence(content)
    low, high = points(gap["low"], digits), points(gap["high"], digits)
    if gap["estimate"] is None:
        unknown = f"The {name} cannot be measured between all groups."
        return (
            unknown if seen or gap["low"] <= 0 else f"{unknown} It is at least {low} {confidence}."
        )
    who = f"highest for {gap['highest']}, lowest for {gap['lowest']}"
    if gap["highest"] == gap["lowest"]:  # a ratio of rates that are all 0 has a gap of 1
        who = "no rate is above 0" if gap["estimate"] else "no difference between the groups"
    measured = f"The {name} was {points(gap['estimate'], digits)}: {who}."
    if seen:
        return measured
    return (
        f"{measured} From a sample of this size, the true gap lies between {low} and {high} "
        f"{confidence}."
    )


def four_fifths(ratio: Content, content: Content) -> str:
    """How a ratio of selection rates compares with the four-fifths rule."""
    if ratio["estimate"] is None:
        return "The ratio cannot be measured between all groups."
    measured = _ratio_words(ratio)
    rule = f"The four-fifths rule asks for at least {ratio['wanted']:g}"
    if content["data"]["seen"]:
        return f"{measured} {rule}; on rows of training, nothing follows for other people."
    interval = f"{ratio['low']:z.3f} to {ratio['high']:z.3f} {_with_confidence(content)}"
    judged = f"the interval, {interval}, includes it"
    if ratio["low"] >= ratio["wanted"]:
        judged = f"the whole interval, {interval}, is above it"
    elif ratio["high"] < ratio["wanted"]:
        judged = f"the whole interval, {interval}, is below it"
    return f"{measured} {rule}: {judged}."


def _ratio_words(ratio: Content) -> str:
    if ratio["estimate"] == 1:
        return "All groups have the same selection rate."
    if ratio["highest"] == ratio["lowest"]:
        return "Nobody is selected, so the ratio counts as 0."
    return (
        f"The selection rate of {ratio['lowest']} is {ratio['estimate']:z.3f} times that of "
        f"{ratio['highest']}."
    )


def _with_confidence(content: Content) -> str:
    return f"with {confidence_words(content['confidence'])} confidence"


def groups_without_rows(content: Content) -> list[str]:
    """The groups that lack rows for a rate that the gap compares."""
    rates = [rate.name for rate in find_statistic(content["target"]["metric"]).rates]
    empty = [row["group"] for row in content["rates"] if row["rate"] in rates and row["n"] == 0]
    return list(dict.fromkeys(empty))


def _missing(content: Content) -> list[str]:
    """What is said about groups without rows for the gap, if there are any."""
    groups = groups_without_rows(content)
    if not groups:
        return []
    return [
        f"Without rows to measure it: {_some(groups)}. With {'them' if len(groups) > 1 else 'it'} "
        "the gap may be larger, up to 100 points."
    ]


def _judged(content: Content, gap: Content, digits: int) -> str:
    limit = content["target"]["max_gap"]
    if content["data"]["seen"]:
        return (
            "The model was trained on these rows, so nothing follows for other people: audit it on "
            "rows it has not seen."
        )
    if limit is None:
        return "No target was named, so nothing is judged here."
    if content["verdict"] == "not useful":
        return f"The target, at most {points(limit, digits)}, says nothing about such a model."
    side = "the interval includes the target"
    if gap["estimate"] is not None:
        where = "within it" if gap["estimate"] <= limit else "above it"
        side = f"the measured gap is {where}, but {side}"
    closing = {
        "met": "is met: the whole interval is within it.",
        "not met": "is not met: the whole interval is above it.",
        "undecided": f"can be neither confirmed nor ruled out from these rows: {side}. More rows "
        "would narrow it; the smallest group has only "
        f"{counted(gap['n_smallest'], 'row')} for this rate.",
    }[content["verdict"]]
    return f"The target, at most {points(limit, digits)}, {closing}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _digits(limit: float | None, *gaps: float | None) -> int:
    """Enough that what differs from the limit is not printed like it, nor a limit as zero."""
    if limit is None:
        return 1
    apart = [gap for gap in gaps if gap is not None and gap != limit]
    for digits in range(1, 6):
        shown = points(limit, digits)
        if all(points(gap, digits) != shown for gap in apart) and (
            limit == 0 or shown != points(0.0, digits)
        ):
            return digits
    return 6


_SEEN_CAVEATS = {
    True: "The model was trained on these rows. Rates and gaps are then better than they will be "
    "for other people, and the intervals do not hold. Use rows it has not seen.",
    None: "Intervals hold only if the model has not seen these rows and they are an independent "
    "sample of the people it will be used for. That is not known here.",
    False: "Intervals hold if the rows are an independent sample of the people the model will be "
    "used for.",
}


def caveats(content: Content, too_small: list[str]) -> list[str]:
    """What a reader must keep in mind."""
    texts = [
        _SEEN_CAVEATS[content["data"]["seen"]],
        how_intervals_hold(content),
        "The interval of a precision is computed given the number of positive predictions.",
    ]
    if too_small:
        texts.append(
            f"Too few rows to say much about (fewer than 30 for some rate): {_some(too_small)}."
        )
    texts += [
        "Labels are taken as the truth. If they were shaped by unequal treatment, equal error "
        "rates do not make up for that.",
        "A small gap in one rate says nothing about other rates, about groups that were not "
        "compared, or about single persons.",
    ]
    if content["frontier"] is not None:
        folds = any(point["gap_se"] is not None for point in content["frontier"]["points"])
        source = "are means over folds" if folds else "come from one held-out part of the rows"
        texts.append(
            f"Points of the frontier {source}. Picking the best of many makes it look better than "
            "it is."
        )
    return texts


def certificate_words(
    certificate: Certificate | GapCertificate,
    tested: Sequence[float] = (),
    model: Any = None,
    searched: float | None = None,
) -> list[str]:
    """The certificate in plain words.

    ``tested`` are the limits of a test of the finished model, for which training aimed at less.
    ``searched`` is the largest gap allowed in a search, whose candidates have limits of their own.
    With the ``model``, all gaps that it was trained for are named, and the groups and labels that
    training learned with the opposite label.
    """
    if isinstance(certificate, GapCertificate):
        weighted = model is not None and bool(error_weights(model))
        proved = [*_signed_costs(certificate), _proved_error(certificate, weighted=weighted)]
    else:
        proved = _balanced(certificate)
    return [*training_words(certificate, tested, model, searched), *proved]


def training_words(
    certificate: Certificate | GapCertificate,
    tested: Sequence[float] = (),
    model: Any = None,
    searched: float | None = None,
) -> list[str]:
    """The part of `certificate_words` that needs no knowledge of the method."""
    if isinstance(certificate, GapCertificate):
        texts = [_gap_kept(certificate, tested, model, searched)]
    else:
        texts = [_rounds_run(certificate)]
    opposite = "" if model is None else opposite_labels(model)
    if opposite:
        texts.append(opposite)
    if not certificate.holds:
        texts.append(
            "In the numbers of this run a statement that is a theorem did not hold: do not rely on "
            "this certificate."
        )
    return texts


def certificate_terms(certificate: Certificate | GapCertificate) -> str:
    """What the terms of the table of a certificate mean."""
    unbalanced = "that accuracy alone would choose"
    w = "those that it was trained with, under the constraint"
    terms = (
        "The margin is the model's score, zero for a probability of one half. Learners are the "
        f"parts of the model, one for each round; q are the weights of the rows {unbalanced}, and "
        f"w {w}. The edge is by how much a learner errs less than half of the time, and the total "
        "variation is the share of the weight on which w and q differ. Edge transfer is the "
        "theorem that the edges under w and q differ by no more than that. A bound is vacuous if "
        "it says no more than is known without a model."
    )
    if isinstance(certificate, GapCertificate):
        return f"{terms} Multipliers say how much a gap weighs where an error weighs 1."
    return f"{terms} The fairness cost is an upper bound of the total variation."


def certificate_caveat(certificate: Certificate | GapCertificate) -> str:
    """What the certificate does not say."""
    if isinstance(certificate, GapCertificate):
        return (
            "The certificate is about the rows of training. Costs and rounds were chosen on them, "
            "so the gap on new rows may be larger, and at another threshold it is another: rely on "
            "the verdict, not on this."
        )
    return (
        "The certificate is about the loss and the weights on the rows of training. It says "
        "nothing about how the predictions differ between groups: rely on the verdict for that."
    )


def aim(bounds: Sequence[float], tested: Sequence[float]) -> str:
    """What training bounded gaps by, and why, if it aimed at less than what was then tested."""
    text = ", ".join(f"{bound:g}" for bound in bounds)
    if not tested:
        return text
    limits = " and ".join(f"{limit:g}" for limit in tested)
    return f"{text}, so that the test of {limits} would likely succeed"


def _aimed(certificate: GapCertificate, tested: Sequence[float]) -> str:
    """The same for the gap of a certificate; of several gaps it has the aim of one only."""
    limits = " and ".join(map(points, tested))
    if len(tested) == 1:
        at = points(certificate.max_gap, _digits(tested[0], certificate.max_gap))
        return f"Training aimed at {at} so that the test of {limits} would likely succeed."
    return (
        f"Training aimed at less than was tested, {limits}, so that the test would likely succeed."
    )


def _gap_kept(
    certificate: GapCertificate, tested: Sequence[float], model: Any, searched: float | None
) -> str:
    text = f"{_rounds_kept(certificate)}."
    if not certificate.event:
        text += " No gap was bounded: nothing was compared."
    else:
        gap, limit, where = certificate.gap, certificate.max_gap, side(certificate)
        if searched is not None:
            limit, where = searched, "within" if gap <= searched else "above"
        digits = _digits(limit, gap)
        name = "the gap that training aimed at" if tested else "the largest gap allowed"
        text += (
            f" On the {watched(certificate)}, the gap in {named(certificate.event)} is "
            f"{points(gap, digits)}, {where} {name}, "
            f"{points(limit, digits)}. That holds where the model decides, at a "
            f"probability of {certificate.threshold:.4g}."
            f"{_other_gaps(certificate, model)}"
        )
        if tested:
            text += f" {_aimed(certificate, tested)}"
        if searched is not None:
            text += _candidate(certificate, model)
    if certificate.bias:
        text += (
            f" No round was within the limit as it stood, so a bias of {certificate.bias:+.3f} was "
            "added to the score of every row."
        )
    if certificate.useful:
        return text
    return f"{text} {_NOT_USEFUL.format(rows=watched(certificate))}"


def _candidate(certificate: GapCertificate, model: Any) -> str:
    """The own limit of the candidate that a search chose, and whether it was at work."""
    text = (
        " The candidate that the search chose was trained for a gap of at most "
        f"{points(certificate.max_gap)}."
    )
    if model is None or not _is_plain(model):
        return text
    return (
        f"{text} No round exceeded that, so no constraint was at work: this is the plain model, "
        "which training without a constraint gives too."
    )


def _is_plain(model: Any) -> bool:
    """Whether training with the same settings and no constraint gives the same model."""
    return not model.history_.bias and all(
        one.observed.within and not any(one.observed.multipliers) for one in model.history_
    )


def _rounds_kept(certificate: GapCertificate) -> str:
    """How many rounds, and why not all; see `fairproj.boosting.finish.choose_round`."""
    kept, run = certificate.n_rounds, counted(certificate.n_rounds_run, "round")
    if kept == certificate.n_rounds_run:
        return f"Training kept {kept} of {run}"
    text = f"Training kept the first {kept} of {run}"
    if not (certificate.event and certificate.useful):
        return f"{text}, after which the loss on the {watched(certificate)} was smallest"
    if certificate.bias:
        return f"{text}, after which a bias brings the gap within the limit at the smallest loss"
    if certificate.within:
        reason = "the loss was smallest among the rounds with a gap within the limit"
        return f"{text}, after which {reason}"
    return f"{text}, after which the gap came nearest to the limit"


def _other_gaps(certificate: GapCertificate, model: Any) -> str:
    """The other gaps that training limited, which are further below their limits."""
    if model is None or len(model.history_.events) < 2:
        return ""
    history = model.history_
    last = history[history.n_kept - 1].observed
    gaps = (last.bias if history.bias else last).gaps
    others = [
        f"{named(event)} {points(gap, _digits(limit, gap))}, of at most "
        f"{points(limit, _digits(limit, gap))}"
        for event, gap, limit in zip(history.events, gaps, history.limits, strict=True)
        if event != certificate.event
    ]
    return (
        " Of the gaps that training limited, this one comes nearest to its limit or exceeds it "
        f"most; the others on these rows: {'; '.join(others)}."
    )


def side(certificate: GapCertificate) -> str:
    """On which side of its limit the gap lies; a margin may ask for more than within."""
    if certificate.within:
        return "within"
    above = certificate.gap > certificate.max_gap
    return "above" if above else "less than a standard error below"


def watched(certificate: GapCertificate) -> str:
    """Not the rows of a report, which may be held out as well."""
    held_out = certificate.watched_on == "held-out rows"
    return "rows that training held out to watch the gap" if held_out else certificate.watched_on


def _signed_costs(certificate: GapCertificate) -> list[str]:
    if not certificate.event:
        return []
    if not certificate.largest_multiplier:
        return ["No gap had to be narrowed in the last round kept: all rows had their plain costs."]
    flipped = "no (group, label) cell"
    if certificate.flipped:
        flipped = f"{certificate.flipped} of the (group, label) cells"
    return [
        f"{SIGNED_COSTS} In the last round kept, the gap weighed "
        f"{certificate.largest_multiplier:.3g} where an error weighs 1, and {flipped} counted with "
        "the other label.",
    ]


SIGNED_COSTS = (
    "Rows have signed costs: a group whose rate is too high pays for each prediction that raises "
    "it, a group whose rate is too low gains by it, and where that outweighs what an error costs, "
    "rows count with the other label."
)


def _proved_error(certificate: GapCertificate, *, weighted: bool) -> str:
    where = "at a margin of zero (a probability of one half)"
    if weighted:
        where += ", errors weighted by label,"
    exact = (
        f"the training loss is {certificate.loss:.3g} (1 for a margin of zero), and the training "
        f"error {where} is {percent(certificate.train_error)}"
    )
    text = f"The proved bound on the training error says nothing here; {exact}."
    if certificate.bound_error < certificate.constant_error - 1e-9:
        text = (
            f"The training error {where} is proved to be at most "
            f"{percent(certificate.bound_error)}, less than that of the same prediction "
            f"for everyone ({percent(certificate.constant_error)}); in fact {exact}."
        )
    bound = certificate.bound_cost_loss
    if bound is not None and bound < certificate.zero_loss - 1e-9:
        text += (
            f" The loss with signed costs is proved to be at most {bound:.3g}; in fact it is "
            f"{certificate.cost_loss:.3g}."
        )
    return text


def _rounds_run(certificate: Certificate) -> str:
    return (
        f"Training ran {counted(certificate.n_rounds, 'round')}. Each weighs the training rows by "
        "how much an error on them counts, and moves these training weights until the groups "
        "balance to within epsilon, which they did in "
        f"{counted(certificate.balanced_rounds, 'round')}. That is a condition on training, not on "
        "the predictions."
    )


def _balanced(certificate: Certificate) -> list[str]:
    cost = (
        f"What balancing cost in training: on average, {percent(certificate.mean_tv)} of the "
        "weight was moved between rows. How much better than guessing a learner is (its edge) is "
        f"at most {certificate.mean_fairness_cost:z.3f} smaller on the weights that accuracy alone "
        "would choose than on the balanced ones it was trained on."
    )
    bound = min(certificate.bound_edge, certificate.bound_tv, certificate.bound_cost)
    return [_proved(bound, certificate), cost]


def _proved(bound: float, certificate: Certificate) -> str:
    exact = (
        f"the training loss is {certificate.loss:.3g} (1 before training), and the model errs "
        f"on {percent(certificate.train_error)} of the training rows."
    )
    if bound >= 1 - 1e-9:
        return f"The proved bound on the training loss says nothing here; {exact}"
    return f"It is proved that the training loss is at most {bound:.3g}; in fact {exact}"
