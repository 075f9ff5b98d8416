// The points of a store of vectors, projected on two of its axes: read from the routes of vectors, a bounded number at a time.

import { getJson, Latest, link, pagePath, pageWords, pathBelow, Problem } from "./api.js";
import { NAMES, table } from "./colors.js";
import { percentiles } from "./decode.js";
import { announce, byId, element, inNextFrame, numberText } from "./element.js";
import { drawLegend, short } from "./legend.js";
import { metres, ScaleBar } from "./scale-bar.js";
import { copy, errorText } from "./status-line.js";

/** @typedef {{name: string, unit: string | null}} Axis */
/** @typedef {{rows: number, dims: number, positions: ArrayLike<number>, values: ArrayLike<number> | null, isPart: boolean,
 *   categories: string[] | null}} Cloud */

const VERTEX_TYPES = /** @type {Record<string, any>} */ ({
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, bool: Uint8Array,
});
const MARGIN = 0.04;

/** The columns of a binary frame. @param {ArrayBuffer} buffer @returns {{rows: number, columns: Record<string, any>}} */
function frame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  const columns = /** @type {Record<string, any>} */ ({});
  for (const { name, dtype, width, offset, length: bytes, categories } of header.columns) {
    const type = VERTEX_TYPES[dtype];
    if (type) columns[name] = { values: new type(buffer, start + offset, bytes / type.BYTES_PER_ELEMENT), width, categories };
  }
  return { rows: header.rows, columns };
}

