"""The page that documents a search for alternatives, in a browser."""

import copy
import re
import shutil

import numpy as np
import pytest

from commands import with_fixed_spaces
from fairproj import FairBoostClassifier
from fairproj.report import Source, alternatives_content
from fairproj.report._page import html
from fairproj.selection import find_alternatives
from simulated import unfair

pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "long" * 100,
]


def perfect(n_rows=1000):
    """Labels that follow from the feature, so that a smaller gap needs errors."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=n_rows)
    x = (rng.normal(size=n_rows) + groups).round(1)
    return x[:, None], (x > 0.5).astype(int), groups


def search(names, rows=None, **options):
    X, y, groups = unfair(1500, n_groups=len(names)) if rows is None else rows
    found = find_alternatives(
        FairBoostClassifier(n_estimators=5, max_leaf_nodes=4),
        X,
        y,
        sensitive_features=np.array(names, dtype=object)[groups],
        n_resamples=100,
        **{
            "tolerance": 0.2,
            "param_grid": {
                "constraints": ["demographic_parity", "selection_ratio"],
                "max_gap": [0.2, 0.05],
            },
            **options,
        },
    )
    source = Source("loans.csv", sha256="ab" * 32, command="fairproj alternatives loans.csv")
    return alternatives_content(found, source, "1")


@pytest.fixture(scope="module")
def content():
    return search(["women", "men"])


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as run:
        started = run.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page; at the end, nothing may have been complained about or asked for."""
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


def cells(page, table):
    rows = page.locator(f"[data-test='{table}'] tbody tr")
    return rows.evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent.trim()))"
    )


def interval(row, name=""):
    keys = (name, f"{name}_low", f"{name}_high") if name else ("estimate", "low", "high")
    value, low, high = (f"{row[key]:.3f}" for key in keys)
    return f"{value} ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def test_what_the_page_states(content, visit):
    page, content = visit(content), with_fixed_spaces(content)
    assert page.title() == "Less discriminatory alternatives: loans.csv"
    assert page.locator("[data-test='verdict']").inner_text().strip() == "Alternative found"
    for name in ("summary", "protocol", "limits"):
        text = page.locator(f"[data-test='{name}']").inner_text()
        assert all(sentence in text for sentence in content[name])
    figures = {row[0].lower(): row[1:] for row in cells(page, "test-table")}
    for row in content["test"]:
        models = ("plain", "chosen", "difference")
        assert figures[row["name"].lower()] == [interval(row[name]) for name in models]
    by_group = cells(page, "impact-table")
    women = [row for row in content["groups"] if row["group"] == "women"]
    assert [row[4] for row in by_group if row[0] == "women"] == [
        interval(row, "adverse_impact_ratio") for row in women
    ]
    assert [row[5] for row in by_group if row[0] == "women"] == [
        interval(row, "standardized_mean_difference") for row in women
    ]
    assert [row[4] for row in by_group if row[0].startswith("men")] == ["1", "1"]
    assert len(cells(page, "gaps-table")) == len(content["gaps"])
    assert page.locator("[data-test='sha256']").inner_text() == "ab" * 32
    assert "fairproj alternatives loans.csv" in page.locator("[data-test='command']").inner_text()


def test_every_candidate_is_listed_and_drawn(content, visit):
    page = visit(content)
    page.locator("details summary").click()
    listed = cells(page, "candidates-table")
    assert [row[1] for row in listed] == [row["words"] for row in content["candidates"]]
    assert [row[-1] for row in listed[:2]] == ["plain model", "chosen"]
    assert [row[5] for row in listed] == [
        f"{row['gap']:.3f} ({row['gap_low']:.3f} to {row['gap_high']:.3f})"
        for row in content["candidates"]
    ]
    points = page.locator("[data-test='point']")
    assert points.count() == len(content["candidates"])
    chosen = page.locator("[data-test='point']:has(.ring)")
    assert chosen.get_attribute("data-place") == content["candidates"][1]["words"]


def test_the_picture(content, visit):
    """Points lie where score and gap say, and the line lies at the least score."""
    page = visit(content)
    frame = page.locator("[data-test='frontier-chart']").bounding_box()
    line = page.locator("[data-test='tolerance-line']").bounding_box()

    def place(index):
        box = page.locator(f"[data-index='{index}'] .marker").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    rows = content["candidates"]
    (x0, y0), *others = [place(index) for index in range(len(rows))]
    assert line["width"] == pytest.approx(frame["width"], abs=2)
    scale = (line["y"] - y0) / content["tolerance"]  # pixels for each point of the score
    per_gap = (x0 - frame["x"]) / rows[0]["gap"]
    for row, (x, y) in zip(rows[1:], others, strict=True):
        assert y - y0 == pytest.approx(scale * (rows[0]["score"] - row["score"]), abs=2)
        assert x - frame["x"] == pytest.approx(per_gap * row["gap"], abs=2)
    fifths = page.locator("[data-test='four-fifths']").bounding_box()
    ratios = page.locator("[data-test='ratio-chart']").bounding_box()
    share = (fifths["x"] - ratios["x"]) / ratios["width"]
    ticks = page.locator("[data-test='ratio-chart'] .tick").all_text_contents()
    assert share == pytest.approx(0.8 / float(ticks[-1]), abs=0.01)


def test_points_can_be_compared(content, visit):
    page = visit(content)
    points = page.locator("[data-test='point']")
    points.nth(0).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "B has" in page.locator("[data-test='picked-text']").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_overflows(content, visit, width, scheme):
    page = visit(content, width=width, color_scheme=scheme)
    page.locator("details summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    title = page.locator("h1").bounding_box()
    assert title["x"] + title["width"] <= width
    if width == 390:  # no word of the title is broken
        lines = page.locator("h1").evaluate(
            "h => { const r = document.createRange(); const node = h.firstChild;"
            " return node.data.split(' ').map(w => { const at = node.data.indexOf(w);"
            " r.setStart(node, at); r.setEnd(node, at + w.length);"
            " return r.getClientRects().length; }); }"
        )
        assert set(lines) == {1}


def test_without_an_alternative(visit):
    none = search(["women", "men"], perfect(), tolerance=0.0, scoring="accuracy")
    assert none["outcome"] == "none"
    page = visit(none)
    assert page.locator("[data-test='verdict']").inner_text().strip() == "No alternative found"
    assert page.locator(".point .ring").count() == 0
    assert [len(row) for row in cells(page, "test-table")] == [2] * 5


@pytest.mark.parametrize("outcome", ["uncertain", "score uncertain", "costly", "not confirmed"])
def test_other_outcomes(content, visit, outcome):
    other = copy.deepcopy(content)
    other["outcome"] = outcome
    assert visit(other).locator("[data-test='verdict']").inner_text().strip()


def test_names_are_text(visit):
    hostile = search(HOSTILE)
    hostile["data"] = hostile["title"] = hostile["reproduce"]["command"] = HOSTILE[1]
    page = visit(hostile, width=390)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shown = " ".join(row[0] for row in cells(page, "impact-table"))
    assert all(name in shown for name in HOSTILE)


def test_unknown_ratios_are_called_so(content, visit):
    """Where nobody of the reference group is selected."""
    unknown = copy.deepcopy(content)
    for row in unknown["groups"]:
        row |= {f"adverse_impact_ratio{end}": None for end in ("", "_low", "_high")}
    page = visit(unknown)
    assert page.locator("[data-test='ratio-chart']").get_by_text("unknown").count() == 2
    assert re.search("unknown", " ".join(cells(page, "impact-table")[-1]))
