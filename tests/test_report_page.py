"""The HTML page of a report, in a browser."""

import copy
import json
import re
import sys

import numpy as np
import pytest

from commands import with_fixed_spaces
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.constraints import RATES
from fairproj.datasets import load_german
from fairproj.io.text import escape
from fairproj.report import (
    Source,
    _charts,
    frontier_content,
    summarize_estimator,
    summarize_predictions,
)
from fairproj.report._content import extreme_rows, with_gaps_first
from fairproj.report._frontier import METHODS
from fairproj.report._page import html
from fairproj.selection import fair_train_test_split, fairness_frontier

pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "' onfocus='window.hacked = 1' autofocus='",
    "<!--<script>",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "\u202eright to left שלום עולם",
    "👩‍🚀 and a line\u2028separator",
    "long" * 200,
]


@pytest.fixture(scope="module")
def content():
    """FairBoost on German Credit, with two frontiers and a target."""
    data = load_german()
    X, X_new, y, y_new, groups, groups_new = fair_train_test_split(
        data.data, data.target, data.sensitive_features, random_state=0
    )
    model = FairBoostClassifier(max_gap=0.02, n_estimators=12, baseline=True, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    frontiers = [
        fairness_frontier(
            estimator,
            X,
            y,
            sensitive_features=groups,
            param_values=[0.01, 0.05, 0.1, 0.3],
            cv=2,
            name=METHODS[type(estimator).__name__],
        )
        for estimator in (
            FairBoostClassifier(n_estimators=8, validation_fraction=None),
            FairProjClassifier(n_estimators=8),
        )
    ]
    return summarize_estimator(
        model,
        X_new,
        y_new,
        sensitive_features=groups_new,
        max_gap=0.1,
        frontier=frontier_content(frontiers, chosen=("FairBoost", 0.1), note="two folds"),
        source=Source(
            "german.csv",
            "new rows",
            False,
            "ab" * 32,
            "fairproj report german.csv",
            model="credit.fairproj",
            claimed="fairproj train german.csv",
        ),
    )


def audit(names, n_rows=3000):
    """Predictions from elsewhere, without a model or a target."""
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(2, size=(2, n_rows))
    groups = np.array(names, dtype=object)[np.arange(n_rows) % len(names)]
    return summarize_predictions(y, predicted, sensitive_features=groups)


def test_id(name):
    return f"[data-test='{name}']"


test_id.__test__ = False


def cells(page, table):
    """The text of each row of a table."""
    rows = page.locator(f"{test_id(table)} tbody tr:not(.part)")
    return rows.evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent.trim()))"
    )


def number(value):
    return "unknown" if value is None else f"{value:.3f}"


def signed(value):
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def place(page, index):
    """The middle of a point of the frontier, in view."""
    marker = page.locator(f"[data-index='{index}'] .marker")
    marker.scroll_into_view_if_needed()
    box = marker.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def alone(points):
    """The indices of points that lie apart from all others."""
    where = [(point["gap"], point["score"]) for point in points]
    return [i for i, one in enumerate(where) if where.count(one) == 1]


def test_all_sections_in_order(visit, content):
    page, content = visit(content), with_fixed_spaces(content)
    assert page.title() == "Fairness report: credit.fairproj"
    assert page.locator("h1").all_inner_texts() == ["Fairness report: credit.fairproj"]
    assert page.locator("h2").all_inner_texts() == [
        "What is decided, and about whom",
        "Verdict",
        "Compared with the unconstrained model",
        "Data and groups",
        "Rates by group",
        "Gaps between groups",
        "Other thresholds",
        "Calibration by group",
        "Probabilities by group",
        "What the decisions rest on",
        "Other settings",
        "Not covered",
        "Caveats",
        "What was asked",
        "Certificate of the training run",
        "Reproduce",
    ]
    levels = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("all => all.map(e => e.tagName)")
    assert levels == ["H1"] + ["H2"] * 16
    text = page.locator(test_id("summary")).inner_text()
    assert all(sentence in text for sentence in content["summary"])
    assert content["dynamics"]["note"] in page.locator(test_id("dynamics")).text_content()
    assert page.locator(f"{test_id('caveats')} li").all_inner_texts() == content["caveats"]
    assert page.locator(test_id("command")).inner_text() == "fairproj report german.csv"
    assert page.locator(test_id("sha256")).inner_text() == "ab" * 32
    assert page.locator(test_id("claimed")).inner_text() == "fairproj train german.csv"
    omitted = page.locator(f"{test_id('omitted')} li").all_inner_texts()
    assert omitted == content["not_looked_at"]
    certificate = page.locator(test_id("certificate")).text_content()
    assert all(words in certificate for words in content["certificate"]["words"])
    shown = page.locator(test_id("certificate")).inner_text()
    assert content["certificate"]["words"][0] in shown
    assert content["certificate"]["words"][1] not in shown


