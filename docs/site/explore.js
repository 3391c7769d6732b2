/* The page "Explore": what explorer.py has written to MEASURED, as a plot and as tables.
 *
 * State is what the controls show; every change draws all anew. A summary follows the rules of
 * judge/summary.py, and tests/site/test_site.py compares the two. */
"use strict";

(() => {
const SVG = "http://www.w3.org/2000/svg";
const MARKS = {less: " ▾", more: " ▴"};
const MEMORY = {peak: "peak RSS", mean: "mean RSS", end: "RSS at the end", area: "RSS × time"};
const TIME = {time: "time", wall: "wall time"};
const MIB = 2 ** 20;
const root = document.getElementById("explore");
const state = {run: MEASURED.first, points: "means", figures: "ratios", memory: "peak",
  time: "time", allocators: new Set(), cells: new Set(), chosen: null};

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const run = () => MEASURED.runs[state.run];
const cells = () => run().cells.filter((_, place) => state.cells.has(place));
const digits = value => value === null || value === undefined ? "–" :
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) :
  Math.abs(value) >= 0.1 ? value.toFixed(2) : value.toPrecision(2);

/* ---- markers: one shape for each letter of plots.py ---- */

function polygon(corners, radius, turn, inner) {
  const points = [];
  const count = inner ? 2 * corners : corners;
  for (let at = 0; at < count; at++) {
    const angle = turn + at * 2 * Math.PI / count;
    const reach = inner && at % 2 ? inner : radius;
    points.push(`${(reach * Math.sin(angle)).toFixed(2)},${(-reach * Math.cos(angle)).toFixed(2)}`);
  }
  return `M${points.join("L")}Z`;
}

function cross(radius, turn) {
  const [a, b] = [radius / 2.6, radius];
  const corners = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a],
                   [-b, a], [-b, -a], [-a, -a]];
  const [c, s] = [Math.cos(turn), Math.sin(turn)];
  return `M${corners.map(([x, y]) => `${(x * c - y * s).toFixed(2)},${(x * s + y * c).toFixed(2)}`)
    .join("L")}Z`;
}

const SHAPES = {
  "*": r => polygon(5, 1.35 * r, 0, 0.55 * r), s: r => polygon(4, 1.25 * r, Math.PI / 4),
  D: r => polygon(4, 1.25 * r, 0), "^": r => polygon(3, 1.25 * r, 0),
  v: r => polygon(3, 1.25 * r, Math.PI), "<": r => polygon(3, 1.25 * r, -Math.PI / 2),
  ">": r => polygon(3, 1.25 * r, Math.PI / 2), p: r => polygon(5, 1.15 * r, 0),
  h: r => polygon(6, 1.1 * r, 0), H: r => polygon(6, 1.1 * r, Math.PI / 6),
  8: r => polygon(8, 1.1 * r, Math.PI / 8), P: r => cross(1.1 * r, 0),
  X: r => cross(1.1 * r, Math.PI / 4), d: r => `M0,${-1.4 * r}L${0.8 * r},0L0,${1.4 * r}L${-0.8 * r},0Z`,
  o: r => `M${-r},0A${r},${r} 0 1 0 ${r},0A${r},${r} 0 1 0 ${-r},0Z`,
};

function marker(allocator, radius) {
  return draw("path", {d: (SHAPES[allocator.marker] || SHAPES.o)(radius),
    fill: `var(${allocator.colour})`});
}

/* ---- figures ---- */

function mean(values) { // geometric, with its 95 % interval
  if (!values.length) return null;
  const logs = values.map(Math.log);
  const middle = logs.reduce((sum, each) => sum + each, 0) / logs.length;
  const told = {value: Math.exp(middle), low: null, high: null};
  if (logs.length > 1) {
    const squares = logs.reduce((sum, each) => sum + (each - middle) ** 2, 0);
    const reach = MEASURED.reach[logs.length] * Math.sqrt(squares / (logs.length - 1) / logs.length);
    told.low = Math.exp(middle - reach);
    told.high = Math.exp(middle + reach);
  }
  return told;
}

