// How each client opens what is behind a URL, and what it reads there: in Node, and in a browser.
import { loadOmeZarr } from "@vivjs/loaders";
import * as omezarr from "ome-zarr.js";
import * as zarrjs from "zarr";
import * as zarrita from "zarrita";

// An array as it is in memory. Where there is no stride, it is in C order.
function elements(dtype, shape, stride, ...parts) {
  let text = "";
  for (const { buffer, byteOffset, byteLength } of parts) {
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) text += String.fromCharCode(byte);
  }
  return { dtype, shape, stride, values: btoa(text) };
}

async function zarritaArray(store, path) {
  const array = await zarrita.open(zarrita.root(store).resolve(path), { kind: "array" });
  const read = await zarrita.get(array);
  if (array.shape.length === 0) return { dtype: array.dtype, element: read };
  return elements(array.dtype, read.shape, read.stride, read.data);
}

// The array, or what all there is, if no path is given.
async function zarritaConsolidated(url, path) {
  const store = await zarrita.withConsolidatedMetadata(new zarrita.FetchStore(url));
  return path ? zarritaArray(store, path) : { contents: store.contents() };
}

async function zarrjsArray(store, path) {
  const array = await zarrjs.openArray({ store, path, mode: "r" });
  const read = await array.getRaw(null);
  if (array.shape.length === 0) return { dtype: array.dtype, element: read };
  return elements(array.dtype, read.shape, read.strides, read.data);
}

// Every plane of every level, in order.
async function vivImage(url) {
  const { data: levels } = await loadOmeZarr(url, { type: "multiscales" });
  return Promise.all(
    levels.map(async (level) => {
      const [height, width] = level.shape.slice(-2);
      let selections = [{}];
      for (const [axis, label] of level.labels.slice(0, -2).entries()) {
        const indices = [...Array(level.shape[axis]).keys()];
        selections = selections.flatMap((outer) => indices.map((index) => ({ ...outer, [label]: index })));
      }
      const planes = [];
      for (const selection of selections) {
        const raster = await level.getRaster({ selection });
        if (raster.height !== height || raster.width !== width) throw new Error("a plane of another shape");
        planes.push(raster.data);
      }
      return elements(level.dtype.toLowerCase(), level.shape, null, ...planes);
    }),
  );
}

// What is shown of the middle of every level.
async function omezarrImage(url) {
  const image = await omezarr.NgffImage.load(url);
  return Promise.all(
    image.paths.map(async (path) => {
      const { data, width, height } = await image.renderRgba({ arr: await image.openArray(path) });
      return elements("uint8", [height, width, 4], null, data);
    }),
  );
}

const CLIENTS = {
  zarrita: (url, path) => zarritaArray(new zarrita.FetchStore(url), path),
  "zarrita-suffix": (url, path) => zarritaArray(new zarrita.FetchStore(url, { useSuffixRequest: true }), path),
  "zarrita-consolidated": zarritaConsolidated,
  "zarr.js": zarrjsArray,
  viv: (url, path) => vivImage(`${url}/${path}`),
  "ome-zarr.js": (url, path) => omezarrImage(`${url}/${path}`),
};

// What a client reads at each path below the URL, or the error that it reports.
export async function read({ client, url, paths }) {
  const all = [];
  for (const path of paths) {
    try {
      all.push(await CLIENTS[client](url, path));
    } catch (error) {
      all.push({ error: String(error.stack) });
    }
  }
  return all;
}
