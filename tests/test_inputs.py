"""Whatever the data come in, the model is the same."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.data.checks import check_groups
from fairproj.datasets import load_german

X, Y, GROUPS = make_sample(300, decimals=2)
NAMES = list("abcde")
CONTAINERS = {
    "list": lambda X: X.tolist(),
    "float32": lambda X: X.astype(np.float32).astype(float),
    "fortran": np.asfortranarray,
    "read-only": lambda X: _read_only(X),
    "pandas": lambda X: _frame(X),
    "pandas, odd index": lambda X: pd.DataFrame(
        X, columns=NAMES, index=np.arange(len(X))[::-1] * 7
    ),
    "pandas, Arrow": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "Arrow table": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "csr array": sparse.csr_array,
}


def _frame(X):
    return pd.DataFrame(X, columns=NAMES)


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_model(container):
    data = CONTAINERS[container](X)
    expected = FairProjClassifier(epsilon=0.1, n_estimators=20)
    expected.fit(np.asarray(X), Y, sensitive_features=GROUPS)
    model = FairProjClassifier(epsilon=0.1, n_estimators=20)
    model.fit(data, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(
        model.decision_function(data), expected.decision_function(X), atol=1e-6
    )
    if container in ("pandas", "polars", "Arrow table"):
        assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("container", ["pandas", "polars", "csr"])
def test_containers_with_an_estimator(container):
    data = CONTAINERS[container](X)
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    model = FairProjClassifier(estimator=tree, n_estimators=5).fit(
        data, Y, sensitive_features=GROUPS
    )
    plain = FairProjClassifier(estimator=tree, n_estimators=5).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(model.decision_function(data), plain.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda words: pd.Series(words),
        lambda words: pd.Series(words, dtype="category"),
        lambda words: pd.Series(words, dtype="string"),
        lambda words: pd.Series(words, index=np.arange(len(words))[::-1]),
        lambda words: pl.Series(words),
        lambda words: pa.chunked_array([words]),
        lambda words: words.tolist(),
        lambda words: words[:, None],
        lambda words: pd.DataFrame({"sex": words}),
        lambda words: pl.DataFrame({"sex": words}),
        lambda words: {"sex": words},
    ],
)
def test_groups_and_labels_of_any_kind(make):
    words = np.where(GROUPS > 0, "woman", "man")
    labels = np.where(Y > 0, "yes", "no")
    expected = FairProjClassifier(epsilon=0.1, n_estimators=10)
    expected.fit(X, Y, sensitive_features=1 - (words == "man"))
    model = FairProjClassifier(epsilon=0.1, n_estimators=10)
    y = (
        make(labels)
        if not isinstance(make(labels), dict) and np.ndim(make(labels)) == 1
        else labels
    )
    model.fit(X, y, sensitive_features=make(words))
    assert model.group_values_ == ["man", "woman"]
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(X) == "yes", expected.predict(X) == 1)


def test_several_sensitive_columns_are_crossed():
    rng = np.random.default_rng(9)
    table = pd.DataFrame({"sex": np.where(GROUPS > 0, "w", "m"), "old": rng.random(300) < 0.4})
    crossed = FairProjClassifier(epsilon=0.02, n_estimators=10)
    crossed.fit(X, Y, sensitive_features=table)
    assert crossed.group_values_ == [("m", False), ("m", True), ("w", False), ("w", True)]
    joined = FairProjClassifier(epsilon=0.02, n_estimators=10)
    joined.fit(X, Y, sensitive_features=table["sex"] + table["old"].astype(str))
    np.testing.assert_array_equal(crossed.decision_function(X), joined.decision_function(X))
    assert len(crossed.history_.constraint_names) == 6
    assert crossed.history_.constraint_names[0] == "m, True - m, False | 1"


def test_groups_of_several_types_have_an_order_of_first_sight():
    mixed = np.where(GROUPS > 0, "w", None).astype(object)
    mixed[mixed == None] = 7  # noqa: E711
    model = FairProjClassifier(n_estimators=3).fit(X, Y, sensitive_features=mixed)
    assert set(model.group_values_) == {"w", 7}


@pytest.mark.parametrize(
    "y", [Y > 0, np.where(Y > 0, 5, 2), np.where(Y > 0, 1.5, 0.5).round().astype(int), Y[:, None]]
)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_of_any_two_values(y):
    model = FairProjClassifier(n_estimators=10).fit(X, y, sensitive_features=GROUPS)
    expected = FairProjClassifier(n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.predict(X) == model.classes_[1], expected.predict(X) == 1)


def test_pos_label_is_the_label_that_constraints_call_positive():
    labels = np.where(Y > 0, "repaid", "default")
    default_is_positive = FairProjClassifier("equal_opportunity", 0.02, pos_label="default")
    default_is_positive.fit(X, labels, sensitive_features=GROUPS)
    other = FairProjClassifier("false_positive_rate_parity", 0.02)
    other.fit(X, labels, sensitive_features=GROUPS)
    np.testing.assert_array_equal(
        default_is_positive.decision_function(X), other.decision_function(X)
    )
    assert list(default_is_positive.classes_) == ["default", "repaid"]


def test_sensitive_columns_of_a_frame():
    frame = pd.DataFrame(X, columns=NAMES).assign(sex=np.where(GROUPS > 0, "w", "m"))
    model = FairProjClassifier(epsilon=0.05, sensitive_columns="sex").fit(frame, Y)
    plain = FairProjClassifier(epsilon=0.05)
    plain.fit(frame.drop(columns="sex"), Y, sensitive_features=frame["sex"])
    expected = plain.decision_function(frame.drop(columns="sex"))
    np.testing.assert_array_equal(model.decision_function(frame), expected)
    np.testing.assert_array_equal(model.decision_function(frame.drop(columns="sex")), expected)
    assert list(model.feature_names_in_) == NAMES
    assert model.n_features_in_ == 5
    by_position = FairProjClassifier(epsilon=0.05, sensitive_columns=[5]).fit(frame, Y)
    np.testing.assert_array_equal(by_position.decision_function(frame), expected)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_sensitive_columns_of_an_array(make):
    both = make(np.column_stack([GROUPS, X]))
    model = FairProjClassifier(epsilon=0.05, sensitive_columns=[0]).fit(both, Y)
    plain = FairProjClassifier(epsilon=0.05).fit(make(X), Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.decision_function(both), plain.decision_function(make(X)))
    np.testing.assert_array_equal(
        model.decision_function(make(X)), plain.decision_function(make(X))
    )


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=1, random_state=0)])
def test_a_weight_of_k_is_k_rows_and_of_zero_is_none(votes, learner):
    weight = np.random.default_rng(0).integers(0, 4, len(Y))
    rows = np.repeat(np.arange(len(Y)), weight)
    settings = {"epsilon": 0.05, "n_estimators": 12, "votes": votes, "estimator": learner}
    weighted = FairProjClassifier(**settings, random_state=0)
    weighted.fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)
    repeated = FairProjClassifier(**settings, random_state=0)
    repeated.fit(X[rows], Y[rows], sensitive_features=GROUPS[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
    )
    mine, other = weighted.history_.columns, repeated.history_.columns
    for column in ("kl", "tv", "edge_q", "edge_w", "log_loss"):
        np.testing.assert_allclose(mine[column], other[column], atol=1e-7)


def test_row_order_does_not_matter():
    order = np.random.default_rng(0).permutation(len(Y))
    one = FairProjClassifier(epsilon=0.05).fit(X, Y, sensitive_features=GROUPS)
    two = FairProjClassifier(epsilon=0.05)
    two.fit(X[order], Y[order], sensitive_features=GROUPS[order])
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-9)


def test_the_users_data_are_not_changed():
    array, y, groups = X.copy(), Y.copy(), GROUPS.copy()
    array[:, 0] = (array[:, 0] * 2).round()
    kept = array.copy()
    model = FairProjClassifier(n_estimators=5, categorical_features=[0])
    model.fit(array, y, sensitive_features=groups).predict(array)
    np.testing.assert_array_equal(array, kept)
    np.testing.assert_array_equal(y, Y)


def category_frames():
    rng = np.random.default_rng(1)
    colour = rng.choice(["red", "green", "blue", "grey"], 600)
    number = rng.normal(size=600).round(1)
    y = np.where(
        rng.random(600) < 0.2 + 0.4 * np.isin(colour, ["red", "blue"]) + 0.2 * (number > 0), 1, 0
    )
    return colour, number, y, rng.integers(0, 2, 600)


@pytest.mark.parametrize(
    "make",
    [
        lambda c, n: pd.DataFrame({"c": pd.Categorical(c), "n": n}),
        lambda c, n: pd.DataFrame({"c": c, "n": n}),
        lambda c, n: pd.DataFrame({"c": c, "n": n}).astype({"c": object}),
        lambda c, n: pd.DataFrame({"c": c, "n": n}).convert_dtypes(dtype_backend="pyarrow"),
        lambda c, n: pl.DataFrame({"c": c, "n": n}),
        lambda c, n: pl.DataFrame({"c": c, "n": n}).with_columns(pl.col("c").cast(pl.Categorical)),
        lambda c, n: pl.DataFrame({"c": c, "n": n}).with_columns(
            pl.col("c").cast(pl.Enum(["red", "green", "blue", "grey"]))
        ),
        lambda c, n: pa.table({"c": pa.array(c).dictionary_encode(), "n": n}),
    ],
)
def test_categories_are_their_one_hot_columns(make):
    colour, number, y, groups = category_frames()
    one_hot = pd.get_dummies(pd.DataFrame({"c": colour, "n": number}), dtype=float)
    expected = FairProjClassifier(
        estimator=DecisionTreeClassifier(max_depth=1, random_state=0), n_estimators=15
    ).fit(one_hot, y, sensitive_features=groups)
    frame = make(colour, number)
    model = FairProjClassifier(n_estimators=15).fit(frame, y, sensitive_features=groups)
    np.testing.assert_allclose(
        model.decision_function(frame), expected.decision_function(one_hot), atol=1e-9
    )


@pytest.mark.parametrize("share", [0.01, 0.002])
@pytest.mark.parametrize("holes", [False, True])
def test_a_rare_category_counts_as_its_one_hot_column(share, holes):
    rng = np.random.default_rng(0)
    word = rng.choice(list("abcde"), 5000)
    rare = rng.random(5000) < share
    word = np.where(rare, "rare", word).astype(object)
    y = np.where(rare, 1, rng.random(5000) < 0.2 + 0.1 * (word == "a")).astype(int)
    if holes:
        word[rng.random(5000) < 0.3] = None
    frame = pd.DataFrame({"w": word})
    one_hot = pd.get_dummies(frame["w"], dtype=float)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    slow = FairProjClassifier(None, estimator=stump, n_estimators=6).fit(one_hot, y)
    fast = FairProjClassifier(None, n_estimators=6).fit(frame, y)
    margin = slow.decision_function(one_hot)
    np.testing.assert_allclose(fast.decision_function(frame), margin, atol=1e-9)


def test_text_categories_are_not_codes():
    colour, number, y, groups = category_frames()
    frame = pd.DataFrame({"c": colour, "n": number})
    model = FairProjClassifier(n_estimators=5).fit(frame, y, sensitive_features=groups)
    with (
        pytest.warns(UserWarning, match="feature names"),
        pytest.raises(ValueError, match="X is an array, and in training column 'c' held text"),
    ):
        model.predict(np.zeros((3, 2)))


@pytest.mark.parametrize("wanted", [[1], [True, True, False], [0, 1]])
def test_categorical_features_count_the_columns_of_x_as_given(wanted):
    colour, number, y, groups = category_frames()
    codes = np.unique(colour, return_inverse=True)[1]
    model = FairProjClassifier(n_estimators=5, sensitive_columns=0, categorical_features=wanted)
    model.fit(np.column_stack([groups, codes, number]), y)
    plain = FairProjClassifier(n_estimators=5, categorical_features=[0])
    X = np.column_stack([codes, number])
    plain.fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_categories_of_intervals():
    _, number, y, groups = category_frames()
    frame = pd.DataFrame({"c": pd.cut(number, 5), "n": number})
    model = FairProjClassifier(n_estimators=5).fit(frame, y, sensitive_features=groups)
    assert model.score(frame, y) > 0.5


def test_a_column_without_a_name():
    frame = pd.DataFrame({"": X[:, 0], "b": X[:, 1]})
    assert FairProjClassifier(None, n_estimators=3).fit(frame, Y).score(frame, Y) > 0.5


def test_numbered_columns_without_the_sensitive_one():
    both = np.column_stack([GROUPS, X])
    model = FairProjClassifier(sensitive_columns=0, n_estimators=3).fit(pd.DataFrame(both), Y)
    margin = model.decision_function(pd.DataFrame(both))
    np.testing.assert_array_equal(model.decision_function(pd.DataFrame(X)), margin)


def test_sensitive_columns_of_integer_names():
    frame = pd.DataFrame(np.column_stack([X, GROUPS]), columns=[10, 11, 12, 13, 14, 15])
    model = FairProjClassifier(sensitive_columns=15, n_estimators=3).fit(frame, Y)
    plain = FairProjClassifier(n_estimators=3).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))
    np.testing.assert_array_equal(
        model.decision_function(frame.drop(columns=15)), plain.decision_function(X)
    )


@pytest.mark.parametrize("make", [lambda X: X.tolist(), sparse.coo_matrix])
def test_sensitive_columns_of_lists_and_odd_sparse_matrices(make):
    both = np.column_stack([GROUPS, X])
    model = FairProjClassifier(sensitive_columns=0, n_estimators=3).fit(make(both), Y)
    plain = FairProjClassifier(n_estimators=3).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(model.decision_function(make(both)), plain.decision_function(X))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=1, random_state=0)])
def test_the_scale_of_weights_does_not_matter(scale, learner):
    weight = np.full(len(Y), scale)
    model = FairProjClassifier(estimator=learner, n_estimators=5)
    model.fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)
    plain = FairProjClassifier(estimator=learner, n_estimators=5)
    plain.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sparse.csr_array])
@pytest.mark.parametrize("value", [9e307, -1.7e308])
def test_features_whose_differences_are_infinite_are_refused(make, value):
    wide = X.copy()
    wide[:2, 0] = value, -value
    with pytest.raises(ValueError, match=r"column 0 has numbers beyond 9e\+307, whose differences"):
        FairProjClassifier(n_estimators=2).fit(make(wide), Y, sensitive_features=GROUPS)
    model = FairProjClassifier(n_estimators=2).fit(make(X), Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="column 0 has numbers beyond"):
        model.predict(make(wide))


def test_features_that_trees_take_for_zero_are_named():
    tiny = X.copy()
    tiny[:, 1] *= 1e-36 / np.abs(X[:, 1]).max()
    model = FairProjClassifier(n_estimators=2)
    with pytest.warns(UserWarning, match="column 'b' has no number beyond 1e-35, which") as caught:
        model.fit(pd.DataFrame(tiny[:, :2], columns=["a", "b"]), Y, sensitive_features=GROUPS)
    assert len(caught) == 1


def test_category_codes_in_an_array():
    colour, number, y, groups = category_frames()
    codes = np.unique(colour, return_inverse=True)[1] * 10 - 5.0
    array = np.column_stack([codes, number])
    model = FairProjClassifier(n_estimators=15, categorical_features=[True, False])
    model.fit(array, y, sensitive_features=groups)
    frame = pd.DataFrame({"c": colour, "n": number})
    named = FairProjClassifier(n_estimators=15).fit(frame, y, sensitive_features=groups)
    np.testing.assert_array_equal(model.decision_function(array), named.decision_function(frame))


def test_an_unknown_category_counts_as_missing():
    colour, number, y, groups = category_frames()
    frame = pd.DataFrame({"c": colour, "n": number})
    model = FairProjClassifier(n_estimators=15).fit(frame, y, sensitive_features=groups)
    new = frame.assign(c="violet")
    none = frame.assign(c=pd.Series([None] * len(frame), dtype=object))
    with pytest.warns(UserWarning, match="column 'c' has no value known from training"):
        margin = model.decision_function(new)
    np.testing.assert_array_equal(margin, model.decision_function(none))
    assert np.isfinite(margin).all()


def test_category_codes_follow_the_values_not_the_order_of_the_dtype():
    colour, number, y, groups = category_frames()
    frame = pd.DataFrame({"c": pd.Categorical(colour), "n": number})
    model = FairProjClassifier(n_estimators=15).fit(frame, y, sensitive_features=groups)
    other = frame.assign(
        c=pd.Categorical(colour, categories=["violet", "grey", "red", "green", "blue"])
    )
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))


@pytest.mark.parametrize("make", [np.asarray, lambda X: pd.DataFrame(X), lambda X: pl.DataFrame(X)])
def test_missing_values_have_a_branch_of_their_own(make):
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y = np.where(np.isnan(np.where(np.abs(x) > 1, np.nan, x)), 1, 0)
    holes = make(np.where(np.abs(x) > 1, np.nan, x)[:, None])
    model = FairProjClassifier(None, n_estimators=3, max_depth=2).fit(holes, y)
    assert model.score(holes, y) == 1.0


def test_an_array_constraint_is_its_named_one():
    g = ((Y > 0) * (2 * GROUPS - 1.0))[:, None]
    by_array = FairProjClassifier(g, 0.05).fit(X, Y)
    by_name = FairProjClassifier("equal_opportunity", 0.05).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(
        by_array.decision_function(X), by_name.decision_function(X), atol=1e-9
    )


def test_an_array_constraint_that_differs_in_every_row():
    g = np.column_stack([X[:, 0] * (Y > 0), np.tanh(X[:, 1])])
    model = FairProjClassifier(g, [0.01, 0.02], n_estimators=15).fit(X, Y)
    balance = model.history_.by_constraint("balance")
    assert (np.abs(balance) <= np.array([0.01, 0.02]) + 1e-9).all()
    assert (np.abs(model.history_.by_constraint("balance_q")) > 0.02).any()
    assert model.certificate_.holds


def test_an_array_constraint_with_weights_of_zero():
    g = ((Y > 0) * (2 * GROUPS - 1.0))[:, None]
    weight = (np.arange(len(Y)) % 3 > 0) * 1.0
    keep = weight > 0
    model = FairProjClassifier(g, 0.05).fit(X, Y, sample_weight=weight)
    fewer = FairProjClassifier(g[keep], 0.05).fit(X[keep], Y[keep])
    np.testing.assert_array_equal(model.decision_function(X), fewer.decision_function(X))


def test_a_frame_goes_to_the_estimator_as_it_is():
    data = load_german()
    frame = data.data[["purpose", "age"]]

    class WeightedPipeline(LogisticRegression):
        """A learner that wants to see column names."""

        def _encode(self, X):
            assert list(X.columns) == ["purpose", "age"]
            return self.encoder_.transform(X)

        def fit(self, X, y, sample_weight=None):
            self.encoder_ = make_column_transformer(
                (OneHotEncoder(), ["purpose"]), remainder="passthrough"
            ).fit(X)
            return super().fit(self._encode(X), y, sample_weight)

        def predict(self, X):
            return super().predict(self._encode(X))

    model = FairProjClassifier(estimator=WeightedPipeline(max_iter=2000), n_estimators=2)
    model.fit(frame, data.target, sensitive_features=data.sensitive_features)
    assert set(model.predict(frame)) <= {"good", "bad"}


@pytest.mark.parametrize("other", [["a"], {"a": 1}, {"a"}])
def test_groups_that_are_no_values_are_named(other):
    groups = pd.Series([other, "b"] * 4)
    with pytest.raises(ValueError, match="which cannot name a group; use texts, numbers"):
        check_groups(groups, 8)


@pytest.mark.filterwarnings("ignore:the model is not useful")
@pytest.mark.parametrize(
    "declared",
    [
        lambda days: pd.DataFrame({"day": pd.Categorical(days)}),
        lambda days: pd.DataFrame({"day": pd.Categorical(days, ordered=True)}),
        lambda days: pl.DataFrame({"day": days}, schema={"day": pl.Categorical}),
        lambda days: pl.DataFrame({"day": days}, schema={"day": pl.Enum(sorted(set(days)))}),
        lambda days: pa.table({"day": pa.array(days).dictionary_encode()}),
    ],
)
def test_dates_that_are_declared_as_categories(declared):
    """Defect: they were refused as dates in text, which they are not."""
    days = ["2026-03-31", "2026-06-30", "2026-09-30"] * 100
    model = FairProjClassifier(n_estimators=2)
    model.fit(declared(days), Y, sensitive_features=GROUPS)
    assert model.encoding_.categories[0].tolist() == days[:3]
    with pytest.raises(ValueError, match="'day' holds dates as text"):
        model.fit(pd.DataFrame({"day": days}), Y, sensitive_features=GROUPS)
