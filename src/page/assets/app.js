// What every page does: the theme, the list at the side, the help, and the viewer where there is one.

import { getJson, link, pathBelow } from "./api.js";
import { announce, byId, element } from "./element.js";
import { histogram, lineTab } from "./histogram.js";
import { ImageTab } from "./image-tab.js";
import { errorText } from "./status-line.js";
import { Table } from "./table.js";
import { Points } from "./vectors.js";
import { Viewer } from "./viewer.js";

const root = document.documentElement;
root.classList.add("js");

/** What is kept in this browser, if it keeps anything. @param {string} name @param {string} [value] */
function kept(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`zarrd.${name}`);
    localStorage.setItem(`zarrd.${name}`, value);
  } catch {
    // Nothing is kept where storage is switched off.
  }
  return value ?? null;
}

// --- the theme ---

const THEMES = ["system", "light", "dark"];

/** @param {string} theme */
function setTheme(theme) {
  root.classList.toggle("light", theme === "light");
  root.classList.toggle("dark", theme === "dark");
  const button = byId("theme");
  if (button) button.textContent = `Theme: ${theme}`;
}

let theme = kept("theme") || "system";
setTheme(theme);
byId("theme")?.addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  kept("theme", theme);
  setTheme(theme);
  announce(`Theme: ${theme}`);
});

// --- the list at the side ---

byId("filter")?.addEventListener("input", (/** @type {any} */ event) => {
  const wanted = event.target.value.toLowerCase();
  for (const item of document.querySelectorAll("#nodes li")) {
    /** @type {HTMLElement} */ (item).hidden = !item.textContent?.toLowerCase().includes(wanted);
  }
});

byId("filter")?.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  if (event.key !== "Enter") return;
  const shown = [...document.querySelectorAll("#nodes li")].find((item) => !(/** @type {HTMLElement} */ (item).hidden));
  /** @type {HTMLElement | null | undefined} */ (shown?.querySelector("a"))?.click();
});

/** Adds a button that lists what is below a group. @param {HTMLAnchorElement} link */
function makeExpandable(link) {
  const button = element("button", { type: "button", "aria-expanded": "false", "aria-label": `list ${link.textContent}` }, "▸");
  link.after(button);
  button.addEventListener("click", async () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    button.textContent = isOpen ? "▸" : "▾";
    const list = link.parentElement?.querySelector("ul");
    if (list) list.hidden = isOpen;
    else if (!isOpen) await expand(link);
  });
}

/** @param {HTMLAnchorElement} link */
async function expand(link) {
  const list = element("ul");
  link.parentElement?.append(list);
  try {
    const node = link.dataset.node || "";
    const found = await getJson(node);
    const children = Array.isArray(found.children) ? found.children.slice(0, 200) : [];
    for (const child of children) {
      const kind = child.node_type === "array" ? "array" : child.node_type === "group" ? "group" : "folder";
      const name = encodeURIComponent(child.name);
      const item = /** @type {HTMLAnchorElement} */ (
        element("a", { class: kind, href: pathBelow(link.href, name), "data-node": pathBelow(node, name) }, element("bdi", {}, child.name))
      );
      const row = element("li", {}, item);
      list.append(row);
      if (kind === "group") makeExpandable(item);
    }
    if (!children.length) list.append(element("li", { class: "muted" }, "empty"));
  } catch (error) {
    list.append(element("li", { class: "warn" }, errorText(error)));
  }
}

for (const link of document.querySelectorAll("#nodes a.group")) makeExpandable(/** @type {HTMLAnchorElement} */ (link));

// --- pictures that do not come ---

for (const image of document.images) {
  const hide = () => image.classList.add("failed");
  if (image.src && image.complete && !image.naturalWidth) hide();
  image.addEventListener("error", hide);
}

// --- the wells of a plate ---

/** Shows the wells, all with the range of the first, so that they can be compared. @param {HTMLElement} plate */
async function showWells(plate) {
  const words = { channels: "", range: "" };
  try {
    const legend = await getJson(plate.dataset.legend || "");
    const channel = (/** @type {any} */ one) => [one.channel, one.color.slice(0, 6), ...one.range].join(":");
    if (legend.kind === "channels") words.channels = legend.channels.map(channel).join(",");
    if (legend.kind === "colormap") words.range = legend.range.join(",");
  } catch {
    // Then each has a range of its own.
  }
  const more = link("", words).replace("?", "&");
  for (const image of /** @type {NodeListOf<HTMLImageElement>} */ (plate.querySelectorAll("img[data-src]"))) image.src = `${image.dataset.src}${more}`;
}

