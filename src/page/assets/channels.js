// The channels of an image: which are shown, with which colours and ranges, and the picture of them together.

import { placer, rgb } from "./colors.js";
import { byId, element, numberText } from "./element.js";
import { complain, numberOf } from "./fields.js";

/** @typedef {import("./source.js").Plane} Plane */
/** @typedef {{dim: number, index: number, label: string, color: [number, number, number], hex: string,
 *   range: [number, number] | null,
 *   auto: [number, number] | null, shown: [number, number] | null, active: boolean}} Channel */
/**
 * @typedef {{shown(): void, painted(): void, colored(): void}} Listener
 *   `shown` is called when other channels are shown, `painted` when they are painted otherwise, `colored` when a colour is chosen.
 */

const COLORS = ["#ff00ff", "#00ff00", "#00a0ff", "#ff4000", "#ffff00", "#ffffff"];

export class Channels {
  /**
   * @param {any} config
   * @param {import("./color-mapping.js").ColorMapping} mapping
   * @param {Listener} listener
   */
  constructor(config, mapping, listener) {
    this.config = config;
    this.mapping = mapping;
    this.listener = listener;
    /** @type {Channel[]} None of an array without channels, or where one of them is selected. */
    this.all = [];
  }

  /** Those that are shown. */
  get active() {
    return this.all.filter((channel) => channel.active);
  }

  /** The dimension of the channels. @returns {number | undefined} */
  get dim() {
    return this.all[0]?.dim;
  }

  /**
   * Finds the channels, and makes their controls in place of those that they do not use.
   * @param {HTMLElement} root
   * @param {string | null} asked The word `channels` of the URL.
   */
  find(root, asked) {
    const { ome, names, shape, rows, columns } = this.config;
    if (!ome?.channels?.length) return;
    const byKind = ome.axes.findIndex((/** @type {any} */ axis) => axis.kind === "channel");
    const dim = byKind >= 0 ? byKind : names.indexOf("c");
    // An index in the URL is that of one channel, which is then stepped through as any dimension.
    if (dim < 0 || dim === rows || dim === columns || shape[dim] < 2 || !Array.isArray(this.config.slice[dim])) return;
    this.all = ome.channels.slice(0, shape[dim]).map((/** @type {any} */ channel, /** @type {number} */ index) => {
      const hex = channel.color ? `#${channel.color.toLowerCase()}` : COLORS[index % COLORS.length];
      // Another scale, or a word, has another range.
      const range = this.mapping.rangeWord || this.mapping.scale ? null : channel.window;
      return { dim, index, label: channel.label, hex, color: rgb(hex), range, auto: null, shown: null, active: channel.active && index < 6 };
    });
    // The picture has these without the word `channels`.
    this.startText = this.all.every((channel) => channel.range) ? this.text() : "";
    this.plainText = ome.channels.every((/** @type {any} */ channel) => channel.color) ? this.text(false) : "";
    if (asked) this.read(asked);
    // A dimension of channels is not stepped through.
    root.querySelector(`.dim[data-dim="${dim}"]`)?.remove();
    root.querySelectorAll(".field.colors, .field:has(#range), .field:has(#scale)").forEach((field) => field.remove());
    byId("channels")?.replaceChildren(...this.all.map((channel) => this.row(channel)));
  }

  /** @param {string} text Index, colour and range of each channel. */
  read(text) {
    for (const channel of this.all) channel.active = false;
    for (const part of text.split(",")) {
      const [index, color, low, high] = part.split(":");
      const channel = this.all.find((one) => one.index === Number(index));
      if (!channel) continue;
      channel.active = true;
      if (/^[0-9a-f]{6}$/i.test(color || "")) [channel.hex, channel.color] = [`#${color.toLowerCase()}`, rgb(color)];
      if (Number(low) < Number(high)) channel.range = [Number(low), Number(high)];
    }
  }

  text(hasRanges = true) {
    const one = (/** @type {Channel} */ channel) => [channel.index, channel.hex.slice(1), ...((hasRanges && channel.range) || []).map((end) => Number(end.toPrecision(6)))].join(":");
    return this.active.map(one).join(",");
  }

  /** The word `channels`, unless the picture is the same without it. */
  word() {
    const text = this.text();
    const isKnown = text === this.plainText || (text === this.startText && !this.mapping.rangeWord);
    return isKnown ? "" : text;
  }

