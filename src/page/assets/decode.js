// Bytes of elements as numbers, and what numbers mean by the conventions of CF.

/** @typedef {{as: string | null, scale: number | null, offset: number | null, missing: number[] | null,
 *   units?: string | null, range?: number[] | null, min?: number | null, max?: number | null}} Packing `as` is the type that elements are read as. */

const TYPES = /** @type {Record<string, any>} */ ({
  bool: Uint8Array, int2: Int8Array, int4: Int8Array, int8: Int8Array, uint2: Uint8Array, uint4: Uint8Array,
  uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
  float32: Float32Array, float64: Float64Array,
});

/**
 * @param {number} bits
 * @returns {number} The number that a binary16 stands for.
 */
function half(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * The elements of a response as an array of numbers; complex numbers by their magnitude.
 * @param {ArrayBuffer} buffer
 * @param {string} type The name of the data type.
 * @returns {ArrayLike<number> & {length: number}}
 */
export function numbers(buffer, type) {
  const plain = TYPES[type];
  if (plain) return new plain(buffer);
  if (type === "int64" || type === "uint64" || type.startsWith("numpy.")) {
    const words = type === "uint64" ? new BigUint64Array(buffer) : new BigInt64Array(buffer);
    const result = new Float64Array(words.length);
    const isTime = type.startsWith("numpy.");
    for (let at = 0; at < words.length; at += 1) {
      const value = Number(words[at]);
      result[at] = isTime && value <= -9.2e18 ? NaN : value;
    }
    return result;
  }
  if (type === "float16") return Float32Array.from(new Uint16Array(buffer), half);
  if (type === "bfloat16") {
    const bits = Uint32Array.from(new Uint16Array(buffer), (word) => word << 16);
    return new Float32Array(bits.buffer);
  }
  if (type === "complex64" || type === "complex128") {
    const parts = type === "complex64" ? new Float32Array(buffer) : new Float64Array(buffer);
    const result = new Float64Array(parts.length / 2);
    for (let at = 0; at < result.length; at += 1) result[at] = Math.hypot(parts[2 * at], parts[2 * at + 1]);
    return result;
  }
  throw new Error(`Elements of the type ${type} are shown in the table alone.`);
}

/**
 * The numbers that packed elements stand for: missing ones are NaN. The same array, if nothing is packed.
 * @param {ArrayLike<number> & {length: number}} values
 * @param {Packing} packing
 * @returns {ArrayLike<number> & {length: number}}
 */
export function unpack(values, packing) {
  const { scale, offset, missing } = packing;
  if (scale === null && offset === null && missing === null) return values;
  const result = new Float64Array(values.length);
  const factor = scale ?? 1;
  const sum = offset ?? 0;
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    result[at] = missing?.includes(value) ? NaN : value * factor + sum;
  }
  return result;
}

/**
 * What an element in JSON stands for: NaN for a missing one. Text and other values are as they are.
 * @param {any} value
 * @param {Packing} packing
 */
export function decoded(value, packing) {
  if (typeof value !== "number") return value;
  const bits = Number(packing.as?.match(/^u?int(\d+)$/)?.[1] || 0);
  let read = value;
  if (bits && packing.as?.startsWith("u") && read < 0) read += 2 ** bits;
  if (bits && packing.as?.startsWith("i") && read >= 2 ** (bits - 1)) read -= 2 ** bits;
  if (packing.missing?.includes(read)) return NaN;
  return packing.scale === null && packing.offset === null ? read : read * (packing.scale ?? 1) + (packing.offset ?? 0);
}

/**
 * Percentiles of numbers, without what is missing; of a regular sample, if there are many.
 * @param {ArrayLike<number> & {length: number}} values
 * @param {number[]} wanted From 0 to 100.
 * @returns {number[] | null}
 */
export function percentiles(values, wanted) {
  const step = Math.max(1, Math.floor(values.length / 200000));
  const sample = [];
  for (let at = 0; at < values.length; at += step) {
    if (Number.isFinite(values[at])) sample.push(values[at]);
  }
  if (!sample.length) return null;
  const sorted = Float64Array.from(sample).sort();
  return wanted.map((one) => {
    const place = (one / 100) * (sorted.length - 1);
    const low = Math.floor(place);
    const high = Math.min(low + 1, sorted.length - 1);
    const part = place - low;
    const distance = sorted[high] - sorted[low];
    return Number.isFinite(distance) ? sorted[low] + distance * part : sorted[low] * (1 - part) + sorted[high] * part;
  });
}

/**
 * The smallest and the largest finite number, if there is one.
 * @param {ArrayLike<number> & {length: number}} values
 * @returns {[number, number] | null}
 */
