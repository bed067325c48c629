"""Progress bars. ``rich`` is imported only where a bar is asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class show_rounds(Generic[Item, Outcome]):  # noqa: N801 - called like a function
    """Iterate over a generator, with a progress bar; ``outcome`` is then what it returned."""

    outcome: Outcome

    def __init__(
        self, run: Generator[Item, None, Outcome], total: int, *, verbose: bool = False
    ) -> None:
        self._run = run
        self._total = total
        self._verbose = verbose

    def __iter__(self) -> Iterator[Item]:
        items = self._items()
        if self._verbose:
            items = _bar(items, self._total)
        yield from items

    def _items(self) -> Iterator[Item]:
        self.outcome = yield from self._run


def _bar(items: Iterator[Any], total: int) -> Iterator[Any]:
    try:
        from rich.progress import Progress
    except ImportError:
        raise ImportError(
            "verbose=True shows a progress bar and needs rich; install it with "
            "pip install 'fairproj[progress]'"
        ) from None
    with Progress() as progress:
        task = progress.add_task("boosting", total=total)
        for done, item in enumerate(items, start=1):
            progress.update(task, completed=done)
            yield item
        progress.update(task, total=progress.tasks[task].completed)  # a run may end early


@contextmanager
def time_bar(
    title: str, total: float, done: float, *, show: bool = True
) -> Iterator[Callable[[float], None]]:
    """A bar over work measured in expected seconds; yields what to call as work gets done."""
    if not show:
        yield lambda amount: None
        return
    try:
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        raise ImportError(
            "the progress bar needs rich; install it with pip install 'fairproj[progress]'"
        ) from None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, speed_estimate_period=3600) as progress:
        task = progress.add_task(title, total=total, completed=done)
        yield lambda amount: progress.update(task, advance=amount)
