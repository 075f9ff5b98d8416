// The label images of an image, drawn over it: one at a time, with the colours that the server gives them.

import { category, pixel } from "./colors.js";
import { valueAt } from "./readout.js";
import { Source } from "./source.js";

/** @typedef {import("./picture.js").Box} Box */
/** @typedef {import("./source.js").Plan} Plan */
/** @typedef {{name: string, names: string[], levels: import("./source.js").Level[], type: string, itemBytes: number,
 *   colors: [number, number, number, number, number][]}} Layer */

const PLAIN = { as: null, scale: null, offset: null, missing: null };

export class Labels {
  /**
   * @param {any} config That of the viewer.
   * @param {Source} image The source of the image.
   * @param {URLSearchParams} words
   */
  constructor(config, image, words) {
    this.config = config;
    this.image = image;
    /** @type {Layer[]} */
    this.layers = config.ome.labels;
    this.opacity = Number(words.get("opacity")) || 0.5;
    this.name = "";
    /** @type {Source | null} */
    this.source = null;
    /** @type {import("./source.js").Plane | null} */
    this.plane = null;
    this.show(words.get("labels") || "");
  }

  /** @param {string} name */
  show(name) {
    const layer = this.layers.find((one) => one.name === name);
    this.name = layer ? name : "";
    this.layer = layer;
    this.source = null;
    this.plane = null;
    if (!layer) return;
    const { names, rows, columns, budget } = this.config;
    const dim = (/** @type {number} */ of) => layer.names.indexOf(names[of]);
    if (dim(rows) < 0 || dim(columns) < 0) return;
    const [first] = layer.levels;
    this.colors = new Map(layer.colors.map(([label, r, g, b, a]) => [label, pixel(r, g, b, a)]));
    this.source = new Source({
      slice: first.shape.map(() => 0), shape: first.shape, chunk: first.chunk, data: first.data, picture: first.image,
      rows: dim(rows), columns: dim(columns), colors: null, itemBytes: layer.itemBytes, type: layer.type, cf: PLAIN, budget,
      ome: { levels: layer.levels },
    });
  }

  /**
   * The request for the labels of what is seen.
   * @param {Box} seen In elements of the image.
   * @param {number} pixels
   * @returns {Plan | null}
   */
  plan(seen, pixels) {
    const { source, image, layer } = this;
    // Of an image in steps, its labels are not known in the same steps.
    if (!source || !layer || image.isStepped) return null;
    layer.names.forEach((name, dim) => {
      const of = this.config.names.indexOf(name);
      const length = this.config.shape[of] || 1;
      const index = of < 0 ? 0 : Math.floor((image.index[of] * layer.levels[0].shape[dim]) / length);
      source.index[dim] = Math.min(index, layer.levels[0].shape[dim] - 1);
    });
    const [fx, fy] = [source.width / image.width, source.height / image.height];
    return source.plan({ x: seen.x * fx, y: seen.y * fy, w: seen.w * fx, h: seen.h * fy }, pixels);
  }

  /**
   * Reads labels and paints them.
   * @param {Plan | null} plan
   * @returns {Promise<import("./picture.js").Overlay | null>}
   */
  async load(plan) {
    const { source, image } = this;
    this.plane = source && plan ? await source.load(plan) : null;
    if (!source || !this.plane) return null;
    const { values, width, height, box } = this.plane;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    if (!context) return null;
    const drawn = context.createImageData(width, height);
    const pixels = new Uint32Array(drawn.data.buffer);
    for (let at = 0; at < pixels.length; at += 1) pixels[at] = this.colors?.get(values[at]) ?? category(values[at]);
    context.putImageData(drawn, 0, 0);
    const [sx, sy] = [image.width / source.width, image.height / source.height];
    return { canvas, box: { x: box.x * sx, y: box.y * sy, w: box.w * sx, h: box.h * sy }, opacity: this.opacity };
  }

  /** The label at a place of the image. @param {number} x @param {number} y @returns {number | null} */
  at(x, y) {
    const { plane, source, image } = this;
    if (!plane || !source) return null;
    return valueAt(plane, (x + 0.5) * (source.width / image.width), (y + 0.5) * (source.height / image.height));
  }
}