function summary(place) {
  const base = cells().length ? cells()[0].base : 0;
  const found = cells().filter(cell => cell.base === base && cell.allocators[place])
    .map(cell => cell.allocators[place]);
  const clean = found.filter(own => !own.failed);
  const of = figure => mean(clean.map(own => own.ratios[figure]).filter(Boolean).map(each => each[0]));
  const count = (figure, side) => clean.filter(own => own.ratios[figure]
    && own.ratios[figure][3] === side).length;
  return {place, cells: clean.length, failed: found.length - clean.length,
    means: Object.fromEntries(["time", "wall", "peak", "mean", "end", "area"].map(each => [each, of(each)])),
    ahead: count("time", "less"), behind: count("time", "more"),
    lighter: count("peak", "less"), heavier: count("peak", "more")};
}

function figureOf(own, figure) { // of one cell, in the unit of the axis
  if (state.figures === "ratios") {
    const ratio = own.ratios[figure];
    return ratio ? {value: ratio[0], low: ratio[1], high: ratio[2], side: ratio[3]} : null;
  }
  const isTime = figure in TIME;
  const value = own.medians[figure === "time" ? "cpu" : figure];
  return value ? {value: value / (isTime ? 1e9 : MIB), low: null, high: null} : null;
}

function points() { // {place, cell, x, y, words}
  const shown = [...state.allocators].sort((a, b) => a - b);
  const found = [];
  for (const place of shown) {
    if (state.points === "means") {
      const own = summary(place);
      const [x, y] = state.figures === "ratios" ? [own.means[state.time], own.means[state.memory]] :
        [state.time, state.memory].map(figure => mean(cells().map(cell => cell.allocators[place])
          .filter(each => each && !each.failed).map(each => figureOf(each, figure)).filter(Boolean)
          .map(each => each.value)));
      if (x && y) found.push({place, cell: null, x, y});
      continue;
    }
    run().cells.forEach((cell, number) => {
      const own = cell.allocators[place];
      if (!own || !state.cells.has(number)) return;
      const [x, y] = [figureOf(own, state.time), figureOf(own, state.memory)];
      if (x && y) found.push({place, cell: number, x, y});
    });
  }
  return found;
}

function nameOf(point) {
  const name = run().allocators[point.place].name;
  return point.cell === null ? name : `${run().cells[point.cell].name} on ${name}`;
}

/* ---- the plot ---- */

function ticks(low, high, length) {
  const found = [];
  const fine = high / low < 8 ? [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8, 9] :
    high / low < 300 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const each of fine) found.push(each * 10 ** power);
  const inside = found.map(each => Number(each.toPrecision(3))).filter(each => each >= low && each <= high);
  const apart = (a, b) => Math.abs(Math.log(a / b)) / Math.log(high / low) * length;
  const kept = inside.includes(1) ? [1] : [];
  for (const each of inside)
    if (kept.every(other => apart(each, other) >= 44)) kept.push(each);
  return kept;
}

function axis(values, from, to) {
  const known = values.flatMap(each => [each.value, each.low, each.high]).filter(each => each > 0);
  if (state.figures === "ratios") known.push(0.95, 1.05);
  const [low, high] = [Math.min(...known) / 1.04, Math.max(...known) * 1.04];
  const at = value => from + Math.log(value / low) / Math.log(high / low) * (to - from);
  return {at, ticks: ticks(low, high, Math.abs(to - from))};
}

function axisName(figure) {
  const name = MEMORY[figure] || (state.figures === "medians" && figure === "time" ? "CPU time" :
    TIME[figure]);
  const unit = figure in TIME ? "s" : "MiB";
  return state.figures === "ratios" ? `${name} beside ${run().base}` : `${name}, ${unit}`;
}

