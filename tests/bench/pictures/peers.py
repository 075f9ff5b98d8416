"""Other servers that draw pictures of arrays: how each is started, and its URL of the field at a time."""

import contextlib
import os
import pathlib
import subprocess
import time
import urllib.request

import processes

START_SECONDS = 90


def python(name):
    program = pathlib.Path(os.environ["ZARRD_BENCH_DATA"]) / f"pictures-{name}/bin/python"
    assert program.exists(), "not installed"
    return str(program)


@contextlib.contextmanager
def started(scratch, name, probe, *command, **environment):
    """Runs a server until the block ends. It counts as started when `probe` has an answer."""
    port = processes.free_port()
    base = f"http://127.0.0.1:{port}"
    command = [part.replace("PORT", str(port)) for part in command]
    with (
        open(scratch / f"{name}.log", "wb") as log,
        subprocess.Popen(command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
        processes.ended(process),
    ):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(base + probe, timeout=processes.SECONDS).close()
                break
            except OSError:
                assert process.poll() is None, (scratch / f"{name}.log").read_text()[-500:]
                assert time.monotonic() < deadline, "it does not start"
                time.sleep(0.2)
        yield base


@contextlib.contextmanager
def titiler(folder, scratch):
    command = [python("titiler"), "-m", "uvicorn", "titiler.xarray.main:app", "--port", "PORT", "--log-level", "warning"]
    with started(scratch, "titiler", "/healthz", *command) as base:
        words = f"url={folder}&variable=t2m&rescale=250,320&colormap_name=viridis"
        yield base, lambda at: f"/tiles/WebMercatorQuad/0/0/0.png?{words}&bidx={at + 1}"


XPUBLISH = """
import sys, xarray, xpublish
from xpublish_tiles.xpublish.tiles import TilesPlugin
field = xarray.open_zarr(sys.argv[1], chunks=None)
xpublish.Rest({"field": field}, plugins={"tiles": TilesPlugin()}).serve(host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""


@contextlib.contextmanager
def xpublish_tiles(folder, scratch):
    command = [python("xpublish"), "-c", XPUBLISH, str(folder), "PORT"]
    with started(scratch, "xpublish", "/datasets", *command) as base:
        words = "variables=t2m&style=raster/viridis&colorscalerange=250,320&width=256&height=256&f=image/png"
        day = "2020-01-{:02}T{:02}:00:00"
        yield base, lambda at: (
            f"/datasets/field/tiles/WebMercatorQuad/0/0/0?{words}&time={day.format(1 + at // 24, at % 24)}"
        )


@contextlib.contextmanager
def tiled(folder, scratch):
    # It finds out what a folder is by its name, and takes every fourth element of a slice, where the others take means.
    served = scratch / "tiled"
    served.mkdir()
    (served / "field.zarr").symlink_to(folder)
    command = [python("tiled"), "-m", "tiled", "serve", "directory", str(served), "--public", "--port", "PORT"]
    with started(scratch, "tiled-server", "/api/v1/", *command) as base:
        yield base, lambda at: f"/api/v1/array/full/field/t2m?format=image/png&slice={at},::4,::4"


ALL = {"TiTiler": titiler, "xpublish-tiles": xpublish_tiles, "Tiled": tiled}
