// The profiles of the element that is pinned: plots along each of the dimensions through it.

import { getElements, link } from "./api.js";
import { numbers, unpack } from "./decode.js";
import { byId, bytesText, element } from "./element.js";
import { line } from "./plot.js";
import { errorText } from "./status-line.js";

/** @typedef {{name: string, color: string, dim: number, index: number}} Curve One of a plot: `index` is along `dim`, or that is -1. */

const COLORS_OF_PHOTOGRAPHS = ["#e00000", "#00a000", "#0050ff"];
const LONGEST_PROFILE = 4000;

export class Profiles {
  /**
   * @param {any} config
   * @param {import("./source.js").Source} source
   * @param {import("./coordinates.js").DimensionCoordinates} coordinates
   * @param {import("./channels.js").Channels} channels
   * @param {{mayLoadMore(): boolean, pick(dim: number, index: number): void}} listener
   *   `mayLoadMore` says whether more is loaded than is unasked, `pick` is called for an index that is chosen in a plot.
   */
  constructor(config, source, coordinates, channels, listener) {
    this.config = config;
    this.source = source;
    this.coordinates = coordinates;
    this.channels = channels;
    this.listener = listener;
    /** @type {[number, number] | null} The row and the column in the array. */
    this.pinned = null;
    /** How many times the profiles were plotted. */
    this.plotted = 0;
  }

  /** Plots all, if an element is pinned. */
  async plot() {
    const { shape, rows, columns, colors } = this.config;
    const here = this.pinned;
    if (!here) return;
    const dims = shape.map((/** @type {number} */ _, /** @type {number} */ dim) => dim).filter((/** @type {number} */ dim) => shape[dim] > 1 && dim !== colors && dim !== this.channels.dim);
    dims.sort((/** @type {number} */ a, /** @type {number} */ b) => Number(a === rows || a === columns) - Number(b === rows || b === columns));
    const curves = this.curves();
    const number = (this.plotted += 1);
    const plots = curves.length ? await Promise.all(dims.map((/** @type {number} */ dim) => this.profile(dim, here, curves))) : [];
    // Others were begun since.
    if (this.plotted === number) byId("profiles").replaceChildren(...plots);
  }

  /** The curves of each profile: one for each channel that is shown. @returns {Curve[]} */
  curves() {
    const { colors } = this.config;
    if (colors !== null) return ["red", "green", "blue"].map((name, index) => ({ name, color: COLORS_OF_PHOTOGRAPHS[index], dim: colors, index }));
    if (!this.channels.all.length) return [{ name: "", color: "", dim: -1, index: 0 }];
    return this.channels.active.map(({ label, hex, dim, index }) => ({ name: label, color: hex, dim, index }));
  }

  /**
   * The plot along a dimension.
   * @param {number} dim
   * @param {[number, number]} pinned
   * @param {Curve[]} shown
   */
  async profile(dim, [y, x], shown) {
    const { shape, rows, columns, names, chunk, cf, itemBytes, data, type } = this.config;
    const title = `along ${names[dim]}`;
    const chunks = shown.length * (chunk ? Math.ceil(shape[dim] / chunk[dim]) : 1);
    const bytes = chunks * (chunk ? chunk.reduce((/** @type {number} */ product, /** @type {number} */ edge) => product * edge, itemBytes) : shape[dim] * itemBytes);
    const plot = element("section", {}, element("h2", {}, title));
    if (!this.source.isSmall({ chunks, bytes }) && !this.listener.mayLoadMore()) {
      plot.append(element("p", { class: "muted" }, `${chunks} chunks, ${bytesText(bytes)}: not loaded unasked.`));
      return plot;
    }
    const step = Math.max(1, Math.ceil(shape[dim] / LONGEST_PROFILE));
    const here = /** @type {number[]} */ (shape.map((/** @type {number} */ _, /** @type {number} */ one) => (one === rows ? y : one === columns ? x : this.source.index[one])));
    const read = async (/** @type {Curve} */ { name, color, dim: own, index }) => {
      const slice = here.map((at, one) => (one === dim ? (step > 1 ? `::${step}` : ":") : one === own ? index : at));
      const answer = await getElements(link(data, { slice: slice.join(","), fields: this.config.fields, format: "bytes" }));
      return { name, color, values: unpack(numbers(answer.buffer, cf.as || answer.type || type), cf) };
    };
    try {
      const curves = await Promise.all(shown.map(read));
      const known = this.coordinates.get(dim);
      const isFixed = dim !== rows && dim !== columns;
      const others = here.flatMap((at, one) => (one === dim || one === shown[0].dim || shape[one] < 2 ? [] : [this.coordinates.named(one, at)]));
      plot.append(line({
        values: curves[0].values, curves, title: others.length ? `${title} at ${others.join(", ")}` : title, units: cf.units, step, width: 420, height: 150, cursor: here[dim] / step,
        label: (at) => (known ? known.text(known.values[Math.round(at)]) : String(Math.round(at))),
        pick: isFixed ? (at) => this.listener.pick(dim, Math.round(at)) : undefined,
      }));
    } catch (error) {
      plot.append(element("p", { class: "warn" }, errorText(error)));
    }
    return plot;
  }
}
