// The status line below what is shown: what it cost to read, what more would cost, what went wrong, and what was done just now.

import { link, pageWords, Problem } from "./api.js";
import { announce, byId, bytesText, element } from "./element.js";

/** @typedef {import("./source.js").Cost} Cost */

/**
 * Shows what was read.
 * @param {Cost} cost
 * @param {number} milliseconds
 * @param {string} after More about it.
 * @param {string} [before]
 */
export function showCost(cost, milliseconds, after, before = "") {
  byId("cost").textContent = `${before}${cost.chunks} ${cost.chunks === 1 ? "chunk" : "chunks"}, ${bytesText(cost.bytes)} decoded, ${Math.round(milliseconds)} ms${after}`;
}

/**
 * Says that something is not loaded unasked, with a button that loads it if the server would.
 * @param {Cost} cost
 * @param {boolean} isPossible
 * @param {() => void} load
 */
export function offerToLoad(cost, isPossible, load) {
  const text = `${cost.chunks} chunks, ${bytesText(cost.bytes)} decoded – more than`;
  if (!isPossible) {
    byId("cost").textContent = `${text} this server reads for one request: zoom in.`;
    return;
  }
  byId("cost").replaceChildren(
    `${text} is loaded unasked. `,
    element("button", { type: "button", onclick: load }, `Load ${bytesText(cost.bytes)}`),
  );
}

/** @param {unknown} error */
export const errorText = (error) => (error instanceof Error ? error.message : String(error));

/** Says what went wrong, with links to the selections that the server suggests. @param {unknown} error @param {string} view The path of the page. */
export function showError(error, view) {
  const cost = byId("cost");
  cost.replaceChildren(element("span", { class: "warn" }, errorText(error)));
  const slices = error instanceof Problem ? error.document.suggested_slices : null;
  for (const slice of Array.isArray(slices) ? slices.slice(0, 3) : []) {
    const words = pageWords();
    words.set("slice", slice);
    cost.append(" ", element("a", { class: "button", href: link(view, Object.fromEntries(words)) }, slice));
  }
}

/** Says something for a moment. @param {string} text */
function flash(text) {
  const cost = byId("cost");
  if (!cost) return;
  const before = [...cost.childNodes];
  cost.textContent = text;
  setTimeout(() => {
    if (cost.textContent === text) cost.replaceChildren(...before);
  }, 2500);
}

/** Copies a text to the clipboard; where that is not possible, shows it. @param {string} text @param {string} done What is said then. */
export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    announce(done);
    flash(done);
  } catch {
    flash(text);
  }
}
