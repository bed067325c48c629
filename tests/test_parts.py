"""A table in parts becomes what the whole table becomes."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fairproj import FairProjClassifier
from fairproj.data import checks
from fairproj.data.batches import BatchMatrix, ChosenRows
from fairproj.data.parts import Part, Reader, describe, describe_rows, encode, merge


def make_table(n_rows=60, seed=0):
    """Columns of every kind, with missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows).round(1),
            "whole": rng.integers(0, 5, n_rows),
            "sometimes": np.where(rng.random(n_rows) < 0.7, np.nan, rng.integers(0, 9, n_rows)),
            "flag": rng.random(n_rows) < 0.3,
            "maybe": pd.Series(rng.choice([True, False, None], n_rows), dtype=object),
            "text": rng.choice(["x", "y", "z", "late"], n_rows, p=[0.4, 0.3, 0.28, 0.02]),
            "kind": pd.Categorical(rng.choice(["b", "a", "c"], n_rows), ["c", "a", "b", "none"]),
            "empty": np.full(n_rows, np.nan),
        }
    )
    X.loc[rng.random(n_rows) < 0.4, "text"] = None
    y = rng.choice(["no", "yes"], n_rows)
    y[:2] = ["no", "yes"]
    groups = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n_rows), "age": rng.choice([1, 2, 10], n_rows)}
    )
    weight = rng.choice([0.0, 0.5, 3.0], n_rows, p=[0.2, 0.4, 0.4])
    weight[:2] = 1.0
    return X, y, groups, weight


def cut(ends, n_rows):
    """Slices of rows, some empty, that cover all rows."""
    ends = [0, *sorted(min(end, n_rows) for end in ends), n_rows]
    return [slice(*pair) for pair in pairwise(ends)]


def as_read_by_itself(X):
    """A part with the types that a reader of this part alone would find."""
    X = X.copy()
    for name in X.columns:
        if X[name].isna().all():
            X[name] = np.nan
        elif isinstance(X[name].dtype, pd.CategoricalDtype):
            X[name] = X[name].cat.remove_unused_categories()
        elif X[name].dtype.kind == "f" and X[name].notna().all() and (X[name] % 1 == 0).all():
            X[name] = X[name].astype(int)
        elif X[name].dtype == object and X[name].notna().all():
            X[name] = X[name].astype(bool)
    return X


def parts_of(X, y, groups, weight, slices):
    def some(values, rows):
        return None if values is None else values[rows]

    return [
        Part(as_read_by_itself(X[rows]), y[rows], some(groups, rows), some(weight, rows))
        for rows in slices
    ]


def encode_all(parts, **parameters):
    reader = Reader(**parameters)
    table = merge([describe(part, reader) for part in parts], reader)
    table = pickle.loads(pickle.dumps(table))
    return table, [encode(part, table) for part in parts]


def join(encoded):
    fields = ("matrix", "y", "codes", "weight")
    return [np.concatenate([getattr(part, field) for part in encoded]) for field in fields]


def assert_same_encoding(one, other):
    assert one.columns == other.columns
    assert one.booleans == other.booleans
    assert one.had_missing.tolist() == other.had_missing.tolist()
    assert one.categories.keys() == other.categories.keys()
    for position, values in one.categories.items():
        assert values.tolist() == other.categories[position].tolist()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 60), max_size=6))
