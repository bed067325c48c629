"""Progress bars; ``rich`` is imported when a bar is shown."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def bar_title(constraints: Any) -> str:
    """What to call the progress bar of a fit, since a second fit may have no constraint."""
    return "without constraint" if constraints is None else "boosting"


class RoundProgress(Generic[Item, Outcome]):
    """Iterate over the rounds of a generator, with a progress bar called ``title`` if ``verbose``.

    Attributes
    ----------
    outcome
        What the generator returned, after the last round.
    """

    outcome: Outcome

    def __init__(
        self,
        rounds: Generator[Item, None, Outcome],
        total: int,
        *,
        verbose: bool = False,
        title: str = "boosting",
    ) -> None:
        self._rounds = rounds
        self._total = total
        self._verbose = verbose
        self._title = title

    def __iter__(self) -> Iterator[Item]:
        if self._verbose:
            return _with_bar(self._iterate(), self._total, self._title)
        return self._iterate()

    def _iterate(self) -> Iterator[Item]:
        self.outcome = yield from self._rounds


def _with_bar(items: Iterator[Item], total: int, title: str) -> Iterator[Item]:
    with _rich_progress("verbose=True shows a progress bar and").Progress() as progress:
        task = progress.add_task(title, total=total)
        for done, item in enumerate(items, start=1):
            progress.update(task, completed=done)
            yield item
        progress.update(task, total=progress.tasks[task].completed)  # a run may end early


@contextmanager
def time_bar(
    title: str, total: float, done: float, *, show: bool = True
) -> Iterator[Callable[[float], None]]:
    """Show a bar over work in expected seconds; yields the function to call with work done."""
    if not show:
        yield lambda amount: None
        return
    bars = _rich_progress("the progress bar")
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, speed_estimate_period=3600) as progress:
        task = progress.add_task(title, total=total, completed=done)
        yield lambda amount: progress.update(task, advance=amount)


def _rich_progress(needed_by: str) -> Any:
    try:
        import rich.progress
    except ImportError:
        raise ImportError(
            f"{needed_by} needs rich; install it with pip install 'fairproj[progress]'"
        ) from None
    return rich.progress