function labels(found, x, y, width, height) { // right of the marker, or left; none over another
  const taken = [];
  for (const point of [...found].sort((a, b) => a.y.value - b.y.value)) {
    const text = run().allocators[point.place].name;
    const wide = 7 * text.length + 4;
    let left = x.at(point.x.value) + 11;
    if (left + wide > width) left = x.at(point.x.value) - 11 - wide;
    let top = y.at(point.y.value) - 5;
    const middle = top;
    const isFree = () => !taken.some(each => Math.abs(each.top - top) < 13
      && each.left < left + wide && left < each.left + each.wide);
    for (let step = 1; !isFree() && step < 60; step++)
      top = Math.min(height - 4, Math.max(12, middle + (step % 2 ? 1 : -1) * Math.ceil(step / 2) * 7));
    taken.push({left, top, wide, text});
  }
  return taken;
}

function pointGroup(point, x, y) {
  const allocator = run().allocators[point.place];
  const [cx, cy] = [x.at(point.x.value), y.at(point.y.value)];
  const isChosen = state.chosen && state.chosen.place === point.place && state.chosen.cell === point.cell;
  const words = `${nameOf(point)}: ${axisName(state.time)} ${digits(point.x.value)}, `
    + `${axisName(state.memory)} ${digits(point.y.value)}`;
  const group = draw("g", {class: isChosen ? "point chosen" : "point", tabindex: 0, role: "button",
    "aria-label": words});
  group.append(draw("title", {}, words));
  const stroke = {stroke: `var(${allocator.colour})`, "stroke-width": 1.2, opacity: 0.7};
  if (state.points === "means" || isChosen) {
    if (point.x.low) group.append(draw("line", {x1: x.at(point.x.low), x2: x.at(point.x.high),
      y1: cy, y2: cy, ...stroke}));
    if (point.y.low) group.append(draw("line", {y1: y.at(point.y.low), y2: y.at(point.y.high),
      x1: cx, x2: cx, ...stroke}));
  }
  const spot = draw("g", {transform: `translate(${cx.toFixed(1)},${cy.toFixed(1)})`},
    draw("circle", {class: "ring", r: 10}), marker(allocator, state.points === "means" ? 6.5 : 4.5));
  group.append(spot);
  const choose = () => {
    state.chosen = {place: point.place, cell: point.cell};
    show();
    root.querySelector(".rows").scrollIntoView({block: "nearest"});
  };
  group.addEventListener("click", choose);
  group.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
  });
  return group;
}

function plot(found) {
  const figure = root.querySelector("figure");
  figure.replaceChildren();
  if (!found.length) {
    figure.append(make("p", {class: "note"}, "Nothing is chosen that has both figures."));
    return;
  }
  const width = Math.max(280, figure.clientWidth);
  const height = Math.min(460, Math.max(320, Math.round(width * 0.62)));
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": `${axisName(state.time)} against ${axisName(state.memory)}`});
  const x = axis(found.map(each => each.x), 44, width - 8);
  const y = axis(found.map(each => each.y), height - 40, 22);
  for (const value of x.ticks) {
    const at = x.at(value);
    const isOne = state.figures === "ratios" && value === 1;
    svg.append(draw("line", {class: isOne ? "one" : "grid", x1: at, x2: at, y1: 22, y2: height - 40}),
      draw("text", {class: "axis", x: at, y: height - 25, "text-anchor": "middle"}, String(value)));
  }
  for (const value of y.ticks) {
    const at = y.at(value);
    const isOne = state.figures === "ratios" && value === 1;
    svg.append(draw("line", {class: isOne ? "one" : "grid", x1: 44, x2: width - 8, y1: at, y2: at}),
      draw("text", {class: "axis", x: 40, y: at + 4, "text-anchor": "end"}, String(value)));
  }
  svg.append(draw("text", {class: "axis", x: width - 8, y: height - 6, "text-anchor": "end"},
    `${axisName(state.time)} →`), draw("text", {class: "axis", x: 4, y: 13}, `↑ ${axisName(state.memory)}`));
  for (const point of found) svg.append(pointGroup(point, x, y));
  if (state.points === "means")
    for (const each of labels(found, x, y, width, height - 40))
      svg.append(draw("text", {class: "name", x: each.left, y: each.top}, each.text));
  figure.append(svg);
}