def test_parts_are_encoded_as_one_table(seed, ends):
    X, y, groups, weight = make_table(seed=seed)
    parts = parts_of(X, y, groups, weight, cut(ends, len(X)))
    table, encoded = encode_all(parts, pos_label="no", categorical_features="from_dtype")
    model = FairProjClassifier(pos_label="no")
    sample = model._prepare(X, y, groups, weight).sample.with_weight()
    matrix, sign, codes, scaled = join(encoded)
    np.testing.assert_array_equal(matrix, sample.X.astype(np.float32))
    np.testing.assert_array_equal(sign, sample.y)
    np.testing.assert_array_equal(codes, sample.groups.codes)
    np.testing.assert_array_equal(scaled, sample.weight)
    assert table.group_values == sample.cells.group_values
    assert table.classes.tolist() == ["no", "yes"]
    assert table.positive_class == sample.positive_class == 0
    assert table.lengths == tuple(len(part.y) for part in encoded)
    assert table.feature_names.tolist() == model.feature_names_in_.tolist()
    assert_same_encoding(table.encoder.encoding, sample.encoder.encoding)
    assert (matrix.dtype, sign.dtype, codes.dtype) == (np.float32, np.int8, np.uint8)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_arrays_with_chosen_categories_and_sensitive_columns(ends):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (60, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1] = rng.integers(0, 3, 60)
    y = rng.integers(0, 2, 60)
    model = FairProjClassifier(sensitive_columns=[1], categorical_features=[0, 3])
    prepared = model._prepare(X, y)
    parts = [Part(X[rows], y[rows]) for rows in cut(ends, 60)]
    reader = Reader.of(model)
    table = merge([describe(part, reader) for part in parts], reader)
    matrix = np.concatenate([encode(part, table).matrix for part in parts])
    np.testing.assert_array_equal(matrix, prepared.sample.X.astype(np.float32))
    assert_same_encoding(table.encoder.encoding, prepared.sample.encoder.encoding)
    assert table.sensitive_columns == prepared.sensitive_columns == [1]
    assert table.group_values == prepared.sample.cells.group_values
    assert table.n_features == prepared.n_features == 3
    assert table.feature_names is None
    assert table.largest_weight is None


def test_group_values_of_several_types_keep_the_order_of_the_rows():
    X, y = np.zeros((6, 1)), np.array([0, 1] * 3)
    groups = pd.Series(["b", (1, 2), "a", None, 3, "b"], dtype=object).fillna("a")
    prepared = FairProjClassifier()._prepare(X, y, groups)
    parts = [Part(X[r], y[r], groups[r]) for r in (slice(0, 3), slice(3, 6))]
    table, encoded = encode_all(parts)
    assert table.group_values == prepared.sample.cells.group_values
    codes = np.concatenate([part.codes for part in encoded])
    np.testing.assert_array_equal(codes, prepared.sample.groups.codes)


