// A plane on a canvas: zoom, pan, the grid of chunks, and the element under the pointer.

import { element, inNextFrame, numberText } from "./element.js";

/**
 * @typedef {{x: number, y: number, w: number, h: number}} Box In elements of the plane.
 * @typedef {{canvas: HTMLCanvasElement, box: Box}} Plane
 * @typedef {{gap: number, between(from: number, to: number): number[]}} Lines Places in a plane, and the distance of two of them.
 * @typedef {{canvas: HTMLCanvasElement, box: Box, opacity: number}} Overlay Labels over the plane.
 * @typedef {{hover(x: number, y: number): void, leave(): void, pick(x: number, y: number): void,
 *   select(box: Box): void, moved(): void, value(x: number, y: number): number | null, drawn(): void}} Listener
 */

const NUMBERS_AT = 36;

export class Picture {
  /**
   * @param {HTMLElement} stage
   * @param {{width: number, height: number, flip: boolean, label: string}} plane
   * @param {Listener} listener
   */
  constructor(stage, plane, listener) {
    this.draw = inNextFrame(() => this.drawNow());
    this.stage = stage;
    this.plane = plane;
    this.listener = listener;
    this.canvas = /** @type {HTMLCanvasElement} */ (
      element("canvas", { tabindex: 0, role: "img", "aria-label": plane.label, hidden: true })
    );
    stage.append(this.canvas);
    /** @type {Plane[]} */
    this.planes = [];
    /** @type {Overlay | null} */
    this.overlay = null;
    this.scale = 0;
    this.left = 0;
    this.top = 0;
    /** @type {{rows: Lines, columns: Lines} | null} Where chunks begin. */
    this.grid = null;
    /** @type {[number, number] | null} */
    this.pin = null;
    /** @type {Box | null} */
    this.selection = null;
    this.isFitted = true;
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(stage);
  }

  get ratio() {
    return Math.min(globalThis.devicePixelRatio || 1, 2);
  }

  resize() {
    const width = this.stage.clientWidth;
    if (!width) return;
    const natural = (width * this.plane.height) / this.plane.width;
    const height = Math.round(Math.max(180, Math.min(natural, innerHeight * 0.68)));
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    if (this.isFitted || !this.scale) this.fit(false);
    this.draw();
  }

  /** @param {boolean} [notify] */
  fit(notify = true) {
    const { width, height } = this.plane;
    this.scale = Math.min(this.canvas.width / width, this.canvas.height / height);
    this.left = (width - this.canvas.width / this.scale) / 2;
    this.top = (height - this.canvas.height / this.scale) / 2;
    this.isFitted = true;
    this.draw();
    if (notify) this.listener.moved();
  }

  /** The part of the plane that is seen. @returns {Box} */
  seen() {
    const { width, height, flip } = this.plane;
    const x = Math.max(0, Math.floor(this.left));
    const y = Math.max(0, Math.floor(this.top));
    const right = Math.min(width, Math.ceil(this.left + this.canvas.width / this.scale));
    const bottom = Math.min(height, Math.ceil(this.top + this.canvas.height / this.scale));
    const h = Math.max(1, bottom - y);
    return { x, y: flip ? height - y - h : y, w: Math.max(1, right - x), h };
  }

  /** Shows a part of the plane. @param {Box} box */
  show(box) {
    const { height, flip } = this.plane;
    const top = flip ? height - box.y - box.h : box.y;
    this.scale = Math.min(this.canvas.width / box.w, this.canvas.height / box.h);
    this.left = box.x + box.w / 2 - this.canvas.width / this.scale / 2;
    this.top = top + box.h / 2 - this.canvas.height / this.scale / 2;
    this.isFitted = false;
    this.draw();
  }

  /**
   * @param {number} factor
   * @param {number} [atX] In pixels of the canvas.
   * @param {number} [atY]
   */
  zoom(factor, atX = this.canvas.width / 2, atY = this.canvas.height / 2) {
    const least = Math.min(this.canvas.width / this.plane.width, this.canvas.height / this.plane.height);
    const scale = Math.max(least, Math.min(this.scale * factor, 160 * this.ratio));
    if (scale <= least * 1.001) {
      this.fit();
      return;
    }
    this.left += atX / this.scale - atX / scale;
    this.top += atY / this.scale - atY / scale;
    this.scale = scale;
    this.moved();
  }