/* ---- tables ---- */

function table(heads, rows) {
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "table"}, make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map(head => make("th", {}, head)))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(each =>
      make("td", {}, each === null ? "–" : each)))))));
}

const told = each => !each ? "–" : each.low === null || each.low === undefined
  ? each.value.toFixed(2) : `${each.value.toFixed(2)} (${each.low.toFixed(2)}–${each.high.toFixed(2)})`;

function opener(words, chosen) {
  return make("button", {type: "button", onclick: () => { state.chosen = chosen; show(); }}, words);
}

function summaryTable() {
  const rows = [...state.allocators].map(summary).filter(own => own.cells || own.failed)
    .sort((a, b) => (a.means.time ? a.means.time.value : 9e9) - (b.means.time ? b.means.time.value : 9e9));
  return table(["allocator", "time", "wall time", "peak RSS", "RSS × time", "less time in",
    "more time in", "less peak RSS in", "more in", "cells", "failed in"],
    rows.map(own => [opener(run().allocators[own.place].name, {place: own.place, cell: null}),
      ...["time", "wall", "peak", "area"].map(each => told(own.means[each])),
      ...[own.ahead, own.behind, own.lighter, own.heavier, own.cells, own.failed].map(String)]));
}

function cellTable() {
  const shown = [...state.allocators].sort((a, b) => a - b);
  const rows = run().cells.map((cell, number) => [cell, number]).filter(([, number]) => state.cells.has(number));
  return table([`${axisName(state.time)} · ${axisName(state.memory)}`,
    ...shown.map(place => run().allocators[place].name)],
    rows.map(([cell, number]) => [cell.name, ...shown.map(place => {
      const own = cell.allocators[place];
      if (!own) return null;
      const said = [state.time, state.memory].map(figure => figureOf(own, figure))
        .map(each => each ? digits(each.value) + (MARKS[each.side] || "") : "–").join(" · ");
      return opener(own.failed ? `${said} ✕` : said, {place, cell: number});
    })]));
}

function rowTable() {
  const place = root.querySelector(".rows");
  place.replaceChildren();
  if (!state.chosen) return;
  const allocator = run().allocators[state.chosen.place];
  const from = run().cells.map((cell, number) => [cell, number]).filter(([, number]) =>
    state.chosen.cell === null ? state.cells.has(number) : number === state.chosen.cell);
  const rows = from.flatMap(([cell]) => cell.rows.filter(row => row[0] === state.chosen.place)
    .map(row => [cell, row]));
  const seconds = value => (value / 1e6).toFixed(4);
  const size = value => (value / 1024).toFixed(2);
  place.append(make("h3", {}, `${nameOf(state.chosen)}: ${rows.length} rows`));
  if (from.length === 1) place.append(make("p", {class: "note"}, make("code", {}, from[0][0].command)));
  place.append(table(["program", ...MEASURED.columns.slice(1)], rows.map(([cell, row]) => [cell.name,
    String(row[1]), row[2] || "ok", ...row.slice(3, 7).map(seconds), row[7] === null ? null : digits(row[7]),
    ...row.slice(8, 11).map(size), String(row[11]), seconds(row[12]), String(row[13])])));
  place.append(make("p", {class: "note"}, `${allocator.name}: ${allocator.version || "no version"}. `
    + `From bench/results/${run().name}/results.csv.gz.`));
}

/* ---- controls ---- */

function select(words, key, options) {
  const node = make("select", {onchange: () => {
    state[key] = key === "run" ? Number(node.value) : node.value;
    if (key === "run") open(); else show();
  }}, ...Object.entries(options).map(([value, text]) => make("option",
    {value, selected: value === String(state[key])}, text)));
  return make("label", {}, words, node);
}

