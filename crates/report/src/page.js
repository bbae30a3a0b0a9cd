// What makes the figures of a page answer. Without it they are the pictures that they are.
//
// Curves are drawn anew, by uPlot, from the numbers beside each picture; bars and grids stay the
// pictures that they are and say what stands under the pointer. Nothing is asked of anywhere.
(() => {
"use strict";
const FONT = "12px system-ui,-apple-system,'Segoe UI',sans-serif";
const COLOURS = 7;
// Of what a whole axis shows, this share is shown at least.
const LEAST = 1e-4;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// A number to three digits, as the pictures have it.
const superscript = exponent =>
  String(exponent).replace(/./g, c => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
const number = (value, digits = 3) => {
  if (value === 0) return "0";
  const [mantissa, power] = Math.abs(value).toExponential(digits - 1).split("e");
  const exponent = Number(power), sign = value < 0 ? "−" : "";
  if (exponent >= -3 && exponent <= 5) {
    return sign + String(Number(Math.abs(value).toFixed(Math.max(0, digits - 1 - exponent))));
  }
  const raised = "10" + superscript(exponent);
  return sign + (Number(mantissa) === 1 ? raised : Number(mantissa) + "·" + raised);
};
// A share by what it leaves to one: as many digits as its nines ask for.
const share = (left, digits = 2) => {
  const decimals = Math.max(0, digits - 3 - Math.floor(Math.log10(Math.max(left, 1e-12))));
  return String(Number((100 * (1 - left)).toFixed(Math.min(decimals, 12)))) + " %";
};

// Marks of a logarithmic axis; even ones where less than half a decade is shown.
const evenSteps = (low, high) => {
  const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw * 0.8) * power;
  const steps = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at++) steps.push(at * step);
  return steps;
};
const logSteps = (low, high) => {
  if (high / low < 4) return evenSteps(low, high);
  const steps = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high) + 1e-9; decade++) {
    for (let digit = 1; digit <= 9; digit++) {
      const at = Number(digit + "e" + decade);
      if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) steps.push(at);
    }
  }
  return steps;
};
// Which marks have labels: whole decades first, then what has room.
// One form for all labels of a logarithmic axis: in full where all are short, else as powers of ten.
const logText = ({ low, high }) => {
  if (low >= 10 ** -3.5 && high <= 10 ** 5.5) return value => number(value);
  return value => {
    const [mantissa, power] = value.toExponential(2).split("e");
    return (Number(mantissa) === 1 ? "" : Number(mantissa) + "·") + "10" + superscript(Number(power));
  };
};
const labelled = (plot, scale, steps, text, room) => {
  const taken = [], labels = steps.map(() => "");
  const digit = value => Number(value.toExponential(8).split("e")[0]);
  for (const digits of [[1], [5], [2], [3, 7], null]) {
    steps.forEach((value, at) => {
      if (digits ? !digits.includes(digit(value)) : plot.scales[scale].max / plot.scales[scale].min >= 4) return;
      if (labels[at]) return;
      const label = text(value), middle = plot.valToPos(value, scale), half = room(label) / 2;
      if (taken.some(([from, to]) => middle - half < to && from < middle + half)) return;
      taken.push([middle - half, middle + half]);
      labels[at] = label;
    });
  }
  return labels;
};

const ruler = document.createElement("canvas").getContext("2d");
const widthOf = text => ((ruler.font = FONT), ruler.measureText(text).width);

// What is shown of an axis: `asked`, but never less than the least.
const shownOf = (scale, whole, asked) => {
  const inner = value => (scale === "linear" ? value : Math.log(value));
  const outer = value => (scale === "linear" ? value : Math.exp(value));
  const [[low, high], [from, to]] = [whole, asked].map(ends => ends.map(inner)), width = (high - low) * LEAST;
  if (to - from >= width) return asked;
  const middle = Math.min(Math.max((from + to) / 2, low + width / 2), high - width / 2);
  return [outer(middle - width / 2), outer(middle + width / 2)];
};

