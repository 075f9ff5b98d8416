// The histogram and the line of a selection.

import { getElements, getJson, link } from "./api.js";
import { numbers, unpack } from "./decode.js";
import { byId, element, numberText } from "./element.js";
import { bars, line } from "./plot.js";
import { rangeText } from "./source.js";
import { statistics } from "./statistics.js";
import { showCost, showError } from "./status-line.js";

const BINS = 64;
const LONGEST_LINE = 4000;

/** The width of a drawing, so that its text is as large as other text. @param {HTMLElement} box */
const widthOf = (box) => Math.max(280, Math.min(960, box.clientWidth || 960));

/** @param {import("./viewer.js").Viewer} viewer */
export function histogram(viewer) {
  viewer.open({ load: () => load(viewer) });
}

/** @param {import("./viewer.js").Viewer} viewer */
async function load(viewer) {
  const { config, source } = viewer;
  const box = byId("histogram");
  const slice = viewer.sliceText();
  const ranges = config.slice.map((/** @type {any} */ one, /** @type {number} */ dim) => (Array.isArray(one) ? one : source.index[dim]));
  const cost = source.costOf(ranges);
  // Of what is not loaded unasked, as much as is.
  const part = Math.min(config.budget.bytes / cost.bytes, config.budget.chunks / cost.chunks);
  const sample = viewer.mayLoad(cost) ? "auto" : Math.max(1, Math.floor((part * cost.bytes) / config.itemBytes));
  const words = { ops: "count,missing,nan,min,max,mean,std", histogram: BINS, percentiles: "1,5,50,95,99", sample };
  const sides = ranges.filter(Array.isArray).map((/** @type {number[]} */ one) => one[1]).join(" × ");
  const what = config.window ? `the centre, ${sides} elements` : "the slice";
  try {
    const found = await getJson(link(config.stats, { slice, fields: config.fields, ...words }));
    show(box, found, found.exact === false ? `From a sample of ${found.seen?.elements ?? "some"} elements of ${what}.` : `From all elements of ${what}.`);
  } catch (error) {
    showError(error, config.view);
  }
}

/** @param {HTMLElement} box @param {any} found @param {string} note */
function show(box, found, note) {
  const { edges, counts } = found.histogram || { edges: [], counts: [] };
  const drawing = counts.length ? bars({ edges, counts, title: `Histogram of ${numberText(found.count)} values from ${numberText(edges[0])} to ${numberText(edges[edges.length - 1])}`, width: widthOf(box) }) : null;
  const infinite = found.histogram?.outside || 0;
  const outside = infinite ? ` ${infinite} ${infinite === 1 ? "value is" : "values are"} infinite and in no bin.` : "";
  box.replaceChildren(...(drawing ? [drawing] : []), statistics(found), element("p", { class: "muted" }, `${note}${outside}`));
}

