// Functions for the test of how figures answer; the keys and the pointer are the browser's own.
window.lhReach = {
  controls: () => [...document.querySelectorAll("button,summary,.lh-plot,.lh-live-svg,[role=button],[tabindex='0']")].filter(element =>
    element.checkVisibility() && element.getClientRects().length > 0),
  // Marks what has the focus, and says whether a ring shows it.
  mark: () => {
    const at = document.activeElement;
    if (!at || at === document.body) return "";
    at.lhReached = true;
    return getComputedStyle(at).outlineStyle === "none" ? `no ring around ${at.textContent.trim().slice(0, 40) || at.className}` : "";
  },
  missed: () => window.lhReach.controls().filter(element => !element.lhReached).map(element =>
    `${element.tagName.toLowerCase()} '${(element.getAttribute("aria-label") || element.textContent).trim().slice(0, 60)}'`),
  plots: () => [...document.querySelectorAll(".lh-plot,.lh-live-svg")].filter(element => element.checkVisibility()),
  read: idx => window.lhReach.plots()[idx].closest("figure").querySelector(".lh-read").textContent,
  values: idx => [...window.lhReach.plots()[idx].closest("figure").querySelectorAll(".lh-value")].map(value => value.textContent),
  focus: idx => window.lhReach.plots()[idx].focus(),
  // The middle of what the pointer may ask, in pixels of the window.
  middle: idx => {
    const plot = window.lhReach.plots()[idx];
    plot.scrollIntoView({ block: "center", behavior: "instant" });
    const svg = [...plot.querySelectorAll("svg.lh-figure")].find(svg => svg.checkVisibility());
    if (svg && svg.dataset.asked) {
      const [left, top, right, bottom] = svg.dataset.asked.split(" ").map(Number);
      const point = new DOMPoint((left + right) / 2 + 0.5, (top + bottom) / 2 + 0.5).matrixTransform(svg.getScreenCTM());
      return [point.x, point.y];
    }
    const box = (plot.querySelector(".u-over") ?? plot).getBoundingClientRect();
    return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  },
  // Switches the first series off and on: what that has changed.
  toggle: idx => {
    const figure = window.lhReach.plots()[idx].closest("figure");
    const key = [...figure.querySelectorAll(".lh-keys button,.lh-key")].find(key => key.checkVisibility());
    if (!key) return "";
    const plot = figure.querySelector(".lh-plot")?.lhPlot;
    const isOff = () => (plot ? !plot.series[1].show : [...figure.querySelectorAll("[data-of='0']")].every(group => getComputedStyle(group).display === "none"));
    const click = () => key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    if (isOff() || key.getAttribute("aria-pressed") !== "true") return "a series is off at the start";
    click();
    if (!isOff() || key.getAttribute("aria-pressed") !== "false") return "a series does not go off";
    click();
    return isOff() ? "a series does not come back" : "";
  },
  // What the button that zooms has changed, and whether all comes back.
  zoom: idx => {
    const figure = window.lhReach.plots()[idx].closest("figure"), plot = figure.querySelector(".lh-plot")?.lhPlot;
    if (!plot) return "";
    const button = name => [...figure.querySelectorAll(".lh-tools button")].find(button => button.textContent === name);
    const ends = () => JSON.stringify([plot.scales.x.min, plot.scales.x.max, plot.scales.y.min, plot.scales.y.max]);
    const whole = ends();
    for (const name of ["Tail", "+"]) {
      if (!button(name)) continue;
      button(name).click();
      if (ends() === whole) return `'${name}' changes nothing`;
      button("Whole").click();
      if (ends() !== whole) return "'Whole' does not bring everything back";
    }
    return "";
  },
  // What a screen reader cannot have of a figure, while its cursor stands somewhere.
  told: idx => {
    const figure = window.lhReach.plots()[idx].closest("figure"), heard = figure.querySelector("[aria-live]").textContent;
    for (const button of figure.querySelectorAll(".lh-keys button")) {
      const [name, value] = [".lh-name", ".lh-value"].map(part => button.querySelector(part).textContent);
      if (value && !heard.includes(`${name}: ${value}`)) return "the value of a series is not said";
    }
    return figure.querySelector("[role=img] [tabindex]") ? "a key lies inside an image" : "";
  },
  // Whether something dragged over is shown larger, and however narrow it is not without a limit.
  drag: idx => {
    const plot = window.lhReach.plots()[idx].lhPlot;
    if (!plot) return "";
    const ends = () => [plot.scales.x.min, plot.scales.x.max], whole = ends();
    const over = width => plot.setSelect({ left: plot.over.clientWidth / 2, top: 0, width, height: plot.over.clientHeight });
    const inner = value => (plot.scales.x.distr === 3 ? Math.log(value) : value);
    const width = ([from, to]) => inner(to) - inner(from);
    over(plot.over.clientWidth / 4);
    const larger = width(ends()) / width(whole);
    for (let time = 0; time < 9; time++) over(1);
    const least = width(ends()) / width(whole);
    [...plot.root.closest("figure").querySelectorAll(".lh-tools button")].find(button => button.textContent === "Whole").click();
    if (Math.abs(larger - 0.25) > 0.01) return "what is dragged over is not shown larger";
    return least > 0.9e-4 ? "" : "dragging enlarges without a limit";
  },
  // The file that "Save SVG" makes: what is wrong with it.
  save: async idx => {
    const figure = window.lhReach.plots()[idx].closest("figure"), { createObjectURL } = URL, { click } = HTMLAnchorElement.prototype;
    let blob = null;
    URL.createObjectURL = given => ((blob = given), createObjectURL.call(URL, given));
    HTMLAnchorElement.prototype.click = () => {};
    [...figure.querySelectorAll(".lh-tools button")].find(button => button.textContent === "Save SVG").click();
    Object.assign(URL, { createObjectURL });
    HTMLAnchorElement.prototype.click = click;
    if (!blob) return "nothing is saved";
    const saved = new DOMParser().parseFromString(await blob.text(), "image/svg+xml");
    if (saved.querySelector("parsererror")) return "what is saved is not an SVG";
    if (saved.documentElement.namespaceURI !== "http://www.w3.org/2000/svg") return "what is saved has no namespace";
    return saved.querySelectorAll("text").length > 1 && saved.querySelector("style") ? "" : "what is saved is empty";
  },
  // A coarse grid of average colours of each figure, from a picture of the whole page, which is `scale` times as large as it.
  grids: async (image, figures, scale) => {
    const picture = new Image();
    picture.src = "data:image/png;base64," + image;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0);
    const COLUMNS = 16, ROWS = 10;
    return figures.map(figure => {
      const [left, top, width, height] = [figure.x, figure.y, figure.width, figure.height].map(length => Math.round(length * scale));
      const { data } = context.getImageData(left, top, width, height);
      // The average from one pixel to another, of a field that has at least one.
      const field = (column, row) => {
        const [across, down] = [[column, COLUMNS, width], [row, ROWS, height]].map(([at, count, length]) => {
          const from = Math.floor((at * length) / count);
          return [from, Math.max(from + 1, Math.floor(((at + 1) * length) / count))];
        });
        const sum = [0, 0, 0];
        for (let y = down[0]; y < down[1]; y++) {
          for (let x = across[0]; x < across[1]; x++) for (let c = 0; c < 3; c++) sum[c] += data[4 * (y * width + x) + c];
        }
        const count = (across[1] - across[0]) * (down[1] - down[0]);
        return sum.map(total => Math.round(total / count).toString(16).padStart(2, "0")).join("");
      };
      return [...new Array(ROWS).keys()].map(row => [...new Array(COLUMNS).keys()].map(column => field(column, row)).join(" "));
    });
  },
  // Where each figure is that is shown.
  figures: () => [...document.querySelectorAll("figure.lh-fig")].flatMap(figure => {
    const shown = [...figure.querySelectorAll("svg.lh-figure,.lh-plot")].find(element => element.checkVisibility());
    if (!shown) return [];
    const box = shown.getBoundingClientRect();
    return [{ x: box.left + scrollX, y: box.top + scrollY, width: box.width, height: box.height }];
  }),
};