def test_tables_hold_the_numbers_of_the_content(visit, content):
    page, content = visit(content), with_fixed_spaces(content)
    assert cells(page, "rates-table") == [
        [row["group"], str(row["n"]), str(row["hits"])]
        + [number(row[name]) for name in ("estimate", "low", "high")]
        for row in content["rates"]
    ]
    gaps = cells(page, "gaps-table")
    assert [row[1:] for row in gaps] == [
        [number(row[name]) for name in ("estimate", "low", "high")]
        + [str(row[name]) for name in ("highest", "lowest", "n_smallest")]
        for row in content["gaps"]
    ]
    marked = page.locator(f"{test_id('gaps-table')} tr.target th").inner_text()
    assert marked.lower().startswith(content["target"]["name"])
    assert [row[1] for row in cells(page, "scores-table")] == [
        number(row["value"]) for row in content["scores"]
    ]
    assert [row[2:4] for row in cells(page, "points-table")] == [
        [f"{point[name]:.3f} ± {point[f'{name}_se']:.3f}" for name in ("score", "gap")]
        for point in content["frontier"]["points"]
    ]
    assert cells(page, "price-table") == [
        [
            row["name"][:1].upper() + row["name"][1:],
            number(row["model"]),
            number(row["plain"]),
            signed(row["difference"]) if abs(row["difference"]) >= 0.0005 else "0.000",
        ]
        for row in content["price"]["scores"]
    ]
    assert content["price"]["sentence"] in page.locator(test_id("price")).inner_text()
    told = page.locator(test_id("price-interval")).inner_text()
    assert told == content["price"]["interval"]["sentence"]
    assert cells(page, "asked-table") == content["asked"]
    assert cells(page, "subject-table") == content["subject"]
    assert [row[2] for row in cells(page, "calibration-table")] == [
        number(one["error"])
        for one in (content["calibration"]["overall"], *content["calibration"]["groups"])
    ]
    assert [row[:2] for row in cells(page, "importance-table")] == [
        [one["name"], f"{number(one['overall'])} ± {number(one['overall_se'])}"]
        for one in content["importance"]["features"]
    ]
    assert cells(page, "certificate-table") == content["certificate"]["rows"]
    assert dict(cells(page, "versions-table")) == content["reproduce"]["versions"]


def test_no_line_breaks_between_a_number_and_its_sign(content):
    """In the text; commands, which are copied, and the data for scripts stay as they are."""
    content = copy.deepcopy(content)
    content["reproduce"]["command"] = "fairproj report 'up 5 %.csv'"
    page = html(content)
    assert "'up 5 %.csv'" in page.replace("&#39;", "'")
    shown = re.sub(r"<(script|style|pre)\b.*?</\1>", "", page, flags=re.S)
    assert not re.search(r"\d %", shown)
    assert f"{100 * content['confidence']:g}\N{NO-BREAK SPACE}% confidence" in shown
    data = page.split('<script type="application/json" id="content">')[1].split("</script>")[0]
    assert "\N{NO-BREAK SPACE}%" not in data


