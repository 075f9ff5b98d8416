"""Records what real clients request: Neuroglancer that flies through a volume, and a notebook with zarr-python.

    tests/bench/scale/run record

A trace has a line for each request, in the order that the client sent them: method, key, range. It is kept beside this file.
"""

import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

import numpy
import zarr

import bucket
import data
import processes

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE.parents[1] / "clients/node"
SHADER = "#uicontrol invlerp normalized\nvoid main() { emitGrayscale(normalized()); }"
STEPS, MILLISECONDS = 60, 700
"""Places that the flight shows, and the time at each."""


def states(url):
    """A flight: it drags across the volume, scrolls through its planes, and zooms in and out."""
    depth, height, width = data.VOLUME[0]
    for step in range(STEPS):
        at = step / (STEPS - 1)
        yield {
            "layers": [{"type": "image", "name": "volume", "source": url, "shader": SHADER}],
            "position": [depth * (0.2 + 0.6 * at), height * (0.5 + 0.35 * numpy.sin(6 * at)), width * (0.15 + 0.7 * at)],
            "crossSectionScale": float(2 ** (1.5 * numpy.cos(9 * at))),
            "layout": "xy" if step % 20 < 12 else "4panel",
        }


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves files."""

    def log_message(self, *_):
        """Says nothing."""


def viewer(place, scratch):
    """Neuroglancer in Chromium."""
    packages, chromium = pathlib.Path(os.environ["ZARRD_NODE_MODULES"]), shutil.which("chromium")
    assert packages.is_dir() and chromium, "not installed; tests/clients/run installs it"
    folder, bundle = scratch / "programs", scratch / "bundle"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(packages.resolve())
    shutil.copy(HERE / "fly.mjs", folder)
    bundle.mkdir()
    subprocess.run(["node", folder / "bundle.mjs", bundle], check=True, timeout=processes.SECONDS)
    handler = functools.partial(Silent, directory=bundle)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = f"http://127.0.0.1:{server.server_port}/neuroglancer.html"
        lines = "".join(json.dumps(state) + "\n" for state in states(f"{place}/volume/|zarr3:"))
        command = ["node", folder / "fly.mjs", chromium, page, str(MILLISECONDS)]
        subprocess.run(command, input=lines, text=True, check=True, timeout=300)
        server.shutdown()
        thread.join()


def notebook(place, _scratch):
    """A notebook: time series of stations, some maps, and the mean of a region over two months."""
    group = zarr.open_group(f"{place}/field", mode="r")
    field, time = group["t2m"], group["time"][:]
    assert len(time) == field.shape[0]
    places = numpy.random.default_rng(5).integers(0, field.shape[1:], (12, 2))
    for latitude, longitude in places:
        assert field[:, latitude, longitude].shape == time.shape
    for step in [0, 2000, 2001, 2002, 8759]:
        assert field[step].shape == field.shape[1:]
    assert field[:1460, 20:50, 60:110].mean() > 0


def main(scratch):
    with bucket.bucket(data.folder(), scratch / "bucket") as place:
        for client in [viewer, notebook]:
            client(f"{place.base}/any", scratch)
            asked = [(method, path.removeprefix("/any/"), part) for method, path, part, *_ in place.requests()]
            text = "".join(f"{method}\t{key}\t{part}\n" for method, key, part in asked)
            (HERE / f"{client.__name__}.trace").write_text(text)
            print(f"{client.__name__}: {len(asked)} requests", flush=True)
