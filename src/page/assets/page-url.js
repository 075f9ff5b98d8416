// The URL of the page: it follows what is shown, so that others can open the same, and so do the links of the page.

import { link, pagePath, pageWords } from "./api.js";
import { element } from "./element.js";
import { copy } from "./status-line.js";

/** @typedef {Record<string, any>} Words */
/**
 * @typedef {{words(): Words, sliceText(): string}} Shown What is shown: its words in the URL, and its selection.
 */

/** The order of the words; others come after these. */
const ORDER = ["slice", "axes", "fields", "origin", "colormap", "range", "scale", "channels", "method", "labels", "opacity", "tab", "along", "box", "at", "level", "grid"];
/** The milliseconds without a change after which the URL is written: browsers refuse to write it often. */
const WRITE_MILLISECONDS = 260;

export class PageUrl {
  /** @param {any} config @param {Shown} shown */
  constructor(config, shown) {
    this.config = config;
    this.shown = shown;
    /** @type {string | undefined} The selection before anything is changed, which the URL leaves out. */
    this.startSlice = undefined;
  }

  /** Keeps the selection of the start; called before a change. */
  keepStart() {
    this.startSlice ??= this.shown.sliceText();
  }

  /** The words of the URL that shows the same. @returns {Words} */
  state() {
    const words = Object.fromEntries(pageWords());
    for (const name of Object.keys(words)) if (name.startsWith("isel.")) delete words[name];
    const slice = this.shown.sliceText();
    return { ...words, slice: slice === this.startSlice && !words.slice ? "" : slice, ...this.shown.words() };
  }

  write() {
    this.keepStart();
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeNow(), WRITE_MILLISECONDS);
  }

  writeNow() {
    const words = this.state();
    const names = [...ORDER.filter((name) => name in words), ...Object.keys(words).filter((name) => !ORDER.includes(name))];
    const address = link(pagePath(), Object.fromEntries(names.map((name) => [name, words[name]])));
    history.replaceState(null, "", address);
    this.updateLinks(words);
  }

  /** Other tabs, downloads and the form go on with the same state. @param {Words} words */
  updateLinks(words) {
    for (const tab of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-tab]"))) {
      tab.href = link(pagePath(), { ...words, tab: tab.dataset.tab });
    }
    for (const other of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-along]"))) {
      other.href = link(pagePath(), { ...words, along: other.dataset.along });
    }
    const slice = this.shown.sliceText();
    for (const format of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("[data-format]"))) {
      // Some formats have what is stored, with what says how to decode it.
      const decode = "stored" in format.dataset ? null : this.config.decode;
      format.href = link(this.config.data, { slice, fields: this.config.fields, decode, coords: format.dataset.coords, format: format.dataset.format });
    }
    const ranges = /** @type {string[]} */ (slice.split(","));
    const kept = ranges.flatMap((range, dim) => (range.includes(":") ? [dim] : [])).join();
    for (const plane of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-plane]"))) {
      plane.hidden = plane.dataset.plane !== kept;
    }
    const hidden = /** @type {HTMLInputElement | null} */ (document.querySelector("#controls input[name=slice]"));
    if (hidden) hidden.value = slice;
  }

  copyLink() {
    this.writeNow();
    copy(location.href, "The link is copied.");
  }
}

/**
 * Says which words of the URL do not change the picture.
 * @param {Element} place The notes come before it.
 * @param {string[]} unused Words that no picture has, and why.
 * @param {string[]} undrawn Names of words that other pictures have.
 */
export function sayUnused(place, unused, undrawn) {
  const notes = [
    ...(unused.length ? [`Not used of this URL: ${unused.join("; ")}.`] : []),
    ...(undrawn.length ? [`Of pictures, but not drawn here: ${undrawn.join(", ")}.`] : []),
  ];
  for (const note of notes) place.before(element("p", { class: "warn", role: "alert" }, element("bdi", {}, note.slice(0, 600))));
}
