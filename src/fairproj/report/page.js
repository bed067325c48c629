"use strict";
// The page is complete without this file; it adds thresholds, picking points, copying, the theme and printing.
(() => {
  const byId = (id) => document.getElementById(id);
  const content = JSON.parse(byId("content").textContent);

  function element(tag, text, ...children) {
    const made = document.createElement(tag);
    made.textContent = text; // never markup: names of groups and series come from the data
    made.append(...children);
    return made;
  }

  function theme() {
    const button = byId("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const root = document.documentElement;
    const now = () => root.dataset.theme || (system.matches ? "dark" : "light");
    const other = () => (now() === "dark" ? "light" : "dark");
    const name = () => { button.textContent = other() === "dark" ? "Dark theme" : "Light theme"; };
    button.addEventListener("click", () => { root.dataset.theme = other(); name(); });
    system.addEventListener("change", name);
    name();
    button.hidden = false;
  }

  // Where the clipboard is denied: an older way that needs no permission.
  function copyBySelection(text) {
    const area = element("textarea", text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);
    }
  }

  function copying() {
    const button = byId("copy");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copy(byId("command").textContent);
      byId("copied").textContent = done ? "copied" : "could not copy: select the text";
      button.focus();
    });
  }

  // For browsers whose style sheets cannot open what is folded.
  function printing() {
    let folded = [];
    addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      folded.forEach((one) => { one.open = true; });
    });
    addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
  }

  // Says that a table goes on to the side, for as long as it does.
  function scrolling() {
    for (const region of document.querySelectorAll(".scroll")) {
      const cue = element("p", "scroll for more →");
      cue.className = "cue";
      cue.setAttribute("aria-hidden", "true"); // the region itself is announced, and has the focus
      cue.dataset.test = "cue";
      region.before(cue);
      const update = () => {
        cue.hidden = region.scrollLeft + region.clientWidth >= region.scrollWidth - 2;
      };
      region.addEventListener("scroll", update, { passive: true });
      new ResizeObserver(update).observe(region);
      update();
    }
  }

  function thresholds(data, nColumns) {
    const slider = byId("cut");
    const first = +slider.value;
    const charts = [...document.querySelectorAll("#threshold-charts .plot > svg")];
    const number = (value) => (value === null ? "unknown" : value.toFixed(3));
    const cut = (value) => {
      const text = value.toFixed(5).replace(/0+$/, "");
      return text.length > 5 ? text : value.toFixed(3);
    };
    const dot = (coefficients, counts) => coefficients.reduce((sum, one, i) => sum + one * counts[i], 0);
    const lines = charts.map((svg) => {
      const line = document.createElementNS(svg.namespaceURI, "line");
      line.setAttribute("class", "chosen");
      line.setAttribute("y1", "0");
      line.setAttribute("y2", "100%");
      svg.append(line);
      return line;
    });
    // Where the threshold in use is chosen, its dotted line shows it.
    const kept = charts.every((svg) => svg.querySelector(".kept"));
    const keys = charts.map((svg) => {
      const item = element("li", "threshold chosen");
      item.insertAdjacentHTML("afterbegin", '<svg class="key" aria-hidden="true" width="28" height="12"><line class="chosen" x1="0" x2="28" y1="6" y2="6"/></svg>');
      svg.closest("figure").querySelector(".legend").append(item);
      return item;
    });

    function rates(at) {
      const counts = data.groups.map(({ size, predicted }) => [...size, predicted[0][at], predicted[1][at]]);
      return data.rates.map((rate) => {
        const values = counts.map((one) => (dot(rate.rows, one) ? dot(rate.hits, one) / dot(rate.rows, one) : null));
        const known = values.filter((value) => value !== null);
        const difference = known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
        return [...values.slice(0, nColumns), difference];
      });
    }

    function show(at) {
      slider.value = at;
      const place = data.threshold[at];
      const told = { gap: number(data.gap[at]), accuracy: number(data.accuracy[at]), selection_rate: number(data.selection_rate[at]) };
      byId("at-cut").textContent = cut(place);
      for (const [name, text] of Object.entries(told)) byId(`at-${name}`).textContent = text;
      const cells = [...byId("at-rates").rows].map((row) => [...row.cells].slice(1));
      rates(at).forEach((values, i) => values.forEach((value, j) => { cells[i][j].textContent = number(value); }));
      for (const one of [...lines, ...keys]) one.style.display = kept && at === first ? "none" : "";
      for (const line of lines) for (const end of ["x1", "x2"]) line.setAttribute(end, `${100 * place}%`);
      slider.setAttribute("aria-valuetext", `${cut(place)}: gap ${told.gap}, accuracy ${told.accuracy}, selection rate ${told.selection_rate}`);
    }

    function nearest(svg, event) {
      const box = svg.getBoundingClientRect();
      const place = (event.clientX - box.x) / box.width;
      let best = 0;
      data.threshold.forEach((one, i) => { if (Math.abs(one - place) < Math.abs(data.threshold[best] - place)) best = i; });
      return best;
    }

    slider.addEventListener("input", () => show(+slider.value));
    byId("cut-reset").addEventListener("click", () => show(first));
    for (const svg of charts) {
      svg.style.cursor = "crosshair";
      svg.addEventListener("click", (event) => show(nearest(svg, event)));
    }
    byId("control").hidden = false;
    show(first);
  }

  function frontier({ points: data, score_name: score }) {
    const svg = document.querySelector("#frontier .plot > svg");
    const painted = [...svg.querySelectorAll(".point")];
    const points = [...painted].sort((a, b) => a.dataset.index - b.dataset.index);
    const tip = byId("tip");
    let picked = [];

    // Markers overlap, so the pointer selects the nearest one, not the one painted last.
    function nearest(event) {
      let closest = null, least = 20;
      for (const point of [...painted].reverse()) {
        const box = point.querySelector(".marker").getBoundingClientRect();
        const away = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
        if (away < least - 0.01) [closest, least] = [point, away];
      }
      return closest;
    }

    function show(point) {
      painted.forEach((one) => one.classList.toggle("near", one === point));
      tip.hidden = !point;
      if (!point) return;
      const { place, score: scored, gap, same } = point.dataset;
      tip.replaceChildren(element("strong", place), element("span", `${score} ${scored}`), element("span", `gap ${gap}`));
      if (same) tip.append(element("span", `same place: ${same}`));
      position(point.querySelector(".marker").getBoundingClientRect());
    }

    function position(box) {
      const plot = svg.getBoundingClientRect();
      const left = box.x + box.width / 2 - plot.x - tip.offsetWidth / 2;
      const above = box.y - plot.y - tip.offsetHeight - 14;
      tip.style.left = `${Math.max(0, Math.min(left, plot.width - tip.offsetWidth))}px`;
      tip.style.top = `${box.y - tip.offsetHeight - 14 > 0 ? above : box.bottom - plot.y + 14}px`;
    }

    // A stays when a third is picked, so that one point can be held against many.
    function pick(point) {
      if (picked.includes(point)) picked = picked.filter((one) => one !== point);
      else picked = [...picked.slice(0, 1), point];
      update();
    }

    function update() {
      for (const point of points) {
        const place = picked.indexOf(point);
        point.setAttribute("aria-pressed", place >= 0);
        point.querySelector(".letter").textContent = "AB"[place] ?? "";
      }
      byId("clear").hidden = !picked.length;
      byId("picked-text").replaceChildren(...[hint, one, both][picked.length](...picked));
    }

    const hint = () => [element("p", "Pick a point, then another, to compare them: click, or arrow keys and Enter.")];
    const describe = (point) => `${point.dataset.place}: ${score} ${point.dataset.score}, gap ${point.dataset.gap}.`;
    const one = (point) => [element("p", `A is ${describe(point)} Pick another to compare.`)];

    function both(a, b) {
      const [from, to] = [a, b].map((point) => data[point.dataset.index]);
      const better = difference(to.score - from.score, "higher", "lower");
      const wider = difference(to.gap - from.gap, "larger", "smaller");
      const gap = wider ? `a gap ${wider} than A` : "the same gap as A";
      return [element("p", `B has ${better || "the same"} ${score} and ${gap}.`), table(a, b, from, to)];
    }

    function difference(value, more, less) {
      const size = (100 * Math.abs(value)).toFixed(1);
      return size === "0.0" ? "" : `${size} points ${value > 0 ? more : less}`;
    }

    function table(a, b, from, to) {
      const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
      const made = element("table", "",
        element("caption", "The picked points"),
        element("thead", "", row("col", "Point", "Setting", score, "gap")),
        element("tbody", "",
          row("row", "A", a.dataset.place, a.dataset.score, a.dataset.gap),
          row("row", "B", b.dataset.place, b.dataset.score, b.dataset.gap),
          row("row", "B − A", "", signed(to.score - from.score), signed(to.gap - from.gap))));
      made.dataset.test = "compare-table";
      const scroll = element("div", "", made);
      scroll.className = "scroll";
      scroll.tabIndex = 0;
      scroll.role = "region";
      scroll.ariaLabel = "The picked points";
      return scroll;
    }

    function row(scope, ...texts) {
      const made = element("tr", "");
      texts.forEach((text, i) => {
        const cell = element(scope === "col" || i === 0 ? "th" : "td", "", element("bdi", text));
        if (cell.tagName === "TH") cell.scope = scope;
        if (i > 1) cell.className = "n";
        made.append(cell);
      });
      return made;
    }

    function clear() { picked = []; show(null); update(); }

    // One stop of the Tab key for the whole chart; the arrows go on from there.
    function move(point) {
      points.forEach((one) => { one.setAttribute("tabindex", one === point ? 0 : -1); });
    }

    function key(event) {
      const at = points.indexOf(event.target);
      const last = points.length - 1;
      const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last };
      if (event.key in steps) points[Math.max(0, Math.min(last, steps[event.key]))].focus();
      else if (event.key === "Enter" || event.key === " ") pick(event.target);
      else return;
      event.preventDefault();
    }

    for (const point of points) {
      point.setAttribute("role", "button");
      point.addEventListener("focus", () => { move(point); show(point); });
      point.addEventListener("blur", () => show(null));
      point.addEventListener("keydown", key);
    }
    svg.addEventListener("pointermove", (event) => show(nearest(event)));
    svg.addEventListener("pointerleave", () => show(null));
    svg.addEventListener("mousedown", (event) => event.preventDefault()); // no focus by mouse
    svg.addEventListener("click", (event) => {
      // Assistive technology clicks on an element and has no pointer.
      const point = event.detail ? nearest(event) : event.target.closest(".point");
      if (point) pick(point);
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
    byId("clear").addEventListener("click", () => { clear(); points[0].focus(); });
    byId("picked").hidden = false;
    if (points.length) move(points[0]);
    update();
  }

  theme();
  copying();
  printing();
  scrolling();
  if (content.thresholds) thresholds(content.thresholds, document.querySelectorAll("[data-test='cut-table'] thead th").length - 2);
  if (content.frontier) frontier(content.frontier);
})();
