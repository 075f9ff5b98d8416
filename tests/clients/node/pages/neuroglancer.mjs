// Shows what the fragment of the address says, and finishes with where on the page the picture is, once all of it is, and after
// how many milliseconds.
import "./neuroglancer/main.bundle.js";

const { viewer } = window;
const MILLISECONDS = 20000;

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

// The messages that it shows to its user, mostly of failures.
function messagesShown() {
  const states = viewer.layerManager.managedLayers.flatMap(({ layer }) => layer?.dataSources ?? []);
  const errors = states.map(({ loadState }) => loadState?.error?.message);
  const messages = [...document.querySelectorAll("[class*=status]")].map((element) => element.textContent);
  return [...errors, ...messages].filter(Boolean).join("; ");
}

function isShown() {
  const layers = viewer.layerManager.managedLayers;
  const sources = layers.flatMap(({ layer }) => layer?.dataSources ?? []);
  return sources.length > 0 && sources.every(({ loadState }) => loadState && !loadState.error) && viewer.isReady();
}

async function shown() {
  const deadline = performance.now() + MILLISECONDS;
  while (!isShown()) {
    if (performance.now() > deadline) throw new Error(`nothing is shown: ${messagesShown()}`);
    await frame();
  }
  const milliseconds = performance.now();
  viewer.display.draw();
  await frame();
  const { x, y, width, height } = document.querySelector(".neuroglancer-rendered-data-panel").getBoundingClientRect();
  return { x, y, width, height, milliseconds };
}

window.finished = shown();
