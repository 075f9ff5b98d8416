// Small helpers for elements of the page. Text is always set as text, never parsed.

/**
 * A function that runs another one in the next frame, once for all calls before that.
 * @param {() => void} act
 */
export function inNextFrame(act) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      act();
    });
  };
}

/**
 * An element with properties and children.
 * @param {string} tag
 * @param {Record<string, any>} [properties] Attributes; names that begin with `on` are listeners.
 * @param {...(Node | string | number | null | undefined)} children
 * @returns {HTMLElement}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  fill(made, properties, children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | number | null | undefined)} children
 * @returns {SVGElement}
 */
export function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  fill(made, properties, children);
  return /** @type {SVGElement} */ (made);
}

/**
 * @param {Element} made
 * @param {Record<string, any>} properties
 * @param {(Node | string | number | null | undefined)[]} children
 */
function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined) made.append(typeof child === "number" ? String(child) : child);
  }
}

/**
 * The element of an id, if the page has it.
 * @param {string} id
 * @returns {any}
 */
export const byId = (id) => document.getElementById(id);

/**
 * A number as people read it.
 * @param {number} value
 * @returns {string}
 */
export function numberText(value) {
  if (Number.isNaN(value)) return "missing";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return String(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3);
  return String(Number(value.toPrecision(6)));
}

/**
 * A size in the largest unit of which it has at least one.
 * @param {number} bytes
 * @returns {string}
 */
export function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 || bytes >= 10 ? Math.floor(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

/**
 * Says something to people who hear the page.
 * @param {string} text
 */
export function announce(text) {
  const live = byId("live");
  if (live) live.textContent = text;
}