export class Points {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.draw = inNextFrame(() => this.drawNow());
    this.root = root;
    this.store = root.dataset.vectors || "";
    this.most = Number(root.dataset.most);
    this.words = pageWords();
    this.latest = new Latest();
    this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { tabindex: 0, role: "img", "aria-label": "points" }));
    /** @type {Cloud | null} */
    this.cloud = null;
    this.colormap = this.words.get("colormap") || "viridis";
    this.color = this.words.get("color") || "";
    /** @type {[number, number]} The axes that go across and up. */
    this.axes = [0, 1];
    this.isFitted = true;
    /** @type {string | null} */
    this.boxText = null;
    /** Pixels of the canvas to a unit of space. @type {number} */
    this.scale = 0;
    /** @type {number} */
    this.left = 0;
    /** @type {number} */
    this.bottom = 0;
    /** @type {Axis[]} */
    this.all = [];
    /** @type {any} */
    this.summary = null;
    /** @type {any} */
    this.level = null;
    /** @type {any[]} Attributes that points can be coloured by. */
    this.attributes = [];
    /** What was read last. @type {string} */
    this.loaded = "";
  }

  async start() {
    try {
      this.summary = await getJson(this.store);
      await this.choose();
    } catch (error) {
      this.complain(error);
      return;
    }
    this.controls();
    byId("stage").append(this.canvas);
    this.listen();
    await this.update();
    const box = (this.words.get("box") || "").split(",").map(Number);
    if (box.length === 4 && box[2] > 0 && box[3] > 0) this.show(box);
    // The URL keeps its own spelling until the view is moved.
    this.boxText = this.isFitted ? null : this.words.get("box");
    new ResizeObserver(() => this.resize()).observe(byId("stage"));
  }

  /** Chooses the finest level of which all points can be drawn, else the coarsest, and the axes that the URL names. */
  async choose() {
    const levels = this.summary.levels.filter((/** @type {any} */ one) => !one.error);
    if (!levels.length) throw new Error("The store has no level that can be read.");
    const level = levels.find((/** @type {any} */ one) => one.vertex_count !== null && one.vertex_count <= this.most) || levels[levels.length - 1];
    this.level = await getJson(pathBelow(this.store, `levels/${level.level}`));
    this.all = this.summary.axes;
    const [up, across] = (this.words.get("axes") || "").split(",").map((name) => this.all.findIndex((axis) => axis.name === name));
    if (across >= 0 && up >= 0 && across !== up) this.axes = [across, up];
    else this.axes = [0, Math.min(1, this.all.length - 1)];
    this.attributes = this.level.attributes.filter((/** @type {any} */ one) => one.dtype in VERTEX_TYPES && (one.columns ?? 1) === 1);
    if (!this.attributes.some((/** @type {any} */ one) => one.name === this.color)) {
      this.color = this.words.has("color") ? "" : this.attributes[0]?.name || "";
    }
  }

  // --- controls ---

  controls() {
    const select = (/** @type {string} */ id, /** @type {string} */ title, /** @type {[string, string][]} */ options, /** @type {string} */ value, /** @type {(value: string) => void} */ act) =>
      element("div", { class: "field" }, element("label", { for: id }, title),
        element("select", { id, onchange: (/** @type {any} */ event) => act(event.target.value) },
          ...options.map(([own, text]) => element("option", { value: own, selected: own === value }, text))));
    const axes = this.all.map((axis, at) => /** @type {[string, string]} */ ([String(at), axis.name]));
    const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) =>
      element("button", { id, type: "button", class: "plain", title, "aria-label": text.length > 1 ? null : title, onclick: act }, text);
    const fields = [
      select("across", "Across", axes, String(this.axes[0]), (value) => this.turn(0, Number(value))),
      select("up", "Up", axes, String(this.axes[1]), (value) => this.turn(1, Number(value))),
      select("color-by", "Colour by", [["", "nothing"], ...this.attributes.map((/** @type {any} */ one) => /** @type {[string, string]} */ ([one.name, one.name]))], this.color, (value) => {
        this.color = value;
        this.update();
        this.write();
      }),
      select("colormap", "Colours", NAMES.map((name) => [name, name]), this.colormap, (value) => {
        this.colormap = value;
        this.draw();
        this.write();
      }),
      element("div", { id: "legend", class: "legend" }),
      element("div", { class: "buttons" },
        button("zoom-in", "+", "Zoom in", () => this.zoom(2)), button("zoom-out", "−", "Zoom out", () => this.zoom(0.5)),
        button("fit", "fit", "Fit", () => this.fit()), button("copy", "copy link", "Copy the link", () => this.copyLink())),
      element("p", { id: "readout", class: "readout" }, "\u00a0"),
    ];
    const form = byId("controls");
    form.replaceChildren(...fields);
    form.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  }

  /** @param {0 | 1} place @param {number} axis */
  turn(place, axis) {
    const other = this.axes[1 - place];
    if (axis === other) this.axes = [this.axes[1], this.axes[0]];
    else this.axes[place] = axis;
    byId("across").value = String(this.axes[0]);
    byId("up").value = String(this.axes[1]);
    this.fit();
  }

  // --- loading ---

  update() {
    return this.latest.run(() => this.load());
  }

  /** The part of space that is seen; nothing if that is all. @returns {string | null} */
  bbox() {
    if (this.isFitted || !this.scale) return null;
    const [w, h] = [this.canvas.width / this.scale, this.canvas.height / this.scale];
    const low = this.all.map(() => "-inf");
    const high = this.all.map(() => "inf");
    [this.left, this.bottom].forEach((start, at) => {
      low[this.axes[at]] = String(start);
      high[this.axes[at]] = String(start + [w, h][at]);
    });
    return [...low, ...high].join(",");
  }

  async load() {
    const url = link(pathBelow(this.store, `levels/${this.level.level}/vertices`), {
      format: "bin", columns: "position", attributes: this.color, limit: this.most, bbox: this.bbox(),
    });
    try {
      if (url !== this.loaded) {
        const response = await fetch(url, { headers: { Accept: "application/octet-stream" } });
        if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
        const { rows, columns } = frame(await response.arrayBuffer());
        const { values: positions = [], width: dims = this.all.length } = columns.position || {};
        const own = columns[this.color];
        this.cloud = { rows, dims, positions, values: own?.values ?? null, categories: own?.categories ?? null, isPart: rows >= this.most };
        this.loaded = url;
      }
      this.resize();
      this.report();
    } catch (error) {
      this.complain(error);
    }
  }

  /** Says how many points are drawn, and of how many. */
  report() {
    const { cloud, level } = this;
    if (!cloud) return;
    const count = (/** @type {number} */ number) => number.toLocaleString("en").replaceAll(",", "\u202f");
    const isAll = cloud.rows === level.vertex_count;
    const all = isAll || level.vertex_count === null ? "" : ` of ${count(level.vertex_count)}`;
    const levels = this.summary.levels.length > 1 ? ` of level ${level.level}` : "";
    const part = cloud.isPart ? `. A page draws at most ${count(this.most)}, the first in the order of chunks: zoom in for all of a part` : "";
    byId("cost").textContent = `${isAll ? "All " : ""}${count(cloud.rows)}${all} points${levels}${part}.`;
    const [across, up] = this.axes.map((axis) => this.all[axis].name);
    this.canvas.setAttribute("aria-label", `${count(cloud.rows)} points, ${across} by ${up}`);
  }

  /** @param {unknown} error */
  complain(error) {
    byId("cost").replaceChildren(element("span", { class: "warn" }, errorText(error)));
  }

  // --- the view ---

  get ratio() {
    return Math.min(globalThis.devicePixelRatio || 1, 2);
  }

  /** The least and largest place along an axis. @param {number} axis @returns {[number, number]} */
  extent(axis) {
    const { cloud } = this;
    let [low, high] = [Infinity, -Infinity];
    if (cloud && !cloud.isPart && this.isFitted) {
      for (let at = axis; at < cloud.rows * cloud.dims; at += cloud.dims) {
        const value = cloud.positions[at];
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    const bounds = this.summary.bounds;
    if (!(low <= high) && bounds) [low, high] = [bounds.min[axis], bounds.max[axis]];
    if (!(low <= high)) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  resize() {
    const width = byId("stage").clientWidth;
    if (!width || !this.cloud) return;
    if (this.isFitted) this.extents = this.axes.map((axis) => this.extent(axis));
    const [[x0, x1], [y0, y1]] = /** @type {[number, number][]} */ (this.extents);
    const height = Math.round(Math.max(260, Math.min((width * (y1 - y0)) / (x1 - x0), innerHeight * 0.68)));
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    if (this.isFitted) {
      const inner = 1 - 2 * MARGIN;
      this.scale = Math.min((this.canvas.width * inner) / (x1 - x0), (this.canvas.height * inner) / (y1 - y0));
      this.left = (x0 + x1) / 2 - this.canvas.width / this.scale / 2;
      this.bottom = (y0 + y1) / 2 - this.canvas.height / this.scale / 2;
    }
    this.measure();
    this.draw();
  }

  /** A bar for scale, where the axes are lengths. */
  measure() {
    const [across, up] = this.axes.map((axis) => metres(1, this.all[axis].unit));
    if (this.bar) this.bar.bar.remove();
    this.bar = across && across === up ? new ScaleBar(byId("stage"), across) : null;
    this.bar?.update(this.scale / this.ratio);
  }

  fit() {
    this.isFitted = true;
    this.update();
    this.write();
  }

  /** Shows a part of space: left, bottom, width and height. @param {number[]} box */
  show([left, bottom, width, height]) {
    this.isFitted = false;
    this.scale = Math.min(this.canvas.width / width, this.canvas.height / height);
    this.left = left + width / 2 - this.canvas.width / this.scale / 2;
    this.bottom = bottom + height / 2 - this.canvas.height / this.scale / 2;
    this.moved();
  }

  /** @param {number} factor @param {number} [x] In pixels of the canvas. @param {number} [y] */
  zoom(factor, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    const scale = this.scale * factor;
    this.left += x / this.scale - x / scale;
    const v = this.canvas.height - y;
    this.bottom += v / this.scale - v / scale;
    this.scale = scale;
    this.isFitted = false;
    this.moved();
  }

  /** @param {number} dx In pixels of the canvas. @param {number} dy */
  pan(dx, dy) {
    this.left -= dx / this.scale;
    this.bottom += dy / this.scale;
    this.isFitted = false;
    this.moved();
  }

  moved() {
    this.boxText = null;
    this.bar?.update(this.scale / this.ratio);
    this.draw();
    this.write();
    clearTimeout(this.moving);
    // All points are there already, unless there were too many of them.
    if (this.cloud?.isPart || this.loaded.includes("bbox=")) this.moving = setTimeout(() => this.update(), 200);
  }

  drawNow() {
    const context = this.canvas.getContext("2d");
    const { cloud } = this;
    if (!context || !cloud || !this.scale) return;
    const { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
    const { rows, dims, positions, values } = cloud;
    const [across, up] = this.axes;
    const [low, high] = this.range();
    const colors = values ? table(this.colormap) : null;
    const shades = colors ? Array.from(colors, (one) => `rgb(${one & 255} ${(one >> 8) & 255} ${(one >> 16) & 255})`) : [];
    const plain = getComputedStyle(document.documentElement).getPropertyValue("--accent") || "#0b6477";
    const size = (rows > 20000 ? 1.6 : 2.6) * this.ratio;
    context.fillStyle = plain;
    for (let at = 0; at < rows; at += 1) {
      const x = (positions[at * dims + across] - this.left) * this.scale;
      const y = height - (positions[at * dims + up] - this.bottom) * this.scale;
      if (x < -size || y < -size || x > width + size || y > height + size) continue;
      if (values) {
        const place = high > low ? (values[at] - low) / (high - low) : 0;
        context.fillStyle = place === place ? shades[Math.max(0, Math.min(255, Math.floor(place * 256)))] : plain;
      }
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
    this.canvas.dataset.ready = "1";
    drawLegend(colors && { colors, range: [low, high] }, null, (value) => cloud.categories?.[value] ?? short(value));
  }

  /** @returns {[number, number]} */
  range() {
    const { cloud } = this;
    if (!cloud?.values) return [0, 1];
    if (cloud.categories) return [0, Math.max(1, cloud.categories.length - 1)];
    return /** @type {[number, number]} */ (percentiles(/** @type {any} */ (cloud.values), [0, 100]) || [0, 1]);
  }

  // --- the pointer ---

  listen() {
    const { canvas } = this;
    /** @type {{x: number, y: number} | null} */
    let last = null;
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const rect = canvas.getBoundingClientRect();
      this.zoom(2 ** (-event.deltaY / 300), (event.clientX - rect.left) * this.ratio, (event.clientY - rect.top) * this.ratio);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = { x: event.clientX, y: event.clientY };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) {
        this.hover(event);
        return;
      }
      this.pan((event.clientX - last.x) * this.ratio, (event.clientY - last.y) * this.ratio);
      last = { x: event.clientX, y: event.clientY };
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
  }

  /** Says which point is nearest to the pointer. @param {PointerEvent} event */
  hover(event) {
    const { cloud } = this;
    if (!cloud) return;
    const rect = this.canvas.getBoundingClientRect();
    const x = this.left + ((event.clientX - rect.left) * this.ratio) / this.scale;
    const y = this.bottom + (this.canvas.height - (event.clientY - rect.top) * this.ratio) / this.scale;
    let [nearest, least] = [-1, (8 * this.ratio / this.scale) ** 2];
    for (let at = 0; at < cloud.rows; at += 1) {
      const square = (cloud.positions[at * cloud.dims + this.axes[0]] - x) ** 2 + (cloud.positions[at * cloud.dims + this.axes[1]] - y) ** 2;
      if (square < least) [nearest, least] = [at, square];
    }
    if (nearest < 0) return;
    const lines = this.all.map(({ name, unit }, dim) => `${name} ${numberText(cloud.positions[nearest * cloud.dims + dim])}${unit ? ` ${unit}` : ""}`);
    if (cloud.values) {
      const value = cloud.values[nearest];
      lines.push(`${this.color} = ${cloud.categories?.[value] ?? numberText(value)}`);
    }
    byId("readout").textContent = lines.join("\n");
    clearTimeout(this.spoken);
    this.spoken = setTimeout(() => announce(lines.join(", ")), 700);
  }

  // --- the URL and the keyboard ---

  write() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeNow(), 260);
  }

  writeNow() {
    const words = Object.fromEntries(pageWords());
    const name = (/** @type {number} */ at) => this.all[this.axes[at]].name;
    const [w, h] = [this.canvas.width / this.scale, this.canvas.height / this.scale];
    const number = (/** @type {number} */ one) => Number(one.toPrecision(7));
    const isFirst = this.axes[0] === 0 && this.axes[1] === 1;
    const address = link(pagePath(), {
      ...words, axes: isFirst ? "" : `${name(1)},${name(0)}`, colormap: this.colormap === "viridis" ? "" : this.colormap,
      color: this.color === this.attributes[0]?.name ? "" : this.color,
      box: this.isFitted ? "" : this.boxText ?? [this.left, this.bottom, w, h].map(number).join(","),
    });
    history.replaceState(null, "", address);
  }

  copyLink() {
    this.writeNow();
    copy(location.href, "The link is copied.");
  }

  /** @param {KeyboardEvent} event @returns {boolean} Whether the key did something. */
  key(event) {
    const step = 60 * this.ratio;
    const keys = /** @type {Record<string, () => void>} */ ({
      "+": () => this.zoom(2), "-": () => this.zoom(0.5), 0: () => this.fit(), y: () => this.copyLink(),
      ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0), ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
    });
    const act = keys[event.key];
    if (!act || (event.key.startsWith("Arrow") && document.activeElement !== this.canvas)) return false;
    act();
    return true;
  }
}
