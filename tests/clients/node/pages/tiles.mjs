// Shows the tiles of a picture at one of their levels, a pixel of the screen for each of the level, and finishes with where on the
// page it is. The fragment of the address is {library, base, path, zoom}: zoom counts levels down from the finest.
import "leaflet/dist/leaflet.css";
import L from "leaflet";
import OpenSeadragon from "openseadragon";

const { library, base, path, zoom } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const shown = document.querySelector("#shown");
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

// A plain plane: rows go down, and a unit is an element of the finest level divided by its scale.
function leaflet({ tiles, minzoom, maxzoom, tile_size: tileSize }, [width, height]) {
  const map = L.map(shown, { crs: L.CRS.Simple, zoomControl: false, attributionControl: false, fadeAnimation: false, zoomAnimation: false });
  const layer = L.tileLayer(base + tiles[0], { minZoom: minzoom, maxZoom: maxzoom, tileSize, noWrap: true });
  const loaded = new Promise((resolve) => layer.once("load", resolve));
  map.setView(map.unproject([width / 2, height / 2], maxzoom - zoom), maxzoom - zoom, { animate: false });
  layer.addTo(map);
  return loaded;
}

// It would show a coarser level as a finer one made smaller, so the level that is asked for is its finest.
function openSeadragon({ tiles, minzoom, maxzoom, tile_size: tileSize }, [width, height]) {
  const getTileUrl = (z, x, y) => base + tiles[0].replace("{z}", z).replace("{x}", x).replace("{y}", y);
  const viewer = OpenSeadragon({
    element: shown, drawer: "canvas", showNavigationControl: false, immediateRender: true, animationTime: 0, blendTime: 0,
    imageSmoothingEnabled: false, crossOriginPolicy: "Anonymous",
    tileSources: { width, height, tileSize, tileOverlap: 0, minLevel: minzoom, maxLevel: maxzoom - zoom, getTileUrl },
  });
  return new Promise((resolve, reject) => {
    viewer.addHandler("open-failed", ({ message }) => reject(new Error(message)));
    viewer.addHandler("tile-load-failed", ({ message }) => reject(new Error(message)));
    viewer.addHandler("open", () => {
      const image = viewer.world.getItemAt(0);
      const check = () => image.getFullyLoaded() && resolve();
      image.addHandler("fully-loaded-change", check);
      check();
    });
  });
}

async function show() {
  const tilejson = await (await fetch(`${base}/v1/tilejson/${path}`)).json();
  const [, , width, height] = tilejson.extent;
  const sides = [width, height].map((side) => Math.ceil(side / 2 ** zoom));
  [shown.style.width, shown.style.height] = sides.map((side) => `${side}px`);
  await { leaflet, openSeadragon }[library](tilejson, sides);
  // What is loaded is drawn with the next frames.
  for (let at = 0; at < 5; at += 1) await frame();
  const { x, y } = shown.getBoundingClientRect();
  return { x, y, width: sides[0], height: sides[1], maxzoom: tilejson.maxzoom };
}

window.finished = show();
