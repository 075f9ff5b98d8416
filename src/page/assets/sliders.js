// The sliders: one for each dimension that is not shown, with a field for its index, its coordinate, and a button that plays it.

import { announce, byId } from "./element.js";
import { complain, indexHint, indexOf } from "./fields.js";

/**
 * @typedef {{changing(): void, changed(dim: number, step: number): Promise<void>, stopped(): void}} Listener
 *   `changing` is called before an index changes, `changed` after that with the direction, `stopped` when playing ends.
 */

/** The milliseconds of an index while it is played, unless it takes longer to load. */
const PLAY_MILLISECONDS = 250;
const LEAST_PAUSE_MILLISECONDS = 20;

export class Sliders {
  /**
   * @param {HTMLElement} root
   * @param {any} config
   * @param {import("./source.js").Source} source Its indexes are those of the sliders.
   * @param {import("./coordinates.js").DimensionCoordinates} coordinates
   * @param {Listener} listener
   */
  constructor(root, config, source, coordinates, listener) {
    this.root = root;
    this.config = config;
    this.source = source;
    this.coordinates = coordinates;
    this.listener = listener;
    /** The number of the slider that the arrow keys move. */
    this.active = 0;
    /** The timer of the next index; 0 if none is played. */
    this.playing = 0;
    /** @type {HTMLElement | null} */
    this.playButton = null;
    this.rows.forEach((row) => this.wire(row));
  }

  /** The sliders that the page has now. */
  get rows() {
    return /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(".dim")]);
  }

  /** @param {HTMLElement} row */
  wire(row) {
    const dim = Number(row.dataset.dim);
    row.querySelector("input[type=range]")?.addEventListener("input", (event) => {
      this.active = this.rows.indexOf(row);
      this.setIndex(dim, Number(/** @type {HTMLInputElement} */ (event.target).value));
    });
    const typed = /** @type {HTMLInputElement | null} */ (row.querySelector(".index"));
    if (typed) {
      typed.title = indexHint(undefined);
      // Coordinates have signs, points and letters.
      typed.inputMode = "text";
    }
    typed?.addEventListener("change", async (event) => {
      const input = /** @type {HTMLInputElement} */ (event.target);
      const text = input.value.trim();
      if (!/^\d+$/.test(text)) await this.coordinates.loaded;
      const index = indexOf(text, this.config.shape[dim], this.coordinates.get(dim));
      complain(input, typeof index === "string" ? index : "");
      if (typeof index !== "number") return;
      input.value = String(index);
      this.setIndex(dim, index);
    });
    row.querySelectorAll(".step").forEach((step, at) => step.addEventListener("click", (event) => {
      event.preventDefault();
      this.setIndex(dim, this.source.index[dim] + (at ? 1 : -1));
    }));
    row.querySelector(".play")?.addEventListener("click", (event) => this.play(dim, /** @type {HTMLElement} */ (event.currentTarget)));
  }

  /** Shows the coordinate of an index. @param {number} dim */
  showLabel(dim) {
    const label = byId(`label-${dim}`);
    const known = this.coordinates.get(dim);
    if (label && known) label.textContent = known.text(known.values[this.source.index[dim]]);
    const typed = /** @type {HTMLInputElement | null} */ (this.root.querySelector(`.dim[data-dim="${dim}"] .index`));
    if (typed && known) typed.title = indexHint(known);
    const input = byId(`dim-${dim}`);
    if (input && known) input.setAttribute("aria-valuetext", `${this.source.index[dim]}, ${known.text(known.values[this.source.index[dim]])}`);
  }

  /** @param {number} dim @param {number} index @returns {Promise<void>} Until the new index is shown. */
  setIndex(dim, index) {
    const last = this.config.shape[dim] - 1;
    const place = Math.max(0, Math.min(last, Math.round(index)));
    const step = Math.sign(place - this.source.index[dim]) || 1;
    this.listener.changing();
    this.source.index[dim] = place;
    const row = this.root.querySelector(`.dim[data-dim="${dim}"]`);
    const [slider, typed] = /** @type {any[]} */ ([row?.querySelector("input[type=range]"), row?.querySelector(".index")]);
    if (slider) slider.value = String(place);
    if (typed && document.activeElement !== typed) {
      typed.value = String(place);
      complain(typed, "");
    }
    this.showLabel(dim);
    return this.listener.changed(dim, step);
  }

  /** The slider that the arrow keys move. @returns {HTMLElement | undefined} */
  get activeRow() {
    const { rows } = this;
    return rows[Math.min(this.active, rows.length - 1)];
  }

  /** Chooses the slider that the arrow keys move. @param {number} number */
  choose(number) {
    const { rows } = this;
    if (!rows.length) return;
    this.active = (number + rows.length) % rows.length;
    rows.forEach((row, at) => row.classList.toggle("active", at === this.active));
    announce(`The arrow keys step along ${this.config.names[Number(rows[this.active].dataset.dim)]}.`);
  }

  /** Moves the chosen slider. @param {number} step */
  step(step) {
    const dim = Number(this.activeRow?.dataset.dim);
    if (this.activeRow) this.setIndex(dim, this.source.index[dim] + step);
  }

  /** Plays the chosen slider, or stops. */
  playActive() {
    const row = this.activeRow;
    if (row) this.play(Number(row.dataset.dim), /** @type {HTMLElement} */ (row.querySelector(".play")));
  }

  /** Plays a dimension from its index on, or stops. @param {number} dim @param {HTMLElement} button */
  play(dim, button) {
    if (this.playing) {
      this.stop();
      return;
    }
    button.textContent = "❚❚";
    button.setAttribute("aria-pressed", "true");
    this.playButton = button;
    const next = async () => {
      const began = performance.now();
      await this.setIndex(dim, (this.source.index[dim] + 1) % this.config.shape[dim]);
      if (this.playing) this.playing = setTimeout(next, Math.max(LEAST_PAUSE_MILLISECONDS, PLAY_MILLISECONDS - (performance.now() - began)));
    };
    this.playing = setTimeout(next, 0);
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = 0;
    if (this.playButton) {
      this.playButton.textContent = "▶";
      this.playButton.setAttribute("aria-pressed", "false");
    }
    this.listener.stopped();
  }
}
