"""The pages: ``docs/arena.md`` with the answers, and one with every problem and constraint.

With the former, the short table of the README is written too.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from arena import figures, losses, readme, tables
from arena.plan import CONSTRAINTS, Plan, Problem
from arena.run import SHOWN, read_results
from arena.studies import iterations_table
from arena.summary import (
    compare,
    compare_all,
    frontier_distance,
    like_peer,
    references,
    summarise,
    with_first_learner,
)
from arena.timing import read_timing
from fairproj.data.checks import counted
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
RESULTS = HERE.parent / "results" / "arena"
MANY = 10  # splits, from which on intervals mean something


def write_pages(plan: Plan, results: Path, page: Path) -> None:
    """Write both pages and the pictures from the files of a run, whose names start alike."""
    note_path = results.with_name(results.name + ".json")
    if not note_path.exists():
        raise ValueError(f"{note_path} does not exist; run the plan {plan.name!r} first")
    note = json.loads(note_path.read_text("utf-8"))
    found = [Problem(**_tuples(each)) for each in note.get("user_problems", [])]
    plan = replace(plan, problems=(*plan.problems, *found))
    tidy, cases = read_results(plan, results.with_name(results.name + ".jsonl"))
    timed = results.with_name(results.name + "-time.jsonl")
    times = read_timing(plan, timed)
    content = Content(plan, note, tidy, cases, times)
    images = page.with_name(page.stem)
    write_text(page, content.page(images))
    write_text(page.with_name(f"{page.stem}-details.md"), content.details(page.stem))
    if page == README.parent / "docs" / "arena.md":
        readme.update(README, readme.short_comparison(content.summary, plan, times, tidy))


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}


class Content:
    """Everything that the pages show, computed once."""

    def __init__(
        self,
        plan: Plan,
        note: dict[str, Any],
        tidy: pd.DataFrame,
        cases: pd.DataFrame,
        times: pd.DataFrame,
    ) -> None:
        self.plan, self.note, self.tidy, self.cases, self.times = plan, note, tidy, cases, times
        constants = {name: known["constant"] for name, known in note["problems"].items()}
        self.references = references(tidy, constants)
        self.summary = summarise(tidy, plan, self.references)
        known = self.summary, plan, self.references
        self.titles = {problem.name: problem.title for problem in plan.problems}
        self.built = {each["name"]: each for each in note["environments"]}
        self.compared = compare_all(self.summary, plan)
        self.comparisons = losses.without_groups_only(self.compared, plan)
        self.with_defaults = []  # of a plan with one size of trees, nothing to say
        if len(plan.learners) > 1:
            default = compare_all(with_first_learner(tidy, *known), plan)
            self.with_defaults = losses.without_groups_only(default, plan)
        peer = losses.FEW_POINTS
        self.alike = (
            compare(like_peer(tidy, *known, peer), peer, plan.overlap)
            if peer in set(tidy["method"])
            else []
        )
        self.time_claims = losses.time_claims(times, tidy)

    def page(self, images: Path) -> str:
        text = (HERE / "page.md").read_text("utf-8")
        parts = self._facts() | self._answers() | self._pictures(images)
        return text.format(**parts)

    def _facts(self) -> dict[str, str]:
        plan, versions = self.plan, self.note["versions"]
        splits = self.summary["split"].nunique()
        caution = (
            f"**Only {counted(splits, 'split')}: intervals and verdicts mean little.**\n\n"
            if splits < MANY
            else ""
        )
        minutes = self.cases["cpu_seconds"].sum() / 60
        return {
            "title": plan.title,
            "command": "make arena" if plan.name == "full" else f"make arena-{plan.name}",
            "caution": caution,
            "splits": counted(splits, "split"),
            "problems": str(self.summary["problem"].nunique()),
            "methods": str(self.summary["method"].nunique()),
            "points": f"{len(self.tidy):,}",
            "minutes": f"{minutes:.0f}",
            "clock_minutes": self._clock_minutes(),
            "numbers": f"{plan.splits[0]} to {plan.splits[-1]}",
            "rows": f"{plan.training_rows:,}",
            "test": f"{100 * plan.test:.0f} %",
            "validation": f"{100 * plan.validation:.0f} %",
            "learners": self._learners(),
            "targets": ", ".join(f"{target:g}" for target in plan.targets),
            "versions": ", ".join(f"{name} {versions[name]}" for name in SHOWN),
            "problem_table": markdown(tables.problem_table(plan, self.note)),
            "method_table": markdown(tables.method_table(plan, self.built)),
            "environments": self._environments(),
            "missing": self._missing(),
            "failures": self._failures(),
        }

    def _clock_minutes(self) -> str:
        """How long a run of all these cases in one piece took, if there was one."""
        whole = self.note.get("whole_run", {"cases": 0})
        if whole["cases"] != len(self.cases):
            return ""
        parts = whole["minutes"]
        built, compared, timed = (f"{each:.0f}" for each in parts)
        return (
            f"A run in one piece took {sum(parts):.0f} minutes by the clock, with "
            f"{counted(whole['jobs'], 'case')} at a time: {built} for environments and data, "
            f"{compared} for the comparison, {timed} for timing. "
        )

    def _learners(self) -> str:
        """What the learners are, which have their leaves in their names."""
        (first, *others), shared = self.plan.learners.values(), ("n_estimators", "learning_rate")
        same = ", ".join(f"{name} {first[name]}" for name in shared)
        assert all(other[name] == first[name] for other in others for name in shared)
        return f"{' and '.join(self.plan.learners)}; {same}"

    def _answers(self) -> dict[str, str]:
        plan, summary = self.plan, self.summary
        middle = plan.targets[len(plan.targets) // 2]
        return {
            "first": losses.first_words(
                self.comparisons, self.with_defaults, self.alike, self.titles
            ),
            "remark": f"{plan.remark}\n" if plan.remark else "",
            "time_claims": _bullets(self.time_claims),
            "ranks": markdown(tables.rank_table(summary, plan)),
            "against": markdown(tables.against_table(self.compared, plan)),
            "at_targets": markdown(tables.target_table(summary, plan)),
            "price": _table(tables.price_table(summary, plan), "No such method was run."),
            "distance": self._distance(),
            "ranking": markdown(tables.ranking_table(summary, plan, middle)),
            "middle": f"{middle:g}",
            "time": _time(self.times, plan),
            "losses": self._losses(),
            "least_width": "0.1",
        }

    def _distance(self) -> str:
        true = {
            name: known["frontiers"]
            for name, known in self.note["problems"].items()
            if "frontiers" in known
        }
        true = {name: known for name, known in true.items() if name in set(self.summary["problem"])}
        if not true:
            return "No population is among the problems of this plan.\n"
        far = frontier_distance(self.summary, self.plan, true)
        return markdown(tables.distance_table(far, self.plan, true, self.references))

    def _losses(self) -> str:
        plan, summary = self.plan, self.summary
        parts = []
        below = losses.below_table(self.comparisons, self.titles)
        parts.append(
            "Besides the table at the top, and methods that use the groups ([price]"
            "(#the-price-of-doing-without-the-groups)): hypervolumes that are more than 2 % below "
            "another's on average, with an interval that leaves it open:\n\n"
            + _table(below, "None.")
        )
        if self.with_defaults:
            default = [each for each in self.with_defaults if each.verdict() == "fails"]
            parts.append(
                f"With default trees ({plan.first_learner}) alone, while the others have both "
                "sizes, the aim fails here:\n\n"
                + _table(losses.listed(default, self.titles), "Nowhere.")
            )
        at_targets = losses.target_losses(summary, plan, self.titles)
        parts.append(
            "Targets at which another method without groups at predict is ahead by more than half "
            "a point, by the lower end of the interval, while its gap on test rows is not "
            "larger:\n\n" + _table(at_targets, "None.")
        )
        others = losses.other_losses(summary, plan)
        parts.append("Elsewhere:\n\n" + (_bullets(others) or "Nothing was found.\n"))
        if plan.name == "full":
            table = markdown(iterations_table(RESULTS))
            parts.append((HERE / "why.md").read_text("utf-8").format(iterations=table))
        return "\n".join(parts)

    def _pictures(self, images: Path) -> dict[str, str]:
        shown = {}
        for constraint in CONSTRAINTS:
            if any(cell[1] == constraint for cell in self.references):
                figure = figures.frontiers(
                    self.tidy, self.plan, constraint, self.references, self.note
                )
                path = figures.save_png(images, constraint.replace("_", "-"), figure)
                words = tables.words(constraint)
                shown[words] = f"![Score within a limit on the gap, {words}]({path})\n"
        picture = ""
        drawn = [each for each in self.comparisons if each.method in figures.PEERS]
        if drawn:
            figure = figures.differences(drawn, self.titles)
            path = figures.save_png(images, "hypervolume", figure)
            picture = f"![FairBoost's hypervolume less that of other methods]({path})\n"
        clock = ""
        if "fit_seconds" in self.times and len(self.times):
            first = self.times["problem"].iloc[0]
            chosen = self.times[self.times["problem"] == first]
            rows = f"{chosen['rows'].max():,.0f} rows"
            figure = figures.seconds(chosen, f"{self.titles[first]}, {rows}")
            path = figures.save_png(images, "seconds", figure)
            clock = f"![Seconds of a fit]({path})\n"
        pictures = "\n".join(f"### {w.capitalize()}\n\n{image}" for w, image in shown.items())
        return {"frontiers": pictures, "differences": picture, "clock": clock}

    def _environments(self) -> str:
        lines = [["environment", "versions", "built in, s"]]
        for built in self.built.values():
            versions = ", ".join(f"{name} {value}" for name, value in built["versions"].items())
            seconds = f"{built['seconds']:.0f}" if built["ok"] else "-"
            failed = f"**not built:** {built['reason']}"
            lines.append([built["name"], versions if built["ok"] else failed, seconds])
        return _table(lines, "Every method runs in fairproj's own environment.")

    def _missing(self) -> str:
        return _bullets(
            f"`{name}` was left out: {why}" for name, why in self.note["missing"].items()
        )

    def _failures(self) -> str:
        """Points that have no model, by method, with the most frequent reason."""
        rows = self.cases[self.cases["errors"].map(len) > 0]
        lines = [["method", "points without a model", "of", "most frequent reason"]]
        for method in self.plan.methods:
            reasons = [
                e for errors in rows[rows["method"] == method.name]["errors"] for e in errors
            ]
            if reasons:
                kept = (self.tidy["method"] == method.name).sum()
                top = pd.Series(reasons).value_counts().index[0]
                shown = top.replace("|", "/")
                lines.append([method.name, str(len(reasons)), str(len(reasons) + kept), shown])
        return _table(lines, "Every fit gave a model.")

    def details(self, name: str) -> str:
        splits = counted(self.summary["split"].nunique(), "split")
        parts = [
            f"# {self.plan.title}: every problem and constraint\n\nMeans over {splits}; "
            f"hypervolumes in points of score. See "
            f"[{self.plan.title.lower()}]({name}.md) for what the columns mean.\n"
        ]
        for problem in self.plan.problems:
            for constraint in problem.constraints:
                here = (self.summary["problem"] == problem.name) & (
                    self.summary["constraint"] == constraint
                )
                if here.any():
                    reference = self.references[problem.name, constraint]
                    table = tables.detail_table(self.summary[here], self.compared, self.plan)
                    parts.append(
                        f"## {problem.title}: {tables.words(constraint)}\n\nGaps count up to "
                        f"{reference.gap:.3f}, {tables.words(problem.goal)} from "
                        f"{reference.score:.3f} on.\n\n{markdown(table)}"
                    )
        return "\n".join(parts)


def _table(lines: tables.Lines, nothing: str) -> str:
    return markdown(lines) if len(lines) > 1 else nothing + "\n"


def _bullets(sentences: Any) -> str:
    return "".join(f"- {sentence}\n" for sentence in sentences)


def _time(times: pd.DataFrame, plan: Plan) -> str:
    if "fit_seconds" not in times:
        return "Nothing was timed.\n"
    return markdown(tables.time_table(times, plan))