  /** @param {number} dx In pixels of the canvas. @param {number} dy */
  pan(dx, dy) {
    this.left -= dx / this.scale;
    this.top -= dy / this.scale;
    this.moved();
  }

  moved() {
    this.isFitted = false;
    const { width, height } = this.plane;
    const [w, h] = [this.canvas.width / this.scale, this.canvas.height / this.scale];
    // The middle stays within the plane.
    this.left = Math.min(Math.max(this.left, -w / 2), width - w / 2);
    this.top = Math.min(Math.max(this.top, -h / 2), height - h / 2);
    this.draw();
    this.listener.moved();
  }

  /** @param {Plane[]} planes The coarsest first. */
  setPlanes(planes) {
    this.planes = planes;
    this.canvas.hidden = false;
    this.canvas.dataset.ready = "1";
    if (!this.canvas.width || !this.scale) this.resize();
    this.draw();
  }

  drawNow() {
    const context = this.canvas.getContext("2d");
    if (!context || !this.scale) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    // What is missing is hatched within the plane alone.
    const { width, height } = this.plane;
    const ends = [-this.left, -this.top, width, height].map((one) => (one * this.scale) / this.ratio);
    this.canvas.style.backgroundPosition = `${ends[0]}px ${ends[1]}px`;
    this.canvas.style.backgroundSize = `${ends[2]}px ${ends[3]}px`;
    for (const plane of this.planes) this.drawPlane(context, plane, true);
    if (this.overlay) {
      context.globalAlpha = this.overlay.opacity;
      // A mixture of two labels is a third one: labels are never smoothed.
      this.drawPlane(context, this.overlay, false);
      context.globalAlpha = 1;
    }
    this.drawNumbers(context);
    this.drawGrid(context);
    this.drawMarks(context);
    this.listener.drawn();
  }

