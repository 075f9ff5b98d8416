// Where the elements of a picture come from: which request gives a part of a plane, and what it costs.

import { getElements, link, Problem } from "./api.js";
import { numbers, unpack } from "./decode.js";

/** @typedef {import("./picture.js").Box} Box */
/** @typedef {{name: string, data: string, image: string, shape: number[], chunk: number[] | null}} Level */
/** @typedef {{chunks: number, bytes: number}} Cost */
/** @typedef {{values: ArrayLike<number> & {length: number}, width: number, height: number, parts: number, box: Box,
 *   cost: Cost, milliseconds: number, timing: string, url: string, reduced: number, coarser: number}} Plane */
/** @typedef {{url: string, box: Box, cost: Cost, reduced: number, coarser: number}} Plan */

/** @typedef {{start: number, count: number, step: number}} Axis */

/** Elements of the largest plane that is read at once. */
const MOST_ELEMENTS = 1 << 21;
/** Bytes of the planes that are kept. */
const MOST_KEPT = 96 << 20;
/** The transfer of a plane takes about this many milliseconds at most while an index changes, where a coarser plane is shorter. */
const MOST_TRANSFER = 60;
/** Every how many rows and columns the coarsest of these planes has one. */
const COARSEST = 16;

/**
 * The elements of a dimension that are rows or columns: all of them, unless the selection has steps.
 * @param {any} config
 * @param {number | null} dim
 * @returns {Axis}
 */
function axis({ slice, shape }, dim) {
  const own = dim === null ? null : slice[dim];
  if (Array.isArray(own) && own[2] !== 1) return { start: own[0], count: own[1], step: own[2] };
  return { start: 0, count: dim === null ? 1 : shape[dim] ?? 1, step: 1 };
}

/** @param {number[]} range Start, count and step. @param {number} length */
export function rangeText([start, count, step], length) {
  if (start === 0 && count === length && step === 1) return ":";
  const stop = start + (count - 1) * step + Math.sign(step);
  return `${start}:${stop < 0 ? "" : stop}${step === 1 ? "" : `:${step}`}`;
}