def test_charts_agree_with_the_numbers(visit, content):
    """Where dots and lines lie on the screen, read off by the scale's own labels."""
    page = visit(content)
    read = """svg => {
        const plot = svg.getBoundingClientRect();
        const labels = [...svg.querySelectorAll('.tick')];
        const at = e => (e.getBoundingClientRect().x + e.getBoundingClientRect().right) / 2;
        const [a, b] = [labels[0], labels.at(-1)];
        const scale = x => +a.textContent
            + (x - at(a)) / (at(b) - at(a)) * (b.textContent - a.textContent);
        return [...svg.querySelectorAll('.dot')].map(dot => scale(at(dot)));
    }"""
    drawn = page.locator(test_id("rate-chart")).evaluate_all(f"all => all.flatMap({read})")
    np.testing.assert_allclose(drawn, [row["estimate"] for row in content["rates"]], atol=0.005)
    drawn = page.locator(test_id("gap-chart")).evaluate(read)
    np.testing.assert_allclose(drawn, [row["estimate"] for row in content["gaps"]], atol=0.005)
    assert page.locator(test_id("gap-limit")).count() == 1
    assert page.locator(test_id("frontier-limit")).count() == 1
    assert page.locator(test_id("dynamics-chart")).count() == 4
    assert page.locator(test_id("threshold-chart")).count() == 2


def test_lines_by_threshold_pass_through_the_numbers(visit, content):
    """The gap, computed again at three thresholds from the text of the path and the scale."""
    page = visit(content)
    chart = page.locator(test_id("threshold-chart")).first
    path = chart.locator("path").get_attribute("d")
    places = [tuple(map(float, part.split())) for part in re.findall(r"[ML]([\d. ]+)", path)]
    scale = [float(text) for text in chart.locator(".tick").all_text_contents()]
    low, high = 0.0, max(scale[6:])
    curve = content["thresholds"]
    drawn = {round(x / 100, 3): low + (100 - y) / 100 * (high - low) for x, y in places}
    gaps = dict(zip(curve["threshold"], curve["gap"], strict=True))
    for threshold in (0.25, 0.5, 0.75):
        assert drawn[threshold] == pytest.approx(gaps[threshold], abs=1e-3)
    assert chart.locator(".limit").count() == 1
    mark = chart.locator(".kept").get_attribute("x1")
    assert float(mark.rstrip("%")) == pytest.approx(100 * curve["in_use"])


def at_threshold(content, index):
    """What the page must say about a threshold, from the counts alone."""
    curve = content["thresholds"]
    rows = []
    for group in curve["groups"]:
        (n, p), (fp, tp) = group["size"], (label[index] for label in group["predicted"])
        rows.append([(fp + tp) / (n + p), tp / p, fp / n, (n - fp + tp) / (n + p)])
    by_rate = np.array(rows).T
    expected = np.column_stack([by_rate, np.ptp(by_rate, axis=1)])
    return [[number(value) for value in row] for row in expected.tolist()]


def read_off(page):
    names = ("cut", "gap", "accuracy", "selection_rate")
    return [page.locator(test_id(f"at-{name}")).inner_text() for name in names]


def expected_reading(content, index):
    curve = content["thresholds"]
    return [number(curve[name][index]) for name in ("gap", "accuracy", "selection_rate")]


def test_thresholds_by_keyboard(visit, content):
    page = visit(content)
    curve = content["thresholds"]
    start = curve["threshold"].index(curve["in_use"])
    slider = page.locator(test_id("cut"))
    assert page.get_by_label("Threshold", exact=True).get_attribute("id") == "cut"
    assert slider.input_value() == str(start)
    assert read_off(page)[1:] == expected_reading(content, start)
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert slider.input_value() == str(start + 3)
    assert read_off(page)[0] == f"{curve['threshold'][start + 3]:.3f}"
    assert read_off(page)[1:] == expected_reading(content, start + 3)
    told = slider.get_attribute("aria-valuetext")
    assert told.startswith(f"{curve['threshold'][start + 3]:.3f}: gap {read_off(page)[1]}, ")
    shown = {row[0]: row[1:] for row in cells(page, "cut-table")}
    names = ["Selection rate", "True positive rate", "False positive rate", "Accuracy"]
    assert [shown[name] for name in names] == at_threshold(content, start + 3)
    page.keyboard.press("Home")
    assert read_off(page)[0] == f"{curve['threshold'][0]:.3f}"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert read_off(page)[1:] == expected_reading(content, start)