  /** @param {CanvasRenderingContext2D} context @param {Plane} plane @param {boolean} smooths */
  drawPlane(context, { canvas, box }, smooths) {
    const { height, flip } = this.plane;
    context.imageSmoothingEnabled = smooths && (box.w / canvas.width) * this.scale < 1;
    context.imageSmoothingQuality = "high";
    const x = (box.x - this.left) * this.scale;
    const y = ((flip ? height - box.y - box.h : box.y) - this.top) * this.scale;
    if (flip) context.setTransform(1, 0, 0, -1, 0, 2 * y + box.h * this.scale);
    context.drawImage(canvas, x, y, box.w * this.scale, box.h * this.scale);
    context.setTransform(1, 0, 0, 1, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} context */
  drawNumbers(context) {
    if (this.scale < NUMBERS_AT * this.ratio) return;
    const seen = this.seen();
    context.font = `${11 * this.ratio}px ui-monospace, monospace`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let y = seen.y; y < seen.y + seen.h; y += 1) {
      for (let x = seen.x; x < seen.x + seen.w; x += 1) {
        const value = this.listener.value(x, y);
        if (value === null) continue;
        const [px, py] = this.toCanvas(x + 0.5, y + 0.5);
        const text = Number.isNaN(value) ? "–" : numberText(Number(value.toPrecision(4)));
        context.lineWidth = 3 * this.ratio;
        context.strokeStyle = "rgb(0 0 0 / 55%)";
        context.strokeText(text, px, py, this.scale);
        context.fillStyle = "#fff";
        context.fillText(text, px, py, this.scale);
      }
    }
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toCanvas(x, y) {
    const v = this.plane.flip ? this.plane.height - y : y;
    return [(x - this.left) * this.scale, (v - this.top) * this.scale];
  }

  /** @param {CanvasRenderingContext2D} context */
  drawGrid(context) {
    if (!this.grid) return;
    const { width, height } = this.plane;
    const { rows, columns } = this.grid;
    context.lineWidth = this.ratio;
    context.strokeStyle = "rgb(255 255 255 / 75%)";
    context.setLineDash([3 * this.ratio, 3 * this.ratio]);
    context.beginPath();
    const seen = this.seen();
    if (columns.gap * this.scale > 6) {
      for (const x of columns.between(seen.x, seen.x + seen.w)) {
        const [px, y0] = this.toCanvas(x, 0);
        const [, y1] = this.toCanvas(x, height);
        context.moveTo(px, y0);
        context.lineTo(px, y1);
      }
    }
    if (rows.gap * this.scale > 6) {
      for (const y of rows.between(seen.y, seen.y + seen.h)) {
        const [x0, py] = this.toCanvas(0, y);
        const [x1] = this.toCanvas(width, y);
        context.moveTo(x0, py);
        context.lineTo(x1, py);
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} context */
  drawMarks(context) {
    if (this.pin) {
      const [x, y] = this.toCanvas(this.pin[0] + 0.5, this.pin[1] + 0.5);
      for (const [width, color] of /** @type {[number, string][]} */ ([[4, "#000"], [1.6, "#fff"]])) {
        context.lineWidth = width * this.ratio;
        context.strokeStyle = color;
        context.beginPath();
        context.arc(x, y, 6 * this.ratio, 0, 7);
        context.stroke();
      }
    }
    if (this.selection) {
      const box = this.selection;
      const [x0, y0] = this.toCanvas(box.x, box.y);
      const [x1, y1] = this.toCanvas(box.x + box.w, box.y + box.h);
      context.lineWidth = 1.5 * this.ratio;
      context.strokeStyle = "#fff";
      context.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
    }
  }

  /**
   * The element at a place of the window, if it is in the plane.
   * @param {{clientX: number, clientY: number}} event
   * @returns {[number, number] | null}
   */
  elementAt(event) {
    const rect = this.canvas.getBoundingClientRect();
    const x = Math.floor(this.left + ((event.clientX - rect.left) * this.ratio) / this.scale);
    const v = Math.floor(this.top + ((event.clientY - rect.top) * this.ratio) / this.scale);
    const y = this.plane.flip ? this.plane.height - 1 - v : v;
    return x >= 0 && y >= 0 && x < this.plane.width && y < this.plane.height ? [x, y] : null;
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      // Without a key the wheel scrolls the page, unless the picture has the focus.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const rect = canvas.getBoundingClientRect();
      this.zoom(2 ** (-event.deltaY / 300), (event.clientX - rect.left) * this.ratio, (event.clientY - rect.top) * this.ratio);
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const rect = canvas.getBoundingClientRect();
      this.zoom(2, (event.clientX - rect.left) * this.ratio, (event.clientY - rect.top) * this.ratio);
    });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      this.began = { x: event.clientX, y: event.clientY, element: this.elementAt(event), shift: event.shiftKey, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    const end = (/** @type {PointerEvent} */ event) => {
      this.pointers.delete(event.pointerId);
      const began = this.began;
      if (!began || event.type === "pointercancel") return;
      const at = this.elementAt(event);
      if (!began.moved && at) this.listener.pick(...at);
      else if (began.shift && this.selection) this.listener.select(this.selection);
      this.began = null;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.listener.leave());
  }

  /** @param {PointerEvent} event */
  move(event) {
    const last = this.pointers.get(event.pointerId);
    const at = this.elementAt(event);
    if (!last || !this.began) {
      if (at) this.listener.hover(...at);
      else this.listener.leave();
      return;
    }
    if (Math.hypot(event.clientX - this.began.x, event.clientY - this.began.y) > 4) this.began.moved = true;
    if (!this.began.moved) return;
    if (this.pointers.size === 2) {
      const other = [...this.pointers.entries()].find(([id]) => id !== event.pointerId)?.[1];
      const before = Math.hypot(last.x - other.x, last.y - other.y);
      const now = Math.hypot(event.clientX - other.x, event.clientY - other.y);
      const rect = this.canvas.getBoundingClientRect();
      this.zoom(now / Math.max(before, 1), (other.x - rect.left) * this.ratio, (other.y - rect.top) * this.ratio);
    } else if (this.began.shift) {
      const from = this.began.element;
      if (from && at) {
        const [x, y] = [Math.min(from[0], at[0]), Math.min(from[1], at[1])];
        this.selection = { x, y, w: Math.abs(from[0] - at[0]) + 1, h: Math.abs(from[1] - at[1]) + 1 };
        this.draw();
      }
    } else {
      this.pan((event.clientX - last.x) * this.ratio, (event.clientY - last.y) * this.ratio);
    }
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }
}
