// The legend: what the server says of the colours of pictures, and the bar that shows them.

import { getJson, link } from "./api.js";
import { byId, element, numberText } from "./element.js";

/** @typedef {import("./channels.js").Channels} Channels */
/** @typedef {import("./color-mapping.js").ColorMapping} ColorMapping */

/**
 * Asks the server for the range and the colours of this picture: those of the page, of pictures and of tiles are the same.
 * @param {any} config
 * @param {ColorMapping} mapping
 * @param {Channels} channels
 * @param {string | null} asked The word `channels` of the URL.
 */
export async function loadLegend(config, mapping, channels, asked) {
  const hasChannels = channels.all.length > 0;
  const needsRange = hasChannels ? channels.all.some((channel) => !channel.range) : !mapping.rangeText.includes(",");
  if (config.colors !== null || (!needsRange && !mapping.isLabels)) return;
  const axes = config.rows > config.columns ? `${config.rows},${config.columns}` : "";
  try {
    const legend = await getJson(link(config.legend, { slice: config.selected, axes, channels: hasChannels ? asked : "", fields: config.fields, scale: mapping.scale, format: "json" }));
    mapping.take(legend);
    channels.takeRanges(legend);
  } catch {
    // Then the range is that of the elements that are shown.
  }
}

/**
 * Asks the server for the ranges of `range=auto`: those of the legend of the array, which all pictures and tiles have too.
 * @param {any} config
 * @param {ColorMapping} mapping
 * @param {Channels} channels
 * @param {string | null} decode The word `decode` of the URL.
 */
export async function loadRanges(config, mapping, channels, decode) {
  const indexes = channels.all.slice(0, 32).map((channel) => channel.index).join(",");
  if (config.labels && !indexes) return;
  const words = { channels: indexes, fields: config.fields, scale: mapping.scale, decode, format: "json" };
  try {
    const legend = await getJson(link(config.legend, words));
    mapping.autoEnds = legend.kind === "colormap" ? legend.range : null;
    channels.takeAutoRanges(legend);
  } catch {
    // Without a legend the ranges are those of the values that are shown.
  }
}

/**
 * Draws the bar.
 * @param {{colors: Uint32Array, range: [number, number]} | null} shown Nothing where no bar shows the colours.
 * @param {string | null | undefined} units
 * @param {(value: number) => string} text What the bar has at an end of the range.
 */
export function drawLegend(shown, units, text = short) {
  const legend = byId("legend");
  if (!legend) return;
  if (!shown) {
    legend.replaceChildren();
    return;
  }
  let canvas = legend.querySelector("canvas");
  if (!canvas) {
    canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { width: 256, height: 1, "aria-hidden": "true" }));
    legend.append(canvas, element("div", { class: "ends" }, element("span"), element("span")));
  }
  const context = /** @type {HTMLCanvasElement} */ (canvas).getContext("2d");
  const image = context?.createImageData(256, 1);
  if (context && image) {
    new Uint32Array(image.data.buffer).set(shown.colors);
    context.putImageData(image, 0, 0);
  }
  const [low, high] = legend.querySelectorAll("span");
  low.textContent = text(shown.range[0]);
  high.textContent = `${text(shown.range[1])}${units ? ` ${units}` : ""}`;
}

/** A number as a legend has it. @param {number} value */
export const short = (value) => numberText(Number(value.toPrecision(4)));