def test_the_threshold_in_use_is_dotted_as_the_legend_says(visit, content):
    """Defect: a solid line, which had no legend, covered it."""
    page = visit(content)
    chosen = page.locator(".plot .chosen, .legend:has(.chosen) li:has(.chosen)")
    assert chosen.count() == 4
    shown = "all => all.map(one => getComputedStyle(one).display !== 'none')"
    assert chosen.evaluate_all(shown) == [False] * 4
    page.locator(test_id("cut")).focus()
    page.keyboard.press("ArrowRight")
    assert chosen.evaluate_all(shown) == [True] * 4
    page.locator(test_id("cut-reset")).click()
    assert chosen.evaluate_all(shown) == [False] * 4


def test_the_title_has_the_whole_width_of_a_phone(visit, content):
    page = visit(content)
    page.set_viewport_size({"width": 390, "height": 800})
    title, main = (page.locator(name).first.bounding_box() for name in ("h1", "main"))
    assert title["width"] == pytest.approx(main["width"], abs=1)


def test_thresholds_by_mouse(visit, content):
    page = visit(content)
    curve = content["thresholds"]
    chart = page.locator(test_id("threshold-chart")).first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 20)
    (threshold, *told) = read_off(page)
    assert float(threshold) == pytest.approx(0.3, abs=0.004)
    assert told == expected_reading(content, curve["threshold"].index(float(threshold)))
    lines = page.locator(".plot .chosen").evaluate_all(
        "all => all.map(one => one.getAttribute('x1'))"
    )
    assert [float(line.rstrip("%")) for line in lines] == pytest.approx(
        [100 * float(threshold)] * 2
    )
    slider = page.locator(test_id("cut"))
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
    assert float(read_off(page)[0]) == pytest.approx(0.8, abs=0.05)
    page.locator(test_id("cut-reset")).click()
    assert float(read_off(page)[0]) == pytest.approx(curve["in_use"], abs=1e-5)


def test_charts_of_probabilities_and_features(visit, content):
    page = visit(content)
    assert page.locator(test_id("calibration-chart")).count() == 2
    bins = sum(len(group["bins"]) for group in content["calibration"]["groups"])
    assert page.locator(f"{test_id('calibration-chart')} .dot").count() == bins
    assert len(cells(page, "bins-table")) == bins
    for chart, group in zip(
        page.locator(test_id("distribution-chart")).all(),
        content["distribution"]["groups"],
        strict=True,
    ):
        filled = [n > 0 for name in ("positives", "negatives") for n in group[name]]
        assert chart.locator("rect").count() == sum(filled)
        total = chart.evaluate(
            "svg => [...svg.querySelectorAll('rect')]"
            ".reduce((sum, bar) => sum + parseFloat(bar.getAttribute('height')), 0)"
        )
        ticks = [float(text) for text in chart.locator(".tick").all_text_contents()]
        assert total / 100 * max(ticks[6:]) == pytest.approx(2, abs=0.002)  # 1 for each label
    widths = page.locator(f"{test_id('importance-chart')} rect").evaluate_all(
        "all => all.map(one => parseFloat(one.getAttribute('width')))"
    )
    sizes = [one["overall"] for one in content["importance"]["features"][:12]]
    np.testing.assert_allclose(np.array(widths) / widths[0], np.array(sizes) / sizes[0], atol=0.001)