export function extremes(values) {
  let [low, high] = [Infinity, -Infinity];
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/**
 * The extremes of an integer type, in the numbers that they stand for; 0 and 1 of other types.
 * @param {string} type
 * @param {Packing} packing
 * @returns {[number, number]}
 */
export function typeRange(type, packing) {
  const [, sign, digits] = (packing.as || type).match(/^(u?)int(\d+)$/) ?? [];
  if (!digits && type !== "bool") return [0, 1];
  const bits = Number(digits ?? 1);
  const stored = sign === "" ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  const [one, other] = stored.map((end) => end * (packing.scale ?? 1) + (packing.offset ?? 0));
  return [Math.min(one, other), Math.max(one, other)];
}

/**
 * The part of a range that is below a number of it. A range may be wider than the largest number.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function partBelow(value, low, high) {
  const span = high - low;
  return Number.isFinite(span) ? (value - low) / span : (value / 2 - low / 2) / (high / 2 - low / 2);
}

const SECONDS = /** @type {Record<string, number>} */ ({
  second: 1, seconds: 1, s: 1, sec: 1, secs: 1, minute: 60, minutes: 60, min: 60, mins: 60, hour: 3600, hours: 3600,
  h: 3600, hr: 3600, day: 86400, days: 86400, d: 86400, millisecond: 1e-3, milliseconds: 1e-3,
});
const SHORT = /** @type {Record<string, string>} */ ({
  degrees_north: "°N", degree_north: "°N", degrees_east: "°E", degree_east: "°E", degrees: "°", micrometer: " µm", 1: "",
});
/** South and west are the other side of zero. */
const OPPOSITE = /** @type {Record<string, string>} */ ({ degrees_north: "°S", degree_north: "°S", degrees_east: "°W", degree_east: "°W" });
const GREGORIAN = [null, "", "standard", "gregorian", "proleptic_gregorian"];
/** The days of the years of calendars whose years have all the same length. */
const YEAR_DAYS = /** @type {Record<string, number>} */ ({ noleap: 365, "365_day": 365, all_leap: 366, "366_day": 366, "360_day": 360 });
const DAY = 86400000;

/** @param {number} number @param {number} digits */
const padded = (number, digits) => String(number).padStart(digits, "0");

/**
 * How dates of a calendar are counted in milliseconds and written; `null` for one that is not known here.
 * @param {string | null} calendar
 * @returns {{count(year: number, month: number, day: number): number, text(milliseconds: number): string} | null}
 */
function dates(calendar) {
  if (GREGORIAN.includes(calendar)) {
    return {
      count: (year, month, day) => Date.UTC(year, month - 1, day),
      text: (milliseconds) => {
        const date = new Date(milliseconds);
        return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 16).replace("T", " ");
      },
    };
  }
  const days = YEAR_DAYS[calendar?.toLowerCase() ?? ""];
  if (!days) return null;
  const months = days === 360 ? Array(12).fill(30) : [31, days - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return {
    count: (year, month, day) => (year * days + months.slice(0, month - 1).reduce((sum, one) => sum + one, 0) + day - 1) * DAY,
    text: (milliseconds) => {
      const minutes = Math.floor(Math.round(milliseconds) / 60000);
      const whole = Math.floor(minutes / 1440);
      let [left, month] = [whole - Math.floor(whole / days) * days, 0];
      while (left >= months[month]) {
        left -= months[month];
        month += 1;
      }
      const date = `${padded(Math.floor(whole / days), 4)}-${padded(month + 1, 2)}-${padded(left + 1, 2)}`;
      const minute = minutes - whole * 1440;
      return Number.isFinite(minute) ? `${date} ${padded(Math.floor(minute / 60), 2)}:${padded(minute % 60, 2)}` : "";
    },
  };
}

/**
 * How times are numbers; `null` of units that are those of no time.
 * @param {string | null} units
 * @param {string | null} calendar
 */
function timeOf(units, calendar) {
  const parts = units?.match(/^(\w+) since (\d{1,4}-\d{1,2}-\d{1,2})(?:[T ]([\d:.]+))?/);
  const calendars = dates(calendar);
  if (!parts || !calendars || !(parts[1].toLowerCase() in SECONDS)) return null;
  const [year, month, day] = parts[2].split("-").map(Number);
  const [hours = 0, minutes = 0, seconds = 0] = (parts[3] || "").split(":").map(Number);
  const origin = calendars.count(year, month, day) + (((hours || 0) * 60 + (minutes || 0)) * 60 + (seconds || 0)) * 1000;
  return { calendars, origin, unit: SECONDS[parts[1].toLowerCase()] * 1000 };
}

const DATE = /^(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d(?:\.\d+)?))?)?)?)?Z?$/;

/**
 * A function from dates to the numbers of coordinates, or to milliseconds where these are texts; `null` where they are no times.
 * @param {string | null} units
 * @param {string | null} calendar
 * @param {any[]} values
 * @returns {((text: string) => number | null) | null}
 */
export function dateReader(units, calendar, values) {
  const areDates = values.length > 0 && values.every((value) => typeof value === "string" && (DATE.test(value) || value === "NaT"));
  const time = areDates ? { calendars: dates(null), origin: 0, unit: 1 } : timeOf(units, calendar);
  if (!time?.calendars) return null;
  const { calendars, origin, unit } = time;
  return (text) => {
    const [, year, month, day = "01", hour = 0, minute = 0, second = 0] = text.match(DATE) ?? [];
    if (!year) return null;
    const midnight = calendars.count(Number(year), Number(month), Number(day));
    const isDate = calendars.text(midnight).startsWith(`${year}-${month}-${day}`);
    const milliseconds = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
    return isDate && milliseconds < DAY ? (midnight + milliseconds - origin) / unit : null;
  };
}

/**
 * A function from coordinates to text: dates, where the units are those of a time.
 * @param {string | null} units
 * @param {string | null} calendar
 * @param {number[]} values
 * @returns {(value: number) => string}
 */
export function labeller(units, calendar, values) {
  const number = (/** @type {number} */ value) => {
    if (typeof value !== "number") return String(value);
    const away = units ? OPPOSITE[units] : undefined;
    if (away && value < 0) return `${Number((-value).toPrecision(7))}${away}`;
    return `${Number(value.toPrecision(7))}${units ? SHORT[units] || ` ${units}` : ""}`;
  };
  const time = timeOf(units, calendar);
  if (!time) return number;
  const { calendars, origin, unit } = time;
  const isDaily = values.every((value) => ((origin + value * unit) / DAY) % 1 === 0);
  return (value) => {
    const text = typeof value === "number" ? calendars.text(origin + value * unit) : "";
    if (!text) return number(value);
    return isDaily ? text.slice(0, -6) : text;
  };
}
