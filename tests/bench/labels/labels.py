"""Makes the data, starts the servers, measures in turn, and prints the tables: all of them, or those that are named."""

import contextlib
import http.client
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

import numpy
import xarray
import zarr

import processes
import table
from connection import Connection
from table import Goal

SMALL, WHOLE = 48, 240
"""Hours of the data."""
LAT, LON = 721, 1440
ROUNDS = 7
REQUESTS = 400
"""Requests of each kind in a round."""
POINTS = 10_000
POINT_ROUNDS = 3

LABELS = Goal("ratio", 1.1, 1.0, at_least=False)
TIMES_FASTER = Goal("ratio", 10, 20)
NETCDF = Goal("ratio", 0.5, 1)


def make(folder, hours):
    """Fields like those of a reanalysis, as xarray stores them."""
    rng = numpy.random.default_rng(1)
    lat, lon = numpy.arange(90, -90.1, -0.25), numpy.arange(0, 360, 0.25)
    smooth = 280 + 20 * numpy.cos(numpy.radians(lat))[:, None] + 5 * numpy.sin(numpy.radians(lon * 3))
    times = numpy.datetime64("2020-01-01", "ns") + numpy.arange(hours) * numpy.timedelta64(1, "h")
    coordinates = {
        "time": ("time", times),
        "latitude": ("latitude", lat.astype("float32"), {"units": "degrees_north"}),
        "longitude": ("longitude", lon.astype("float32"), {"units": "degrees_east"}),
    }
    encoding = {"time": {"units": "hours since 1900-01-01", "dtype": "int64"}, "t2m": {"chunks": (1, LAT, LON)}}
    dimensions = tuple(coordinates)
    empty = xarray.Dataset(coords=coordinates)
    fields = numpy.empty((hours, LAT, LON), "float32")
    for hour in range(hours):
        # As many digits as the archive has.
        fields[hour] = numpy.round(smooth + 5 * numpy.sin(hour / 4) + rng.normal(0, 0.5, smooth.shape), 2)
    empty["t2m"] = (dimensions, fields, {"units": "K"})
    empty.to_zarr(folder, zarr_format=3, consolidated=False, encoding=encoding)


def data(hours):
    """The folder with the data, made if it is not there."""
    folder = pathlib.Path(os.environ["ZARRD_BENCH_DATA"]) / f"labels-{hours}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        make(part / "era5", hours)
        part.rename(folder)
    return folder


class Bench:
    """The data, and what is started for it."""

    def __init__(self, hours, scratch, stack):
        self.hours = hours
        self.scratch = scratch
        self.stack = stack
        self.folder = data(hours)
        log = scratch / "zarrd.log"
        # The file of the whole is longer than a response is by default.
        settings = {"SERVER__ADMIN_LISTEN": "127.0.0.1:0", "READ__MAX_RESPONSE_SIZE": "2GiB"}
        self.server = stack.enter_context(processes.zarrd(self.folder, log, **settings))
        self.dataset = xarray.open_zarr(self.folder / "era5", consolidated=False, chunks=None)

    def url(self, **query):
        return f"/v1/data/bench/era5/t2m?{urllib.parse.urlencode(query, safe=':./')}"

    def netcdf(self):
        """The whole as a NetCDF file on the same disk, as zarrd sends it."""
        file = self.scratch / "era5.nc"
        if not file.exists():
            with open(file, "wb") as out:
                Connection(self.server.base).get("/v1/data/bench/era5?format=nc", out)
        return file


