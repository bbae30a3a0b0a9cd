// What is wrong with how a page looks: a list of sentences. Nothing of the page is changed.
(() => {
  const SMALLEST = 11, CONTRAST = 4.5, SLACK = 1.5;
  // What readers of a table with such a column came for, and the least letters of a name that is cut.
  const MAIN = ["ours", "fleet", "slow hours"], CUT = 16;
  const found = [];
  const say = (what, about = "") => found.push(about ? `${what}: ${String(about).trim().slice(0, 80)}` : what);
  const isShown = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: false }) && element.getClientRects().length > 0;

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) say(`the page scrolls to the side, ${root.scrollWidth} in ${root.clientWidth} pixels`);

  // Colours.
  const channels = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const parsed = (() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    return colour => {
      if (colour.startsWith("rgb")) return channels(colour);
      context.fillStyle = colour;
      const hex = context.fillStyle;
      return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
    };
  })();
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(c => c / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (one, other) => {
    const [a, b] = [light(one), light(other)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };

  // Letters of the page.
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || seen.has(element) || element.closest("script,style,svg") || !isShown(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    if (parseFloat(style.fontSize) < SMALLEST) say(`letters of ${style.fontSize}`, node.data);
    const seenWith = contrast(parsed(style.color), ground(element));
    if (!element.closest("[aria-pressed=false]") && seenWith < CONTRAST) say(`a contrast of ${seenWith.toFixed(2)}`, node.data);
    const letters = document.createRange();
    letters.selectNodeContents(node);
    const box = letters.getBoundingClientRect();
    if (!element.closest(".lh-wide") && (box.left < -SLACK || box.right > root.clientWidth + SLACK)) say("text beyond the page", node.data);
  }

  // On a telephone the column that a table is for is there without scrolling.
  const width = root.clientWidth;
  for (const head of document.querySelectorAll("th")) {
    const box = head.getBoundingClientRect();
    if (width < 500 && MAIN.includes(head.textContent) && isShown(head) && box.right > width + SLACK) {
      say(`a column beyond the page, ${box.right.toFixed(0)} of ${width} pixels`, head.textContent);
    }
  }
  // A table that can be moved to the side says so, in words where the script runs.
  for (const wide of document.querySelectorAll(".lh-wide")) {
    if (!isShown(wide) || wide.scrollWidth <= wide.clientWidth) continue;
    const hint = getComputedStyle(wide, "::before"), edges = getComputedStyle(wide).backgroundAttachment;
    if (wide.tabIndex === 0 && !hint.content.includes("Scroll")) say("no hint that a table scrolls", wide.textContent);
    if (!edges.includes("local") || !edges.includes("scroll")) say("no edge where a table goes on", wide.textContent);
  }
  // Two figures that begin a row stand side by side.
  for (const one of document.querySelectorAll(".lh-row > .lh-fig:first-child")) {
    const other = one.nextElementSibling;
    if (width < 1440 || !other?.matches(".lh-fig") || !isShown(one)) continue;
    const [left, right] = [one, other].map(figure => figure.getBoundingClientRect());
    if (right.left < left.right || right.top > left.bottom) say("figures below one another on a broad page", one.textContent);
  }
  const helps = [...document.querySelectorAll(".lh-read")].map(read => read.textContent).filter(text => text.startsWith("Point at"));
  if (new Set(helps).size < helps.length) say("a help that is there twice", helps[0]);

  // Quadrangles of text.
  const shrunk = corners => {
    // A line's box is higher than its letters.
    const [cx, cy] = [0, 1].map(axis => corners.reduce((sum, corner) => sum + corner[axis], 0) / 4);
    return corners.map(([x, y]) => [cx + (x - cx) * 0.97, cy + (y - cy) * 0.97]);
  };
  const overlap = (one, other) => {
    for (const corners of [one, other]) {
      for (let at = 0; at < 4; at++) {
        const [ax, ay] = corners[at], [bx, by] = corners[(at + 1) % 4];
        const along = ([x, y]) => x * (by - ay) - y * (bx - ax);
        const [a, b] = [one, other].map(points => points.map(along));
        if (Math.max(...a) <= Math.min(...b) || Math.max(...b) <= Math.min(...a)) return false;
      }
    }
    return true;
  };
  const apart = (texts, about) => {
    texts.forEach((one, at) => {
      const other = texts.slice(at + 1).find(other => overlap(shrunk(one.corners), shrunk(other.corners)));
      if (other) say(`text over text in '${about}'`, `${one.text} | ${other.text}`);
    });
  };
  const isWithin = (corners, box) => corners.every(([x, y]) =>
    x >= box.left - SLACK && x <= box.right + SLACK && y >= box.top - SLACK && y <= box.bottom + SLACK);

  // Pictures.
  for (const svg of document.querySelectorAll("svg.lh-figure")) {
    if (!isShown(svg)) continue;
    const about = svg.getAttribute("aria-label"), frame = svg.getBoundingClientRect(), scale = svg.getScreenCTM().a;
    const texts = [...svg.querySelectorAll("text")].filter(isShown).map(element => {
      const box = element.getBBox(), to = element.getScreenCTM(), size = parseFloat(getComputedStyle(element).fontSize);
      // The letters of a line, without what a font leaves free above and below them.
      const y = box.y + 0.18 * box.height, height = 0.62 * box.height;
      const corners = [[box.x, y], [box.x + box.width, y], [box.x + box.width, y + height], [box.x, y + height]]
        .map(([x, y]) => new DOMPoint(x, y).matrixTransform(to)).map(({ x, y }) => [x, y]);
      if (size * scale < SMALLEST - 0.05) say(`letters of ${(size * scale).toFixed(1)} px in '${about}'`, element.textContent);
      const fill = parsed(getComputedStyle(element).fill);
      const under = element.getAttribute("pointer-events") === "none" ? CONTRAST : contrast(fill, ground(svg));
      if (under < CONTRAST) say(`a contrast of ${under.toFixed(2)} in '${about}'`, element.textContent);
      if (!isWithin(corners, frame)) say(`a label outside '${about}'`, element.textContent);
      if (element.textContent.endsWith("…") && element.textContent.length < CUT) say(`a label cut short in '${about}'`, element.textContent);
      return { text: element.textContent, corners };
    });
    apart(texts, about);
    // What is drawn lies between the axes, or, without any, within the picture.
    const axes = [...svg.querySelectorAll(".lh-axis")].map(axis => axis.getBoundingClientRect());
    const plot = axes.length === 0 ? frame : {
      left: Math.min(...axes.map(axis => axis.left)), right: Math.max(...axes.map(axis => axis.right)),
      top: Math.min(...axes.map(axis => axis.top)), bottom: Math.max(...axes.map(axis => axis.bottom)),
    };
    for (const shape of svg.querySelectorAll("[data-of] path,[data-of] rect,[data-of] circle,[data-of] line")) {
      if (!isShown(shape)) continue;
      const box = shape.getBBox(), to = shape.getScreenCTM(), room = shape.tagName === "circle" ? 3.2 * scale : 0;
      const corners = [[box.x, box.y], [box.x + box.width, box.y + box.height]]
        .map(([x, y]) => new DOMPoint(x, y).matrixTransform(to)).map(({ x, y }) => [x, y]);
      const wide = { left: plot.left - room, right: plot.right + room, top: plot.top - room, bottom: plot.bottom + room };
      if (!isWithin(corners, wide)) say(`a ${shape.tagName} outside the frame of '${about}'`, shape.textContent);
    }
  }

  // Plots that a script has drawn.
  for (const place of document.querySelectorAll(".lh-plot")) {
    if (!isShown(place)) continue;
    const about = place.getAttribute("aria-label").split(". ")[0], canvas = place.querySelector("canvas");
    if (!canvas) { say(`no plot in '${about}'`); continue; }
    const ratio = canvas.width / canvas.clientWidth, frame = { left: 0, top: 0, right: canvas.width, bottom: canvas.height };
    const texts = window.lhCanvasTexts(canvas);
    if (texts.length < 4) say(`hardly a label in '${about}'`);
    for (const { text, font, colour, corners } of texts) {
      const size = parseFloat(font.match(/([\d.]+)px/)[1]) / ratio;
      if (size < SMALLEST) say(`letters of ${size} px in '${about}'`, text);
      if (!isWithin(corners, frame)) say(`a label outside '${about}'`, text);
      const seenWith = contrast(parsed(colour), ground(place));
      if (seenWith < CONTRAST) say(`a contrast of ${seenWith.toFixed(2)} in '${about}'`, text);
    }
    apart(texts, about);
    const box = canvas.getBoundingClientRect(), page = place.getBoundingClientRect();
    if (box.left < page.left - SLACK || box.right > page.right + SLACK) say(`a plot broader than its place, '${about}'`);
    const plot = place.lhPlot, [width, height] = [plot.over.clientWidth, plot.over.clientHeight];
    if (width < 100 || height < 100) say(`a plot of ${width} by ${height} pixels, '${about}'`);
    plot.series.slice(1).forEach((series, idx) => {
      const outside = plot.data[0].some((x, at) => {
        const y = plot.data[idx + 1][at];
        if (y == null) return false;
        const [across, down] = [plot.valToPos(x, "x"), plot.valToPos(y, "y")];
        return !(across >= -SLACK && across <= width + SLACK && down >= -SLACK && down <= height + SLACK);
      });
      if (outside) say(`a curve outside the frame of '${about}'`, series.label);
    });
  }
  return found;
})()