for (const plate of document.querySelectorAll("table[data-legend]")) showWells(/** @type {HTMLElement} */ (plate));

// --- lines for programs ---

for (const snippet of document.querySelectorAll(".snippet")) {
  const text = snippet.querySelector("pre")?.textContent || "";
  const button = element("button", { type: "button", class: "plain" }, "copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  snippet.append(button);
}

// --- the viewer ---

/** @type {{key(event: KeyboardEvent): boolean} | null} */
let keyed = null;
const stage = /** @type {HTMLElement | null} */ (document.querySelector("[data-viewer]"));
if (stage) {
  const viewer = new Viewer(stage);
  keyed = viewer;
  const { tab } = viewer.config;
  if (tab === "image") viewer.open(new ImageTab(viewer));
  else if (tab === "table") await viewer.open(new Table(viewer));
  else if (tab === "line") lineTab(viewer);
  else histogram(viewer);
}

const cloud = /** @type {HTMLElement | null} */ (document.querySelector("[data-vectors]"));
if (cloud) {
  const points = new Points(cloud);
  keyed = points;
  points.start();
}

// --- the keyboard ---

const KEYS = [
  ["?", "this help"], ["/", "filter the nodes"], ["j k", "next, previous node"], ["Enter", "open it"], ["u", "up"], ["1 – 7", "tabs"],
  ["← →", "step along a dimension"], ["Shift", "ten steps"], ["↑ ↓", "choose a dimension"], ["Space", "play, pause"],
  ["+ − 0", "zoom in, out, fit"], ["arrows", "pan, after a click on the picture"], ["a", "automatic range"], ["l", "same range for all slices"],
  ["c C", "next, previous colours"], ["g", "chunk grid"], ["p", "profiles at the centre"], ["y", "copy the link"], ["s", "save as PNG"],
];

function showHelp() {
  const isOn = kept("keys") !== "off";
  const check = element("input", { type: "checkbox", checked: isOn, onchange: (/** @type {any} */ event) => kept("keys", event.target.checked ? "on" : "off") });
  const dialog = /** @type {HTMLDialogElement} */ (
    element("dialog", { "aria-labelledby": "help-title" },
      element("h2", { id: "help-title" }, "Keys"),
      element("dl", {}, ...KEYS.flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)])),
      element("p", { class: "muted" }, "On a picture: drag pans, a click plots the other axes, Shift and drag describes a box, double click and Ctrl with the wheel zoom."),
      element("p", {}, element("label", {}, check, " keys without Ctrl or Alt are on")),
      element("form", { method: "dialog" }, element("button", {}, "Close")))
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

byId("help")?.addEventListener("click", showHelp);

let current = -1;
/** @param {number} step */
function moveThroughNodes(step) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#nodes a, .cards h2 a")].filter((link) => /** @type {HTMLElement} */ (link).offsetParent));
  if (!links.length) return;
  if (current < 0) current = links.findIndex((link) => link.hasAttribute("aria-current"));
  current = Math.max(0, Math.min(links.length - 1, current + step));
  links[current].focus();
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const isTyping = target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    showHelp();
    return;
  }
  if (kept("keys") === "off") return;
  const isControl = target.matches("button, a, input, summary, pre, [role=region]");
  if (isControl && [" ", "Enter", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(event.key)) return;
  const tabs = document.querySelectorAll("[data-tab]");
  const keys = /** @type {Record<string, () => void>} */ ({
    "/": () => byId("filter")?.focus(),
    j: () => moveThroughNodes(1),
    k: () => moveThroughNodes(-1),
    u: () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".crumbs a")]).at(-2)?.click(),
  });
  const tab = /** @type {HTMLElement | undefined} */ (/^[1-7]$/.test(event.key) ? tabs[Number(event.key) - 1] : undefined);
  if (tab) tab.click();
  else if (event.key in keys) keys[event.key]();
  else if (!keyed?.key(event)) return;
  event.preventDefault();
});

root.dataset.ready = "1";