/**
 * Where chunks begin along a dimension of the plane.
 * @param {Axis} axis
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

export class Source {
  /** @param {any} config */
  constructor(config) {
    this.config = config;
    /** @type {number[]} The index along each dimension that is not shown. */
    this.index = config.slice.map((/** @type {any} */ one) => (Array.isArray(one) ? 0 : one));
    /** @type {Level[]} The finest first. */
    this.levels = config.ome?.levels?.length
      ? config.ome.levels
      : [{ name: "", data: config.data, image: config.picture, shape: config.shape, chunk: config.chunk }];
    /** @type {Map<string, Promise<Plane>>} */
    this.kept = new Map();
    this.keptBytes = 0;
    this.reduces = true;
    /** Whether an index changes at the moment: then planes that take long to transfer are read coarser. */
    this.isMoving = false;
    /** The milliseconds that the transfer of the last plane would have taken had it not been coarser. */
    this.transfer = 0;
    this.rows = config.rows;
    this.columns = config.columns;
    this.down = axis(config, config.rows);
    this.across = axis(config, config.columns);
    this.isStepped = this.down.step !== 1 || this.across.step !== 1;
    // Another level has other elements: of steps, only those of the first are known.
    if (this.isStepped) this.levels = this.levels.slice(0, 1);
    this.height = this.down.count;
    this.width = this.across.count;
  }

  /** Rows and columns of the plane in a level. @param {Level} level @returns {[number, number]} */
  sides(level) {
    return this.isStepped ? [this.height, this.width] : [level.shape[this.rows], level.shape[this.columns]];
  }

  /** The index in the array of a place in the plane. @param {number} dim @param {number} at */
  stored(dim, at) {
    const own = dim === this.rows ? this.down : dim === this.columns ? this.across : null;
    return own ? own.start + at * own.step : at;
  }

  /** The place in the plane of an index in the array; there may be none. @param {number} dim @param {number} index @returns {number | null} */
  placed(dim, index) {
    const own = dim === this.rows ? this.down : this.across;
    const at = (index - own.start) / own.step;
    return Number.isInteger(at) && at >= 0 && at < own.count ? at : null;
  }

  /** The level that a part of the plane is read from. @param {Box} box @param {number} pixels */
  levelFor(box, pixels) {
    const enough = (/** @type {Level} */ level) => (box.w * this.sides(level)[1]) / this.width >= pixels * 0.6;
    return [...this.levels].reverse().find(enough) || this.levels[0];
  }

  /**
   * The selection of a part of a plane as text.
   * @param {Level} level
   * @param {[number, number]} rows From and to.
   * @param {[number, number]} columns
   * @param {number} step
   * @param {Record<number, number>} [other] Other indexes.
   */
  slice(level, rows, columns, step, other = {}) {
    const { shape, colors } = this.config;
    const range = (/** @type {[number, number]} */ [from, to], /** @type {number} */ length, /** @type {Axis} */ own) => {
      if (own.step !== 1) return rangeText([own.start + from * own.step, Math.ceil((to - from) / step), own.step * step], length);
      const text = from === 0 && to === length ? ":" : `${from}:${to}`;
      return step > 1 ? `${text === ":" ? ":" : text}:${step}` : text;
    };
    return level.shape
      .map((length, dim) => {
        if (dim === this.rows) return range(rows, length, this.down);
        if (dim === this.columns) return range(columns, length, this.across);
        if (dim === colors) return ":";
        const index = other[dim] ?? this.index[dim];
        return String(Math.min(Math.floor((index * length) / shape[dim]), length - 1));
      })
      .join(",");
  }

  /**
   * The chunks that a selection touches, and their bytes.
   * @param {Level} level
   * @param {[number, number]} rows
   * @param {[number, number]} columns
   * @returns {Cost}
   */
  cost(level, rows, columns) {
    const { itemBytes, colors } = this.config;
    if (!level.chunk) {
      return { chunks: 1, bytes: (rows[1] - rows[0]) * (columns[1] - columns[0]) * itemBytes };
    }
    let [chunks, bytes] = [1, itemBytes];
    const ends = (/** @type {[number, number]} */ [from, to], /** @type {Axis} */ own) => {
      if (own.step === 1) return [from, to];
      const [first, last] = [own.start + from * own.step, own.start + (to - 1) * own.step];
      return [Math.min(first, last), Math.max(first, last) + 1];
    };
    level.chunk.forEach((edge, dim) => {
      const [from, to] = dim === this.rows ? ends(rows, this.down) : dim === this.columns ? ends(columns, this.across) : dim === colors ? [0, level.shape[dim]] : [0, 1];
      chunks *= Math.floor((to - 1) / edge) - Math.floor(from / edge) + 1;
      bytes *= edge;
    });
    return { chunks, bytes: bytes * chunks };
  }

  /** The same of ranges and indexes of the array. @param {(number | number[])[]} ranges @returns {Cost} */
  costOf(ranges) {
    let [chunks, bytes] = [1, this.config.itemBytes];
    ranges.forEach((one, dim) => {
      const [start, count, step] = Array.isArray(one) ? one : [one, 1, 1];
      const edge = this.config.chunk?.[dim] ?? count;
      const ends = [start, start + (count - 1) * step];
      const touched = Math.floor(Math.max(...ends) / edge) - Math.floor(Math.min(...ends) / edge) + 1;
      chunks *= touched;
      bytes *= touched * edge;
    });
    return { chunks, bytes };
  }

  /** Where chunks begin in the plane, if there are chunks. */
  chunkGrid() {
    const { chunk } = this.config;
    return chunk ? { rows: chunkLines(this.down, chunk[this.rows]), columns: chunkLines(this.across, chunk[this.columns]) } : null;
  }

  /** Whether a cost is within what is loaded unasked; or within what the server reads at all. @param {Cost} cost @param {Cost} [most] */
  isSmall(cost, most = this.config.budget) {
    return cost.bytes <= most.bytes && cost.chunks <= most.chunks;
  }

  /**
   * The request for what is seen.
   * @param {Box} seen In elements of the plane.
   * @param {number} pixels Columns of the canvas that it fills.
   * @param {Record<number, number>} [other] Other indexes.
   * @returns {Plan}
   */
  plan(seen, pixels, other) {
    const level = this.levelFor(seen, pixels);
    const [height, width] = this.sides(level);
    const whole = this.cost(level, [0, height], [0, width]);
    let [rows, columns] = /** @type {[[number, number], [number, number]]} */ ([[0, height], [0, width]]);
    if (height * width > MOST_ELEMENTS || !this.isSmall(whole)) {
      const [fy, fx] = [height / this.height, width / this.width];
      rows = [Math.floor(seen.y * fy), Math.max(Math.ceil((seen.y + seen.h) * fy), Math.floor(seen.y * fy) + 1)];
      columns = [Math.floor(seen.x * fx), Math.max(Math.ceil((seen.x + seen.w) * fx), Math.floor(seen.x * fx) + 1)];
    }
    const [h, w] = [rows[1] - rows[0], columns[1] - columns[0]];
    let step = 1;
    while ((h / step) * (w / step) > MOST_ELEMENTS || w / step > Math.max(2 * pixels, 1024)) step *= 2;
    const coarser = this.coarser();
    step *= coarser;
    const fits = step > 1 && this.reduces;
    const slice = this.slice(level, rows, columns, fits ? 1 : step, other);
    const side = Math.ceil(Math.max(h, w) / step);
    const url = link(level.data, { slice, fields: this.config.fields, format: "bytes", fit: fits ? `${side},${side}` : null });
    const [sy, sx] = [this.height / height, this.width / width];
    const box = { x: columns[0] * sx, y: rows[0] * sy, w: w * sx, h: h * sy };
    return { url, box, cost: this.cost(level, rows, columns), reduced: step, coarser };
  }

  /** By how much planes are coarser now. Each halving of both sides takes a quarter of the time. */
  coarser() {
    let coarser = 1;
    while (this.isMoving && this.reduces && coarser < COARSEST && this.transfer / coarser ** 2 > MOST_TRANSFER) coarser *= 2;
    return coarser;
  }

  /**
   * Reads a plane, or takes one that is kept.
   * @param {Plan} plan
   * @returns {Promise<Plane>}
   */
  load(plan) {
    const known = this.kept.get(plan.url);
    if (known) {
      this.kept.delete(plan.url);
      this.kept.set(plan.url, known);
      return known;
    }
    const loading = this.read(plan);
    this.kept.set(plan.url, loading);
    loading.then(
      (plane) => {
        this.keptBytes += plane.values.length * 8;
        for (const url of this.kept.keys()) {
          if (this.keptBytes <= MOST_KEPT || url === plan.url) break;
          this.drop(url);
        }
      },
      () => this.kept.delete(plan.url),
    );
    return loading;
  }

  /** @param {string} url */
  drop(url) {
    const dropped = this.kept.get(url);
    this.kept.delete(url);
    dropped?.then((plane) => {
      this.keptBytes -= plane.values.length * 8;
    }, () => {});
  }

  /** @param {Plan} plan @returns {Promise<Plane>} */
  async read(plan) {
    const { type, cf, colors } = this.config;
    const { buffer, shape, milliseconds, transfer, timing, type: answered } = await getElements(plan.url);
    this.transfer = transfer * plan.coarser ** 2;
    const raw = numbers(buffer, cf.as || answered || type);
    const values = colors === null ? unpack(raw, cf) : raw;
    // The kept dimensions are in the order of the array.
    const kept = [this.rows, this.columns, ...(colors === null ? [] : [colors])].sort((a, b) => a - b);
    const strides = /** @type {Record<number, number>} */ ({});
    let stride = 1;
    for (let at = kept.length - 1; at >= 0; at -= 1) {
      strides[kept[at]] = stride;
      stride *= shape[at];
    }
    const height = shape[kept.indexOf(this.rows)];
    const width = shape[kept.indexOf(this.columns)];
    const parts = colors === null ? 1 : shape[kept.indexOf(colors)];
    const [down, across, deep] = [strides[this.rows], strides[this.columns], colors === null ? 0 : strides[colors]];
    const isPlain = across === parts && (parts === 1 || deep === 1);
    const ordered = isPlain ? values : new Float64Array(width * height * parts);
    if (!isPlain) {
      const target = /** @type {Float64Array} */ (ordered);
      let at = 0;
      for (let y = 0; y < height; y += 1) {
        for (let x = 0; x < width; x += 1) {
          for (let part = 0; part < parts; part += 1) {
            target[at] = values[y * down + x * across + part * deep];
            at += 1;
          }
        }
      }
    }
    return { values: ordered, width, height, parts, box: plan.box, cost: plan.cost, milliseconds, timing, url: plan.url, reduced: plan.reduced, coarser: plan.coarser };
  }

  /** Whether a failure is one of a server that reduces nothing; then nothing is reduced any more. @param {unknown} error */
  givesUpReducing(error) {
    if (!this.reduces || !(error instanceof Problem) || error.status !== 400) return false;
    this.reduces = false;
    return true;
  }
}
