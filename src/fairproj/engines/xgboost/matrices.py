"""Rows in XGBoost's bins, whose cuts do not depend on where the rows are.

XGBoost finds cuts with a sketch whose result depends on how rows are spread over workers and
batches. Here the cuts come from one sample of the training rows, the same on every worker.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.sample import Sample
from fairproj.engines.xgboost.imports import locally, xgboost

REFERENCE_ROWS = 200_000  # as many as LightGBM looks at
_REFERENCE_ENTRIES = 1 << 26  # of a table with many columns, fewer rows
_GATHERED_ENTRIES = 1 << 23  # exchanged at a time
_PAGE_ENTRIES = 1 << 23  # of a matrix on disk, 32 MB before they are binned


@dataclass(frozen=True)
class Bins:
    """Cuts of all columns, and what XGBoost must know to use them.

    Attributes
    ----------
    reference : xgboost.QuantileDMatrix
        Other rows are binned by its cuts.
    options : dict
        Arguments of every matrix in these bins.
    last_cut : array of shape (n_features,)
        The upper end of the last bin of each column.
    """

    reference: Any
    options: Mapping[str, Any]
    last_cut: NDArray[np.float32]


def find_bins(
    sample: Sample, categories: Mapping[int, Sequence[Any]], max_bins: int, n_threads: int
) -> Bins:
    """Bins from the training rows of all workers, each of which must call this."""
    n_features = sample.X.shape[1]
    options: dict[str, Any] = {"max_bin": max_bins, "nthread": n_threads}
    rows = _reference_rows(sample)
    if categories:
        types = ["c" if column in categories else "q" for column in range(n_features)]
        options |= {"feature_types": types, "enable_categorical": True}
        rows = np.vstack([rows, _row_of_last_codes(categories, n_features)])

    def build() -> tuple[Any, NDArray[np.float32]]:
        reference = xgboost().QuantileDMatrix(rows, **options)
        ends, cuts = reference.get_quantile_cut()
        return reference, cuts[ends[1:].astype(np.intp) - 1]

    with too_large_explained():
        reference, last_cut = locally(build, n_threads)
    return Bins(reference, options, last_cut)


def bin_rows(X: Any, bins: Bins) -> Any:
    """A matrix of rows in the given bins; on disk where X comes in batches."""

    def build() -> Any:
        if hasattr(X, "batches") and len(X):
            return _matrix_on_disk(X, bins)
        rows = X if len(X) else np.zeros(X.shape, dtype=np.float32)
        return xgboost().QuantileDMatrix(rows, ref=bins.reference, **bins.options)

    with too_large_explained():
        return locally(build, bins.options["nthread"])


def _reference_rows(sample: Sample) -> NDArray[np.float32]:
    """Rows at fixed positions of the whole table, the same on every worker."""
    n_rows, n_features = sample.n_rows, sample.X.shape[1]
    most = max(1, min(REFERENCE_ROWS, _REFERENCE_ENTRIES // n_features))
    positions = np.arange(min(n_rows, most))
    if n_rows > most:
        positions = np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))
    starts, _ = sample.blocks.starts(sample.reduction)
    here, local = sample.blocks.find(positions, starts)
    own = sample.X.rows(local) if hasattr(sample.X, "rows") else sample.X[local]
    rows = np.empty((len(positions), n_features), dtype=np.float32)
    step = max(1, _GATHERED_ENTRIES // max(1, len(positions)))
    for begin in range(0, n_features, step):
        columns = slice(begin, begin + step)
        part = np.zeros((len(positions), min(step, n_features - begin)))
        part[here] = own[:, columns]  # each row is on one worker; the others add zeros
        with np.errstate(over="ignore"):  # XGBoost refuses infinite values
            rows[:, columns] = sample.reduction.sum(part)
    return rows


def _row_of_last_codes(
    categories: Mapping[int, Sequence[Any]], n_features: int
) -> NDArray[np.float32]:
    """XGBoost knows the codes up to the largest that it has seen; the sample may lack it."""
    row = np.full((1, n_features), np.nan, dtype=np.float32)
    for column, values in categories.items():
        row[0, column] = max(len(values) - 1, 0)
    return row


def _matrix_on_disk(X: Any, bins: Bins) -> Any:
    """A matrix that keeps its pages in files, which are deleted with it."""
    folder = tempfile.TemporaryDirectory(prefix="fairproj-")
    pages = _page_iterator(X, folder.name, bins.options.get("feature_types"))
    try:
        _check_space(X, bins, folder.name)
        matrix = xgboost().ExtMemQuantileDMatrix(
            pages,
            ref=bins.reference,
            **{name: bins.options[name] for name in bins.options if name != "feature_types"},
        )
        pages.raise_interruption()
    except BaseException:
        folder.cleanup()
        pages.raise_interruption()
        raise
    weakref.finalize(matrix, folder.cleanup)
    return matrix


def _check_space(X: Any, bins: Bins, folder: str) -> None:
    """Refuse a disk that is too small for the pages: XGBoost would end the process."""
    needed = _page_bytes(X.shape, bins.reference, bins.options["max_bin"])
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"binned rows need about {needed / 1e6:,.0f} MB on disk, and "
            f"{tempfile.gettempdir()} has {free / 1e6:,.0f} MB left; make room, or set TMPDIR to a "
            "folder on another disk",
        )
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(needed)  # the size alone, which takes no space
    except OSError as error:
        raise OSError(
            error.errno,
            f"binned rows need a file of about {needed:,} bytes, which {tempfile.gettempdir()} "
            f"refuses: {error.strerror}; raise the limit of a file's size (ulimit -f), or set "
            "TMPDIR to a folder on another disk",
        ) from None


def _page_bytes(shape: tuple[int, int], reference: Any, max_bins: int) -> int:
    """At most the size of the file of pages, if as many values are missing as in the reference.

    Each value has the number of its bin by row (4 bytes at least where values are missing) and by
    column (with a bit that it is there, or with its row where few are); each row has its start,
    and each page the number of rows of each bin.
    """
    n_rows, n_features = shape
    ends = reference.get_quantile_cut()[0].astype(np.intp)
    most_bins = max(max_bins, int(np.diff(ends).max()) - 1)  # the cuts begin with the minimum
    width = np.min_scalar_type(most_bins - 1).itemsize
    present = reference.num_nonmissing() / (reference.num_row() * n_features)
    value = 2 * width + 0.125 if present == 1 else present * max(width, 4) + width + 1
    pages = _n_pages(shape) * (8 * int(ends[-1]) + 1024)
    return int(n_rows * (n_features * value + 8)) + pages


def _n_pages(shape: tuple[int, int]) -> int:
    return -(-shape[0] * shape[1] // _PAGE_ENTRIES)


def _page_iterator(X: Any, folder: str, feature_types: Any) -> Any:
    class Pages(xgboost().DataIter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=f"{folder}/pages")
            self._pages: Iterator[Any] = iter(())
            self._interruption: BaseException | None = None

        def next(self, input_data: Any) -> bool:
            try:
                page = next(self._pages, None) if self._interruption is None else None
                if page is None:
                    return False
                input_data(data=page, feature_types=feature_types)
                return True
            except Exception:
                raise  # XGBoost passes these on
            except BaseException as interruption:
                # XGBoost would take an interrupt for the end of the rows.
                self._interruption = interruption
                return False

        def raise_interruption(self) -> None:
            interruption, self._interruption = self._interruption, None
            try:
                if interruption is not None:
                    raise interruption
            finally:
                del interruption  # a cycle would keep the pages of other rows alive

        def reset(self) -> None:
            self._pages = _pages(X)

    return Pages()


def _pages(X: Any) -> Iterator[NDArray[np.float32]]:
    """All rows in arrays of a good size, each of which is valid until the next.

    A round on many small pages takes several times as long as on a few large ones.
    """
    n_rows, n_features = X.shape
    page = np.empty((-(-n_rows // _n_pages(X.shape)), n_features), dtype=np.float32)
    filled = 0
    for batch in X.batches():
        begin = 0
        while begin < len(batch):
            part = batch[begin : begin + len(page) - filled]
            page[filled : filled + len(part)] = part
            begin, filled = begin + len(part), filled + len(part)
            if filled == len(page):
                yield page
                filled = 0
    if filled:
        yield page[:filled]


@contextmanager
def too_large_explained() -> Iterator[None]:
    """Turn XGBoost's complaint about large numbers into what to do about them."""
    try:
        yield
    except xgboost().core.XGBoostError as error:
        if "a value too large" not in str(error):
            raise
        raise ValueError(
            "X holds a number beyond 3.4e38, which XGBoost's 32-bit floats cannot hold; "
            "rescale the column, or use engine='lightgbm'"
        ) from None