function choice(words, set, place, icon) {
  const box = make("input", {type: "checkbox", checked: set.has(place), onchange: () => {
    if (box.checked) set.add(place); else set.delete(place);
    state.chosen = null;
    show();
  }});
  return make("label", {"data-name": words.toLowerCase()}, box, ...(icon ? [icon] : []), words);
}

function setAll(set, places, isOn) {
  for (const place of places) if (isOn) set.add(place); else set.delete(place);
  state.chosen = null;
  controls();
  show();
}

function family(name, places) {
  const all = make("button", {type: "button", onclick: () =>
    setAll(state.cells, places, !places.every(each => state.cells.has(each)))}, "all or none");
  return make("fieldset", {}, make("legend", {}, `${name} `, all), make("div", {class: "choices"},
    ...places.map(place => choice(run().cells[place].name, state.cells, place))));
}

function controls() {
  const isOpen = root.querySelector("details") && root.querySelector("details").open;
  const families = new Map();
  run().cells.forEach((cell, place) => {
    const key = cell.family.toLowerCase() === cell.group.toLowerCase() ? cell.group
      : `${cell.group}: ${cell.family}`;
    families.set(key, [...(families.get(key) || []), place]);
  });
  const search = make("input", {type: "search", placeholder: "find a program", "aria-label": "find a program",
    oninput: () => { for (const label of root.querySelectorAll("details [data-name]"))
      label.style.display = label.dataset.name.includes(search.value.toLowerCase()) ? "" : "none"; }});
  const icon = each => draw("svg", {width: 18, height: 18, viewBox: "-9 -9 18 18", "aria-hidden": "true"},
    marker(each, 6));
  root.querySelector(".all").replaceChildren(make("div", {class: "controls"},
    select("run", "run", MEASURED.runs.map(each => each.name)),
    select("a point is", "points", {means: "an allocator: mean over the programs", cells: "a program on an allocator"}),
    select("figures", "figures", {ratios: "ratios to the base", medians: "medians"}),
    select("time", "time", {time: "what the program is judged by", wall: "wall time"}),
    select("memory", "memory", MEMORY)),
    make("p", {class: "note"}, run().source),
    make("fieldset", {}, make("legend", {}, "allocators"), make("div", {class: "choices"},
      ...run().allocators.map((each, place) => choice(each.name, state.allocators, place, icon(each))))),
    make("details", {open: Boolean(isOpen)}, make("summary", {}, "families and programs"), search,
      ...[...families].map(([name, places]) => family(name, places))));
}

function open() { // a run: all allocators; of the groups the first, which decides
  state.allocators = new Set(run().allocators.keys());
  const group = run().cells[0].group;
  const first = run().cells.some(cell => cell.group === "Programs") ? "Programs" : group;
  state.cells = new Set(run().cells.map((cell, place) => cell.group === first ? place : -1).filter(each => each >= 0));
  state.chosen = null;
  controls();
  show();
}

function show() {
  if (state.figures === "medians" && state.memory === "area") state.memory = "peak";
  plot(points());
  root.querySelector(".said").textContent =
    `${state.cells.size} of ${run().cells.length} programs, ${state.allocators.size} of `
    + `${run().allocators.length} allocators. Choose a point, or a button of a table, to see its rows.`;
  root.querySelector(".sums").replaceChildren(summaryTable());
  root.querySelector(".cells").replaceChildren(cellTable());
  rowTable();
}

root.append(make("div", {class: "all"}), make("figure"), make("p", {class: "note said", "aria-live": "polite"}),
  make("div", {class: "rows"}), make("h2", {}, "Means beside the base"), make("div", {class: "sums"}),
  make("h2", {}, "Program by program"), make("div", {class: "cells"}));
open();
let width = root.clientWidth;
window.addEventListener("resize", () => {
  if (root.clientWidth !== width) { width = root.clientWidth; plot(points()); }
});
})();
