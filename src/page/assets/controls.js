// The controls of a picture: the fields of its colours, range, scale, labels and axes, and its buttons.

import { NAMES } from "./colors.js";
import { announce, byId, element } from "./element.js";
import { complain, isOfPicture, rangeComplaint } from "./fields.js";
import { short } from "./legend.js";

/**
 * @typedef {{painted(): void, clearRanges(): void, loadRanges(): Promise<void>, showLabels(name: string): void, setOpacity(opacity: number): void,
 *   setGrid(isOn: boolean): void, zoom(factor: number): void, fit(): void, copyLink(): void, save(): void}} Actions
 *   What the controls do. `painted` is called when the colours of numbers are others.
 */

export class Controls {
  /**
   * @param {import("./color-mapping.js").ColorMapping} mapping
   * @param {Actions} actions
   */
  constructor(mapping, actions) {
    this.mapping = mapping;
    this.actions = actions;
    this.wire();
  }

  wire() {
    const { mapping, actions } = this;
    const on = (/** @type {string} */ id, /** @type {string} */ event, /** @type {(input: any) => void} */ act) => {
      byId(id)?.addEventListener(event, (/** @type {Event} */ one) => act(one.currentTarget));
    };
    on("colormap", "change", (input) => {
      mapping.colormap = input.value;
      actions.painted();
    });
    on("scale", "change", async (input) => {
      mapping.scale = input.value;
      this.checkRange();
      // A logarithmic range begins above 0.
      await actions.loadRanges();
      actions.painted();
    });
    on("range", "change", () => {
      this.checkRange();
      actions.painted();
    });
    on("labels", "change", (input) => actions.showLabels(input.value));
    on("opacity", "change", (input) => actions.setOpacity(Number(input.value) || 0.5));
    on("axes", "change", ({ form }) => {
      this.resetRange();
      // They are of the plane of now.
      form.querySelectorAll("[name=box], [name=at]").forEach((/** @type {HTMLElement} */ input) => input.remove());
      form.requestSubmit();
    });
    on("grid", "change", (input) => actions.setGrid(input.checked));
    on("lock", "change", (input) => this.lockRange(input.checked));
    on("auto", "click", () => this.lockRange(true));
    on("zoom-in", "click", () => actions.zoom(2));
    on("zoom-out", "click", () => actions.zoom(0.5));
    on("fit", "click", () => actions.fit());
    on("copy", "click", () => actions.copyLink());
    on("save", "click", () => actions.save());
    byId("controls")?.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      if (event.submitter) event.preventDefault();
    });
  }

  /** Shows what the URL has. @param {boolean} isPhotograph Whether the elements are colours. */
  fill(isPhotograph) {
    for (const [id, value] of [["colormap", this.mapping.colormap], ["scale", this.mapping.scale]]) {
      const select = byId(id);
      if (select && ![...select.options].some((option) => option.value === value)) select.append(element("option", { value }, value));
      if (select) select.value = value;
    }
    this.showLock();
    if (isPhotograph) byId("lock")?.closest("label")?.remove();
  }

  /** Takes the next of the colormaps. @param {number} step */
  nextColormap(step) {
    const select = byId("colormap");
    if (!select) return;
    const at = NAMES.indexOf(this.mapping.colorsName.replace(/_r$/, ""));
    this.mapping.colormap = NAMES[(at + step + NAMES.length) % NAMES.length];
    select.value = this.mapping.colormap;
    this.actions.painted();
    announce(this.mapping.colormap);
  }

  // --- the range ---

  /** Takes the automatic range, which is the same for all slices; or that of each slice. @param {boolean} isSame */
  lockRange(isSame) {
    this.mapping.lockRange(isSame);
    this.actions.clearRanges();
    this.resetRange();
    this.actions.painted();
  }

  /** Takes the range that was typed, or says why it is not used. */
  checkRange() {
    const input = byId("range");
    if (!input) return;
    const text = input.value.replaceAll(" ", "");
    const complaint = rangeComplaint(text, this.mapping.scale);
    complain(input, complaint);
    if (!complaint) this.mapping.rangeText = text;
    this.showLock();
  }

  /** Says whether all slices have the same range. */
  showLock() {
    const box = byId("lock");
    if (box) box.checked = !isOfPicture(this.mapping.rangeText);
  }

  /** Writes the range that is used into its field. */
  resetRange() {
    this.showLock();
    const input = byId("range");
    if (!input) return;
    input.value = this.mapping.rangeText;
    complain(input, "");
  }

  /** Shows the numbers of the automatic range. @param {[number, number]} range */
  showRange([low, high]) {
    const input = byId("range");
    if (input && !this.mapping.rangeText) input.placeholder = `auto: ${short(low)},${short(high)}`;
  }
}
