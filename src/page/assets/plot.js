// Lines with axes, as SVG.

import { extremes, partBelow } from "./decode.js";
import { element, numberText, svg } from "./element.js";

/**
 * Places for marks between two numbers.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 * @returns {number[]}
 */
function ticks(low, high, most) {
  const rough = high / most - low / most || 1 / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) || power;
  const first = Math.ceil(low / step);
  /** @type {number[]} */
  const found = [];
  // Numbers may be so large, or so close together, that a step leads nowhere: their number is bounded.
  for (let number = 0; number <= 2 * most; number += 1) {
    const at = (first + number) * step;
    if (!(at <= high + step * 1e-9) || at === found[found.length - 1]) break;
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  }
  return found;
}

/**
 * One of the curves of a plot. Those with names have colours of their own.
 * @typedef {{values: ArrayLike<number> & {length: number}, name: string, color: string}} Curve
 */

/**
 * A line plot.
 * @param {{values: ArrayLike<number> & {length: number}, low?: ArrayLike<number>, high?: ArrayLike<number>, curves?: Curve[],
 *   label(at: number): string, title: string, units?: string | null, cursor?: number | null,
 *   width?: number, height?: number, start?: number, step?: number, pick?(at: number): void, select?(first: number, last: number): void}} options
 * @returns {HTMLElement}
 */
export function line(options) {
  const { values, label, title, cursor = null, width = 640, height = 240, start = 0, step = 1 } = options;
  const curves = options.curves ?? [{ values, name: "", color: "" }];
  const [left, right, top, bottom] = [58, 12, 8, 26];
  const all = [options.low, options.high, ...curves.map((one) => one.values)].flatMap((one) => (one && extremes(one)) || []);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (low > high) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.05, high + Math.abs(high || 1) * 0.05];
  const last = Math.max(values.length - 1, 1);
  const x = (/** @type {number} */ at) => left + ((width - left - right) * at) / last;
  const y = (/** @type {number} */ value) => top + (height - top - bottom) * (1 - partBelow(value, low, high));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary(options) });
  for (const value of ticks(low, high, 5)) {
    drawing.append(svg("path", { class: "axis", d: `M${left} ${y(value)}H${width - right}` }));
    drawing.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, numberText(value)));
  }
  const longest = Math.max(...[0, last].map((at) => label(start + at * step).length));
  const marks = Math.max(2, Math.floor((width - left) / Math.max(110, 10 * longest)));
  const places = [...new Set(Array.from({ length: marks }, (_, at) => Math.round((last * at) / (marks - 1))))];
  for (const at of places.filter((place) => place < values.length)) {
    const anchor = at === 0 ? "start" : at === last ? "end" : "middle";
    drawing.append(svg("text", { x: x(at), y: height - 8, "text-anchor": anchor }, label(start + at * step)));
  }
  if (options.low && options.high) drawing.append(svg("path", { class: "band", d: band(options, x, y, values.length) }));
  for (const one of curves) drawing.append(...strokes(curve(one.values, x, y), one.color));
  const mark = svg("path", { class: "cursor", d: cursor === null ? "" : `M${x(cursor)} ${top}V${height - bottom}` });
  drawing.append(mark);
  const readout = element("p", { class: "cost" }, summary(options));
  const at = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const rect = drawing.getBoundingClientRect();
    const place = ((event.clientX - rect.left) / rect.width) * width;
    return Math.max(0, Math.min(values.length - 1, Math.round(((place - left) / (width - left - right)) * last)));
  };
  drawing.addEventListener("pointermove", (event) => {
    const place = at(event);
    mark.setAttribute("d", `M${x(place)} ${top}V${height - bottom}`);
    const numbers = curves.map((one) => `${one.name ? `${one.name} ` : ""}${numberText(one.values[place])}`).join(", ");
    readout.textContent = `${label(start + place * step)}: ${numbers}${options.units ? ` ${options.units}` : ""}`;
  });
  if (options.pick) {
    drawing.addEventListener("click", (event) => options.pick?.(start + at(event) * step));
  }
  const { select } = options;
  if (select) {
    /** @type {number | null} */
    let first = null;
    drawing.addEventListener("pointerdown", (event) => {
      first = at(event);
    });
    drawing.addEventListener("pointerup", (event) => {
      const ends = [first ?? 0, at(event)];
      if (first !== null && ends[0] !== ends[1]) select(start + Math.min(...ends) * step, start + Math.max(...ends) * step);
      first = null;
    });
  }
  const key = curves.filter((one) => one.name).flatMap((one) => {
    const sample = element("span", { "aria-hidden": "true" });
    Object.assign(sample.style, { display: "inline-block", width: "1.4em", height: "0.5em", border: "1px solid", marginRight: "0.3em", background: one.color });
    return [sample, element("bdi", {}, one.name), " "];
  });
  return element("div", {}, drawing, ...(key.length ? [element("p", { class: "key" }, ...key)] : []), readout);
}