@pytest.mark.parametrize("width", [390, 1280])
def test_tables_say_that_they_go_on(visit, content, width):
    page = visit(content, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.wait_for_timeout(100)
    found = page.locator(".scroll").evaluate_all(
        "all => all.map(one => [one.scrollWidth > one.clientWidth + 2,"
        " one.previousElementSibling.checkVisibility(),"
        " getComputedStyle(one).backgroundImage.split('linear-gradient').length - 1])"
    )
    assert all(goes_on == told and shadows == 4 for goes_on, told, shadows in found)
    assert any(goes_on for goes_on, *_ in found) == (width == 390)
    if width == 390:
        region = page.locator(".scroll", has=page.locator(test_id("gaps-table")))
        cue = region.locator("xpath=preceding-sibling::*[1]")
        assert "scroll" in cue.inner_text()
        region.evaluate("one => one.scrollTo(one.scrollWidth, 0)")
        cue.wait_for(state="hidden")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        pytest.param(1280, "light", marks=pytest.mark.slow),
        pytest.param(390, "dark", marks=pytest.mark.slow),
        pytest.param(1280, "dark", marks=pytest.mark.slow),
    ],
)
def test_accessibility(visit, content, check_accessibility, width, scheme):
    for found in (content, audit(["a", "b", "c"])):
        check_accessibility(visit(found, width=width, color_scheme=scheme))


def test_the_reading_order(visit, content, check_reading_order):
    check_reading_order(visit(content))


def test_hovering_tells_a_points_numbers(visit, content):
    page = visit(content)
    points = content["frontier"]["points"]
    tip = page.locator(test_id("tip"))
    assert tip.is_hidden()
    for index in alone(points)[:3]:
        page.mouse.move(*place(page, index))
        point = points[index]
        assert tip.inner_text().split("\n")[:3] == [
            f"{point['series']}, {point['parameter']} {point['value']:g}",
            f"accuracy {point['score']:.3f} ± {point['score_se']:.3f}",
            f"gap {point['gap']:.3f} ± {point['gap_se']:.3f}",
        ]
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def compared(a, b):
    """What the panel must say of two points."""
    parts = []
    for name, more, less in (("score", "higher", "lower"), ("gap", "larger", "smaller")):
        size = f"{100 * abs(b[name] - a[name]):.1f}"
        parts.append(f"{size} points {more if b[name] > a[name] else less}")
    return parts


def test_clicking_two_points_compares_them(visit, content):
    page = visit(content)
    points = content["frontier"]["points"]
    first, second, *_ = alone(points)[::-1]
    panel = page.locator(test_id("picked-text"))
    page.mouse.click(*place(page, first))
    a, b = points[first], points[second]
    assert panel.inner_text().startswith(f"A is {a['series']}, {a['parameter']} {a['value']:g}:")
    page.mouse.click(*place(page, second))
    sentence = panel.locator("p").inner_text()
    for part in compared(a, b):
        assert part in sentence or part.startswith("0.0 ")
    last = cells(page, "compare-table")[-1]
    assert last == [
        "B \N{MINUS SIGN} A",
        "",
        *(signed(b[name] - a[name]) for name in ("score", "gap")),
    ]
    assert page.locator("[aria-pressed='true']").count() == 2
    page.mouse.click(*place(page, second))
    assert panel.inner_text().startswith("A is ")
    page.locator(test_id("clear")).click()
    assert page.locator("[aria-pressed='true']").count() == 0
    assert page.locator(test_id("clear")).is_hidden()


def test_the_keyboard_alone_compares_points(visit, content):
    page = visit(content)
    focused = "document.activeElement.dataset.index"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(focused):
            break
    assert page.evaluate(focused) == "0"
    points = content["frontier"]["points"]
    tip = page.locator(test_id("tip"))
    assert f"{points[0]['score']:.3f}" in tip.inner_text()
    page.keyboard.press("Enter")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "4"
    assert f"{points[4]['gap']:.3f}" in tip.inner_text()
    page.keyboard.press("Space")
    pressed = page.locator("[aria-pressed='true']")
    assert {one.get_attribute("data-index") for one in pressed.all()} == {"0", "4"}
    assert cells(page, "compare-table")[-1][3] == signed(points[4]["gap"] - points[0]["gap"])
    page.keyboard.press("Escape")
    assert pressed.count() == 0
    page.keyboard.press("Tab")  # one stop for the whole chart
    assert page.evaluate(focused) is None