def test_polars_parts_equal_pandas_parts():
    X, y, groups, weight = make_table()
    X = X.drop(columns=["maybe", "kind"])
    slices = cut([20, 45], 60)
    _, ours = encode_all(parts_of(X, y, groups, weight, slices))
    frame, sensitive = pl.from_pandas(X), pl.from_pandas(groups)
    parts = [Part(frame[r], y[r], sensitive[r], weight[r]) for r in slices]
    _, theirs = encode_all(parts)
    for one, other in zip(join(ours), join(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


def good_part(**changes):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": list("xyxy")})
    whole = {"X": X, "y": [0, 1, 0, 1], "sensitive_features": list("ffmm"), "name": "part 0"}
    return Part(**{**whole, **changes})


def frame(**columns):
    return pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": list("xyxy"), **columns})


IN_ONE_PART = {
    "y holds labels without an order": {"y": np.array([0, "a", 0, "a"], dtype=object)},
    "part 7: Input y contains NaN: 1 of 4 labels": {"y": [0, 1, None, 1]},
    "Input y contains infinity": {"y": [0.0, 1.0, np.inf, 1.0]},
    "Unknown label type": {"y": [0.1, 0.2, 0.3, 0.7]},
    "y holds the text 'nan'": {"y": ["nan", "a", "b", "a"]},
    "X has 4 rows and y has 3": {"y": [0, 1, 0]},
    "the target y is None": {"y": None},
    "part 7: sensitive_features has 1 missing": {"sensitive_features": ["f", None, "m", "m"]},
    "sensitive_features has 3 rows and X has 4": {"sensitive_features": list("ffm")},
    "sample_weight has 2 entries": {"sample_weight": [1, 2]},
    "Negative values": {"sample_weight": [1, 2, -1, 1]},
    "missing or infinite entries": {"sample_weight": [1, 2, np.nan, 1]},
    "contains infinity in column 'a'": {"X": frame(a=[1, np.inf, 2, 3])},
    "'a' has numbers beyond 3.4e[+]38": {"X": frame(a=[1, -1e39, 2, 3])},
    "'a' is of type .*turn it into": {"X": frame(a=pd.to_datetime(["2020-01-01"] * 4))},
    "several columns called 'a'": {"X": frame().set_axis(["a", "a"], axis=1)},
    "parts of a table must be dense": {"X": sparse.csr_array(np.eye(4))},
    "got LazyFrame": {"X": pl.from_pandas(frame()).lazy()},
    "array that holds text": {"X": np.array([["x", "y"]] * 4)},
    "Complex data not supported": {"X": np.ones((4, 2)) * 1j},
}


@pytest.mark.parametrize("sentence", IN_ONE_PART)
def test_what_is_wrong_in_one_part(sentence):
    with pytest.raises(ValueError, match=sentence):
        describe(good_part(**IN_ONE_PART[sentence], name="part 7"), Reader())


BETWEEN_PARTS = {
    "part 0 has the columns 'a', 'b' and part 1 has 'b', 'a'": {"X": frame()[["b", "a"]]},
    "part 1 has 0, 1": {"X": np.ones((4, 2))},
    "column 'b' holds categories in part 0 and numbers in part 1": {"X": frame(b=[1, 2, 3, 4])},
    "column 'a' holds categories in part 1 and numbers in part 0": {"X": frame(a=list("xyzz"))},
    r"Only binary .* 4 classes \(0, 1, 2, 3\)": {"y": [2, 3, 2, 3]},
    r"y holds labels without an order \(0, 1, 'no', 'yes'\)": {"y": ["no", "yes", "no", "yes"]},
    "'part 1' has no groups, and other parts do": {"sensitive_features": None},
    "'part 0' has no weights, and other parts do": {"sample_weight": [1, 2, 3, 4]},
    "part 1 has '0', '1'; all parts must have the same": {"sensitive_features": np.eye(4)[:, :2]},
}


@pytest.mark.parametrize("sentence", BETWEEN_PARTS)
def test_parts_that_do_not_agree(sentence):
    other = good_part(**BETWEEN_PARTS[sentence], name="part 1")
    with pytest.raises(ValueError, match=sentence):
        merge([describe(part, Reader()) for part in (good_part(), other)], Reader())


def test_limits_are_those_of_the_whole_table(monkeypatch):
    def parts(column, groups):
        return [
            Part(pd.DataFrame({"a": column[r]}), [0, 1] * 75, groups[r])
            for r in (slice(0, 150), slice(150, 300))
        ]

    texts = [f"value {i}" for i in range(300)]
    with pytest.raises(ValueError, match=r"'a' has 300 categories, .* max_bins=255"):
        encode_all(parts(texts, ["all"] * 300))
    monkeypatch.setattr(checks, "MOST_GROUPS", 200)  # each part has fewer
    with pytest.raises(ValueError, match="sensitive_features has 300 groups, the most is 200"):
        encode_all(parts(list(range(300)), texts))


def test_dates_as_text_are_judged_over_all_parts():
    """Other text in one part makes them categories, as it does in one table."""

    def encode(*days, **reader):
        parts = [good_part(X=frame(a=list(values)), name=values[0]) for values in days]
        return merge([describe(part, Reader(**reader)) for part in parts], Reader(**reader)).encoder

    january, february = [f"2026-01-0{day}" for day in "1234"], ["01.02.2026", None] * 2
    with pytest.raises(ValueError, match="'a' holds dates as text, such as '01"):
        encode(january, february)
    assert encode(january, february, categorical_features=["a", "b"]).categories[0][-1] == (
        "2026-01-04"
    )
    assert encode(january, [*february[:3], "unknown"]).categories[0][-1] == "unknown"
    declared = [pd.Categorical(days) for days in (january, february)]
    parts = [good_part(X=frame(a=values)) for values in declared]
    encoder = merge([describe(part, Reader()) for part in parts], Reader()).encoder
    assert encoder.categories[0] == ["01.02.2026", *january]


def test_weights_are_judged_over_all_parts():
    def table(*weights):
        parts = [good_part(sample_weight=weight) for weight in weights]
        return encode_all(parts)

    _, encoded = table([0, 0, 0, 0], [1, 0, 6, 3])
    assert [len(part.y) for part in encoded] == [0, 3]
    np.testing.assert_array_equal(encoded[1].weight, [0.25, 1.5, 0.75])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        table([0, 0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="rows of positive sample_weight must hold two classes"):
        table([0, 1, 0, 0], [0, 0, 0, 1])


def test_a_column_without_values_in_one_part_takes_its_type_from_the_others():
    typed = {"n": [1.0, 2.0], "t": ["x", "y"], "b": [True, False]}
    none = {
        "n": pd.Series([None, None], dtype="str"),
        "t": [np.nan, np.nan],
        "b": [None, None],
    }
    parts = [Part(pd.DataFrame(columns), [0, 1]) for columns in (none, typed)]
    table, encoded = encode_all(parts)
    encoding = table.encoder.encoding
    assert list(encoding.categories) == [1]
    assert encoding.booleans == [False, False, True]
    assert encoding.had_missing.tolist() == [True, True, True]
    assert np.isnan(encoded[0].matrix).all()
    np.testing.assert_array_equal(encoded[1].matrix, [[1, 0, 1], [2, 1, 0]])


def test_no_rows_at_all():
    with pytest.raises(ValueError, match="X has 0 rows"):
        encode_all([Part(np.empty((0, 2)), [])])


class Frames:
    """Parts in memory, read through the interface of a source."""

    def __init__(self, frames):
        self.frames = frames
        self.read = []

    def features(self, parts):
        for number in parts:
            self.read.append(number)
            yield number, Part(self.frames[number], name=f"part {number}")


def batch_matrix(ends, seed=0):
    X, y, groups, weight = make_table(seed=seed)
    parts = parts_of(X, y, groups, weight, cut(ends, len(X)))
    reader = Reader()
    described = [describe_rows(part, reader) for part in parts]
    table = merge([summary for summary, _ in described], reader)
    source = Frames([part.X for part in parts])
    chosen = [
        ChosenRows.of(np.ones(len(rows), dtype=bool) if rows.kept is None else rows.kept)
        for _, rows in described
    ]
    whole = np.concatenate([encode(part, table).matrix for part in parts])
    return BatchMatrix(source, table, chosen), whole, source


@settings(max_examples=25)
@given(st.lists(st.integers(0, 60), max_size=6), st.data())
def test_batches_give_the_rows_of_the_matrix(ends, data):
    matrix, whole, _ = batch_matrix(ends)
    assert matrix.shape == whole.shape
    assert len(matrix) == len(whole)
    batches = list(matrix.batches())
    assert all(len(batch) and batch.flags.c_contiguous for batch in batches)
    np.testing.assert_array_equal(np.concatenate(batches), whole)
    some = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=30)), dtype=int)
    np.testing.assert_array_equal(matrix.rows(some), whole[some])
    first, second = np.unique(some), np.arange(0, len(np.unique(some)), 2)
    taken = matrix.take(first).take(second)
    assert taken.shape == (len(second), whole.shape[1])
    read = [*taken.batches(), np.empty((0, whole.shape[1]), dtype=np.float32)]
    np.testing.assert_array_equal(np.concatenate(read), whole[first[second]])