// All series over one list of places, so that each has a value wherever the cursor stands.
const aligned = data => {
  const places = new Set();
  const series = data.series.map(({ shape, x, y }) => {
    const points = [];
    x.forEach((at, idx) => {
      const last = points.length ? points[points.length - 1][0] : -Infinity;
      const near = Math.max(Math.abs(last) * 1e-9, 1e-300);
      if (at > last) points.push([at, y[idx]]);
      // Straight up: the way from the first value is shown, of others the last one counts.
      else if (shape !== "step") points.push([last + near, y[idx]]);
      else if (points.length === 1) {
        points[0][0] -= near;
        points.push([at, y[idx]]);
      } else points[points.length - 1][1] = y[idx];
    });
    points.forEach(([at]) => places.add(at));
    return { shape, kept: points, own: new Set(points.filter(point => point[1] != null).map(point => point[0])) };
  });
  const xs = Float64Array.from(places).sort();
  const inner = (value, scale) => (scale === "linear" ? value : Math.log(value));
  const outer = (value, scale) => (scale === "linear" ? value : Math.exp(value));
  // What is beyond the axes is told as it is, and drawn at the edge.
  const [low, high] = [Math.min(data.y.low, data.y.high), Math.max(data.y.low, data.y.high)];
  const told = series.map(({ shape, kept }) => {
    let at = -1;
    return Array.from(xs, x => {
      while (at + 1 < kept.length && kept[at + 1][0] <= x) at++;
      if (at < 0) return null;
      const [x0, y0] = kept[at];
      if (x0 === x) return y0;
      if (shape === "dots" || at + 1 === kept.length || y0 == null) return null;
      if (shape === "step") return y0;
      const [x1, y1] = kept[at + 1];
      if (y1 == null) return null;
      const [a, b, c] = [x0, x1, x].map(value => inner(value, data.x.scale));
      const [from, to] = [y0, y1].map(value => inner(value, data.y.scale));
      return outer(from + ((to - from) * (c - a)) / (b - a), data.y.scale);
    });
  });
  const columns = told.map(values => values.map(value => (value == null ? null : Math.min(Math.max(value, low), high))));
  return { xs: Array.from(xs), columns, told, own: series.map(one => one.own) };
};

const save = (svg, off, title) => {
  const copy = svg.cloneNode(true), [, top, width, rest] = copy.getAttribute("viewBox").split(" ").map(Number);
  const height = top + rest;
  copy.setAttribute("viewBox", ["0 0", width, height].join(" "));
  copy.querySelectorAll(".lh-svg-title").forEach(line => line.style.display = "");
  copy.querySelectorAll(".lh-mark").forEach(element => element.remove());
  off.forEach(idx => copy.querySelectorAll(`[data-of="${idx}"],[data-key="${idx}"]`).forEach(element => element.remove()));
  copy.setAttribute("role", "img");
  copy.querySelectorAll("[data-key]").forEach(key => ["role", "tabindex", "aria-pressed", "aria-label"].forEach(name => key.removeAttribute(name)));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["class", "lh-ground"], ["width", width], ["height", height]]) ground.setAttribute(name, value);
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = document.getElementById("lh-figure-style").textContent;
  copy.prepend(style, ground);
  const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const link = make("a", { download: (title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "figure") + ".svg" });
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const tool = (name, help, act) => {
  const button = make("button", { type: "button", title: help }, name);
  button.addEventListener("click", act);
  return button;
};

// What a reader may do is said under the first figure of a kind.
const helped = new Set();
const helpOnce = text => (helped.has(text) ? "" : (helped.add(text), text));

