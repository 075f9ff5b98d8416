// The part of a plane that is shown: what the URL selects of it, until the picture is moved.

import { rangeText } from "./source.js";

/** @typedef {import("./picture.js").Box} Box */
/** @typedef {import("./source.js").Plane} Plane */

export class PlaneSelection {
  /**
   * @param {any} config
   * @param {import("./source.js").Source} source
   * @param {import("./picture.js").Picture} picture
   * @param {string | null} boxText The word `box` of the URL.
   * @param {(cost: import("./source.js").Cost) => boolean} mayLoad
   */
  constructor(config, source, picture, boxText, mayLoad) {
    this.config = config;
    this.source = source;
    this.picture = picture;
    this.mayLoad = mayLoad;
    /** @type {string | null} The part of the plane that the URL names, until the view is moved. */
    this.boxText = boxText;
    /** Whether the rows and columns are those that the URL selects, until the view is moved. */
    this.isAsSelected = true;
    this.start = this.startBox();
    this.level = { name: "", data: "", image: "", shape: config.shape, chunk: config.chunk };
  }

  /** What the URL shows of the plane; null for all of it. @returns {Box | null} */
  startBox() {
    const { width, height, isStepped } = this.source;
    if (isStepped) return null;
    const [x, y, w, h] = (this.boxText || "").split(",").map(Number);
    const isWhole = !this.cuts();
    if (isWhole && w > 0 && h > 0 && x >= 0 && y >= 0 && x < width && y < height) return { x, y, w: Math.min(w, width - x), h: Math.min(h, height - y) };
    if (isWhole) return null;
    const [rows, columns] = [this.config.slice[this.config.rows], this.config.slice[this.config.columns]];
    return { x: columns[0], y: rows[0], w: columns[1], h: rows[1] };
  }

  /** Whether the selection leaves rows or columns out. */
  cuts() {
    const { slice, shape, rows, columns } = this.config;
    return [rows, columns].some((dim) => slice[dim][1] * Math.abs(slice[dim][2]) < shape[dim] || slice[dim][2] < 0);
  }

  moved() {
    this.boxText = null;
    this.isAsSelected = false;
  }

  /** The selection as text. @param {number | undefined} channels The dimension of channels that are shown together. */
  text(channels) {
    const { config, source } = this;
    const seen = this.picture.seen();
    const isAll = this.isPlaneShown();
    const rows = /** @type {[number, number]} */ (isAll ? [0, source.height] : [seen.y, seen.y + seen.h]);
    const columns = /** @type {[number, number]} */ (isAll ? [0, source.width] : [seen.x, seen.x + seen.w]);
    const parts = source.slice(this.level, rows, columns, 1).split(",");
    if (this.isAsSelected && this.cuts()) {
      for (const dim of [config.rows, config.columns]) parts[dim] = rangeText(config.slice[dim], config.shape[dim]);
    }
    // All channels of a composite are shown.
    if (channels !== undefined) parts[channels] = ":";
    return parts.join(",");
  }

  /** Whether the URL has a selection of all rows and columns, and the part that is seen as `box`, if that is less. */
  isPlaneShown() {
    const { source } = this;
    if (this.picture.isFitted && !this.isAsSelected) return true;
    // Where the selection cuts the plane, there is no `box`.
    if (source.isStepped || (this.isAsSelected && this.cuts())) return false;
    return this.mayLoad(source.cost(this.level, [0, source.height], [0, source.width]));
  }

  /** The word `box`. */
  box() {
    if (this.picture.isFitted || !this.isPlaneShown()) return "";
    const seen = this.picture.seen();
    return this.boxText ?? [seen.x, seen.y, seen.w, seen.h].join(",");
  }

  /** The elements of a plane that are in the picture of this URL. @param {Plane} plane */
  inPicture({ values, box, width, height }) {
    const seen = (this.isAsSelected ? this.start : null) ?? this.picture.seen();
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
}
