// Bundles what runs in a browser, Neuroglancer with its workers and the pages of the tests: node bundle.mjs FOLDER
import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const [, , folder] = process.argv;
const here = fileURLToPath(new URL(".", import.meta.url));
const neuroglancer = (name) => fileURLToPath(import.meta.resolve(`neuroglancer/unstable/${name}.bundle.js`));

// Its icons are in a package that no registry has. A button without a picture is a button still.
const icons = {
  name: "icons",
  setup(build) {
    build.onResolve({ filter: /^ikonate\/.*\?raw$/ }, ({ path }) => ({ path, namespace: "icons" }));
    build.onLoad({ filter: /.*/, namespace: "icons" }, () => ({ contents: "<svg></svg>", loader: "text" }));
  },
};

const pages = (await readdir(join(here, "pages"))).map((name) => join(here, "pages", name));
await Promise.all(
  pages.filter((page) => page.endsWith(".html")).map((page) => copyFile(page, join(folder, page.split("/").at(-1)))),
);
await esbuild.build({
  entryPoints: [
    ...pages.filter((page) => page.endsWith(".mjs")).map((page) => ({ in: page, out: page.split("/").at(-1).slice(0, -4) })),
    // Each worker is at the path from which the code that starts it loads it.
    { in: neuroglancer("main"), out: "neuroglancer/main.bundle" },
    { in: neuroglancer("chunk_worker"), out: "neuroglancer/chunk_worker.bundle" },
    { in: neuroglancer("async_computation"), out: "async_computation.bundle" },
  ],
  bundle: true,
  format: "esm",
  target: "es2022",
  outdir: folder,
  // What one page takes from the bundle of another, it takes when it runs.
  external: ["./neuroglancer/main.bundle.js"],
  plugins: [icons],
  // Pictures that style sheets name.
  loader: { ".png": "dataurl" },
  logLevel: "warning",
});
