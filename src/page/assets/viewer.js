// The viewer of an array or image: its state, its controls, and the URL that others can open.

import { getElements, getJson, Latest, link, Problem } from "./api.js";
import { category, isColormap, isScale, NAMES, paint, pixel, placer, rangeOf, rgb, table } from "./colors.js";
import { dateReader, decoded, labeller, numbers, percentiles, unpack } from "./decode.js";
import { announce, byId, bytesText, element, numberText } from "./element.js";
import { complain, indexHint, indexOf, isOfPicture, numberOf, rangeComplaint } from "./fields.js";
import { Labels } from "./labels.js";
import { Picture } from "./picture.js";
import { line } from "./plot.js";
import { metres, ScaleBar } from "./scale-bar.js";
import { rangeText, Source } from "./source.js";

/** @typedef {import("./source.js").Plane} Plane */
/** @typedef {{dim: number, index: number, label: string, color: [number, number, number], hex: string,
 *   range: [number, number] | null,
 *   auto: [number, number] | null, shown: [number, number] | null, active: boolean}} Channel */

const COLORS = ["#ff00ff", "#00ff00", "#00a0ff", "#ff4000", "#ffff00", "#ffffff"];
const COLORS_OF_PHOTOGRAPHS = ["#e00000", "#00a000", "#0050ff"];
const LONGEST_COORDINATES = 20000;
const LONGEST_PROFILE = 4000;
/** The milliseconds after which an index that has not changed counts as settled. */
const SETTLE_MILLISECONDS = 400;