def test_only_the_parts_that_are_needed_are_read():
    matrix, whole, source = batch_matrix([20, 40])
    matrix.rows(np.array([len(whole) - 1]))
    assert source.read == [2]
    list(matrix.take(np.arange(3)).batches())
    assert source.read == [2, 0]
    with pytest.raises(ValueError, match="in increasing order"):
        matrix.take(np.array([3, 1]))


def test_a_source_that_changes_is_refused():
    matrix, _, source = batch_matrix([20, 40])
    frames = list(source.frames)
    source.frames[1] = frames[1][:-1]
    with pytest.raises(ValueError, match="part 1 had 20 rows when it was first read and has 19"):
        list(matrix.batches())
    source.frames[1] = frames[1][frames[1].columns[::-1]]
    with pytest.raises(ValueError, match="and at first it had 'number', 'whole'"):
        list(matrix.batches())
    source.features = lambda parts: iter([])
    with pytest.raises(ValueError, match="ends early now, after 0 of 3 parts"):
        list(matrix.batches())


def test_what_is_sent_to_workers_is_small():
    X, y, groups, weight = make_table(n_rows=20_000)
    summary = describe(Part(X, y, groups, weight), Reader())
    assert len(pickle.dumps(summary)) < 10_000
    assert len(pickle.dumps(merge([summary] * 50, Reader()))) < 10_000