def selections(bench):
    """Label selections beside the same selections by position: each selects another one, of chunks that are cached."""
    draw = random.Random(1)
    dataset = bench.dataset
    hours = [str(time.astype("datetime64[s]")) for time in dataset.time.values]

    def point():
        at, y, x = draw.randrange(bench.hours), draw.randrange(LAT), draw.randrange(LON)
        near = [f"nearest::{float(labels[place]) + 0.05:.2f}" for labels, place in ((dataset.latitude.values, y), (dataset.longitude.values[:-1], min(x, LON - 2)))]
        labels = {"sel.time": hours[at], "sel.latitude": near[0], "sel.longitude": near[1]}
        return labels, {"isel.time": at, "isel.latitude": y, "isel.longitude": min(x, LON - 2)}

    def exact():
        at, y, x = draw.randrange(bench.hours), draw.randrange(LAT), draw.randrange(LON)
        labels = {"sel.time": hours[at], "sel.latitude": float(dataset.latitude[y]), "sel.longitude": float(dataset.longitude[x])}
        return labels, {"isel.time": at, "isel.latitude": y, "isel.longitude": x}

    def series():
        y, x = draw.randrange(LAT), draw.randrange(LON)
        labels = {"sel.latitude": float(dataset.latitude[y]), "sel.longitude": float(dataset.longitude[x])}
        return labels, {"isel.latitude": y, "isel.longitude": x}

    def region():
        at, y, x = draw.randrange(bench.hours), draw.randrange(LAT - 40), draw.randrange(LON - 40)
        ends = [f"{float(labels[start])}..{float(labels[start + 39])}" for labels, start in ((dataset.latitude, y), (dataset.longitude, x))]
        labels = {"sel.time": hours[at], "sel.latitude": ends[0], "sel.longitude": ends[1]}
        return labels, {"isel.time": at, "isel.latitude": f"{y}:{y + 40}", "isel.longitude": f"{x}:{x + 40}"}

    connection = Connection(bench.server.base)
    kinds = {"a point, exact": exact, "a point, nearest": point, "40 × 40 elements of an hour": region, f"a series of {bench.hours} hours": series}
    rows = []
    for name, kind in kinds.items():
        measured = table.Rounds()
        for turn in range(ROUNDS):
            pairs = [tuple(bench.url(**query) for query in kind()) for _ in range(REQUESTS)]
            each = {"label": [], "position": []}
            for at, (label, position) in enumerate(pairs):
                # Which is first takes turns too: what the second touches is nearer in memory.
                asked = {"label": label, "position": position}
                names = list(asked) if at % 2 else list(reversed(asked))
                bodies = {}
                for who in names:
                    bodies[who], seconds = connection.timed(asked[who])
                    each[who].append(seconds * 1e6)
                assert bodies["label"] == bodies["position"], label
            if turn == 0:
                continue  # Until the chunks are cached.
            for who, took in each.items():
                measured.add(name, who, time=statistics.median(took))
        ratio = measured.ratio(name, "time", "label", "position")
        medians = [f"{measured.median(name, who, 'time'):.0f} µs" for who in ("label", "position")]
        rows.append([name, *medians, f"{ratio:.2f}", *table.judged((LABELS,), {"ratio": ratio})])
    table.show("Labels beside positions", ["selection", "by label", "by position", "label ÷ position", "floor", "aim", ""], rows)


def points(bench):
    """Points here and there, of which each has the nearest element."""
    rng = numpy.random.default_rng(2)
    times = bench.dataset.time.values[rng.integers(0, bench.hours, POINTS)]
    lat, lon = numpy.round(rng.uniform(-89, 89, POINTS), 3), numpy.round(rng.uniform(0, 359, POINTS), 3)
    labels = {"time": [str(time.astype("datetime64[s]")) for time in times], "latitude": lat.tolist(), "longitude": lon.tolist()}
    body = json.dumps({"points": labels, "method": "nearest", "format": "bytes"}).encode()
    connection = Connection(bench.server.base)
    measured = table.Rounds()
    for _ in range(POINT_ROUNDS):
        began = time.perf_counter()
        dataset = xarray.open_zarr(bench.folder / "era5", consolidated=False, chunks=None)
        at = {name: xarray.DataArray(values, dims="points") for name, values in (("time", times), ("latitude", lat), ("longitude", lon))}
        wanted = dataset.t2m.sel(at, method="nearest").values
        measured.add("points", "xarray", time=time.perf_counter() - began)
        for way in ("read", "cached"):
            if way == "read":
                processes.purge(bench.server, "bench/era5")
            began = time.perf_counter()
            found = connection.post("/v1/data/bench/era5/t2m", body)
            measured.add("points", way, time=time.perf_counter() - began)
            numpy.testing.assert_array_equal(numpy.frombuffer(found, "<f4"), wanted)
    rows = []
    for way, words in (("read", "chunks are read and decoded"), ("cached", "chunks are cached")):
        ratio = measured.ratio("points", "time", "xarray", way)
        taken = [f"{measured.median('points', who, 'time') * 1000:,.0f} ms" for who in (way, "xarray")]
        rows.append([f"{POINTS:,} points of {bench.hours} chunks, {words}", *taken, f"{ratio:.1f}", *table.judged((TIMES_FASTER,), {"ratio": ratio})])
    table.show("Points, the nearest elements", ["", "zarrd", "xarray", "xarray ÷ zarrd", "floor", "aim", ""], rows)


