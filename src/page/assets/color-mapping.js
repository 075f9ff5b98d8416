// How numbers become colours: a colormap, a range and a scale, each of which the URL, the controls or the server says.

import { category, isColormap, isScale, NAMES, paint, pixel, rangeOf, rgb, table } from "./colors.js";
import { percentiles } from "./decode.js";
import { rangeComplaint } from "./fields.js";

/** @typedef {ArrayLike<number> & {length: number}} Values */
/** @typedef {[number, number]} Range */

export class ColorMapping {
  /** @param {any} config @param {URLSearchParams} words */
  constructor(config, words) {
    this.config = config;
    /** @type {string} The word or the numbers of the range. */
    this.rangeText = (words.get("range") || "").replaceAll(" ", "");
    this.colormap = words.get("colormap") || "";
    this.scale = words.get("scale") || "";
    /** The words of the URL that no picture has, and why. */
    this.unused = this.dropUnknown();
    /** @type {Range | null} The range that was used last, where nothing says which it is. */
    this.range = null;
    /** @type {Range | null} What `range=auto` is for all pictures of the array. */
    this.autoEnds = null;
    /** @type {Range | null} The range that the server gives the array. */
    this.known = null;
    /** @type {Uint32Array | null} The colours that the server gives the array. */
    this.knownColors = null;
    /** @type {boolean} Whether the elements are labels. */
    this.isLabels = config.labels;
    /** @type {Map<number, number>} Labels with colours of their own. */
    this.ownColors = new Map();
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

  /** Its words in the URL. */
  words() {
    return { colormap: this.colormap, range: this.rangeText, scale: this.scale };
  }

  /** The word or the numbers of the range, unless it is the automatic one. */
  get rangeWord() {
    return this.rangeText === "auto" ? "" : this.rangeText;
  }

  /** Whether each number has a colour of its own. */
  get isCategories() {
    return this.colormap === "categories" || (this.isLabels && !this.colormap);
  }

  /** The name of the colours, whichever colormap was chosen. */
  get colorsName() {
    if (this.colormap === "none") return "gray";
    return this.colormap || (this.config.ome ? "gray" : "viridis");
  }

  /** Takes the automatic range, which is the same for all slices; or that of each slice. @param {boolean} isSame */
  lockRange(isSame) {
    this.rangeText = isSame ? "" : "slice";
    this.range = null;
  }

  /** Takes what the server says of this picture. @param {any} legend */
  take(legend) {
    if (legend.kind === "colormap") [this.known, this.knownColors] = [legend.range, Uint32Array.from(legend.colors, rgba)];
    this.isLabels = legend.kind === "categories";
    for (const { value, color } of legend.categories || []) this.ownColors.set(value, rgba(color));
  }

  /** The range that the URL or its field says; null for the automatic one. @param {() => Values} values Those of the picture. */
  askedRange(values) {
    return rangeOf(this.rangeText, values, this.config, this.scale);
  }

  /** The range where nothing else says which it is. @param {Values} values @returns {Range} */
  autoRange(values) {
    const { cf, type } = this.config;
    if (this.known) return this.known;
    if (cf.range?.length === 2) return [cf.range[0], cf.range[1]];
    if (cf.min !== null && cf.max !== null) return [cf.min, cf.max];
    if (type === "bool") return [0, 1];
    const [low, high] = percentiles(values, [1, 99]) || [0, 1];
    if (low < high) return [low, high];
    const ends = percentiles(values, [0, 100]) || [0, 1];
    return ends[0] < ends[1] ? /** @type {Range} */ (ends) : [ends[0], ends[0] + 1];
  }

  /**
   * Paints a plane.
   * @param {import("./source.js").Plane} plane
   * @param {Uint32Array} pixels
   * @param {() => Values} values Those of the picture.
   * @returns {{colors: Uint32Array, range: Range} | null} What a legend shows: nothing of colours and of categories.
   */
  paint(plane, pixels, values) {
    if (plane.parts > 1) {
      paintColors(plane, pixels);
      return null;
    }
    if (this.isCategories) {
      for (let at = 0; at < pixels.length; at += 1) pixels[at] = this.ownColors.get(plane.values[at]) ?? category(plane.values[at]);
      return null;
    }
    const asked = this.askedRange(values);
    if (!asked) this.range = this.autoEnds || this.range || this.autoRange(plane.values);
    const range = asked ?? /** @type {Range} */ (this.range);
    const colors = this.colormap || !this.knownColors ? table(this.colorsName) : this.knownColors;
    paint(plane.values, pixels, colors, range, this.scale);
    return { colors, range };
  }
}

/** Paints elements that are colours. @param {import("./source.js").Plane} plane @param {Uint32Array} pixels */
function paintColors({ values, parts }, pixels) {
  for (let at = 0; at < pixels.length; at += 1) {
    const from = at * parts;
    const alpha = parts > 3 ? values[from + 3] : 255;
    pixels[at] = (alpha << 24) | (values[from + 2] << 16) | (values[from + 1] << 8) | values[from];
  }
}

/** A pixel of six or eight hexadecimal digits. @param {string} text */
function rgba(text) {
  const [r, g, b] = rgb(text.slice(0, 6));
  return pixel(r, g, b, text.length > 6 ? Number.parseInt(text.slice(6, 8), 16) : 255);
}
