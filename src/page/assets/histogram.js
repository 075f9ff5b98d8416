// The histogram and the line of a selection.

import { getElements, getJson, link } from "./api.js";
import { numbers, unpack } from "./decode.js";
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
  const words = { ops: "count,missing,nan,min,max,mean,std", histogram: BINS, percentiles: "1,5,50,95,99", sample: "auto" };
  try {
    const found = await getJson(link(config.stats, { slice, fields: config.fields, ...words }));
    show(box, found, found.exact === false ? `From a sample of ${found.seen?.elements ?? "some"} elements.` : "From all elements of the slice.");
  } catch (error) {
    viewer.complain(error);
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
    const slice = viewer.sliceText();
    const strided = slice.split(",").map((/** @type {string} */ part) => (part === ":" && step > 1 ? `::${step}` : part)).join(",");
    const read = async (/** @type {any} */ words) => {
      const answer = await getElements(link(config.data, { fields: config.fields, format: "bytes", ...words }));
      return { values: unpack(numbers(answer.buffer, config.cf.as || answer.type || config.type), config.cf), answer };
    };
    // Of a window of elements, one element does not show the extremes. Types that have none have no band.
    const extreme = async (/** @type {string} */ method) => {
      if (step === 1) return undefined;
      return read({ slice, downsample: step, method }).then((found) => found.values, () => undefined);
    };
    try {
      const [{ values, answer }, least, most] = await Promise.all([read({ slice: strided }), extreme("min"), extreme("max"), viewer.hasCoordinates]);
      // A negative factor of packed numbers exchanges them.
      const [low, high] = (config.cf.scale ?? 1) < 0 ? [most, least] : [least, most];
      const known = viewer.coordinates.get(dim);
      byId("plot").replaceChildren(chooser(), line({
        values, low, high, title: `along ${config.names[dim]}`, units: config.cf.units, step, width: widthOf(byId("plot")), height: 300,
        label: (at) => (known ? known.text(known.values[Math.round(at)]) : String(Math.round(at))),
      }));
      const part = step > 1 ? `, every ${step}th element${low && high ? ", and the extremes of those between" : ""}` : "";
      byId("cost").textContent = `${chunks} ${chunks === 1 ? "chunk" : "chunks"}, ${bytesText(bytes)} decoded, ${Math.round(answer.milliseconds)} ms${part}`;
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
