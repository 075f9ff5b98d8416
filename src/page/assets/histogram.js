// The histogram and the line of a selection.

import { getElements, getJson, link, Problem } from "./api.js";
import { numbers, percentiles, unpack } from "./decode.js";
import { byId, bytesText, element, numberText } from "./element.js";
import { bars, line } from "./plot.js";
import { statistics } from "./viewer.js";

const BINS = 64;
const LONGEST_LINE = 4000;

/** The width of a drawing, so that its text is as large as other text. @param {HTMLElement} box */
const widthOf = (box) => Math.max(280, Math.min(960, box.clientWidth || 960));

/** @param {import("./viewer.js").Viewer} viewer */
export function histogram(viewer) {
  viewer.changed = () => viewer.latest.run(() => load(viewer));
  viewer.changed();
}

/** @param {import("./viewer.js").Viewer} viewer */
async function load(viewer) {
  const { config } = viewer;
  const box = byId("histogram");
  const slice = viewer.sliceText();
  // Statistics are those of arrays of numbers, and not of a field.
  if (config.fields) return ownHistogram(viewer, box, slice).catch((error) => viewer.complain(error));
  try {
    const found = await getJson(link(config.stats, { slice, ops: "count,missing,nan,min,max,mean,std", histogram: BINS, percentiles: "1,5,50,95,99", sample: "auto" }));
    show(box, found, found.exact === false ? `From a sample of ${found.seen?.elements ?? "some"} elements.` : "From all elements of the slice.");
  } catch (error) {
    if (error instanceof Problem && error.status === 404) await ownHistogram(viewer, box, slice);
    else viewer.complain(error);
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

/**
 * Counts the elements here, where the server has no statistics.
 * @param {import("./viewer.js").Viewer} viewer @param {HTMLElement} box @param {string} slice
 */
async function ownHistogram(viewer, box, slice) {
  const { config } = viewer;
  const elements = config.slice.reduce((/** @type {number} */ product, /** @type {any} */ one) => product * (Array.isArray(one) ? one[1] : 1), 1);
  if (elements * config.itemBytes > config.budget.bytes) {
    viewer.complain(new Error(`${bytesText(elements * config.itemBytes)}: more than is loaded unasked.`));
    return;
  }
  const answer = await getElements(link(config.data, { slice, fields: config.fields, format: "bytes" }));
  const values = unpack(numbers(answer.buffer, config.cf.as || answer.type || config.type), config.cf);
  const ends = percentiles(values, [0, 100]) || [0, 1];
  const width = (ends[1] - ends[0]) / BINS || 1;
  const counts = new Array(BINS).fill(0);
  let [count, sum, missing] = [0, 0, 0];
  for (let at = 0; at < values.length; at += 1) {
    if (!Number.isFinite(values[at])) {
      missing += 1;
      continue;
    }
    count += 1;
    sum += values[at];
    counts[Math.max(0, Math.min(BINS - 1, Math.floor((values[at] - ends[0]) / width)))] += 1;
  }
  const edges = Array.from({ length: BINS + 1 }, (_, at) => ends[0] + at * width);
  show(box, { count, missing, min: ends[0], max: ends[1], mean: sum / count, histogram: { edges, counts } }, "Counted in this browser.");
}

/** @param {import("./viewer.js").Viewer} viewer */
export function lineTab(viewer) {
  const { config } = viewer;
  const kept = config.slice.map((/** @type {any} */ one, /** @type {number} */ dim) => (Array.isArray(one) ? dim : -1)).filter((/** @type {number} */ dim) => dim >= 0);
  if (!kept.length || config.text) {
    viewer.complain(new Error(config.text ? "Elements that are no numbers are shown in the table alone." : "One element has no line."));
    return;
  }
  const byRow = config.columns ?? kept[kept.length - 1];
  let dim = kept.length === 1 ? kept[0] : byRow;
  for (const other of kept) {
    if (other !== dim) viewer.source.index[other] = config.slice[other][0] + Math.floor(config.slice[other][1] / 2);
  }
  viewer.sliceText = () => config.shape.map((/** @type {number} */ _, /** @type {number} */ one) => (one === dim ? ":" : viewer.source.index[one])).join(",");
  const load = async () => {
    const length = config.shape[dim];
    const chunks = config.chunk ? Math.ceil(length / config.chunk[dim]) : 1;
    const bytes = config.chunk ? config.chunk.reduce((/** @type {number} */ product, /** @type {number} */ edge) => product * edge, config.itemBytes) * chunks : length * config.itemBytes;
    if (!viewer.source.isSmall({ chunks, bytes }) && !viewer.mayLoadMore) {
      viewer.changed = () => viewer.latest.run(load);
      viewer.offer({ chunks, bytes });
      viewer.update = () => viewer.latest.run(load);
      return;
    }
    const step = Math.max(1, Math.ceil(length / LONGEST_LINE));
    const slice = viewer.sliceText().split(",").map((/** @type {string} */ part) => (part === ":" && step > 1 ? `::${step}` : part)).join(",");
    try {
      const [answer] = await Promise.all([getElements(link(config.data, { slice, fields: config.fields, format: "bytes" })), viewer.hasCoordinates]);
      const values = unpack(numbers(answer.buffer, config.cf.as || answer.type || config.type), config.cf);
      const known = viewer.coordinates.get(dim);
      byId("plot").replaceChildren(chooser(), line({
        values, title: `along ${config.names[dim]}`, units: config.cf.units, step, width: widthOf(byId("plot")), height: 300,
        label: (at) => (known ? known.text(known.values[Math.round(at)]) : String(Math.round(at))),
      }));
      byId("cost").textContent = `${chunks} ${chunks === 1 ? "chunk" : "chunks"}, ${bytesText(bytes)} decoded, ${Math.round(answer.milliseconds)} ms${step > 1 ? `, every ${step}th element` : ""}`;
    } catch (error) {
      viewer.complain(error);
    }
  };
  const chooser = () => {
    if (kept.length < 2) return element("span");
    const select = element("select", { id: "along", onchange: (/** @type {any} */ event) => {
      dim = Number(event.target.value);
      viewer.latest.run(load);
    } }, ...kept.map((/** @type {number} */ one) => element("option", { value: one, selected: one === dim }, config.names[one])));
    return element("p", {}, element("label", { for: "along" }, "Along "), select);
  };
  viewer.changed = () => viewer.latest.run(load);
  viewer.changed();
}
