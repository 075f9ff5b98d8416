"""How long Neuroglancer takes until it has painted an array of one level, as that level and as a pyramid."""

import contextlib
import functools
import http.server
import json
import statistics
import subprocess
import threading
import urllib.parse

import browser
import processes
import table

ROUNDS = 5
RECIPE = "auto/{}/zstd-1"
SHADER = "void main() { emitGrayscale(float(toRaw(getDataValue())) / 4000.0); }"
ARRAYS = {"plane": ((4096, 4096), "yx", "512,512"), "large": ((640, 2048, 4096), "zyx", "1,512,512")}
"""Shape, axes, and the chunks of the levels."""
PIXELS = 600
"""The screen that the longest side of the array takes, about."""


@contextlib.contextmanager
def neuroglancer(scratch):
    """Opens a page of Neuroglancer with a state; the milliseconds until it has painted all of it."""
    folder, bundle = scratch / "programs", scratch / "bundle"
    browser.programs(folder)
    bundle.mkdir()
    subprocess.run(["node", folder / "bundle.mjs", bundle], check=True, timeout=processes.SECONDS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Says nothing."""

    handler = functools.partial(Handler, directory=bundle)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        browser.asking(folder / "browse.mjs") as ask,
    ):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def painted(state):
            fragment = urllib.parse.quote(json.dumps(state))
            shown = ask(url=f"http://127.0.0.1:{server.server_port}/neuroglancer.html#!{fragment}")
            return shown["finished"]["milliseconds"]

        try:
            yield painted
        finally:
            server.shutdown()
            thread.join()


def state(url, name):
    """Neuroglancer's state, with all of a plane on the screen."""
    shape, axes, _ = ARRAYS[name]
    return {
        "layers": [{"type": "image", "name": name, "source": url, "shader": SHADER}],
        "dimensions": {axis: [1, ""] for axis in axes},
        "position": [length / 2 for length in shape],
        "displayDimensions": list(reversed(axes)),
        "crossSectionScale": max(shape) / PIXELS,
        "layout": "xy",
    }


def first_paint(folder, scratch):
    """A table of the array as it is stored and of its pyramid, each read for the first time and again."""
    try:
        rows = []
        with neuroglancer(scratch) as painted, processes.zarrd(folder, scratch / "paint.log", SERVER__ADMIN_LISTEN="127.0.0.1:0") as server:
            for name, (*_, chunks) in ARRAYS.items():
                urls = {
                    "one level": f"{server.base}/store/bench/{name}/|zarr3:",
                    "pyramid": f"{server.base}/pyramid/bench/{RECIPE.format(chunks)}/{name}/|zarr3:",
                }
                for kind in ["for the first time", "again"]:
                    each = {way: [] for way in urls}
                    for _ in range(ROUNDS):
                        for way, url in urls.items():
                            if kind == "for the first time":
                                processes.purge(server, f"bench/{name}")
                            each[way].append(painted(state(url, name)))
                    one, other = (statistics.median(each[way]) for way in urls)
                    rows.append([f"{name}, {kind}", f"{one:,.0f} ms", f"{other:,.0f} ms", f"{one / other:.2f} ×"])
    except (AssertionError, OSError) as missing:
        print(f"Neuroglancer is left out: {missing}", flush=True)
        return
    table.show("Neuroglancer's first paint", ["", "one level", "pyramid", "one level ÷ pyramid"], rows)