def test_hostile_names_stay_text(visit, content):
    found = copy.deepcopy(content)
    for point in found["frontier"]["points"]:
        point["series"] = HOSTILE[1]
    mean = audit(HOSTILE)
    for name in ("rates", "gaps", "data"):
        found[name] = mean[name]
    found["title"] = found["reproduce"]["command"] = HOSTILE[1]
    found["caveats"] = ["a file name with half a pair: \ud800"]
    found["dynamics"]["panels"][0]["lines"][0]["name"] = HOSTILE[2]
    for part in ("thresholds", "calibration", "distribution"):
        for group, name in zip(found[part]["groups"], (HOSTILE[0], HOSTILE[-1]), strict=True):
            group["group"] = name
    for group, name in zip(found["importance"]["sampled"], (HOSTILE[2], HOSTILE[-1]), strict=True):
        group["group"] = name
    for feature, name in zip(found["importance"]["features"], HOSTILE, strict=False):
        feature["name"] = name
    found["subject"] = [["Model", name] for name in HOSTILE]
    found["not_looked_at"] = HOSTILE
    found["reproduce"]["claimed"] = HOSTILE[-1]
    found["proxies"] = {
        "sentence": HOSTILE[0],
        "findings": [{"name": "Proxy", "column": HOSTILE[-1], "shown": "1", "words": HOSTILE[1]}],
    }
    for width in (390, 1280):
        page = visit(found, width=width)
        page.mouse.move(*place(page, 0))
        page.mouse.click(*place(page, 0))
        page.keyboard.press("Escape")
        page.locator(test_id("cut")).press("ArrowRight")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("img, main script").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE[1]
    shown = [row[0] for row in cells(page, "groups-table")]
    safe = set(map(escape, HOSTILE))
    assert set(shown) == safe
    kept = json.loads(page.locator("#content").text_content())
    assert {row["group"] for row in kept["data"]["groups"]} == safe


CONTRASTS = """() => {
    const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const found = parse(getComputedStyle(e).backgroundColor);
            if (found.length < 4 || found[3] > 0) return found;
        }
        return [255, 255, 255];
    };
    const ratio = (a, b) => {
        const [x, y] = [light(a), light(b)];
        return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    };
    const shown = [...document.querySelectorAll('body *')].filter(e => e.checkVisibility());
    const texts = shown.filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()));
    const pick = e => getComputedStyle(e)[e.namespaceURI.endsWith('svg') ? 'fill' : 'color'];
    const drawn = '.line, .marker:not(.small), .reach, .limit, .ring, .kept, .diagonal, .in-use';
    const lines = shown.filter(e => e.matches(drawn));
    return {
        text: Math.min(...texts.map(e => ratio(parse(pick(e)), behind(e)))),
        marks: Math.min(...lines.map(e => ratio(parse(getComputedStyle(e).stroke), behind(e)))),
        series: Math.min(...[0, 1, 2, 3, 4, 5].map(i => {
            const probe = document.createElement('i');
            document.body.append(probe);
            probe.style.color = `var(--c${i})`;
            return ratio(parse(getComputedStyle(probe).color), behind(document.body));
        })),
        paper: getComputedStyle(document.body).backgroundColor,
    };
}"""


def test_contrast_in_both_themes(visit, content):
    papers = set()
    for scheme in ("light", "dark"):
        page = visit(content, color_scheme=scheme)
        for verdict in ("met", "not-met", "undecided", "no-target"):
            page.locator(test_id("verdict")).evaluate(
                f"one => one.className = 'verdict v-{verdict}'"
            )
            found = page.evaluate(CONTRASTS)
            assert found["text"] >= 4.5
        assert found["marks"] >= 3
        assert found["series"] >= 3
        papers.add(found["paper"])
    assert len(papers) == 2
    page.locator(test_id("theme")).click()
    assert page.locator(test_id("theme")).inner_text() == "Dark theme"
    assert {page.evaluate(CONTRASTS)["paper"], found["paper"]} == papers


def test_the_verdict_is_said_in_words_and_by_a_shape(content):
    said = {}
    for verdict in ("met", "not met", "undecided", "no target"):
        badge = re.search(
            'data-test="verdict">(.*?)</p>', html({**content, "verdict": verdict}), re.S
        )
        icon, words = badge[1].split("</svg>")
        said[words.strip()] = icon
    assert list(said) == ["Target met", "Target not met", "Undecided", "No target"]
    assert len(set(said.values())) == 4


