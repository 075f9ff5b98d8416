// The viewer of an array or image: what all of its tabs share, and the URL that others can open.

import { Latest, pageWords } from "./api.js";
import { ColorMapping } from "./color-mapping.js";
import { DimensionCoordinates } from "./coordinates.js";
import { handleKey } from "./keyboard.js";
import { Labels } from "./labels.js";
import { PageUrl } from "./page-url.js";
import { Sliders } from "./sliders.js";
import { rangeText, Source } from "./source.js";
import { offerToLoad } from "./status-line.js";

/**
 * A tab: what it shows, what it does when an index changes, and its part of the URL.
 * @typedef {{start?(): Promise<void>, load(): Promise<void>, settle?(): void, prefetch?(dim: number, step: number): Promise<void>,
 *   sliceText?(): string, words?(): Record<string, any>} & import("./keyboard.js").Target} Tab
 */

export class Viewer {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.config = JSON.parse(root.dataset.config || "{}");
    this.source = new Source(this.config);
    this.words = pageWords();
    this.latest = new Latest();
    this.mayLoadMore = this.words.has("load");
    /** @type {Tab | null} */
    this.tab = null;
    this.mapping = new ColorMapping(this.config, this.words);
    /** @type {Labels | null} */
    this.labels = this.config.ome?.labels?.length ? new Labels(this.config, this.source, this.words) : null;
    this.coordinates = new DimensionCoordinates(this.config, (dim) => this.sliders.showLabel(dim));
    this.sliders = new Sliders(root, this.config, this.source, this.coordinates, {
      changing: () => this.url.keepStart(),
      changed: (dim, step) => this.changed(dim, step),
      stopped: () => this.write(),
    });
    this.url = new PageUrl(this.config, { words: () => this.urlWords(), sliceText: () => this.sliceText() });
  }

  /** Shows a tab. @param {Tab} tab */
  open(tab) {
    this.tab = tab;
    return tab.start ? tab.start() : this.update();
  }

  update() {
    return this.latest.run(async () => this.tab?.load());
  }

  /** @param {import("./source.js").Cost} cost */
  mayLoad(cost) {
    return this.source.isSmall(cost) || (this.mayLoadMore && this.source.isSmall(cost, this.config.most));
  }

  /** Says what is not loaded unasked, and loads it when it is asked for. @param {import("./source.js").Cost} cost */
  offer(cost) {
    offerToLoad(cost, this.source.isSmall(cost, this.config.most), () => {
      this.mayLoadMore = true;
      this.update();
    });
  }

  /** Shows a new index. @param {number} dim @param {number} step The direction in which it changed. */
  changed(dim, step) {
    this.write();
    this.tab?.settle?.();
    const done = this.update();
    done.then(() => this.tab?.prefetch?.(dim, step));
    return done;
  }

  /** The selection that is shown. */
  sliceText() {
    const { config, source } = this;
    const text = (/** @type {any} */ one, /** @type {number} */ dim) => (Array.isArray(one) ? rangeText(one, config.shape[dim]) : String(source.index[dim]));
    return this.tab?.sliceText?.() ?? config.slice.map(text).join(",");
  }

  /** The words of what is shown. @returns {Record<string, any>} */
  urlWords() {
    const { mapping, labels } = this;
    return {
      ...mapping.words(),
      // Only a picture has this word, and those after the labels.
      box: "",
      ...(labels ? { labels: labels.name, opacity: labels.opacity === 0.5 ? "" : labels.opacity } : {}),
      at: "", grid: "",
      ...this.tab?.words?.(),
    };
  }

  /** Writes the URL, unless it changes all the time. */
  write() {
    if (!this.sliders.playing) this.url.write();
  }

  /** @param {KeyboardEvent} event @returns {boolean} Whether the key did something. */
  key(event) {
    return handleKey(event, this.sliders, this.tab ?? {}, () => this.url.copyLink());
  }
}