// A figure of curves.
const lines = (figure, still, data) => {
  const off = new Set();
  const all = aligned(data);
  const whole = { x: [data.x.low, data.x.high], y: [Math.min(data.y.low, data.y.high), Math.max(data.y.low, data.y.high)] };
  const isTail = data.y.scale === "tail";
  const yText = value => (isTail ? share(value, 4) : number(value, 4));
  let plot = null, nines = 0;

  const values = data.series.map(() => make("span", { class: "lh-value" }));
  const keys = data.series.map((series, idx) => {
    const dash = ["", "7 4", "2 3"][Math.floor(idx / COLOURS) % 3];
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("class", "lh-swatch");
    swatch.setAttribute("aria-hidden", "true");
    const colour = `var(--lh-${(idx % COLOURS) + 1})`;
    swatch.innerHTML = series.shape === "dots"
      ? `<circle cx="11" cy="5" r="3.2" style="fill:${colour}"/>`
      : `<path d="M0 5h22" fill="none" stroke-width="2.4" stroke-dasharray="${dash}" style="stroke:${colour}"/>`;
    const button = make("button", { type: "button", "aria-pressed": "true", title: "Shows or hides this series" },
      swatch, make("span", { class: "lh-name" }, series.name), values[idx]);
    button.addEventListener("click", () => {
      off.has(idx) ? off.delete(idx) : off.add(idx);
      button.setAttribute("aria-pressed", String(!off.has(idx)));
      plot.setSeries(idx + 1, { show: !off.has(idx) });
    });
    return button;
  });
  const zoom = (x, y) => plot.batch(() => {
    for (const [name, asked] of [["x", x], ["y", y]]) {
      const [min, max] = shownOf(data[name].scale, whole[name], asked);
      plot.setScale(name, { min, max });
    }
  });
  // What was dragged over, along an axis or both.
  const dragged = shown => {
    const { left, top, width, height } = shown.select;
    if (!(width > 0 && height > 0)) return;
    const along = (name, from, size, room) => {
      const { min, max } = shown.scales[name];
      return size >= room - 1 ? [min, max] : [from, from + size].map(at => shown.posToVal(at, name)).sort((a, b) => a - b);
    };
    const x = along("x", left, width, shown.over.clientWidth), y = along("y", top, height, shown.over.clientHeight);
    shown.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoom(x, y);
  };
  const showWhole = () => { nines = 0; zoom(whole.x, whole.y); };
  // What lies beyond 90 %, then beyond 99 %, and so on as far as there are values.
  const showTail = () => {
    nines = 10 ** -(nines + 1) > whole.y[0] * 2 ? nines + 1 : 1;
    const limit = 10 ** -nines, shown = data.series.filter((_, idx) => !off.has(idx));
    const starts = shown.map(({ x, y }) => x[y.findIndex(left => left <= limit)]).filter(x => x !== undefined);
    const from = starts.length ? Math.min(...starts) : whole.x[0];
    zoom([Math.max(whole.x[0], from - (data.x.scale === "log" ? 0.05 * from : 0.02 * (whole.x[1] - from))), whole.x[1]], [whole.y[0], limit]);
  };
  const closer = factor => {
    const { min, max } = plot.scales.x;
    const isLog = data.x.scale === "log", to = value => (isLog ? Math.log(value) : value);
    const middle = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : isLog ? Math.sqrt(min * max) : (min + max) / 2;
    const end = (value, limit, choose) => {
      const moved = to(middle) + (to(value) - to(middle)) * factor;
      return choose(isLog ? Math.exp(moved) : moved, limit);
    };
    const x = [end(min, whole.x[0], Math.max), end(max, whole.x[1], Math.min)];
    if (to(x[1]) - to(x[0]) > (to(whole.x[1]) - to(whole.x[0])) * LEAST) zoom(x, [plot.scales.y.min, plot.scales.y.max]);
  };

  const place = make("div", {
    class: "lh-plot", tabindex: "0", role: "application",
    "aria-label": `${data.title}. Arrows move the cursor, plus and minus zoom, zero shows everything.`,
  });
  // Values stand beside the names of their series; those who listen hear both from here.
  const seen = make("span"), heard = make("span", { class: "lh-heard" });
  const read = make("p", { class: "lh-read", "aria-live": "polite", "aria-atomic": "true" }, seen, heard);
  const tools = make("div", { class: "lh-tools" },
    ...(isTail ? [tool("Tail", "Shows what lies beyond 90 %, then 99 %, and so on", showTail)] : []),
    tool("+", "Shows less of the horizontal axis, larger", () => closer(0.5)),
    tool("−", "Shows more of the horizontal axis", () => closer(2)),
    tool("Whole", "Shows everything", showWhole),
    tool("Save SVG", "Saves the picture with the series that are shown", () => save(still.querySelector(".lh-broad"), off, data.title)));
  const live = make("div", { class: "lh-live" },
    make("div", { class: "lh-head" }, make("div", { class: "lh-title" }, data.title), tools),
    make("div", { class: "lh-keys" }, ...keys),
    make("div", { class: "lh-up" }, data.y.label), place, make("div", { class: "lh-across" }, data.x.label), read,
    ...data.notes.map(note => make("p", { class: "lh-note" }, note)));
  figure.append(live);
  still.hidden = true;

  const help = helpOnce("Point at the plot, or use the arrow keys; drag to enlarge, double-click for the whole.");
  const tell = shown => {
    const idx = shown.cursor.idx, left = shown.cursor.left;
    const isOn = left != null && left >= 0 && idx != null;
    const at = isOn ? all.xs[idx] : null;
    seen.textContent = isOn ? `${data.x.label}: ${number(at, 4)}` : help;
    values.forEach((element, series) => {
      const value = isOn && !off.has(series) ? all.told[series][idx] : null;
      const isBetween = value != null && data.series[series].shape === "line" && !all.own[series].has(at);
      element.textContent = value == null ? "" : (isBetween ? "≈ " : "") + yText(value);
    });
    const named = data.series.flatMap(({ name }, idx) => (values[idx].textContent ? [`; ${name}: ${values[idx].textContent}`] : []));
    heard.textContent = named.join("");
  };

  const axis = (side, of) => {
    const isX = side === "x", isLog = of.scale !== "linear";
    const text = of.scale === "tail" ? value => share(value) : logText(of);
    const grid = css("--lh-grid"), faint = css("--lh-faint");
    const room = isX ? label => widthOf(label) + 12 : () => 22;
    let labels = new Map();
    return {
      scale: side, side: isX ? 2 : 3, stroke: css("--lh-faint"), font: FONT,
      gap: 6,
      size: isX ? 30 : (_, labels) => 14 + Math.max(20, ...(labels || []).map(label => widthOf(label || ""))),
      space: isX ? 56 : 34,
      ...(isLog ? { splits: (_, __, low, high) => logSteps(low, high) } : {}),
      values: (_, steps) => steps.map(step => (isLog ? labels.get(step) : step == null ? "" : number(step, 6)) ?? ""),
      ...(isLog ? { filter: (shown, steps) => {
        const texts = labelled(shown, side, steps, text, room);
        labels = new Map(steps.map((step, at) => [step, texts[at]]));
        return steps.map((step, at) => (texts[at] ? step : null));
      } } : {}),
      grid: { stroke: grid, width: 1, ...(isLog ? { filter: (_, steps) => steps.map(step => (labels.get(step) ? step : null)) } : {}) }, ticks: { stroke: grid, size: 5 }, border: { show: true, stroke: faint, width: 1 },
    };
  };
  const scale = (of, range) => ({
    time: false, auto: false, min: range[0], max: range[1], distr: of.scale === "linear" ? 1 : 3,
    range: (_, min, max) => [min ?? range[0], max ?? range[1]], dir: of.scale === "tail" ? -1 : 1,
  });
  const build = () => {
    const kept = plot && [["x", plot.scales.x], ["y", plot.scales.y]].map(([name, { min, max }]) => [name, { min, max }]);
    if (plot) plot.destroy();
    const options = {
      width: Math.max(200, place.clientWidth), height: place.clientWidth < 500 ? 320 : 380,
      padding: [10, 14, 0, 0], legend: { show: false },
      cursor: {
        y: false, drag: { x: true, y: true, uni: 24, dist: 6, setScale: false }, focus: { prox: -1 },
        bind: { dblclick: () => () => { showWhole(); return null; } },
        points: { size: 8, width: 2 },
      },
      scales: { x: scale(data.x, whole.x), y: scale(data.y, whole.y) },
      axes: [axis("x", data.x), axis("y", data.y)],
      series: [{}, ...data.series.map((series, idx) => {
        const colour = css(`--lh-${(idx % COLOURS) + 1}`);
        const few = series.shape === "dots" || (series.shape === "line" && series.x.length <= 40);
        return {
          label: series.name, stroke: colour, width: 1.8, scale: "y", show: !off.has(idx), auto: false,
          dash: [[], [7, 4], [2, 3]][Math.floor(idx / COLOURS) % 3],
          paths: series.shape === "dots" ? () => null : series.shape === "step" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
          points: { show: few, size: 5, fill: colour, stroke: colour, filter: (_, __, show) => show ? all.xs.map((x, at) => (all.own[idx].has(x) ? at : -1)).filter(at => at >= 0) : [] },
          spanGaps: false,
        };
      })],
      hooks: { setCursor: [tell], setSeries: [tell], setSelect: [dragged] },
    };
    plot = new uPlot(options, [all.xs, ...all.columns], place);
    place.lhPlot = plot;
    if (kept) plot.batch(() => kept.forEach(([name, range]) => plot.setScale(name, range)));
    tell(plot);
  };
  build();

  const goTo = idx => {
    const x = plot.valToPos(all.xs[idx], "x");
    const column = all.columns.find((values, series) => !off.has(series) && values[idx] != null);
    plot.setCursor({ left: x, top: column ? plot.valToPos(column[idx], "y") : 0 });
  };
  place.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { min, max } = plot.scales.x;
    const shown = all.xs.map((x, idx) => idx).filter(idx => all.xs[idx] >= min && all.xs[idx] <= max);
    if (!shown.length) return;
    const now = plot.cursor.left >= 0 && plot.cursor.idx != null ? plot.cursor.idx : null;
    // The next place at which the cursor stands elsewhere on the screen.
    const step = (sign, apart) => {
      if (now == null) return sign > 0 ? shown[0] : shown[shown.length - 1];
      const from = plot.valToPos(all.xs[now], "x");
      const ahead = sign > 0 ? shown.filter(idx => idx > now) : shown.filter(idx => idx < now).reverse();
      return ahead.find(idx => Math.abs(plot.valToPos(all.xs[idx], "x") - from) >= apart) ?? ahead[ahead.length - 1] ?? now;
    };
    const apart = event.shiftKey ? 40 : 2;
    const acts = {
      ArrowRight: () => goTo(step(1, apart)), ArrowLeft: () => goTo(step(-1, apart)),
      Home: () => goTo(shown[0]), End: () => goTo(shown[shown.length - 1]),
      "+": () => closer(0.5), "=": () => closer(0.5), "-": () => closer(2),
      0: showWhole, Escape: showWhole, ...(isTail ? { t: showTail } : {}),
    };
    if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
  });
  place.addEventListener("blur", () => plot.setCursor({ left: -10, top: -10 }));
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth === width || !place.clientWidth) return;
    width = place.clientWidth;
    plot.setSize({ width: Math.max(200, width), height: width < 500 ? 320 : 380 });
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
};