@pytest.mark.parametrize("width", [390, 1280])
def test_no_scrolling_sideways(visit, content, width):
    page = visit(content, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if width == 390:
        region = page.locator(".scroll", has=page.locator(test_id("gaps-table")))
        assert region.evaluate("one => one.scrollWidth > one.clientWidth")
        assert region.get_attribute("tabindex") == "0"


def test_without_javascript(visit, content):
    page = visit(content, java_script_enabled=False)
    for name in ("rates-table", "gaps-table", "groups-table"):
        assert page.locator(test_id(name)).is_visible()
    assert page.locator("button:visible, input:visible").count() == 0
    curve = content["thresholds"]
    in_use = curve["threshold"].index(curve["in_use"])
    assert read_off(page)[1:] == expected_reading(content, in_use)
    marked = page.locator(f"{test_id('thresholds-table')} tr.target td").all_text_contents()
    assert marked == expected_reading(content, in_use)
    assert len(cells(page, "thresholds-table")) >= 19
    assert page.locator(test_id("picked")).is_hidden()
    assert page.locator(f"{test_id('frontier-chart')} .marker").count() == 8
    assert page.locator(f"{test_id('dynamics-chart')} path").first.get_attribute("d")


def test_names_and_landmarks(visit, content):
    page = visit(content)
    unnamed = "svg:not([aria-hidden] *, svg svg, [aria-hidden='true'], [aria-label])"
    assert page.locator(unnamed).count() == 0
    charts = {"rate": len(RATES), "gap": 1, "threshold": 2, "calibration": 2, "distribution": 2}
    charts |= {"importance": 1, "frontier": 1, "dynamics": 4}
    assert page.locator("svg[aria-label]").count() == sum(charts.values())
    for name, count in charts.items():
        assert page.locator(f"svg{test_id(f'{name}-chart')}[aria-label]").count() == count
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.locator("table:not(:has(> caption))").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_copying_the_command(visit, content):
    page = visit(content, permissions=["clipboard-read", "clipboard-write"])
    page.locator(test_id("copy")).click()
    page.locator(test_id("copied"), has_text="copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == content["reproduce"]["command"]


def test_copying_where_the_clipboard_is_denied(visit, content):
    page = visit(content)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.locator(test_id("copy")).click()
    page.locator(test_id("copied"), has_text=re.compile("^copied$")).wait_for()
    assert page.locator("textarea").count() == 0


def test_printing(visit, content):
    page = visit(content, color_scheme="dark")
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") > 3
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("button:visible").count() == 0
    assert page.locator(test_id("certificate-table")).bounding_box()["height"] > 50


def test_an_audit_of_predictions_alone(visit):
    found = audit(["a", "b", "c"])
    page = visit(found)
    headings = page.locator("h2").all_inner_texts()
    assert headings == [
        "What is decided, and about whom",
        "Verdict",
        "Data and groups",
        "Rates by group",
        "Gaps between groups",
        "Not covered",
        "Caveats",
        "What was asked",
        "Reproduce",
    ]
    assert page.locator(test_id("verdict")).inner_text().strip() == "No target"
    assert page.locator(test_id("gap-limit")).count() == 0
    assert page.locator(test_id("command")).count() == 0


def test_many_groups_start_with_those_of_the_gaps():
    names = [f"g{i}" for i in range(12)]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    y = (X[:, 0] + rng.normal(size=6000) > 0).astype(int)
    groups = rng.choice(names, 6000, p=np.arange(1, 13) / 78)
    model = FairBoostClassifier(None, n_estimators=5).fit(X, y)
    content = summarize_estimator(
        model, X, y, sensitive_features=groups, metric="equal_opportunity"
    )
    found = with_gaps_first(content, 6)
    gap = next(row for row in content["gaps"] if row["gap"] == "equal_opportunity")
    for part in ("thresholds", "calibration", "distribution"):
        shown = [group["group"] for group in found[part]["groups"]]
        assert shown[:2] == [gap["highest"], gap["lowest"]]
        assert sorted(shown) == sorted(names)
        before = {group["group"]: group for group in content[part]["groups"]}
        assert all(before[group["group"]] == group for group in found[part]["groups"])
    ends = {row[end] for row in content["gaps"] for end in ("highest", "lowest")}
    others = [name for name in shown if name not in ends]
    assert others == sorted(others, key=lambda name: -int((groups == name).sum()))
    sampled = [row["group"] for row in found["importance"]["sampled"]]
    assert sampled == shown
    was = [row["group"] for row in content["importance"]["sampled"]]
    for old, new in zip(
        content["importance"]["features"], found["importance"]["features"], strict=True
    ):
        assert dict(zip(was, old["groups"], strict=True)) == dict(
            zip(sampled, new["groups"], strict=True)
        )
    assert found["rates"] == content["rates"]
    assert with_gaps_first(content, 12) is content


def test_extreme_rows_are_the_lowest_and_the_highest():
    rows = [{"at": i, "estimate": value} for i, value in enumerate([3, None, 1, 2, 5, 4, 5])]
    assert [row["at"] for row in extreme_rows(rows, 4)] == [2, 3, 4, 6]
    assert [row["at"] for row in extreme_rows(rows, 2)] == [2, 4]  # the first of a tie
    assert extreme_rows(rows, 7) == rows


@pytest.mark.slow
def test_two_hundred_groups(visit):
    found = audit([f"group {i}" for i in range(200)], 20_000)
    assert len(html(found)) < 6e6
    page = visit(found, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert (
        "Of 200 groups, the charts show the 10 with the lowest and the 10 with the"
        in page.locator(test_id("rates")).inner_text()
    )
    assert page.locator(f"{test_id('rate-chart')} .dot").count() == len(RATES) * 20
    assert len(cells(page, "rates-table")) == 200 * len(RATES)


def test_what_is_not_known_is_said(visit, content):
    found = copy.deepcopy(content)
    found["gaps"][1] |= {"estimate": None, "low": None, "high": None, "highest": None}
    found["gaps"][2]["estimate"] = None
    found["rates"][0] |= {"estimate": None, "low": 0.0, "high": 1.0}
    found["frontier"]["points"][0] |= {"gap": float("nan"), "score_se": None}
    found["frontier"]["points"][1] |= {"gap_se": None}
    for line in found["dynamics"]["panels"][0]["lines"]:
        line["values"][2:4] = [None, None]
    found["dynamics"]["panels"][1]["lines"][0]["values"] = [None] * 12
    found["dynamics"]["panels"][2]["lines"] = []
    page = visit(found)
    assert cells(page, "gaps-table")[1][1:5] == ["unknown"] * 4
    assert cells(page, "rates-table")[0][3] == "unknown"
    assert page.locator(f"{test_id('gap-chart')} text", has_text="unknown").count() == 2
    assert page.locator(test_id("point")).count() == 7
    assert "nan" not in page.locator("body").inner_text().lower()


def test_the_page_is_one_small_file(content):
    text = html(content)
    assert len(text.encode()) < 1e6
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text)
    assert not re.findall(r"url\(|@import|https?:", text)


def test_a_page_without_jinja2(content, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'fairproj[report]'")):
        html(content)


@pytest.mark.parametrize(
    "values", [[], [0.0], [3.0, 3.0], [0.1, 0.1 + 1e-17], [-2, 5], [1e-7, 3e-7], [0, 1e9]]
)
def test_axes_hold_their_values(values):
    found = _charts.axis(values)
    assert found.low < found.high
    assert all(found.low <= value <= found.high for value in values)
    assert 2 <= len(found.marks()) <= 8
    assert len({label for _, label in found.marks()}) == len(found.marks())


def test_axis_of_rounds():
    for rounds in (1, 2, 3, 23, 100, 12345):
        found = _charts.axis([1, rounds], tight=True)
        assert found.at(1) == 0
        assert found.ticks
        assert all(tick == round(tick) for tick in found.ticks)
