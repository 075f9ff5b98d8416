// The keys of an array or image: what each of them does.

import { byId } from "./element.js";

/** @typedef {{zoom(factor: number): void, fit(): void}} Zoomable */
/**
 * @typedef {{picture?: import("./picture.js").Picture, zoomed?: Zoomable, nextColormap?(step: number): void, pinCentre?(): void, save?(): void}} Target
 *   What a tab has for keys.
 */

/** How far an arrow key moves a picture, in pixels of the page. */
const PAN = 60;

/**
 * Does what a key is for.
 * @param {KeyboardEvent} event
 * @param {import("./sliders.js").Sliders} sliders
 * @param {Target} target
 * @param {() => void} copyLink
 * @returns {boolean} Whether the key did something.
 */
export function handleKey(event, sliders, target, copyLink) {
  const { picture } = target;
  const pans = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] });
  if (picture && document.activeElement === picture.canvas && event.key in pans) {
    const [dx, dy] = pans[event.key];
    picture.pan(dx * PAN * picture.ratio, dy * PAN * picture.ratio);
    return true;
  }
  const steps = event.shiftKey ? 10 : 1;
  const keys = /** @type {Record<string, () => void>} */ ({
    ArrowLeft: () => sliders.step(-steps), ArrowRight: () => sliders.step(steps),
    ArrowUp: () => sliders.choose(sliders.active - 1), ArrowDown: () => sliders.choose(sliders.active + 1),
    " ": () => sliders.playActive(),
    "+": () => target.zoomed?.zoom(2), "-": () => target.zoomed?.zoom(0.5), 0: () => target.zoomed?.fit(),
    a: () => byId("auto")?.click(), l: () => byId("lock")?.click(), g: () => byId("grid")?.click(),
    c: () => target.nextColormap?.(1), C: () => target.nextColormap?.(-1),
    p: () => target.pinCentre?.(), y: copyLink, s: () => target.save?.(),
  });
  const act = keys[event.key];
  if (!act) return false;
  act();
  return true;
}