// A figure of bars or fields, which says what stands under the pointer.
const picture = (figure, still, data) => {
  const off = new Set(), isGrid = data.kind === "grid";
  const columns = isGrid ? data.columns.length : data.groups.length, rows = isGrid ? data.rows.length : 1;
  const read = make("p", { class: "lh-read", "aria-live": "polite" });
  const tools = make("div", { class: "lh-tools" },
    tool("Save SVG", "Saves the picture with the series that are shown", () => save(still.querySelector(".lh-broad"), off, data.title)));
  const head = make("div", { class: "lh-live lh-head" }, make("div", { class: "lh-title" }, data.title), tools);
  still.classList.add("lh-live-svg");
  still.tabIndex = 0;
  still.setAttribute("role", "application");
  still.setAttribute("aria-label", `${data.title}. Arrows go from one ${isGrid ? "field" : "group"} to the next.`);
  figure.prepend(head);
  figure.append(read);
  // The title stands above, beside the buttons.
  still.querySelectorAll("svg").forEach(svg => {
    const [left, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number), top = Number(svg.dataset.titled);
    svg.querySelectorAll(".lh-svg-title").forEach(line => line.style.display = "none");
    svg.setAttribute("viewBox", [left, top, width, height - top].join(" "));
  });
  let now = null;
  const help = helpOnce("Point at the picture, or use the arrow keys.");
  read.textContent = help;
  const said = ([column, row]) => {
    if (isGrid) return `${data.rows[row]}, ${data.columns[column]}: ${data.values[row][column] || "no number"}`;
    const shown = data.series.filter((_, idx) => !off.has(idx));
    return `${data.groups[column]}: ` + shown.map(one => `${one.name} ${one.values[column] || "no number"}`).join("; ");
  };
  const pictures = [...still.querySelectorAll("svg")].filter(svg => svg.dataset.asked && columns && rows).map(svg => {
    const edges = svg.dataset.asked.split(" ").map(Number);
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "lh-mark");
    mark.style.display = "none";
    svg.append(mark);
    svg.addEventListener("pointermove", event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const [left, top, right, bottom] = edges;
      const isIn = at.x >= left && at.x < right && at.y >= top && at.y < bottom;
      show(isIn ? [Math.floor((at.x - left) / (right - left) * columns), Math.floor((at.y - top) / (bottom - top) * rows)] : null);
    });
    svg.addEventListener("pointerleave", () => show(null));
    // Tooltips of one bar would say a part of what stands below.
    svg.querySelectorAll("[data-of] title, rect > title").forEach(title => title.remove());
    return { edges, mark };
  });
  const show = at => {
    now = at;
    read.textContent = at ? said(at) : help;
    for (const { edges: [left, top, right, bottom], mark } of pictures) {
      mark.style.display = at ? "" : "none";
      if (!at) continue;
      const [width, height] = [(right - left) / columns, (bottom - top) / rows];
      for (const [name, value] of [["x", left + at[0] * width], ["y", top + at[1] * height], ["width", width], ["height", height]]) mark.setAttribute(name, value);
    }
  };
  still.addEventListener("keydown", event => {
    if (event.target !== still || event.ctrlKey || event.altKey || event.metaKey || !columns || !rows) return;
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    if (event.key === "Escape") show(null);
    else if (event.key === "Home") show([0, now ? now[1] : 0]);
    else if (event.key === "End") show([columns - 1, now ? now[1] : 0]);
    else if (steps[event.key]) {
      const [x, y] = steps[event.key];
      show(now ? [within(now[0] + x, columns), within(now[1] + y, rows)] : [0, 0]);
    } else return;
    event.preventDefault();
  });
  still.addEventListener("blur", () => show(null));
  const toggle = idx => {
    off.has(idx) ? off.delete(idx) : off.add(idx);
    still.querySelectorAll(`[data-of="${idx}"]`).forEach(group => group.toggleAttribute("data-off", off.has(idx)));
    still.querySelectorAll(`[data-key="${idx}"]`).forEach(key => key.setAttribute("aria-pressed", String(!off.has(idx))));
    show(now);
  };
  still.querySelectorAll("[data-key]").forEach(key => {
    // Nothing inside an image can be reached.
    key.closest("svg").setAttribute("role", "group");
    const idx = Number(key.dataset.key);
    for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-pressed", "true"], ["aria-label", data.series[idx].name]]) key.setAttribute(name, value);
    key.addEventListener("click", () => toggle(idx));
    key.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle(idx);
    });
  });
};

for (const figure of document.querySelectorAll("figure.lh-fig")) {
  const data = figure.querySelector("script[type='application/json']");
  if (!data) continue;
  const parsed = JSON.parse(data.textContent), still = figure.querySelector(".lh-still");
  (parsed.kind === "lines" ? lines : picture)(figure, still, parsed);
}
// Tables that are broader than the page can be moved by the arrow keys.
const reach = () => document.querySelectorAll(".lh-wide").forEach(wide => {
  if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
  else wide.removeAttribute("tabindex");
});
reach();
addEventListener("resize", reach);
})();