export class Viewer {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Picture | null} */
    this.picture = null;
    this.config = JSON.parse(root.dataset.config || "{}");
    this.source = new Source(this.config);
    this.words = new URLSearchParams(location.search);
    this.latest = new Latest();
    this.mayLoadMore = this.words.has("load");
    /** @type {[number, number] | null} */
    this.range = null;
    /** @type {[number, number] | null} What `range=auto` is for all pictures of the array. */
    this.autoEnds = null;
    /** @type {string} */
    this.rangeText = (this.words.get("range") || "").replaceAll(" ", "");
    this.colormap = this.words.get("colormap") || "";
    this.scale = this.words.get("scale") || "";
    this.unused = this.dropUnknown();
    /** @type {Plane[]} */
    this.planes = [];
    /** @type {Map<number, import("./fields.js").Coordinates>} */
    this.coordinates = new Map();
    /** @type {number[] | null} The row and the column in the array. */
    this.pinned = null;
    /** @type {Channel[]} */
    this.channels = [];
    /** @type {string | null} The part of the plane that the URL names, until the view is moved. */
    this.boxText = this.words.get("box");
    /** Whether the rows and columns are those that the URL selects, until the view is moved. */
    this.isAsSelected = true;
    this.activeDim = 0;
    this.playing = 0;
    this.settling = 0;
    /** @type {(() => Promise<void>) | null} What a tab without a picture does when an index changes. */
    this.changed = null;
    /** @type {{zoom(factor: number): void, fit(): void} | null} What is zoomed. */
    this.zoomed = null;
    /** @type {(() => Record<string, any>) | null} The words of the URL of a tab without a picture. */
    this.ownWords = null;
    /** @type {string | undefined} The selection before anything is changed, which the URL leaves out. */
    this.startSlice = undefined;
    this.wire();
    this.hasCoordinates = this.loadCoordinates();
    /** @type {Labels | null} */
    this.labels = this.config.ome?.labels?.length ? new Labels(this.config, this.source, this.words) : null;
    this.isLabels = this.config.labels;
    /** @type {Map<number, number>} Labels with colours of their own. */
    this.ownColors = new Map();
    /** @type {[number, number] | null} The range that the server gives the array. */
    this.known = null;
    /** @type {Uint32Array | null} The colours that the server gives the array. */
    this.knownColors = null;
  }

  /** Takes the words of the URL that no picture has as if they were not there. @returns {string[]} What they are, and why. */
  dropUnknown() {
    const unused = [];
    const complaint = rangeComplaint(this.rangeText, this.scale);
    if (complaint) unused.push(`range=${this.rangeText} (${complaint.replace(/^Not used: |\.$/g, "")})`);
    if (complaint) this.rangeText = "";
    if (!isColormap(this.colormap)) unused.push(`colormap=${this.colormap} (colormaps are ${NAMES.join(", ")}, each also with _r at its end, categories and none)`);
    if (!isColormap(this.colormap)) this.colormap = "";
    if (!isScale(this.scale)) unused.push(`scale=${this.scale} (scales are linear, log, sqrt and gamma: with an exponent, such as gamma:0.5)`);
    if (!isScale(this.scale) || this.scale === "linear") this.scale = "";
    // Of arrays the server says so.
    return this.config.ome ? unused : [];
  }

  /** Shows in the form what the URL has, and says which of its words are not drawn here. */
  showWords() {
    const { colors } = this.config;
    for (const [id, value] of [["colormap", this.colormap], ["scale", this.scale]]) {
      const select = byId(id);
      if (select && ![...select.options].some((option) => option.value === value)) select.append(element("option", { value }, value));
      if (select) select.value = value;
    }
    this.showLock();
    if (colors !== null) byId("lock")?.closest("label")?.remove();
    const names = ["below", "above", "missing", "rgb", "method"];
    if (this.channels.length || colors !== null) names.push("colormap");
    if (colors !== null) names.push("range", "scale");
    if (!this.channels.length) names.push("channels");
    const undrawn = names.filter((name) => this.words.get(name) && !this.unused.some((one) => one.startsWith(`${name}=`)));
    const notes = [
      ...(this.unused.length ? [`Not used of this URL: ${this.unused.join("; ")}.`] : []),
      ...(undrawn.length ? [`Of pictures, but not drawn here: ${undrawn.join(", ")}.`] : []),
    ];
    const place = document.querySelector(".tabs") ?? this.root;
    for (const note of notes) place.before(element("p", { class: "warn", role: "alert" }, element("bdi", {}, note.slice(0, 600))));
  }

  get isPicture() {
    return this.config.tab === "image" && this.config.rows !== null && !this.config.text;
  }

  start() {
    if (!this.isPicture) return;
    const { config, source } = this;
    const axis = config.coordinates.find((/** @type {any} */ one) => one.dim === config.rows);
    const label = `${config.names[config.rows]} by ${config.names[config.columns]}`;
    const stage = byId("stage");
    this.zoomed = this.picture = new Picture(stage, { width: source.width, height: source.height, flip: false, label }, {
      hover: (x, y) => this.hover(x, y),
      leave: () => this.readout(null),
      pick: (x, y) => this.pin(x, y),
      select: (box) => this.describe(box),
      moved: () => this.moved(),
      value: (x, y) => this.valueAt(x, y),
      drawn: () => this.bar?.update(this.picture ? this.picture.scale / this.picture.ratio : 0),
    });
    this.findChannels();
    this.showWords();
    this.hasLegend = this.loadLegend();
    this.measure(stage);
    if (this.words.get("grid") === "1") this.setGrid(true);
    this.picture.resize();
    const at = (this.words.get("at") || "").split(",").map(Number);
    const isPinned = at.length === 2 && at.every((one) => Number.isInteger(one) && one >= 0);
    const begin = async () => {
      await Promise.all([this.orient(axis), this.loadRanges()]);
      // Which rows are at the top is known now.
      const start = this.startBox();
      if (start) this.picture?.show(start);
      this.hasBegun = true;
      await this.update();
      // A plane of other axes than those of the selection has another selection.
      if (this.words.get("axes") && this.words.get("slice") !== config.selected) this.write();
      const [y, x] = isPinned ? [source.placed(config.rows, at[0]), source.placed(config.columns, at[1])] : [null, null];
      if (x !== null && y !== null) await this.pin(x, y);
    };
    begin();
  }

  /**
   * Asks the server for the range and the colours of this picture: those of the page, of pictures and of tiles are the same.
   */
  async loadLegend() {
    const needsRange = this.channels.length ? this.channels.some((channel) => !channel.range) : !this.rangeText.includes(",");
    if (this.config.colors !== null || (!needsRange && !this.isLabels)) return;
    const axes = this.config.rows > this.config.columns ? `${this.config.rows},${this.config.columns}` : "";
    const channels = this.channels.length ? this.words.get("channels") : "";
    try {
      const legend = await getJson(link(this.config.legend, { slice: this.config.selected, axes, channels, fields: this.config.fields, scale: this.scale, format: "json" }));
      if (legend.kind === "colormap") [this.known, this.knownColors] = [legend.range, Uint32Array.from(legend.colors, rgba)];
      this.isLabels = legend.kind === "categories";
      for (const { value, color } of legend.categories || []) this.ownColors.set(value, rgba(color));
      for (const { channel, range } of legend.channels || []) {
        const own = this.channels.find((one) => one.index === channel);
        if (own && !this.rangeWord) own.range ??= range;
      }
    } catch {
      // Then the range is that of the elements that are shown.
    }
  }

  /** Adds a bar for scale, where the length of an element is known. @param {HTMLElement} stage */
  async measure(stage) {
    const { ome, columns } = this.config;
    const axis = ome?.axes?.[columns];
    let each = axis?.kind === "space" ? metres(axis.scale, axis.unit) : null;
    if (!ome) {
      await this.hasCoordinates;
      const own = this.config.coordinates.find((/** @type {any} */ one) => one.dim === columns);
      const values = this.coordinates.get(columns)?.values;
      if (own && values && values.length > 1) each = metres(Math.abs(values[values.length - 1] - values[0]) / (values.length - 1), own.units);
    }
    if (!each) return;
    this.bar = new ScaleBar(stage, each);
    this.picture?.draw();
  }

  /** What the URL shows of the plane. @returns {import("./picture.js").Box | null} */
  startBox() {
    if (this.source.isStepped) return null;
    const [x, y, w, h] = (this.words.get("box") || "").split(",").map(Number);
    const isWhole = !this.cuts();
    if (isWhole && w > 0 && h > 0 && x >= 0 && y >= 0 && x < this.source.width && y < this.source.height) return { x, y, w: Math.min(w, this.source.width - x), h: Math.min(h, this.source.height - y) };
    if (isWhole) return null;
    const [rows, columns] = [this.config.slice[this.config.rows], this.config.slice[this.config.columns]];
    return { x: columns[0], y: rows[0], w: columns[1], h: rows[1] };
  }

  /** Whether the selection leaves rows or columns out. */
  cuts() {
    const { slice, shape, rows, columns } = this.config;
    return [rows, columns].some((dim) => slice[dim][1] * Math.abs(slice[dim][2]) < shape[dim] || slice[dim][2] < 0);
  }

  /**
   * Turns the picture as the server turns it: the word `origin`, or a map north up.
   * @param {any} axis The coordinates of the rows, if there are any.
   */
  async orient(axis) {
    const { picture } = this;
    if (!picture) return;
    const origin = this.words.get("origin") || "auto";
    picture.plane.flip = origin === "lower" || (origin === "auto" && (await this.ascends(axis)) !== this.source.down.step < 0);
    const axes = byId("axes")?.selectedOptions[0];
    if (axes && picture.plane.flip !== this.source.down.step < 0) axes.textContent = axes.textContent.replace("↓", "↑");
  }

  /** Whether latitudes or northings ascend; of others, whether rows are drawn as they are selected. @param {any} axis */
  async ascends(axis) {
    const asSelected = this.source.down.step < 0;
    if (!axis?.north || axis.length < 2) return asSelected;
    try {
      const ends = await getJson(link(axis.data, { slice: `0:${axis.length}:${axis.length - 1}`, format: "json" }));
      const [first, last] = ends.map((/** @type {any} */ one) => decoded(one, axis.cf));
      return first < last;
    } catch {
      // Without coordinates the picture stays as it is stored.
      return asSelected;
    }
  }

  /** Finds the ranges of `range=auto`: those of the legend, which all pictures and tiles have too. */
  async loadRanges() {
    const channels = this.channels.slice(0, 32).map((channel) => channel.index).join(",");
    if (this.config.labels && !channels) return;
    const words = { channels, fields: this.config.fields, scale: this.scale, decode: this.words.get("decode"), format: "json" };
    try {
      const legend = await getJson(link(this.config.legend, words));
      this.autoEnds = legend.kind === "colormap" ? legend.range : null;
      for (const { channel: index, range } of legend.channels || []) {
        const channel = this.channels.find((one) => one.index === index);
        if (channel) channel.auto = range;
      }
    } catch {
      // Without a legend the ranges are those of the values that are shown.
    }
  }

  // --- loading ---

  update() {
    return this.latest.run(() => this.load());
  }

  /** What reading a part of the plane takes. @param {import("./picture.js").Box} box */
  planned(box) {
    const pixels = box.w * (this.picture?.scale ?? 1);
    const active = this.channels.filter((channel) => channel.active);
    const plans = this.channels.length
      ? active.map((channel) => this.source.plan(box, pixels, { [channel.dim]: channel.index }))
      : [this.source.plan(box, pixels)];
    const overlay = this.labels?.plan(box, pixels) ?? null;
    const cost = [...plans, ...(overlay ? [overlay] : [])].reduce(
      (sum, plan) => ({ chunks: sum.chunks + plan.cost.chunks, bytes: sum.bytes + plan.cost.bytes }),
      { chunks: 0, bytes: 0 },
    );
    return { plans, overlay, cost };
  }

  /** @param {import("./source.js").Cost} cost */
  mayLoad(cost) {
    return this.source.isSmall(cost) || (this.mayLoadMore && this.source.isSmall(cost, this.config.most));
  }

  async load() {
    const picture = this.picture;
    if (!picture) return;
    let planned = this.planned(picture.seen());
    // What is selected may cost little where what is seen around it does not.
    const start = this.isAsSelected ? this.startBox() : null;
    if (start && !this.mayLoad(planned.cost)) planned = this.planned(start);
    const { plans, overlay, cost } = planned;
    if (!this.mayLoad(cost)) {
      this.offer(cost);
      return;
    }
    const busy = element("div", { class: "busy" });
    const timer = setTimeout(() => byId("stage").append(busy), 150);
    try {
      const [planes, labels] = await Promise.all([
        Promise.all(plans.map((plan) => this.source.load(plan))), this.labels?.load(overlay) ?? null, this.hasLegend,
      ]);
      this.planes = planes;
      picture.overlay = labels;
      this.paint();
      this.showCost(cost);
      // It came when the slider had stopped already.
      if (!this.source.isMoving && planes.some((plane) => plane.coarser > 1)) this.latest.waiting ??= () => this.load();
    } catch (error) {
      if (this.source.givesUpReducing(error)) this.latest.waiting ??= () => this.load();
      else this.complain(error);
    } finally {
      clearTimeout(timer);
      busy.remove();
    }
  }

  /** @param {import("./source.js").Cost} cost */
  offer(cost) {
    const load = () => {
      this.mayLoadMore = true;
      this.update();
    };
    const text = `${cost.chunks} chunks, ${bytesText(cost.bytes)} decoded – more than`;
    if (!this.source.isSmall(cost, this.config.most)) {
      byId("cost").textContent = `${text} this server reads for one request: zoom in.`;
      return;
    }
    byId("cost").replaceChildren(
      `${text} is loaded unasked. `,
      element("button", { type: "button", onclick: load }, `Load ${bytesText(cost.bytes)}`),
    );
  }

  /** @param {import("./source.js").Cost} cost */
  showCost(cost) {
    const time = Math.max(...this.planes.map((plane) => plane.milliseconds));
    const reduced = Math.max(...this.planes.map((plane) => plane.reduced));
    const part = reduced > 1 ? `, one pixel for ${reduced} × ${reduced} elements` : "";
    const centre = this.config.window && this.isAsSelected ? "The centre of the plane. " : "";
    byId("cost").textContent = `${centre}${cost.chunks} ${cost.chunks === 1 ? "chunk" : "chunks"}, ${bytesText(cost.bytes)} decoded, ${Math.round(time)} ms${part}`;
  }

  /** @param {unknown} error */
  complain(error) {
    const text = error instanceof Error ? error.message : String(error);
    const cost = byId("cost");
    cost.replaceChildren(element("span", { class: "warn" }, text));
    const slices = error instanceof Problem ? error.document.suggested_slices : null;
    for (const slice of Array.isArray(slices) ? slices.slice(0, 3) : []) {
      const words = new URLSearchParams(location.search);
      words.set("slice", slice);
      cost.append(" ", element("a", { class: "button", href: link(this.config.view, Object.fromEntries(words)) }, slice));
    }
  }

  // --- painting ---

  paint() {
    const picture = this.picture;
    if (!picture || !this.planes.length) return;
    const { width, height, box, parts } = this.planes[0];
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    if (!context) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const lock = byId("lock")?.closest("label");
    if (lock) lock.hidden = this.isCategories && !this.channels.length;
    if (this.channels.length) this.paintChannels(pixels);
    else if (parts > 1) this.paintColors(pixels, parts);
    else if (this.isCategories) {
      const { values } = this.planes[0];
      for (let at = 0; at < pixels.length; at += 1) pixels[at] = this.ownColors.get(values[at]) ?? category(values[at]);
      byId("legend")?.replaceChildren();
    } else {
      const range = this.currentRange(this.planes[0]);
      const colors = this.colormap || !this.knownColors ? table(this.currentColors()) : this.knownColors;
      paint(this.planes[0].values, pixels, colors, range, this.scale);
      this.legend(colors, range);
    }
    context.putImageData(image, 0, 0);
    const before = picture.planes.filter((plane) => plane.box.w > box.w * 1.5).slice(-1);
    picture.setPlanes([...before, { canvas, box }]);
    for (const still of this.root.querySelectorAll(".stage img")) /** @type {HTMLElement} */ (still).hidden = true;
  }

  /** Whether each number has a colour of its own. */
  get isCategories() {
    return this.colormap === "categories" || (this.isLabels && !this.colormap);
  }

  currentColors() {
    if (this.colormap === "none") return "gray";
    return this.colormap || (this.config.ome ? "gray" : "viridis");
  }

  /** @param {Uint32Array} pixels @param {number} parts */
  paintColors(pixels, parts) {
    const { values } = this.planes[0];
    for (let at = 0; at < pixels.length; at += 1) {
      const from = at * parts;
      const alpha = parts > 3 ? values[from + 3] : 255;
      pixels[at] = (alpha << 24) | (values[from + 2] << 16) | (values[from + 1] << 8) | values[from];
    }
  }

  /** @param {Uint32Array} pixels */
  paintChannels(pixels) {
    const active = this.channels.filter((channel) => channel.active);
    const sums = new Float64Array(pixels.length * 3);
    const isLit = new Uint8Array(pixels.length);
    active.forEach((channel, number) => {
      const plane = this.planes[number];
      if (!plane) return;
      // A range of the picture changes with it.
      channel.shown = channel.range ?? rangeOf(this.rangeText, () => this.inPicture(plane), this.config, this.scale);
      if (!channel.shown) channel.shown = channel.range = channel.auto || this.auto(plane.values);
      const [low, high] = channel.shown;
      const place = placer(channel.shown, this.scale);
      const [r, g, b] = channel.color;
      for (let at = 0; at < pixels.length; at += 1) {
        const value = plane.values[at];
        if (value !== value) continue;
        isLit[at] = 1;
        const part = value > high ? 1 : value < low ? 0 : place(value);
        sums[3 * at] += part * r;
        sums[3 * at + 1] += part * g;
        sums[3 * at + 2] += part * b;
      }
    });
    for (let at = 0; at < pixels.length; at += 1) {
      const [r, g, b] = [sums[3 * at], sums[3 * at + 1], sums[3 * at + 2]].map((sum) => Math.min(255, Math.round(sum)));
      pixels[at] = isLit[at] ? (255 << 24) | (b << 16) | (g << 8) | r : 0;
    }
    this.channelInputs();
  }

  /** @param {ArrayLike<number> & {length: number}} values @returns {[number, number]} */
  auto(values) {
    const { cf, type } = this.config;
    if (this.known) return this.known;
    if (cf.range?.length === 2) return [cf.range[0], cf.range[1]];
    if (cf.min !== null && cf.max !== null) return [cf.min, cf.max];
    if (type === "bool") return [0, 1];
    const [low, high] = percentiles(values, [1, 99]) || [0, 1];
    if (low < high) return [low, high];
    const ends = percentiles(values, [0, 100]) || [0, 1];
    return ends[0] < ends[1] ? /** @type {[number, number]} */ (ends) : [ends[0], ends[0] + 1];
  }

  /** @param {Plane} plane @returns {[number, number]} */
  currentRange(plane) {
    const asked = rangeOf(this.rangeText, () => this.inPicture(plane), this.config, this.scale);
    if (asked) return asked;
    this.range = this.autoEnds || this.range || this.auto(plane.values);
    return this.range;
  }

  /** The elements of a plane that are in the picture of this URL. @param {Plane} plane */
  inPicture({ values, box, width, height }) {
    const seen = (this.isAsSelected ? this.startBox() : null) ?? this.picture?.seen() ?? box;
    const [fx, fy] = [width / box.w, height / box.h];
    const [left, right] = [Math.max(0, Math.floor((seen.x - box.x) * fx)), Math.min(width, Math.ceil((seen.x + seen.w - box.x) * fx))];
    const [top, bottom] = [Math.max(0, Math.floor((seen.y - box.y) * fy)), Math.min(height, Math.ceil((seen.y + seen.h - box.y) * fy))];
    if (right - left === width && bottom - top === height) return values;
    const found = [];
    for (let y = top; y < bottom; y += 1) {
      for (let at = y * width + left; at < y * width + right; at += 1) found.push(values[at]);
    }
    return found;
  }

  /** @param {Uint32Array} colors @param {[number, number]} range */
  legend(colors, range) {
    const legend = byId("legend");
    if (!legend) return;
    let canvas = legend.querySelector("canvas");
    if (!canvas) {
      canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { width: 256, height: 1, "aria-hidden": "true" }));
      legend.append(canvas, element("div", { class: "ends" }, element("span"), element("span")));
    }
    const context = /** @type {HTMLCanvasElement} */ (canvas).getContext("2d");
    const image = context?.createImageData(256, 1);
    if (context && image) {
      new Uint32Array(image.data.buffer).set(colors);
      context.putImageData(image, 0, 0);
    }
    const short = (/** @type {number} */ value) => numberText(Number(value.toPrecision(4)));
    const [low, high] = legend.querySelectorAll("span");
    low.textContent = short(range[0]);
    high.textContent = `${short(range[1])}${this.config.cf.units ? ` ${this.config.cf.units}` : ""}`;
    const input = byId("range");
    if (input && !this.rangeText) input.placeholder = `auto: ${short(range[0])},${short(range[1])}`;
  }

  // --- channels ---

  findChannels() {
    const { ome, names, shape, rows, columns } = this.config;
    if (!ome?.channels?.length) return;
    const byKind = ome.axes.findIndex((/** @type {any} */ axis) => axis.kind === "channel");
    const dim = byKind >= 0 ? byKind : names.indexOf("c");
    // An index in the URL is that of one channel, which is then stepped through as any dimension.
    if (dim < 0 || dim === rows || dim === columns || shape[dim] < 2 || !Array.isArray(this.config.slice[dim])) return;
    this.channels = ome.channels.slice(0, shape[dim]).map((/** @type {any} */ channel, /** @type {number} */ index) => {
      const hex = channel.color ? `#${channel.color.toLowerCase()}` : COLORS[index % COLORS.length];
      // Another scale, or a word, has another range.
      const range = this.rangeWord || this.scale ? null : channel.window;
      return { dim, index, label: channel.label, hex, color: rgb(hex), range, auto: null, shown: null, active: channel.active && index < 6 };
    });
    // The picture has these without the word `channels`.
    this.startChannels = this.channels.every((channel) => channel.range) ? this.channelsText() : "";
    this.plainChannels = ome.channels.every((/** @type {any} */ channel) => channel.color) ? this.channelsText(false) : "";
    const asked = this.words.get("channels");
    if (asked) this.readChannels(asked);
    // A dimension of channels is not stepped through.
    this.root.querySelector(`.dim[data-dim="${dim}"]`)?.remove();
    this.root.querySelectorAll(".field.colors, .field:has(#range), .field:has(#scale)").forEach((field) => field.remove());
    const list = byId("channels");
    if (!list) return;
    list.replaceChildren(...this.channels.map((channel) => this.channelRow(channel)));
  }

  /** @param {string} text Index, colour and range of each channel. */
  readChannels(text) {
    for (const channel of this.channels) channel.active = false;
    for (const part of text.split(",")) {
      const [index, color, low, high] = part.split(":");
      const channel = this.channels.find((one) => one.index === Number(index));
      if (!channel) continue;
      channel.active = true;
      if (/^[0-9a-f]{6}$/i.test(color || "")) [channel.hex, channel.color] = [`#${color.toLowerCase()}`, rgb(color)];
      if (Number(low) < Number(high)) channel.range = [Number(low), Number(high)];
    }
  }

  channelsText(hasRanges = true) {
    const active = this.channels.filter((channel) => channel.active);
    const text = (/** @type {Channel} */ one) => [one.index, one.hex.slice(1), ...((hasRanges && one.range) || []).map((end) => Number(end.toPrecision(6)))].join(":");
    return active.map(text).join(",");
  }

  /** @param {Channel} channel */
  channelRow(channel) {
    const changed = () => {
      this.update();
      this.write();
      this.profiles();
    };
    const check = element("input", { type: "checkbox", checked: channel.active, "aria-label": `show ${channel.label}`, onchange: (/** @type {any} */ event) => {
      channel.active = event.target.checked;
      changed();
    } });
    const color = element("input", { type: "color", value: channel.hex, "aria-label": `colour of ${channel.label}`, oninput: (/** @type {any} */ event) => {
      channel.hex = event.target.value;
      channel.color = rgb(channel.hex);
      this.paint();
      this.write();
    }, onchange: () => this.profiles() });
    const end = (/** @type {0 | 1} */ place) =>
      element("input", { type: "text", inputmode: "decimal", "data-end": `${channel.index}:${place}`, "aria-label": `${place ? "upper" : "lower"} end of ${channel.label}`, onchange: (/** @type {any} */ event) => {
        const value = numberOf(event.target.value);
        if (!channel.shown) return;
        const [low, high] = place ? [channel.shown[0], value] : [value, channel.shown[1]];
        const complaint = low === null || high === null ? "Not used: no number." : low < high ? "" : "Not used: the lower end is below the upper one.";
        complain(event.target, complaint);
        if (complaint || low === null || high === null) return;
        channel.range = [low, high];
        this.paint();
        this.write();
      } });
    return element("div", { class: "channel" }, check, color, element("bdi", {}, channel.label), element("div", { class: "window" }, end(0), end(1)));
  }

  channelInputs() {
    for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (byId("channels")?.querySelectorAll("[data-end]") || [])) {
      const [index, place] = (input.dataset.end || "").split(":").map(Number);
      const range = this.channels.find((channel) => channel.index === index)?.shown;
      if (!range || document.activeElement === input) continue;
      input.value = numberText(range[place]);
      complain(input, "");
    }
  }

  // --- places and values ---

  /** @param {number} x @param {number} y @returns {number | null} */
  valueAt(x, y) {
    const plane = this.planes[0];
    if (!plane || plane.parts > 1) return null;
    const { box, width, height, values } = plane;
    const [px, py] = [Math.floor(((x - box.x) / box.w) * width), Math.floor(((y - box.y) / box.h) * height)];
    return px >= 0 && py >= 0 && px < width && py < height ? values[py * width + px] : null;
  }

  /** A place in the plane in words. @param {number} dim @param {number} at */
  place(dim, at) {
    return this.named(dim, this.source.stored(dim, at));
  }

  /** @param {number} dim @param {number} index In the array. */
  named(dim, index) {
    const known = this.coordinates.get(dim);
    const name = this.config.names[dim];
    return known ? `${name} ${index} (${known.text(known.values[index])})` : `${name} ${index}`;
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const { rows, columns, cf } = this.config;
    let value = "";
    if (this.channels.length) {
      const active = this.channels.filter((channel) => channel.active);
      value = active.map((channel, at) => `${channel.label}: ${this.planes[at] ? numberText(this.valueIn(this.planes[at], x, y) ?? NaN) : ""}`).join("\n");
    } else {
      const found = this.valueAt(x, y);
      value = found === null ? "" : `= ${numberText(found)}${cf.units && !Number.isNaN(found) ? ` ${cf.units}` : ""}`;
    }
    const label = this.labels?.at(x, y);
    if (label) value += `\n${this.labels?.name}: ${label}`;
    this.readout(`${this.place(rows, y)}\n${this.place(columns, x)}\n${value}`);
  }

  /** @param {Plane} plane @param {number} x @param {number} y */
  valueIn(plane, x, y) {
    const [px, py] = [Math.floor(((x - plane.box.x) / plane.box.w) * plane.width), Math.floor(((y - plane.box.y) / plane.box.h) * plane.height)];
    return plane.values[py * plane.width + px];
  }

  /** @param {string | null} text */
  readout(text) {
    const readout = byId("readout");
    if (readout && text !== null) readout.textContent = text;
    clearTimeout(this.spoken);
    if (text) this.spoken = setTimeout(() => announce(text.replaceAll("\n", ", ")), 700);
  }

  /** Marks an element and plots the other axes through it. @param {number} x @param {number} y */
  async pin(x, y) {
    const { rows, columns } = this.config;
    const here = [this.source.stored(rows, y), this.source.stored(columns, x)];
    this.pinned = here;
    await this.hasCoordinates;
    if (this.picture) {
      this.picture.pin = [x, y];
      this.picture.draw();
    }
    this.hover(x, y);
    this.write();
    await this.profiles();
  }

  /** Plots the other axes through the element that is marked. */
  async profiles() {
    const { shape, rows, columns, colors } = this.config;
    const here = this.pinned;
    if (!here) return;
    const dims = shape.map((/** @type {number} */ _, /** @type {number} */ dim) => dim).filter((/** @type {number} */ dim) => shape[dim] > 1 && dim !== colors && dim !== this.channels[0]?.dim);
    dims.sort((/** @type {number} */ a, /** @type {number} */ b) => Number(a === rows || a === columns) - Number(b === rows || b === columns));
    const curves = this.curves();
    const number = (this.plotted = (this.plotted ?? 0) + 1);
    const plots = curves.length ? await Promise.all(dims.map((/** @type {number} */ dim) => this.profile(dim, here[1], here[0], curves))) : [];
    // Others were begun since.
    if (this.plotted === number) byId("profiles").replaceChildren(...plots);
  }

  /** The curves of each profile: one for each channel that is shown. */
  curves() {
    const { colors } = this.config;
    if (colors !== null) return ["red", "green", "blue"].map((name, index) => ({ name, color: COLORS_OF_PHOTOGRAPHS[index], dim: colors, index }));
    if (!this.channels.length) return [{ name: "", color: "", dim: -1, index: 0 }];
    return this.channels.filter((channel) => channel.active).map(({ label, hex, dim, index }) => ({ name: label, color: hex, dim, index }));
  }

  /**
   * @param {number} dim
   * @param {number} x A column of the array.
   * @param {number} y A row of the array.
   * @param {ReturnType<Viewer["curves"]>} shown
   */
  async profile(dim, x, y, shown) {
    const { shape, rows, columns, names, chunk, cf, itemBytes, data, type } = this.config;
    const title = `along ${names[dim]}`;
    const chunks = shown.length * (chunk ? Math.ceil(shape[dim] / chunk[dim]) : 1);
    const bytes = chunks * (chunk ? chunk.reduce((/** @type {number} */ product, /** @type {number} */ edge) => product * edge, itemBytes) : shape[dim] * itemBytes);
    const plot = element("section", {}, element("h2", {}, title));
    if (!this.source.isSmall({ chunks, bytes }) && !this.mayLoadMore) {
      plot.append(element("p", { class: "muted" }, `${chunks} chunks, ${bytesText(bytes)}: not loaded unasked.`));
      return plot;
    }
    const step = Math.max(1, Math.ceil(shape[dim] / LONGEST_PROFILE));
    const here = /** @type {number[]} */ (shape.map((/** @type {number} */ _, /** @type {number} */ one) => (one === rows ? y : one === columns ? x : this.source.index[one])));
    const read = async (/** @type {typeof shown[0]} */ { name, color, dim: own, index }) => {
      const slice = here.map((at, one) => (one === dim ? (step > 1 ? `::${step}` : ":") : one === own ? index : at));
      const answer = await getElements(link(data, { slice: slice.join(","), fields: this.config.fields, format: "bytes" }));
      return { name, color, values: unpack(numbers(answer.buffer, cf.as || answer.type || type), cf) };
    };
    try {
      const curves = await Promise.all(shown.map(read));
      const known = this.coordinates.get(dim);
      const isFixed = dim !== rows && dim !== columns;
      const others = here.flatMap((at, one) => (one === dim || one === shown[0].dim || shape[one] < 2 ? [] : [this.named(one, at)]));
      plot.append(line({
        values: curves[0].values, curves, title: others.length ? `${title} at ${others.join(", ")}` : title, units: cf.units, step, width: 420, height: 150, cursor: here[dim] / step,
        label: (at) => (known ? known.text(known.values[Math.round(at)]) : String(Math.round(at))),
        pick: isFixed ? (at) => this.setIndex(dim, Math.round(at)) : undefined,
      }));
    } catch (error) {
      plot.append(element("p", { class: "warn" }, error instanceof Error ? error.message : String(error)));
    }
    return plot;
  }

  /** Describes a part of the plane. @param {import("./picture.js").Box} box */
  async describe(box) {
    const level = this.source.levels[0];
    const slice = this.source.slice(level, [box.y, box.y + box.h], [box.x, box.x + box.w], 1);
    const copy = element("button", { type: "button", onclick: () => this.copy(slice, "The slice is copied.") }, "copy slice");
    const section = element("section", {}, element("h2", {}, `box ${box.w} × ${box.h}`), element("p", {}, element("code", {}, slice), " ", copy));
    byId("profiles").replaceChildren(section);
    try {
      section.append(statistics(await getJson(link(this.config.stats, { slice, fields: this.config.fields }))));
    } catch (error) {
      section.append(element("p", { class: "warn" }, error instanceof Error ? error.message : String(error)));
    }
  }

  // --- dimensions ---

  async loadCoordinates() {
    for (const one of this.config.coordinates || []) {
      if (one.length > LONGEST_COORDINATES) continue;
      try {
        const stored = await getJson(link(one.data, { format: "json" }));
        if (!Array.isArray(stored) || stored.length !== one.length) continue;
        const values = stored.map((value) => decoded(value, one.cf));
        this.coordinates.set(one.dim, { values, text: labeller(one.units, one.calendar, values), date: dateReader(one.units, one.calendar, values) });
        this.showLabel(one.dim);
      } catch {
        // Indexes are shown without coordinates.
      }
    }
  }

  /** @param {number} dim */
  showLabel(dim) {
    const label = byId(`label-${dim}`);
    const known = this.coordinates.get(dim);
    if (label && known) label.textContent = known.text(known.values[this.source.index[dim]]);
    const typed = /** @type {HTMLInputElement | null} */ (this.root.querySelector(`.dim[data-dim="${dim}"] .index`));
    if (typed && known) typed.title = indexHint(known);
    const input = byId(`dim-${dim}`);
    if (input && known) input.setAttribute("aria-valuetext", `${this.source.index[dim]}, ${known.text(known.values[this.source.index[dim]])}`);
  }

  /** @param {number} dim @param {number} index */
  setIndex(dim, index) {
    const last = this.config.shape[dim] - 1;
    const place = Math.max(0, Math.min(last, Math.round(index)));
    const step = Math.sign(place - this.source.index[dim]) || 1;
    this.startSlice ??= this.sliceText();
    this.source.index[dim] = place;
    const row = this.root.querySelector(`.dim[data-dim="${dim}"]`);
    const [slider, typed] = /** @type {any[]} */ ([row?.querySelector("input[type=range]"), row?.querySelector(".index")]);
    if (slider) slider.value = String(place);
    if (typed && document.activeElement !== typed) {
      typed.value = String(place);
      complain(typed, "");
    }
    this.showLabel(dim);
    this.write();
    this.move();
    const done = this.isPicture ? this.update() : this.changed?.();
    Promise.resolve(done).then(() => this.prefetch(dim, step));
    return done;
  }

  /** Notes that an index changes; when none did for a while, a plane that was read coarser is read again. */
  move() {
    this.source.isMoving = true;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.source.isMoving = false;
      if (this.planes.some((plane) => plane.coarser > 1)) this.update();
    }, SETTLE_MILLISECONDS);
  }

  /** Reads the next planes while nothing else is read. @param {number} dim @param {number} step */
  async prefetch(dim, step) {
    if (!this.picture || this.channels.length || !this.planes.length) return;
    const at = this.source.index[dim];
    for (const next of [at + step, at + 2 * step]) {
      if (this.latest.isRunning || next < 0 || next >= this.config.shape[dim] || this.source.index[dim] !== at) return;
      const seen = this.picture.seen();
      const plan = this.source.plan(seen, seen.w * this.picture.scale, { [dim]: next });
      if (!this.source.isSmall(plan.cost)) return;
      await this.source.load(plan).catch(() => {});
    }
  }

  /** @param {number} dim @param {HTMLElement} button */
  play(dim, button) {
    if (this.playing) {
      this.stop();
      return;
    }
    button.textContent = "❚❚";
    button.setAttribute("aria-pressed", "true");
    this.playButton = button;
    const next = async () => {
      const began = performance.now();
      await this.setIndex(dim, (this.source.index[dim] + 1) % this.config.shape[dim]);
      if (this.playing) this.playing = setTimeout(next, Math.max(20, 250 - (performance.now() - began)));
    };
    this.playing = setTimeout(next, 0);
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = 0;
    if (this.playButton) {
      this.playButton.textContent = "▶";
      this.playButton.setAttribute("aria-pressed", "false");
    }
    this.write();
  }

  wire() {
    const rows = /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(".dim")]);
    rows.forEach((row, number) => {
      const dim = Number(row.dataset.dim);
      row.querySelector("input[type=range]")?.addEventListener("input", (event) => {
        this.activeDim = number;
        this.setIndex(dim, Number(/** @type {HTMLInputElement} */ (event.target).value));
      });
      const typed = /** @type {HTMLInputElement | null} */ (row.querySelector(".index"));
      if (typed) {
        typed.title = indexHint(undefined);
        // Coordinates have signs, points and letters.
        typed.inputMode = "text";
      }
      typed?.addEventListener("change", async (event) => {
        const input = /** @type {HTMLInputElement} */ (event.target);
        const text = input.value.trim();
        if (!/^\d+$/.test(text)) await this.hasCoordinates;
        const index = indexOf(text, this.config.shape[dim], this.coordinates.get(dim));
        complain(input, typeof index === "string" ? index : "");
        if (typeof index !== "number") return;
        input.value = String(index);
        this.setIndex(dim, index);
      });
      row.querySelectorAll(".step").forEach((step, at) => step.addEventListener("click", (event) => {
        event.preventDefault();
        this.setIndex(dim, this.source.index[dim] + (at ? 1 : -1));
      }));
      row.querySelector(".play")?.addEventListener("click", (event) => this.play(dim, /** @type {HTMLElement} */ (event.currentTarget)));
    });
    const on = (/** @type {string} */ id, /** @type {string} */ event, /** @type {(input: any) => void} */ act) => {
      byId(id)?.addEventListener(event, (/** @type {Event} */ one) => act(one.currentTarget));
    };
    const change = (/** @type {() => void} */ act) => {
      act();
      this.paint();
      this.write();
    };
    on("colormap", "change", (input) => change(() => (this.colormap = input.value)));
    on("scale", "change", async (input) => {
      this.scale = input.value;
      this.checkRange();
      // A logarithmic range begins above 0.
      await this.loadRanges();
      change(() => {});
    });
    on("range", "change", () => change(() => this.checkRange()));
    on("labels", "change", (input) => {
      this.labels?.show(input.value);
      this.update();
      this.write();
    });
    on("opacity", "change", (input) => {
      if (!this.labels) return;
      this.labels.opacity = Number(input.value) || 0.5;
      if (this.picture?.overlay) this.picture.overlay.opacity = this.labels.opacity;
      this.picture?.draw();
      this.write();
    });
    on("axes", "change", ({ form }) => {
      this.resetRange();
      // They are of the plane of now.
      form.querySelectorAll("[name=box], [name=at]").forEach((/** @type {HTMLElement} */ input) => input.remove());
      form.requestSubmit();
    });
    on("grid", "change", (input) => this.setGrid(input.checked));
    on("lock", "change", (input) => change(() => this.lockRange(input.checked)));
    on("auto", "click", () => change(() => this.autoRange()));
    on("zoom-in", "click", () => this.picture?.zoom(2));
    on("zoom-out", "click", () => this.picture?.zoom(0.5));
    on("fit", "click", () => this.picture?.fit());
    on("copy", "click", () => this.copyLink());
    on("save", "click", () => this.save());
    byId("controls")?.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      if (event.submitter) event.preventDefault();
    });
  }

  autoRange() {
    this.lockRange(true);
  }

  /** Takes the automatic range, which is the same for all slices; or that of each slice. @param {boolean} isSame */
  lockRange(isSame) {
    this.rangeText = isSame ? "" : "slice";
    this.range = null;
    for (const channel of this.channels) channel.range = null;
    this.resetRange();
  }

  /** The word or the numbers of the range, unless it is the automatic one. */
  get rangeWord() {
    return this.rangeText === "auto" ? "" : this.rangeText;
  }

  /** Takes the range that was typed, or says why it is not used. */
  checkRange() {
    const input = byId("range");
    if (!input) return;
    const text = input.value.replaceAll(" ", "");
    const complaint = rangeComplaint(text, this.scale);
    complain(input, complaint);
    if (!complaint) this.rangeText = text;
    this.showLock();
  }

  /** Says whether all slices have the same range. */
  showLock() {
    const box = byId("lock");
    if (box) box.checked = !isOfPicture(this.rangeText);
  }

  /** Writes the range that is used into its field. */
  resetRange() {
    this.showLock();
    const input = byId("range");
    if (!input) return;
    input.value = this.rangeText;
    complain(input, "");
  }

  /** @param {boolean} isOn */
  setGrid(isOn) {
    const { chunk, rows, columns } = this.config;
    if (!this.picture) return;
    const { down, across } = this.source;
    this.picture.grid = isOn && chunk ? { rows: chunkLines(down, chunk[rows]), columns: chunkLines(across, chunk[columns]) } : null;
    this.isGridOn = isOn;
    this.picture.draw();
    this.write();
  }

  moved() {
    this.boxText = null;
    this.isAsSelected = false;
    if (!this.hasBegun) return;
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.update(), 120);
    this.write();
  }

  // --- the URL ---

  sliceText() {
    const { source, picture } = this;
    if (!picture) {
      const text = (/** @type {any} */ one, /** @type {number} */ dim) => (Array.isArray(one) ? rangeText(one, this.config.shape[dim]) : String(source.index[dim]));
      return this.config.slice.map(text).join(",");
    }
    const seen = picture.seen();
    const level = { name: "", data: "", image: "", shape: this.config.shape, chunk: this.config.chunk };
    const isAll = this.isPlaneShown();
    const rows = /** @type {[number, number]} */ (isAll ? [0, source.height] : [seen.y, seen.y + seen.h]);
    const columns = /** @type {[number, number]} */ (isAll ? [0, source.width] : [seen.x, seen.x + seen.w]);
    const parts = source.slice(level, rows, columns, 1).split(",");
    if (this.isAsSelected && this.cuts()) {
      for (const dim of [this.config.rows, this.config.columns]) parts[dim] = rangeText(this.config.slice[dim], this.config.shape[dim]);
    }
    // All channels of a composite are shown.
    if (this.channels.length) parts[this.channels[0].dim] = ":";
    return parts.join(",");
  }

  /** Whether the URL has a selection of all rows and columns, and the part that is seen as `box`, if that is less. */
  isPlaneShown() {
    const { source, picture } = this;
    if (picture?.isFitted && !this.isAsSelected) return true;
    // Where the selection cuts the plane, there is no `box`.
    if (source.isStepped || (this.isAsSelected && this.cuts())) return false;
    const level = { name: "", data: "", image: "", shape: this.config.shape, chunk: this.config.chunk };
    return this.mayLoad(source.cost(level, [0, source.height], [0, source.width]));
  }

  /** The words of the URL that shows the same. */
  state() {
    const words = Object.fromEntries(new URLSearchParams(location.search));
    for (const name of Object.keys(words)) if (name.startsWith("isel.")) delete words[name];
    const { picture } = this;
    const seen = picture?.seen();
    const slice = this.sliceText();
    return {
      ...words,
      slice: slice === this.startSlice && !words.slice ? "" : slice,
      colormap: this.colormap, range: this.rangeText, scale: this.scale,
      ...(this.channels.length ? { channels: this.channelsWord() } : {}),
      box: picture && seen && !picture.isFitted && this.isPlaneShown() ? (this.boxText ?? [seen.x, seen.y, seen.w, seen.h].join(",")) : "",
      ...(this.labels ? { labels: this.labels.name, opacity: this.labels.opacity === 0.5 ? "" : this.labels.opacity } : {}),
      at: this.pinned ? this.pinned.join(",") : "",
      grid: this.isGridOn ? "1" : "",
      ...this.ownWords?.(),
    };
  }

  /** The word `channels`, unless the picture is the same without it. */
  channelsWord() {
    const text = this.channelsText();
    const isKnown = text === this.plainChannels || (text === this.startChannels && !this.rangeWord);
    return isKnown ? "" : text;
  }

  write() {
    if (this.playing) return;
    this.startSlice ??= this.sliceText();
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeNow(), 260);
  }

  writeNow() {
    const order = ["slice", "axes", "fields", "origin", "colormap", "range", "scale", "channels", "method", "labels", "opacity", "tab", "along", "box", "at", "level", "grid"];
    const words = /** @type {Record<string, any>} */ (this.state());
    const names = [...order.filter((name) => name in words), ...Object.keys(words).filter((name) => !order.includes(name))];
    const address = link(location.pathname, Object.fromEntries(names.map((name) => [name, words[name]])));
    history.replaceState(null, "", address);
    this.updateLinks(words);
  }

  /** Other tabs, downloads and the form go on with the same state. @param {Record<string, any>} words */
  updateLinks(words) {
    for (const tab of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-tab]"))) {
      tab.href = link(location.pathname, { ...words, tab: tab.dataset.tab });
    }
    for (const other of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-along]"))) {
      other.href = link(location.pathname, { ...words, along: other.dataset.along });
    }
    const slice = this.sliceText();
    for (const format of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-format]"))) {
      // Some formats have what is stored, with what says how to decode it.
      const decode = "stored" in format.dataset ? null : this.config.decode;
      format.href = link(this.config.data, { slice, fields: this.config.fields, decode, coords: format.dataset.coords, format: format.dataset.format });
    }
    const ranges = /** @type {string[]} */ (slice.split(","));
    const kept = ranges.flatMap((range, dim) => (range.includes(":") ? [dim] : [])).join();
    for (const plane of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-plane]"))) {
      plane.hidden = plane.dataset.plane !== kept;
    }
    const hidden = /** @type {HTMLInputElement | null} */ (document.querySelector("#controls input[name=slice]"));
    if (hidden) hidden.value = slice;
  }

  copyLink() {
    this.writeNow();
    this.copy(location.href, "The link is copied.");
  }

  /** @param {string} text @param {string} done */
  async copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      announce(done);
      flash(done);
    } catch {
      flash(text);
    }
  }

  save() {
    this.picture?.canvas.toBlob((blob) => {
      if (!blob) return;
      const address = URL.createObjectURL(blob);
      element("a", { href: address, download: `${document.title.split(" – ")[0]}.png` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
  }

  // --- the keyboard ---

  /** @param {KeyboardEvent} event @returns {boolean} Whether the key did something. */
  key(event) {
    const { picture } = this;
    const rows = /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(".dim")]);
    const row = rows[Math.min(this.activeDim, rows.length - 1)];
    const step = (event.shiftKey ? 10 : 1) * (event.key === "ArrowLeft" ? -1 : 1);
    const onCanvas = picture && document.activeElement === picture.canvas;
    const pans = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] });
    if (onCanvas && event.key in pans) {
      const [dx, dy] = pans[event.key];
      picture.pan(dx * 60 * picture.ratio, dy * 60 * picture.ratio);
      return true;
    }
    const keys = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => row && this.setIndex(Number(row.dataset.dim), this.source.index[Number(row.dataset.dim)] + step),
      ArrowRight: () => row && this.setIndex(Number(row.dataset.dim), this.source.index[Number(row.dataset.dim)] + step),
      ArrowUp: () => this.choose(this.activeDim - 1),
      ArrowDown: () => this.choose(this.activeDim + 1),
      " ": () => row && this.play(Number(row.dataset.dim), /** @type {HTMLElement} */ (row.querySelector(".play"))),
      "+": () => this.zoomed?.zoom(2), "-": () => this.zoomed?.zoom(0.5), 0: () => this.zoomed?.fit(),
      a: () => byId("auto")?.click(), l: () => byId("lock")?.click(), g: () => byId("grid")?.click(),
      c: () => this.nextColors(1), C: () => this.nextColors(-1),
      y: () => this.copyLink(), s: () => this.save(),
      p: () => {
        if (!picture) return;
        const seen = picture.seen();
        this.pin(Math.floor(seen.x + seen.w / 2), Math.floor(seen.y + seen.h / 2));
      },
    });
    const act = keys[event.key];
    if (!act) return false;
    act();
    return true;
  }

  /** @param {number} number */
  choose(number) {
    const rows = [...this.root.querySelectorAll(".dim")];
    if (!rows.length) return;
    this.activeDim = (number + rows.length) % rows.length;
    rows.forEach((row, at) => row.classList.toggle("active", at === this.activeDim));
    announce(`The arrow keys step along ${this.config.names[Number(/** @type {HTMLElement} */ (rows[this.activeDim]).dataset.dim)]}.`);
  }

  /** @param {number} step */
  nextColors(step) {
    const select = byId("colormap");
    if (!select) return;
    const at = NAMES.indexOf(this.currentColors().replace(/_r$/, ""));
    this.colormap = NAMES[(at + step + NAMES.length) % NAMES.length];
    select.value = this.colormap;
    this.paint();
    this.write();
    announce(this.colormap);
  }
}