/** @param {import("./viewer.js").Viewer} viewer */
export function lineTab(viewer) {
  const { config, source } = viewer;
  const { plane, shape, names, columns: dim } = config;
  if (config.text || config.rows !== null || dim === null) {
    showError(config.text ? "Elements that are no numbers are shown in the table alone." : "One element has no line.", config.view);
    return;
  }
  const [start, count, by] = config.slice[dim];
  // A selection with steps is all of the line; of another, the line goes on before and after it.
  const [origin, length] = by === 1 ? [0, shape[dim]] : [start, count];
  let [from, most] = by === 1 ? [start, count] : [0, count];
  const range = (step = 1) => [origin + from * by, Math.ceil(most / step), by * step];
  const sliceOf = (step = 1) => shape.map((/** @type {number} */ size, /** @type {number} */ one) => (one === dim ? rangeText(range(step), size) : source.index[one])).join(",");
  /** @type {(() => Record<string, any>) | undefined} */
  let words;
  if (plane) {
    // The URL has the plane and the element in it, so that other tabs show them.
    const asked = (viewer.words.get("at") || "").split(",");
    const at = (/** @type {number} */ one, /** @type {number} */ place) => (one === dim ? asked[place] || start + Math.floor(count / 2) : source.index[one]);
    const planeText = () => plane.slice.map((/** @type {any} */ one, /** @type {number} */ own) => {
      if (!Array.isArray(one)) return own === dim ? one : source.index[own];
      return rangeText(own === dim ? range() : one, shape[own]);
    }).join(",");
    const first = planeText();
    words = () => ({
      slice: planeText() === first && !viewer.words.get("slice") ? "" : planeText(),
      at: [at(plane.rows, 0), at(plane.columns, 1)].join(","),
    });
  }
  const show = (/** @type {number} */ to, /** @type {number} */ size) => {
    viewer.url.keepStart();
    most = Math.max(Math.min(2, length), Math.min(length, Math.round(size)));
    from = Math.max(0, Math.min(length - most, Math.round(to)));
    viewer.update();
    viewer.write();
  };
  const zoomed = { zoom: (/** @type {number} */ factor) => show(from + (most - most / factor) / 2, most / factor), fit: () => show(0, length) };
  const index = (/** @type {number} */ at) => origin + Math.round(at) * by;
  const load = async () => {
    const cost = source.costOf(source.index.map((/** @type {number} */ at, /** @type {number} */ one) => (one === dim ? range() : at)));
    if (!viewer.mayLoad(cost)) {
      viewer.offer(cost);
      return;
    }
    const step = Math.max(1, Math.ceil(most / LONGEST_LINE));
    const read = async (/** @type {any} */ words) => {
      const answer = await getElements(link(config.data, { fields: config.fields, format: "bytes", ...words }));
      return { values: unpack(numbers(answer.buffer, config.cf.as || answer.type || config.type), config.cf), answer };
    };
    // Of a window of elements, one element does not show the extremes. Types that have none have no band.
    const extreme = async (/** @type {string} */ method) => {
      if (step === 1 || by !== 1) return undefined;
      return read({ slice: sliceOf(), downsample: step, method }).then((found) => found.values, () => undefined);
    };
    try {
      const [{ values, answer }, least, greatest] = await Promise.all([read({ slice: sliceOf(step) }), extreme("min"), extreme("max"), viewer.coordinates.loaded]);
      // A negative factor of packed numbers exchanges them.
      const [low, high] = (config.cf.scale ?? 1) < 0 ? [greatest, least] : [least, greatest];
      const known = viewer.coordinates.get(dim);
      const others = shape.map((/** @type {number} */ size, /** @type {number} */ one) => (one === dim || size < 2 ? "" : viewer.coordinates.named(one, source.index[one]))).filter(Boolean);
      byId("plot").replaceChildren(line({
        values, low, high, title: `along ${names[dim]}${others.length ? ` at ${others.join(", ")}` : ""}`, units: config.cf.units, start: from, step,
        width: widthOf(byId("plot")), height: 300,
        label: (at) => (known ? known.text(known.values[index(at)]) : String(index(at))),
        select: (first, last) => show(first, last - first + 1),
      }), tools());
      const part = step > 1 ? `, every ${step}th element${low && high ? ", and the extremes of those between" : ""}` : "";
      showCost(cost, answer.milliseconds, part);
    } catch (error) {
      showError(error, config.view);
    }
  };
  const tools = () => {
    const tool = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onclick) => element("button", { type: "button", class: "plain", "aria-label": label, title: label, onclick }, text);
    return element("div", { class: "buttons" },
      tool("+", "Zoom in", () => zoomed.zoom(2)), tool("−", "Zoom out", () => zoomed.zoom(0.5)),
      tool("‹", "Before", () => show(from - most / 2, most)), tool("›", "After", () => show(from + most / 2, most)),
      tool("all", "all of the line", () => show(0, length)));
  };
  viewer.open({ load, sliceText: () => sliceOf(), words, zoomed });
}
