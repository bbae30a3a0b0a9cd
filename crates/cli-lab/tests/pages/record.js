// Before anything of a page runs: every text that is drawn on a canvas is remembered, with its corners.
(() => {
  const texts = new WeakMap();
  window.lhCanvasTexts = canvas => texts.get(canvas) ?? [];
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (x, y, width, height) {
    if (width >= this.canvas.width && height >= this.canvas.height) texts.delete(this.canvas);
    return clearRect.apply(this, arguments);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const size = this.measureText(text), at = this.getTransform();
    const corner = (dx, dy) => {
      const point = new DOMPoint(x + dx, y + dy).matrixTransform(at);
      return [point.x, point.y];
    };
    const [left, right] = [-size.actualBoundingBoxLeft, size.actualBoundingBoxRight];
    const [top, bottom] = [-size.actualBoundingBoxAscent, size.actualBoundingBoxDescent];
    if (!texts.has(this.canvas)) texts.set(this.canvas, []);
    texts.get(this.canvas).push({
      text: String(text), font: this.font, colour: this.fillStyle,
      corners: [corner(left, top), corner(right, top), corner(right, bottom), corner(left, bottom)],
    });
    return fillText.apply(this, arguments);
  };
})();
