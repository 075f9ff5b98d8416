// The readout: the element under the pointer, in words.

import { announce, byId, numberText } from "./element.js";

/** @typedef {import("./source.js").Plane} Plane */

/** How long the pointer rests on an element before it is announced. */
const SPEAK_MILLISECONDS = 700;

/** @param {Plane | undefined} plane @param {number} x @param {number} y @returns {number | null} None outside of what was read, and none of colours. */
export function valueAt(plane, x, y) {
  if (!plane || plane.parts > 1) return null;
  const { box, width, height, values } = plane;
  const [px, py] = [Math.floor(((x - box.x) / box.w) * width), Math.floor(((y - box.y) / box.h) * height)];
  return px >= 0 && py >= 0 && px < width && py < height ? values[py * width + px] : null;
}

/** The value of a channel; nothing outside of what was read. @param {Plane | undefined} plane @param {number} x @param {number} y */
function channelText(plane, x, y) {
  const value = valueAt(plane, x, y);
  return value === null ? "" : numberText(value);
}

export class Readout {
  /**
   * @param {any} config
   * @param {import("./source.js").Source} source
   * @param {import("./coordinates.js").DimensionCoordinates} coordinates
   * @param {import("./channels.js").Channels} channels
   * @param {import("./labels.js").Labels | null} labels
   */
  constructor(config, source, coordinates, channels, labels) {
    this.config = config;
    this.source = source;
    this.coordinates = coordinates;
    this.channels = channels;
    this.labels = labels;
  }

  /** Shows the element at a place. @param {Plane[]} planes One for each channel that is shown. @param {number} x @param {number} y */
  hover(planes, x, y) {
    const { rows, columns, cf } = this.config;
    let value = "";
    if (this.channels.all.length) {
      value = this.channels.active.map((channel, at) => `${channel.label}: ${channelText(planes[at], x, y)}`).join("\n");
    } else {
      const found = valueAt(planes[0], x, y);
      value = found === null ? "" : `= ${numberText(found)}${cf.units && !Number.isNaN(found) ? ` ${cf.units}` : ""}`;
    }
    const label = this.labels?.at(x, y);
    if (label) value += `\n${this.labels?.name}: ${label}`;
    const place = (/** @type {number} */ dim, /** @type {number} */ at) => this.coordinates.named(dim, this.source.stored(dim, at));
    this.show(`${place(rows, y)}\n${place(columns, x)}\n${value}`);
  }

  /** @param {string | null} text None when the pointer leaves the picture: then what was shown stays. */
  show(text) {
    const readout = byId("readout");
    if (readout && text !== null) readout.textContent = text;
    clearTimeout(this.spoken);
    if (text) this.spoken = setTimeout(() => announce(text.replaceAll("\n", ", ")), SPEAK_MILLISECONDS);
  }
}
