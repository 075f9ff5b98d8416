// The coordinates of the dimensions: what the indexes along them stand for.

import { getJson, link } from "./api.js";
import { dateReader, decoded, labeller } from "./decode.js";

/** More coordinates along a dimension than these are not read. */
const LONGEST_COORDINATES = 20000;

export class DimensionCoordinates {
  /**
   * @param {any} config
   * @param {(dim: number) => void} listener Called for each dimension when its coordinates have come.
   */
  constructor(config, listener) {
    this.config = config;
    /** @type {Map<number, import("./fields.js").Coordinates>} */
    this.known = new Map();
    /** Resolves when all that can be read have come. */
    this.loaded = this.load(listener);
  }

  /** @param {(dim: number) => void} listener */
  async load(listener) {
    for (const one of this.config.coordinates || []) {
      if (one.length > LONGEST_COORDINATES) continue;
      try {
        const stored = await getJson(link(one.data, { format: "json" }));
        if (!Array.isArray(stored) || stored.length !== one.length) continue;
        const values = stored.map((value) => decoded(value, one.cf));
        this.known.set(one.dim, { values, text: labeller(one.units, one.calendar, values), date: dateReader(one.units, one.calendar, values) });
        listener(one.dim);
      } catch {
        // Indexes are shown without coordinates.
      }
    }
  }

  /** @param {number} dim */
  get(dim) {
    return this.known.get(dim);
  }

  /** An index with the name of its dimension and its coordinate. @param {number} dim @param {number} index In the array. */
  named(dim, index) {
    const known = this.known.get(dim);
    const name = this.config.names[dim];
    return known ? `${name} ${index} (${known.text(known.values[index])})` : `${name} ${index}`;
  }
}

/**
 * Whether latitudes or northings ascend.
 * @param {any} axis The coordinates of the rows, if there are any.
 * @param {boolean} otherwise The answer for other coordinates.
 * @returns {Promise<boolean>}
 */
export async function ascends(axis, otherwise) {
  if (!axis?.north || axis.length < 2) return otherwise;
  try {
    const ends = await getJson(link(axis.data, { slice: `0:${axis.length}:${axis.length - 1}`, format: "json" }));
    const [first, last] = ends.map((/** @type {any} */ one) => decoded(one, axis.cf));
    return first < last;
  } catch {
    // Without coordinates the picture stays as it is stored.
    return otherwise;
  }
}