/** A curve; one with a colour has a line behind it that is seen on every ground. @param {string} d @param {string} color */
function strokes(d, color) {
  const path = svg("path", { class: "curve", d });
  if (!color) return [path];
  const behind = svg("path", { class: "curve", d });
  Object.assign(behind.style, { stroke: "currentColor", strokeWidth: "3.4", opacity: "0.5" });
  path.style.stroke = color;
  return [behind, path];
}

/** @param {Parameters<typeof line>[0]} options */
function summary({ values, curves, low, high, title, units }) {
  const one = (/** @type {Curve} */ { values, name }) => `${name ? `${name} ` : ""}${extent(values, low, high, units)}`;
  return `${title}: ${(curves ?? [{ values, name: "", color: "" }]).map(one).join("; ")}`;
}

/**
 * @param {ArrayLike<number> & {length: number}} values
 * @param {ArrayLike<number> | undefined} least
 * @param {ArrayLike<number> | undefined} most
 * @param {string | null | undefined} units
 */
function extent(values, least = values, most = values, units) {
  let [low, high, count] = [Infinity, -Infinity, 0];
  for (let at = 0; at < values.length; at += 1) {
    if (!Number.isFinite(least[at]) || !Number.isFinite(most[at])) continue;
    count += 1;
    low = Math.min(low, least[at]);
    high = Math.max(high, most[at]);
  }
  if (!count) return "no values";
  return `${values.length} values from ${numberText(low)} to ${numberText(high)}${units ? ` ${units}` : ""}`;
}

/**
 * @param {ArrayLike<number> & {length: number}} values
 * @param {(at: number) => number} x
 * @param {(value: number) => number} y
 */
function curve(values, x, y) {
  const parts = [];
  let isOn = false;
  for (let at = 0; at < values.length; at += 1) {
    if (!Number.isFinite(values[at])) {
      isOn = false;
      continue;
    }
    parts.push(`${isOn ? "L" : "M"}${x(at).toFixed(1)} ${y(values[at]).toFixed(1)}`);
    if (!isOn && (at + 1 >= values.length || !Number.isFinite(values[at + 1]))) parts.push("h2");
    isOn = true;
  }
  return parts.join("");
}

/**
 * @param {{low?: ArrayLike<number>, high?: ArrayLike<number>}} options
 * @param {(at: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} length
 */
function band({ low = [], high = [] }, x, y, length) {
  const forth = [];
  const back = [];
  for (let at = 0; at < length; at += 1) {
    if (!Number.isFinite(low[at]) || !Number.isFinite(high[at])) continue;
    forth.push(`${x(at).toFixed(1)} ${y(high[at]).toFixed(1)}`);
    back.push(`${x(at).toFixed(1)} ${y(low[at]).toFixed(1)}`);
  }
  return forth.length ? `M${forth.join("L")}L${back.reverse().join("L")}Z` : "";
}

/**
 * Bars of a histogram.
 * @param {{edges: number[], counts: number[], title: string, width?: number, height?: number}} options
 * @returns {SVGElement}
 */
export function bars({ edges, counts, title, width = 960, height = 300 }) {
  const [left, right, top, bottom] = [58, 12, 8, 26];
  const most = Math.max(...counts, 1);
  const [low, high] = [edges[0], edges[edges.length - 1]];
  const x = (/** @type {number} */ value) => left + (low < high ? (width - left - right) * partBelow(value, low, high) : 0);
  const y = (/** @type {number} */ count) => top + ((height - top - bottom) * (most - count)) / most;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const count of ticks(0, most, 5)) {
    drawing.append(svg("path", { class: "axis", d: `M${left} ${y(count)}H${width - right}` }));
    drawing.append(svg("text", { x: left - 6, y: y(count) + 4, "text-anchor": "end" }, numberText(count)));
  }
  counts.forEach((count, at) => {
    const [from, to] = [x(edges[at]), x(edges[at + 1])];
    const bar = svg("rect", { class: "bar", x: from, y: y(count), width: Math.max(to - from - 0.4, 0.4), height: height - bottom - y(count) });
    bar.append(svg("title", {}, `${numberText(edges[at])} to ${numberText(edges[at + 1])}: ${count}`));
    drawing.append(bar);
  });
  const mostMarks = Math.max(2, Math.floor(width / 150));
  const marks = ticks(low, high, mostMarks);
  // One number alone is no scale.
  for (const value of marks.length > 1 ? marks : ticks(low, high, 2 * mostMarks)) {
    drawing.append(svg("text", { x: x(value), y: height - 8, "text-anchor": "middle" }, numberText(value)));
  }
  return drawing;
}
