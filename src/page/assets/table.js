// A window of elements as a table.

import { getJson, link } from "./api.js";
import { decoded } from "./decode.js";
import { byId, element } from "./element.js";
import { complain } from "./fields.js";
import { showError } from "./status-line.js";

const ROWS = 40;
const COLUMNS = 16;

export class Table {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    const { config } = viewer;
    const kept = config.slice.map((/** @type {any} */ one, /** @type {number} */ dim) => (Array.isArray(one) ? dim : -1)).filter((/** @type {number} */ dim) => dim >= 0);
    const last = kept.slice(-2);
    this.rows = last.length ? last[0] : null;
    this.columns = last.length > 1 ? last[1] : null;
    // More dimensions than a table has are shown at their first element.
    for (const dim of kept.slice(0, -2)) viewer.source.index[dim] = config.slice[dim][0];
    // A table reads little at once: where a picture is of the centre alone, it begins there and has all of the plane.
    const begin = (/** @type {number | null} */ dim) => (config.window && dim !== null ? config.slice[dim][0] : 0);
    this.ranges = config.slice.map((/** @type {any} */ one, /** @type {number} */ dim) => (config.window && Array.isArray(one) ? [0, config.shape[dim], 1] : one));
    this.top = begin(this.rows);
    this.left = begin(this.columns);
  }

  /** @param {number | null} dim */
  length(dim) {
    return dim === null ? 1 : this.ranges[dim][1];
  }

  /** @param {boolean} isWhole */
  slice(isWhole) {
    const { config, source } = this.viewer;
    return config.slice
      .map((/** @type {any} */ range, /** @type {number} */ dim) => {
        if (dim !== this.rows && dim !== this.columns) return source.index[dim];
        const [from, most] = dim === this.rows ? [this.top, ROWS] : [this.left, COLUMNS];
        if (isWhole) return range[1] === config.shape[dim] && range[2] === 1 ? ":" : `${range[0]}:${range[0] + (range[1] - 1) * range[2] + 1}:${range[2]}`;
        const [start, count, step] = this.ranges[dim];
        const to = Math.min(from + most, count);
        const [first, end] = [start + from * step, start + (to - 1) * step + Math.sign(step)];
        return `${first}:${end < 0 ? "" : end}${step === 1 ? "" : `:${step}`}`;
      })
      .join(",");
  }

  /** The selection in the URL. */
  sliceText() {
    return this.slice(true);
  }

  async load() {
    const { config } = this.viewer;
    const began = performance.now();
    try {
      const [found] = await Promise.all([getJson(link(config.data, { slice: this.slice(false), fields: config.fields, format: "json" })), this.viewer.coordinates.loaded]);
      this.show(found);
      byId("cost").textContent = `${Math.round(performance.now() - began)} ms`;
    } catch (error) {
      showError(error, config.view);
    }
  }

  /** @param {any} found */
  show(found) {
    let rows = this.rows === null ? [[found]] : this.columns === null ? found.map((/** @type {any} */ one) => [one]) : found;
    // Of structs, each field is a column.
    const isStruct = this.columns === null && rows.length > 0 && rows[0][0] !== null && typeof rows[0][0] === "object" && !Array.isArray(rows[0][0]);
    const fields = isStruct ? Object.keys(rows[0][0]) : [];
    if (isStruct) rows = rows.map((/** @type {any[]} */ [one]) => fields.map((field) => one[field]));
    const head = element("tr", {}, element("th", { scope: "col" }, this.corner()));
    const width = rows[0]?.length || 0;
    for (let at = 0; at < width; at += 1) head.append(element("th", { scope: "col" }, this.columns === null ? (fields[at] ?? "value") : this.label(this.columns, this.left + at)));
    const body = rows.map((/** @type {any[]} */ row, /** @type {number} */ at) =>
      element("tr", {}, element("th", { scope: "row" }, this.rows === null ? "" : this.label(this.rows, this.top + at)), ...row.map((value) => element("td", {}, element("bdi", {}, text(decoded(value, this.viewer.config.cf)))))));
    const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
    const box = byId("table");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Elements");
    box.replaceChildren(made);
    byId("values")?.remove();
    const note = this.note();
    if (note) box.after(element("p", { class: "muted", id: "values" }, note));
    byId("pager")?.remove();
    box.before(this.pager());
  }

  /** What the numbers are, where they are not those that are stored or have units. */
  note() {
    const { scale, offset, units, missing } = this.viewer.config.cf;
    const isPacked = scale !== null || offset !== null;
    const packing = isPacked ? `decoded from the stored numbers: × ${scale ?? 1} + ${offset ?? 0}` : "";
    const parts = [units ? `in ${units}` : "", packing, missing ? "– is missing" : ""].filter(Boolean);
    return parts.length ? `Values ${parts.join("; ")}` : "";
  }

  corner() {
    const { names } = this.viewer.config;
    if (this.rows === null) return "";
    return this.columns === null ? names[this.rows] : `${names[this.rows]} ↓ ${names[this.columns]} →`;
  }

  /** @param {number} dim @param {number} at */
  label(dim, at) {
    const [start, , step] = this.ranges[dim];
    const index = start + at * step;
    const known = this.viewer.coordinates.get(dim);
    return known ? known.text(known.values[index]) : String(index);
  }

  pager() {
    const pager = element("div", { class: "pager", id: "pager" });
    const { names } = this.viewer.config;
    const add = (/** @type {number | null} */ dim, /** @type {"top" | "left"} */ side, /** @type {number} */ most) => {
      const length = this.length(dim);
      if (dim === null || length <= most) return;
      const go = (/** @type {number} */ to) => {
        this[side] = Math.max(0, Math.min(length - 1, to));
        this.viewer.update();
      };
      const input = element("input", { type: "text", inputmode: "numeric", size: 8, value: this[side], "aria-label": `first ${names[dim]}`, onchange: (/** @type {any} */ event) => {
        const text = event.target.value.trim();
        const isIndex = /^\d+$/.test(text) && Number(text) < length;
        complain(event.target, isIndex ? "" : `Not used: indexes go from 0 to ${length - 1}.`);
        if (isIndex) go(Number(text));
      } });
      pager.append(
        element("span", {}, `${names[dim]} `),
        element("button", { type: "button", "aria-label": `${names[dim]} before`, onclick: () => go(this[side] - most) }, "‹"), input,
        element("button", { type: "button", "aria-label": `${names[dim]} after`, onclick: () => go(this[side] + most) }, "›"),
        element("span", { class: "muted" }, `of ${length}`),
      );
    };
    add(this.rows, "top", ROWS);
    add(this.columns, "left", COLUMNS);
    return pager;
  }
}

/** @param {any} value */
function text(value) {
  if (Number.isNaN(value)) return "–";
  const found = typeof value === "string" ? value : typeof value === "number" ? String(Number(value.toPrecision(8))) : JSON.stringify(value);
  return found.length > 120 ? `${found.slice(0, 120)}…` : found;
}
