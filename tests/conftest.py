"""Shared samples. hypothesis runs without deadlines: machines are noisy."""

import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from sklearn.utils.estimator_checks import _enforce_estimator_tags_y

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for population

settings.register_profile("fairproj", deadline=None, derandomize=True)
settings.register_profile("fast", settings.get_profile("fairproj"), max_examples=25)
settings.register_profile(  # tools/mutation.py asks only whether a test fails
    "mutation", settings.get_profile("fast"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("fairproj")


def make_sample(n_rows=400, n_groups=2, n_features=5, seed=0, decimals=None):
    """Features, labels in {-1, +1} and groups; groups differ in size and base rate."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(
        n_groups, n_rows, p=np.arange(n_groups, 0, -1) / (n_groups * (n_groups + 1) / 2)
    )
    X = rng.normal(size=(n_rows, n_features)) + 0.4 * groups[:, None]
    score = X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] * X[:, 3] - 0.8 * groups
    y = np.where(score + rng.logistic(size=n_rows) > 0.3, 1, -1)
    if decimals is not None:
        X = X.round(decimals)
    return X, y, groups


@pytest.fixture
def sample():
    return make_sample()


def check_or_skip(estimator, check):
    """Run one of scikit-learn's checks, unless it is one that no classifier of two classes passes.

    In scikit-learn 1.6 the label of the first row decides how labels are joined to two, and the
    checks of weights compare the same rows in two orders.
    """
    if "sample_weight_equivalence" in str(check):
        labels = [np.array([2, 1]), np.array([1, 2])]
        first, second = (_enforce_estimator_tags_y(estimator, y).tolist() for y in labels)
        if first != second[::-1]:
            pytest.skip("scikit-learn gives the rows that it compares different labels")
    check(estimator)


# Pages in a browser


def missing(reason):
    """Skip a test of a page where a tool is missing, but never in CI, which installs them all."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing("no Chromium on this machine")
    with sync_playwright() as run:
        started = run.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page; at the end, nothing may have been complained about or asked for."""
    from fairproj.report._page import html

    opened, complaints, requests = [], [], []

    def visit(content, *, width=1280, **options):
        file = tmp_path / f"page-{len(opened)}.html"
        file.write_text(html(content), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        opened.append((context, file.as_uri()))
        return page

    yield visit
    for context, _ in opened:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [url for _, url in opened]


@pytest.fixture
def check_accessibility():
    """axe-core finds nothing on a page, contrast included, with everything unfolded."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed")

    def check(page):
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        result = Axe().run(page)
        assert result.response["violations"] == [], result.generate_report()
        assert "color-contrast" in {rule["id"] for rule in result.response["passes"]}

    return check


@pytest.fixture
def check_reading_order():
    """Headings descend one level at a time, and keys reach controls in the order of the page."""

    def check(page):
        levels = page.eval_on_selector_all(
            "h1, h2, h3, h4", "all => all.map(one => +one.tagName[1])"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
        place = "document.activeElement.getBoundingClientRect().top + window.scrollY"
        tops = []
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body"):
                break
            tops.append(page.evaluate(place))
        assert len(tops) > 5
        # The link that skips to the report comes first and is shown when it is reached.
        assert all(later >= earlier - 60 for earlier, later in pairwise(tops))

    return check
