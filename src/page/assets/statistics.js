// Statistics of elements: as a list, and of a box that is drawn in a picture.

import { getJson, link } from "./api.js";
import { byId, element, numberText } from "./element.js";
import { copy, errorText } from "./status-line.js";

/** Statistics as a list. @param {any} document */
export function statistics(document) {
  // Where infinite values have no mean or percentile, that is no missing value.
  const of = (/** @type {unknown} */ value) => (value === "NaN" || value === null ? "none" : numberText(Number(value)));
  const names = ["count", "missing", "nan", "min", "max", "mean", "std", "sum"];
  const rows = names.filter((name) => document[name] !== undefined && document[name] !== null);
  const list = element("dl", { class: "statistics" }, ...rows.map((name) => element("div", {}, element("dt", {}, name), element("dd", {}, of(document[name])))));
  for (const [name, value] of Object.entries(document.percentiles || {})) {
    list.append(element("div", {}, element("dt", {}, `${name} %`), element("dd", {}, of(value))));
  }
  return list;
}

/**
 * Shows the selection and the statistics of a part of a plane.
 * @param {any} config
 * @param {import("./source.js").Source} source
 * @param {import("./picture.js").Box} box
 */
export async function showBoxStatistics(config, source, box) {
  const slice = source.slice(source.levels[0], [box.y, box.y + box.h], [box.x, box.x + box.w], 1);
  const button = element("button", { type: "button", onclick: () => copy(slice, "The slice is copied.") }, "copy slice");
  const section = element("section", {}, element("h2", {}, `box ${box.w} × ${box.h}`), element("p", {}, element("code", {}, slice), " ", button));
  byId("profiles").replaceChildren(section);
  try {
    section.append(statistics(await getJson(link(config.stats, { slice, fields: config.fields }))));
  } catch (error) {
    section.append(element("p", { class: "warn" }, errorText(error)));
  }
}
