// A bar of a round length beside a picture, where the size of an element is known.

import { element } from "./element.js";

/** Metres in the units that are known, by their names in UDUNITS. */
const METRES = /** @type {Record<string, number>} */ ({
  angstrom: 1e-10, nanometer: 1e-9, nanometre: 1e-9, nm: 1e-9, micrometer: 1e-6, micrometre: 1e-6, micron: 1e-6, um: 1e-6, "µm": 1e-6,
  millimeter: 1e-3, millimetre: 1e-3, mm: 1e-3, centimeter: 1e-2, cm: 1e-2, meter: 1, metre: 1, meters: 1, metres: 1, m: 1,
  kilometer: 1e3, kilometre: 1e3, kilometers: 1e3, km: 1e3,
});
const SHOWN = /** @type {[number, string][]} */ ([[1e3, "km"], [1, "m"], [1e-3, "mm"], [1e-6, "µm"], [1e-9, "nm"]]);
/** The longest bar, in pixels of the page. */
const LONGEST = 140;

/**
 * Metres in an element of a picture; none if the unit is no length.
 * @param {number | null | undefined} size
 * @param {string | null | undefined} unit
 * @returns {number | null}
 */
export const metres = (size, unit) => (size && size > 0 && unit && unit in METRES ? size * METRES[unit] : null);

export class ScaleBar {
  /**
   * @param {HTMLElement} stage
   * @param {number} metresEach Of an element.
   */
  constructor(stage, metresEach) {
    this.each = metresEach;
    this.text = element("span");
    this.bar = element("div", { class: "scale-bar" }, this.text);
    stage.append(this.bar);
  }

  /** @param {number} pixels Of the page, to an element. */
  update(pixels) {
    if (!(pixels > 0)) return;
    const most = (LONGEST / pixels) * this.each;
    const power = 10 ** Math.floor(Math.log10(most));
    const length = ([5, 2, 1].find((one) => one * power <= most) || 1) * power;
    const [unit, name] = SHOWN.find(([one]) => length >= one * 0.999) || SHOWN[SHOWN.length - 1];
    this.text.textContent = `${Number((length / unit).toPrecision(3))} ${name}`;
    this.bar.style.width = `${(length / this.each) * pixels}px`;
  }
}
