// Texts that people type into fields, and why one is not used.

/** The ranges that pictures have. */
const RANGES = "two numbers such as 0,40, percentiles such as 2%,98%, or one of auto, slice (the extremes of the picture) and type (those of the data type)";
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

/**
 * The number of a text; null if it is none.
 * @param {string} text
 */
export const numberOf = (text) => (NUMBER.test(text.trim()) ? Number(text) : null);

/**
 * Says beside a field why its text is not used. Without a complaint it is used.
 * @param {HTMLInputElement} input
 * @param {string} complaint
 */
export function complain(input, complaint) {
  input.setCustomValidity(complaint);
  let note = /** @type {HTMLElement | null} */ (input.nextElementSibling?.matches(".complaint") ? input.nextElementSibling : null);
  if (!complaint) {
    input.removeAttribute("aria-invalid");
    note?.remove();
    return;
  }
  input.setAttribute("aria-invalid", "true");
  if (!note) {
    note = document.createElement("span");
    note.className = "complaint warn";
    note.setAttribute("role", "alert");
    input.after(note);
  }
  note.textContent = complaint;
}

/**
 * The coordinates along a dimension.
 * @typedef {{values: any[], text(value: any): string, date: ((text: string) => number | null) | null}} Coordinates
 *   `text` writes a value, `date` reads the number of a date, where they are times.
 */

/** A date and a time as pages write them. @param {string} text */
const plain = (text) => text.replace("T", " ");

/**
 * The index that a text names, which is an index or a coordinate; or why it names none. A whole number is an index, and nothing else is.
 * @param {string} text
 * @param {number} length That of the dimension.
 * @param {Coordinates | undefined} known
 * @returns {number | string}
 */
export function indexOf(text, length, known) {
  const limits = `indexes go from 0 to ${length - 1}`;
  if (/^\d+$/.test(text)) return Number(text) < length ? Number(text) : `Not used: ${limits}.`;
  if (!known) return `Not used: this is no index; ${limits}.`;
  const { values } = known;
  const isText = (/** @type {any} */ value) => known.date || typeof value === "string";
  const isNamed = (/** @type {any} */ value) => known.text(value) === text || (isText(value) && plain(known.text(value)).startsWith(plain(text)));
  const places = values.map((value) => (typeof value === "number" ? value : known.date?.(value) ?? NaN));
  const hasNumbers = places.some(Number.isFinite);
  if (text === "latest") return last(hasNumbers ? places : values);
  const exact = text ? values.findIndex(isNamed) : -1;
  if (exact >= 0) return exact;
  const wanted = known.date ? known.date(text) : numberOf(text);
  if (wanted === null || !hasNumbers) return `Not used: this is no index or coordinate such as ${known.text(values[0])}.`;
  return nearest(places, wanted) ?? `Not used: no coordinate is near; they go from ${known.text(values[0])} to ${known.text(values[values.length - 1])}.`;
}

/** The place of the largest number or the last text. @param {any[]} values */
const last = (values) => values.reduce((best, value, at) => (value > values[best] || Number.isNaN(values[best]) ? at : best), 0);

/**
 * The place of the nearest of some numbers: before the smallest and after the largest at most half a step away.
 * @param {number[]} numbers
 * @param {number} wanted
 * @returns {number | null}
 */
function nearest(numbers, wanted) {
  const away = numbers.map((number) => Math.abs(number - wanted));
  const best = away.reduce((least, one, at) => (one < (away[least] ?? Infinity) ? at : least), -1);
  if (best < 0) return null;
  const isBetween = numbers.some((number) => number <= wanted) && numbers.some((number) => number >= wanted);
  const steps = numbers.map((number) => Math.abs(number - numbers[best])).filter((step) => step > 0);
  const step = steps.reduce((least, one) => Math.min(least, one), steps[0] ?? 0);
  return isBetween || away[best] <= step / 2 ? best : null;
}

/** What a field of an index takes. @param {Coordinates | undefined} known */
export function indexHint(known) {
  if (!known) return "A whole number from 0 is an index.";
  if (known.date) return `A whole number is an index; write ${plain(known.text(known.values[0]))} for a time, or latest.`;
  if (typeof known.values[0] === "string") return `A whole number is an index; write ${known.text(known.values[0])} for the coordinate.`;
  return "A whole number is an index; write 45.0 or -45 for the coordinate 45 or -45.";
}

/** Whether the range of a picture depends on the picture alone. @param {string} text */
export const isOfPicture = (text) => text === "slice" || text.endsWith("%");

/**
 * Why a text is no range of colours; empty if it is one.
 * @param {string} text Without spaces.
 * @param {string} scale
 */
export function rangeComplaint(text, scale) {
  if (["", "auto", "slice", "type"].includes(text)) return "";
  const ends = text.split(",");
  const isPercent = ends.every((end) => end.endsWith("%"));
  const [low, high] = ends.map((end) => numberOf(isPercent ? end.slice(0, -1) : end));
  if (ends.length !== 2 || low === null || high === null) return `Not used: a range is ${RANGES}.`;
  if (isPercent && (low < 0 || high > 100)) return "Not used: percentiles go from 0% to 100%.";
  if (low > high) return "Not used: the smaller number comes first.";
  if (scale === "log" && !isPercent && low <= 0) return "Not used: a logarithmic range begins above 0.";
  return "";
}
