// The tab of a picture: it reads the planes of what is seen, and paints them.

import { Channels } from "./channels.js";
import { Controls } from "./controls.js";
import { ascends } from "./coordinates.js";
import { byId, element } from "./element.js";
import { drawLegend, loadLegend, loadRanges } from "./legend.js";
import { sayUnused } from "./page-url.js";
import { Picture } from "./picture.js";
import { PlaneSelection } from "./plane-selection.js";
import { Profiles } from "./profiles.js";
import { Readout, valueAt } from "./readout.js";
import { metres, ScaleBar } from "./scale-bar.js";
import { showBoxStatistics } from "./statistics.js";
import { showCost, showError } from "./status-line.js";

/** @typedef {import("./picture.js").Box} Box */
/** @typedef {import("./source.js").Plane} Plane */

/** The milliseconds after which an index that has not changed counts as settled. */
const SETTLE_MILLISECONDS = 400;
/** The milliseconds without a move after which what is seen is read. */
const MOVE_MILLISECONDS = 120;
/** The milliseconds after which reading is shown as such. */
const BUSY_MILLISECONDS = 150;

export class ImageTab {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    const { config, source, words, mapping, coordinates, labels } = viewer;
    this.config = config;
    this.source = source;
    /** @type {Plane[]} What is painted: one for each channel that is shown. */
    this.planes = [];
    this.hasBegun = false;
    this.isGridOn = false;
    this.settling = 0;
    this.channels = new Channels(config, mapping, {
      shown: () => {
        viewer.update();
        viewer.write();
        this.profiles.plot();
      },
      painted: () => this.repaint(),
      colored: () => this.profiles.plot(),
    });
    this.stage = /** @type {HTMLElement} */ (byId("stage"));
    const label = `${config.names[config.rows]} by ${config.names[config.columns]}`;
    this.picture = new Picture(this.stage, { width: source.width, height: source.height, flip: false, label }, {
      hover: (x, y) => this.readout.hover(this.planes, x, y),
      leave: () => this.readout.show(null),
      pick: (x, y) => this.pin(x, y),
      select: (box) => showBoxStatistics(config, source, box),
      moved: () => this.moved(),
      value: (x, y) => valueAt(this.planes[0], x, y),
      drawn: () => this.bar?.update(this.picture.scale / this.picture.ratio),
    });
    this.zoomed = this.picture;
    this.selection = new PlaneSelection(config, source, this.picture, words.get("box"), (cost) => viewer.mayLoad(cost));
    this.readout = new Readout(config, source, coordinates, this.channels, labels);
    this.profiles = new Profiles(config, source, coordinates, this.channels, {
      mayLoadMore: () => viewer.mayLoadMore,
      pick: (dim, index) => viewer.sliders.setIndex(dim, index),
    });
    this.controls = new Controls(mapping, {
      painted: () => this.repaint(),
      clearRanges: () => this.channels.clearRanges(),
      loadRanges: () => this.loadRanges(),
      showLabels: (name) => {
        labels?.show(name);
        viewer.update();
        viewer.write();
      },
      setOpacity: (opacity) => this.setOpacity(opacity),
      setGrid: (isOn) => this.setGrid(isOn),
      zoom: (factor) => this.picture.zoom(factor),
      fit: () => this.picture.fit(),
      copyLink: () => viewer.url.copyLink(),
      save: () => this.save(),
    });
  }

  async start() {
    const { config, source, picture } = this;
    const { words, mapping } = this.viewer;
    this.channels.find(this.viewer.root, words.get("channels"));
    this.controls.fill(config.colors !== null);
    sayUnused(document.querySelector(".tabs") ?? this.viewer.root, mapping.unused, this.undrawn());
    this.hasLegend = loadLegend(config, mapping, this.channels, words.get("channels"));
    this.measure();
    if (words.get("grid") === "1") this.setGrid(true);
    picture.resize();
    await Promise.all([this.orient(), this.loadRanges()]);
    // Which rows are at the top is known now.
    const { start } = this.selection;
    if (start) picture.show(start);
    this.hasBegun = true;
    await this.viewer.update();
    // A plane of other axes than those of the selection has another selection.
    if (words.get("axes") && words.get("slice") !== config.selected) this.viewer.write();
    const at = (words.get("at") || "").split(",").map(Number);
    const isPinned = at.length === 2 && at.every((one) => Number.isInteger(one) && one >= 0);
    const [y, x] = isPinned ? [source.placed(config.rows, at[0]), source.placed(config.columns, at[1])] : [null, null];
    if (x !== null && y !== null) await this.pin(x, y);
  }

  /** The words of the URL that other pictures have, and this one has not. */
  undrawn() {
    const { words, mapping } = this.viewer;
    const [hasChannels, isPhotograph] = [this.channels.all.length > 0, this.config.colors !== null];
    const names = ["below", "above", "missing", "rgb", "method"];
    if (hasChannels || isPhotograph) names.push("colormap");
    if (isPhotograph) names.push("range", "scale");
    if (!hasChannels) names.push("channels");
    return names.filter((name) => words.get(name) && !mapping.unused.some((one) => one.startsWith(`${name}=`)));
  }

  /** Adds a bar for scale, where the length of an element is known. */
  async measure() {
    const { coordinates } = this.viewer;
    const { ome, columns } = this.config;
    const axis = ome?.axes?.[columns];
    let each = axis?.kind === "space" ? metres(axis.scale, axis.unit) : null;
    if (!ome) {
      await coordinates.loaded;
      const own = this.config.coordinates.find((/** @type {any} */ one) => one.dim === columns);
      const values = coordinates.get(columns)?.values;
      if (own && values && values.length > 1) each = metres(Math.abs(values[values.length - 1] - values[0]) / (values.length - 1), own.units);
    }
    if (!each) return;
    this.bar = new ScaleBar(this.stage, each);
    this.picture.draw();
  }

  /** Turns the picture as the server turns it: the word `origin`, or a map north up. */
  async orient() {
    const { plane } = this.picture;
    const isReversed = this.source.down.step < 0;
    const axis = this.config.coordinates.find((/** @type {any} */ one) => one.dim === this.config.rows);
    const origin = this.viewer.words.get("origin") || "auto";
    plane.flip = origin === "lower" || (origin === "auto" && (await ascends(axis, isReversed)) !== isReversed);
    const axes = byId("axes")?.selectedOptions[0];
    if (axes && plane.flip !== isReversed) axes.textContent = axes.textContent.replace("↓", "↑");
  }

  loadRanges() {
    return loadRanges(this.config, this.viewer.mapping, this.channels, this.viewer.words.get("decode"));
  }

  // --- loading ---

  /** What reading a part of the plane takes. @param {Box} box */
  planned(box) {
    const { source } = this;
    const pixels = box.w * this.picture.scale;
    const plans = this.channels.all.length
      ? this.channels.active.map((channel) => source.plan(box, pixels, { [channel.dim]: channel.index }))
      : [source.plan(box, pixels)];
    const overlay = this.viewer.labels?.plan(box, pixels) ?? null;
    const cost = [...plans, ...(overlay ? [overlay] : [])].reduce(
      (sum, plan) => ({ chunks: sum.chunks + plan.cost.chunks, bytes: sum.bytes + plan.cost.bytes }),
      { chunks: 0, bytes: 0 },
    );
    return { plans, overlay, cost };
  }

  async load() {
    const { viewer, source, picture, selection } = this;
    let planned = this.planned(picture.seen());
    // What is selected may cost little where what is seen around it does not.
    const start = selection.isAsSelected ? selection.start : null;
    if (start && !viewer.mayLoad(planned.cost)) planned = this.planned(start);
    const { plans, overlay, cost } = planned;
    if (!viewer.mayLoad(cost)) {
      viewer.offer(cost);
      return;
    }
    const busy = element("div", { class: "busy" });
    const timer = setTimeout(() => this.stage.append(busy), BUSY_MILLISECONDS);
    try {
      const [planes, labels] = await Promise.all([
        Promise.all(plans.map((plan) => source.load(plan))), viewer.labels?.load(overlay) ?? null, this.hasLegend,
      ]);
      this.planes = planes;
      picture.overlay = labels;
      this.paint();
      this.showCost(cost);
      // It came when the slider had stopped already.
      if (!source.isMoving && planes.some((plane) => plane.coarser > 1)) viewer.latest.waiting ??= () => this.load();
    } catch (error) {
      if (source.givesUpReducing(error)) viewer.latest.waiting ??= () => this.load();
      else showError(error, this.config.view);
    } finally {
      clearTimeout(timer);
      busy.remove();
    }
  }

  /** @param {import("./source.js").Cost} cost */
  showCost(cost) {
    const time = Math.max(...this.planes.map((plane) => plane.milliseconds));
    const reduced = Math.max(...this.planes.map((plane) => plane.reduced));
    const centre = this.config.window && this.selection.isAsSelected ? "The centre of the plane. " : "";
    showCost(cost, time, reduced > 1 ? `, one pixel for ${reduced} × ${reduced} elements` : "", centre);
  }

  /** Notes that an index changes; when none did for a while, a plane that was read coarser is read again. */
  settle() {
    this.source.isMoving = true;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.source.isMoving = false;
      if (this.planes.some((plane) => plane.coarser > 1)) this.viewer.update();
    }, SETTLE_MILLISECONDS);
  }

  /** Reads the next planes while nothing else is read. @param {number} dim @param {number} step */
  async prefetch(dim, step) {
    const { source, picture } = this;
    if (this.channels.all.length || !this.planes.length) return;
    const at = source.index[dim];
    for (const next of [at + step, at + 2 * step]) {
      if (this.viewer.latest.isRunning || next < 0 || next >= this.config.shape[dim] || source.index[dim] !== at) return;
      const seen = picture.seen();
      const plan = source.plan(seen, seen.w * picture.scale, { [dim]: next });
      if (!source.isSmall(plan.cost)) return;
      await source.load(plan).catch(() => {});
    }
  }

  moved() {
    this.selection.moved();
    if (!this.hasBegun) return;
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.viewer.update(), MOVE_MILLISECONDS);
    this.viewer.write();
  }

  // --- painting ---

  paint() {
    const { picture, planes, channels } = this;
    const { mapping } = this.viewer;
    if (!planes.length) return;
    const { width, height, box } = planes[0];
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    if (!context) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const lock = byId("lock")?.closest("label");
    if (lock) lock.hidden = mapping.isCategories && !channels.all.length;
    const inPicture = (/** @type {Plane} */ plane) => this.selection.inPicture(plane);
    if (channels.all.length) channels.paint(planes, pixels, inPicture);
    else {
      const shown = mapping.paint(planes[0], pixels, () => inPicture(planes[0]));
      drawLegend(shown, this.config.cf.units);
      if (shown) this.controls.showRange(shown.range);
    }
    context.putImageData(image, 0, 0);
    const before = picture.planes.filter((plane) => plane.box.w > box.w * 1.5).slice(-1);
    picture.setPlanes([...before, { canvas, box }]);
    for (const still of this.viewer.root.querySelectorAll(".stage img")) /** @type {HTMLElement} */ (still).hidden = true;
  }

  repaint() {
    this.paint();
    this.viewer.write();
  }

  /** @param {number} opacity Of the labels. */
  setOpacity(opacity) {
    const { labels } = this.viewer;
    if (!labels) return;
    labels.opacity = opacity;
    if (this.picture.overlay) this.picture.overlay.opacity = opacity;
    this.picture.draw();
    this.viewer.write();
  }

  /** @param {boolean} isOn */
  setGrid(isOn) {
    this.picture.grid = isOn ? this.source.chunkGrid() : null;
    this.isGridOn = isOn;
    this.picture.draw();
    this.viewer.write();
  }

  // --- what keys and buttons do ---

  /** Marks an element and plots the other axes through it. @param {number} x @param {number} y */
  async pin(x, y) {
    const { rows, columns } = this.config;
    this.profiles.pinned = [this.source.stored(rows, y), this.source.stored(columns, x)];
    await this.viewer.coordinates.loaded;
    this.picture.pin = [x, y];
    this.picture.draw();
    this.readout.hover(this.planes, x, y);
    this.viewer.write();
    await this.profiles.plot();
  }

  pinCentre() {
    const seen = this.picture.seen();
    this.pin(Math.floor(seen.x + seen.w / 2), Math.floor(seen.y + seen.h / 2));
  }

  /** @param {number} step */
  nextColormap(step) {
    this.controls.nextColormap(step);
  }

  save() {
    this.picture.canvas.toBlob((blob) => {
      if (!blob) return;
      const address = URL.createObjectURL(blob);
      element("a", { href: address, download: `${document.title.split(" – ")[0]}.png` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
  }

  // --- the URL ---

  sliceText() {
    return this.selection.text(this.channels.dim);
  }

  /** Its words in the URL. */
  words() {
    return {
      ...(this.channels.all.length ? { channels: this.channels.word() } : {}),
      box: this.selection.box(), at: this.profiles.pinned?.join(",") ?? "", grid: this.isGridOn ? "1" : "",
    };
  }
}