/**
 * Where chunks begin in the plane.
 * @param {import("./source.js").Axis} axis
 * @param {number} edge
 * @returns {import("./picture.js").Lines}
 */
function chunkLines({ start, step }, edge) {
  return {
    gap: edge / Math.abs(step),
    between: (from, to) => {
      const ends = [start + from * step, start + to * step];
      const first = Math.ceil(Math.min(...ends) / edge);
      const count = Math.max(0, Math.floor(Math.max(...ends) / edge) - first + 1);
      // A line is between the elements on its sides.
      return Array.from({ length: count }, (_, at) => ((first + at) * edge - 0.5 - start) / step + 0.5);
    },
  };
}

/** A pixel of six or eight hexadecimal digits. @param {string} text */
function rgba(text) {
  const [r, g, b] = rgb(text.slice(0, 6));
  return pixel(r, g, b, text.length > 6 ? Number.parseInt(text.slice(6, 8), 16) : 255);
}

/** Says something for a moment. @param {string} text */
export function flash(text) {
  const cost = byId("cost");
  if (!cost) return;
  const before = [...cost.childNodes];
  cost.textContent = text;
  setTimeout(() => {
    if (cost.textContent === text) cost.replaceChildren(...before);
  }, 2500);
}

/** Statistics as a list. @param {any} document */
export function statistics(document) {
  // Where infinite values have no mean or percentile, that is no missing value.
  const of = (/** @type {unknown} */ value) => (value === "NaN" || value === null ? "none" : numberText(Number(value)));
  const names = ["count", "missing", "nan", "min", "max", "mean", "std", "sum"];
  const rows = names.filter((name) => document[name] !== undefined && document[name] !== null);
  const list = element("dl", { class: "statistics" }, ...rows.map((name) => element("div", {}, element("dt", {}, name), element("dd", {}, of(document[name])))));
  for (const [name, value] of Object.entries(document.percentiles || {})) {
    list.append(element("div", {}, element("dt", {}, `${name} %`), element("dd", {}, of(value))));
  }
  return list;
}