  /** Takes the ranges of this picture. @param {any} legend */
  takeRanges(legend) {
    for (const { channel: index, range } of legend.channels || []) {
      const channel = this.all.find((one) => one.index === index);
      if (channel && !this.mapping.rangeWord) channel.range ??= range;
    }
  }

  /** Takes the ranges of `range=auto`. @param {any} legend */
  takeAutoRanges(legend) {
    for (const { channel: index, range } of legend.channels || []) {
      const channel = this.all.find((one) => one.index === index);
      if (channel) channel.auto = range;
    }
  }

  clearRanges() {
    for (const channel of this.all) channel.range = null;
  }

  // --- their controls ---

  /** @param {Channel} channel */
  row(channel) {
    const check = element("input", { type: "checkbox", checked: channel.active, "aria-label": `show ${channel.label}`, onchange: (/** @type {any} */ event) => {
      channel.active = event.target.checked;
      this.listener.shown();
    } });
    const color = element("input", { type: "color", value: channel.hex, "aria-label": `colour of ${channel.label}`, oninput: (/** @type {any} */ event) => {
      channel.hex = event.target.value;
      channel.color = rgb(channel.hex);
      this.listener.painted();
    }, onchange: () => this.listener.colored() });
    const end = (/** @type {0 | 1} */ place) =>
      element("input", { type: "text", inputmode: "decimal", "data-end": `${channel.index}:${place}`, "aria-label": `${place ? "upper" : "lower"} end of ${channel.label}`, onchange: (/** @type {any} */ event) => {
        const value = numberOf(event.target.value);
        if (!channel.shown) return;
        const [low, high] = place ? [channel.shown[0], value] : [value, channel.shown[1]];
        const complaint = low === null || high === null ? "Not used: no number." : low < high ? "" : "Not used: the lower end is below the upper one.";
        complain(event.target, complaint);
        if (complaint || low === null || high === null) return;
        channel.range = [low, high];
        this.listener.painted();
      } });
    return element("div", { class: "channel" }, check, color, element("bdi", {}, channel.label), element("div", { class: "window" }, end(0), end(1)));
  }

  /** Writes the ranges that are shown into their fields. */
  showRanges() {
    for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (byId("channels")?.querySelectorAll("[data-end]") || [])) {
      const [index, place] = (input.dataset.end || "").split(":").map(Number);
      const range = this.all.find((channel) => channel.index === index)?.shown;
      if (!range || document.activeElement === input) continue;
      input.value = numberText(range[place]);
      complain(input, "");
    }
  }

  // --- painting ---

  /**
   * Paints the sum of the channels that are shown.
   * @param {Plane[]} planes One for each of them.
   * @param {Uint32Array} pixels
   * @param {(plane: Plane) => ArrayLike<number> & {length: number}} inPicture The elements of a plane that are in the picture.
   */
  paint(planes, pixels, inPicture) {
    const { mapping } = this;
    const sums = new Float64Array(pixels.length * 3);
    const isLit = new Uint8Array(pixels.length);
    this.active.forEach((channel, number) => {
      const plane = planes[number];
      if (!plane) return;
      // A range of the picture changes with it.
      channel.shown = channel.range ?? mapping.askedRange(() => inPicture(plane));
      if (!channel.shown) channel.shown = channel.range = channel.auto || mapping.autoRange(plane.values);
      const [low, high] = channel.shown;
      const place = placer(channel.shown, mapping.scale);
      const [r, g, b] = channel.color;
      for (let at = 0; at < pixels.length; at += 1) {
        const value = plane.values[at];
        if (value !== value) continue;
        isLit[at] = 1;
        const part = value > high ? 1 : value < low ? 0 : place(value);
        sums[3 * at] += part * r;
        sums[3 * at + 1] += part * g;
        sums[3 * at + 2] += part * b;
      }
    });
    for (let at = 0; at < pixels.length; at += 1) {
      const [r, g, b] = [sums[3 * at], sums[3 * at + 1], sums[3 * at + 2]].map((sum) => Math.min(255, Math.round(sum)));
      pixels[at] = isLit[at] ? (255 << 24) | (b << 16) | (g << 8) | r : 0;
    }
    this.showRanges();
  }
}