def netcdf(bench):
    """A file of the whole dataset, beside a copy of that file."""
    file = bench.netcdf()
    size = file.stat().st_size
    copy, compressed = bench.scratch / "copy.nc", bench.scratch / "compressed.nc"
    # As the array is stored: a field in a chunk, compressed.
    chunks = f"time/1,latitude/{LAT},longitude/{LON}"
    subprocess.run(["nccopy", "-4", "-s", "-d", "1", "-c", chunks, file, compressed], check=True, timeout=processes.SECONDS)
    connection = Connection(bench.server.base)
    with xarray.open_dataset(file, engine="netcdf4") as read:
        last = read.t2m[-1].values
        numpy.testing.assert_array_equal(last, bench.dataset.t2m[-1].values)
    measured = table.Rounds()
    for _ in range(POINT_ROUNDS + 1):
        for who in ("nccopy", "decompressed", "read", "cached"):
            if who == "read":
                processes.purge(bench.server, "bench/era5")
            began = time.perf_counter()
            if who == "nccopy":
                subprocess.run(["nccopy", file, copy], check=True, timeout=processes.SECONDS)
            elif who == "decompressed":
                subprocess.run(["nccopy", "-d", "0", compressed, copy], check=True, timeout=processes.SECONDS)
            else:
                with open(copy, "wb") as out:
                    connection.get("/v1/data/bench/era5?format=nc", out)
            measured.add("file", who, rate=size / (time.perf_counter() - began) / 1e6)
            copy.unlink()
    rows = []
    for who, other, words in (
        ("read", "decompressed", "chunks are read and decoded by both"),
        ("read", "nccopy", "chunks are read and decoded by zarrd alone"),
        ("cached", "nccopy", "chunks are cached, as far as they fit"),
    ):
        ratio = measured.ratio("file", "rate", who, other)
        rates = [f"{measured.median('file', name, 'rate'):,.0f} MB/s" for name in (who, other)]
        rows.append([f"{size / 1e6:,.0f} MB, {words}", *rates, f"{ratio:.2f}", *table.judged((NETCDF,), {"ratio": ratio})])
    table.show("`format=nc` to a file, and `nccopy` of a local file", ["", "zarrd", "nccopy", "zarrd ÷ nccopy", "floor", "aim", ""], rows)


@contextlib.contextmanager
def pydap(bench):
    """pydap's server with the same dataset: it reads no Zarr."""
    port = processes.free_port()
    command = [sys.executable, "-B", "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--timeout", str(processes.SECONDS)]
    command += ["--chdir", pathlib.Path(__file__).parent, "pydap_app:application"]
    with (
        open(bench.scratch / "pydap.log", "wb") as log,
        subprocess.Popen(
            command, env=os.environ | {"PYDAP_FILE": bench.netcdf()}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
        processes.ended(process),
    ):
        processes.wait_for(port, process)
        yield f"http://127.0.0.1:{port}"


def dap(bench):
    """Responses of DAP2 with the same values."""
    connection = Connection(bench.server.base)
    last = bench.hours - 1
    kinds = {
        "a field": lambda at: f"t2m.t2m[{at}:1:{at}][0:1:{LAT - 1}][0:1:{LON - 1}]",
        "100 × 100 elements of an hour": lambda at: f"t2m.t2m[{at}:1:{at}][{at}:1:{at + 99}][{at}:1:{at + 99}]",
        "a series": lambda at: f"t2m.t2m[0:1:{last}][{at}:1:{at}][{at}:1:{at}]",
        "coordinates": lambda _: "time,latitude,longitude",
    }
    rows = []
    with pydap(bench) as base:
        other = Connection(base, keep=False)
        for name, constraint in kinds.items():
            measured = table.Rounds()
            for turn in range(ROUNDS * 6):
                query = urllib.parse.quote(constraint(turn % bench.hours))
                ours, seconds = connection.timed(f"/dap/bench/era5.dods?{query}")
                measured.add(name, "zarrd", time=seconds)
                # It has no grids.
                theirs, seconds = other.timed(f"/era5.dods?{query.replace('t2m.t2m', 't2m')}")
                measured.add(name, "pydap", time=seconds)
                # Of each variable its length, twice, and its values.
                values = ours.partition(b"\nData:\n")[2]
                assert name == "coordinates" or values == theirs.partition(b"\nData:\n")[2], (name, ours[:300], theirs[:300])
            ratio = measured.ratio(name, "time", "pydap", "zarrd")
            taken = [f"{measured.median(name, who, 'time') * 1000:.2f} ms" for who in ("zarrd", "pydap")]
            rows.append([name, f"{len(ours):,}", *taken, f"{ratio:.1f}"])
    table.show("DAP2, chunks cached", ["", "bytes", "zarrd", "pydap's server", "pydap ÷ zarrd"], rows)


TABLES = {"selections": selections, "points": points, "netcdf": netcdf, "dap": dap}


def main(words):
    hours = SMALL if "--small" in words else WHOLE
    named = [word for word in words if word != "--small"] or list(TABLES)
    unknown = set(named) - set(TABLES)
    assert not unknown, f"there are {', '.join(TABLES)}, and no {', '.join(unknown)}"
    versions = f"xarray {xarray.__version__}, zarr-python {zarr.__version__}, numpy {numpy.__version__}"
    print(f"{os.cpu_count()} cores of {platform.machine()}, {hours} hours of {LAT} × {LON} float32, {versions}")
    with tempfile.TemporaryDirectory(dir=os.environ["ZARRD_BENCH_DATA"]) as scratch, contextlib.ExitStack() as stack:
        bench = Bench(hours, pathlib.Path(scratch), stack)
        for name in named:
            try:
                TABLES[name](bench)
            except (AssertionError, OSError, http.client.HTTPException) as error:
                print(f"\n{name} is left out: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
