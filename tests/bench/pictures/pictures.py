"""Makes the data, starts the servers, measures in turn, and prints the tables: all of them, or those that are named."""

import contextlib
import datetime
import io
import itertools
import os
import pathlib
import platform
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import numpy
import PIL.Image
import zarr

import page
import paint
import peers
import processes
import table
import viewers

TIMES, HEIGHT, WIDTH = 60, 512, 1024
VOLUME = 512
"""Voxels along each axis of a volume."""
PLANE = 4096
"""Pixels along each side of the largest picture that is allowed: 16 Mpx."""
PYRAMID = [(1, 10), (2, 60), (3, 500)]
"""The levels of which a chunk is read, and the milliseconds that it may take."""
LARGE = (640, 2048, 4096)
"""An array of 10 GiB of uint16."""
SCRUBBERS, SCRUB_SECONDS = 64, 15
SECONDS = 4
"""How long each row is measured in a round."""
ROUNDS = 3


def make(folder):
    """The data set: a field over time as xarray has it, a volume, a plane, and a large array of few distinct chunks."""
    rng = numpy.random.default_rng(1)
    root = zarr.create_group(folder, zarr_format=3, overwrite=True)
    field = root.create_group("field")
    lat, lon = numpy.linspace(89.8, -89.8, HEIGHT), numpy.linspace(-179.8, 179.8, WIDTH)
    smooth = 280 + 20 * numpy.cos(numpy.radians(lat))[:, None] + 5 * numpy.sin(numpy.radians(lon * 3))
    named = {"chunks": (1, 512, 512), "dimension_names": ("time", "lat", "lon"), "attributes": {"units": "K"}}
    t2m = field.create_array("t2m", shape=(TIMES, HEIGHT, WIDTH), dtype="float32", **named)
    for at in range(TIMES):
        t2m[at] = smooth + at * 0.1 + rng.normal(0, 0.5, smooth.shape)
    for name, values, units in [
        ("lat", lat, "degrees_north"),
        ("lon", lon, "degrees_east"),
        ("time", numpy.arange(TIMES), "hours since 2020-01-01"),
    ]:
        standard = {"lat": "latitude", "lon": "longitude"}.get(name, name)
        attributes = {"units": units, "standard_name": standard}
        field.create_array(name, data=values, dimension_names=(name,), attributes=attributes)
    zarr.consolidate_metadata(f"{folder}/field")
    z, y, x = numpy.ogrid[:VOLUME, :VOLUME, :VOLUME]
    volume = (2000 + 900 * numpy.sin(z / 40) * numpy.cos(y / 30) * numpy.sin(x / 50)).astype("uint16")
    volume += rng.integers(0, 60, volume.shape, "uint16")
    # Of planes so large that the pyramid has the levels; the rest of them is missing.
    shape = (VOLUME, 4 * VOLUME, 4 * VOLUME)
    corner = root.create_array("volume", shape=shape, dtype="uint16", chunks=(64, 64, 64), dimension_names=("z", "y", "x"))
    corner[:, :VOLUME, :VOLUME] = volume
    plane = numpy.tile(volume[0], (PLANE // VOLUME, PLANE // VOLUME))
    root.create_array("plane", data=plane, chunks=(512, 512), dimension_names=("y", "x"))
    large = root.create_array("large", shape=LARGE, dtype="uint16", chunks=(1, 512, 512), dimension_names=("z", "y", "x"))
    large[:4] = numpy.tile(plane[:2048], (4, 1, 1))
    # The other chunks are other names of those of the first four planes.
    for at in range(4, LARGE[0]):
        shutil.copytree(f"{folder}/large/c/{at % 4}", f"{folder}/large/c/{at}", copy_function=os.link)


def data():
    """The folder with the data, made if it is not there."""
    folder = pathlib.Path(os.environ["ZARRD_BENCH_DATA"]) / "pictures-2"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        make(str(part))
        part.rename(folder)
    return folder


class Connection:
    """A connection that is kept. Returns status, body and seconds of a GET."""

    def __init__(self, base):
        address = urllib.parse.urlsplit(base)
        self.socket = socket.create_connection((address.hostname, address.port), processes.SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path):
        began = time.perf_counter()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.more()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        body = bytearray(body)
        while len(body) < int(fields[b"content-length"]):
            body += self.more()
        return int(head.split(b" ", 2)[1]), bytes(body), time.perf_counter() - began

    def more(self):
        piece = self.socket.recv(1 << 20)
        assert piece, "the server closed the connection"
        return piece


def measured(base, paths, seconds=SECONDS):
    """Milliseconds of each request of a series, after one that is not counted."""
    connection = Connection(base)
    each = []
    end = None
    for path in paths:
        status, body, took = connection.get(path)
        assert status == 200 and body.startswith(b"\x89PNG"), (path, status, body[:300])
        if end is None:
            end = time.monotonic() + seconds
            continue
        each.append(took * 1000)
        if time.monotonic() > end:
            break
    return each


def quantiles(each):
    ordered = sorted(each)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def milliseconds(figure):
    return f"{figure:.2f} ms" if figure < 10 else f"{figure:,.0f} ms"


def field(at, size):
    return f"/v1/image/bench/field/t2m?isel.time={at % TIMES}&size={size}&colormap=viridis&range=250,320"


def tile(at):
    return f"/tiles/bench/native/3/{at % 8}/{at // 8 % 8}/plane?range=0,4000"


def cold(server, array, path, times):
    """Milliseconds of a request when nothing of the array is in the server's caches."""
    each = []
    for _ in range(times):
        processes.purge(server, f"bench/{array}")
        processes.get(f"{server.base}/v1/nodes/bench/{array}")
        status, body, took = Connection(server.base).get(path)
        assert status == 200, (path, status, body[:300])
        each.append(took * 1000)
    return each


def budgets(folder, scratch):
    """What one person waits for."""
    rows = []
    with processes.zarrd(folder, scratch / "warm.log", SERVER__ADMIN_LISTEN="127.0.0.1:0") as server:

        def row(what, budget, each):
            p50, p95 = quantiles(each)
            rows.append([what, milliseconds(p50), milliseconds(p95), budget])

        # Another range each time, so that no finished picture is repeated.
        contrast = (f"{field(at, 512)}.{at}" for at in itertools.count())
        measured(server.base, [field(at, 512) for at in range(TIMES)], 60)
        row("slider, 512 columns of float32, warm", "p95 < 33 ms", measured(server.base, contrast))
        row("tile of 256 pixels, the same again", "p50 ≤ 0.3 ms", measured(server.base, itertools.repeat(tile(9))))
        measured(server.base, [tile(at) for at in range(64)], 60)
        other = (f"{tile(at)}.{at}" for at in itertools.count())
        row("tile of 256 pixels, chunks decoded", "p50 ≤ 1 ms", measured(server.base, other))
        row("tile of 256 pixels, cold", "≤ 5 ms", cold(server, "plane", tile(9), 30))
        for level, budget in PYRAMID:
            path = f"/pyramid/bench/mean;factors=2,2,2/64,64,64/zstd-1/volume/{level}/c/0/0/0"
            row(f"pyramid chunk of 64³ uint16, level {level}, cold", f"≤ {budget} ms", cold(server, "volume", path, 5))
        processes.get(f"{server.base}{field(0, 512)}")
        before = server.resident_bytes()
        # Its length is not known before.
        began = time.perf_counter()
        with urllib.request.urlopen(f"{server.base}/v1/image/bench/plane?size=max&range=0,4000") as answer:
            body = answer.read()
        took = time.perf_counter() - began
        peak = server.resident_bytes("VmHWM")
        picture = PIL.Image.open(io.BytesIO(body))
        assert picture.size == (PLANE, PLANE)
        rows.append([f"picture of {PLANE}² pixels", milliseconds(took * 1000), f"+{(peak - before) >> 20} MiB at its peak", ""])
    table.show("What one person waits for", ["", "p50", "p95", "budget"], rows)


def beside_others(folder, scratch):
    """The field as a picture of about 256 pixels, by everybody who draws it."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(processes.zarrd(folder, scratch / "peers.log"))
        contenders = {"zarrd": (server.base, lambda at: field(at, 256))}
        for name, start in peers.ALL.items():
            try:
                contenders[name] = stack.enter_context(start(folder / "field", scratch))
            except (OSError, AssertionError) as error:
                print(f"{name} is left out: {error}", flush=True)
        found = {name: [] for name in contenders}
        for name, (base, path) in list(contenders.items()):
            try:
                measured(base, [path(at) for at in range(4)], 30)
            except AssertionError as error:
                print(f"{name} is left out: {str(error)[:300]}", flush=True)
                del contenders[name]
        for _ in range(ROUNDS):
            for name, (base, path) in contenders.items():
                times = iter(random.Random(7).choices(range(TIMES), k=100_000))
                found[name] += measured(base, map(path, times))
        ours = quantiles(found["zarrd"])[0]
        rows = []
        for name in contenders:
            p50, p95 = quantiles(found[name])
            rows.append([name, milliseconds(p50), milliseconds(p95), "" if name == "zarrd" else f"{p50 / ours:,.0f} ×"])
    table.show("A picture of a field, another time each", ["", "p50", "p95", "against zarrd"], rows)


def scrubbing(folder, scratch):
    """Many people drag sliders over an array of 10 GiB at once."""
    with processes.zarrd(folder, scratch / "scrub.log") as server:
        statuses, each, lock = {}, [], threading.Lock()
        end = time.monotonic() + SCRUB_SECONDS

        def person(seed):
            chance, connection = random.Random(seed), Connection(server.base)
            while time.monotonic() < end:
                at = chance.randrange(LARGE[0])
                status, _, took = connection.get(f"/v1/image/bench/large?slice={at}&size=512&range=0,4000")
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1
                    each.append(took * 1000)

        people = [threading.Thread(target=person, args=(seed,)) for seed in range(SCRUBBERS)]
        for one in people:
            one.start()
        for one in people:
            one.join()
        p50, p95 = quantiles(each)
        peak = server.resident_bytes("VmHWM") >> 20
        assert set(statuses) <= {200, 503}, statuses
        rows = [
            ["pictures a second", f"{statuses[200] / SCRUB_SECONDS:,.0f}"],
            ["p50, p95", f"{milliseconds(p50)}, {milliseconds(p95)}"],
            ["503", statuses.get(503, 0)],
            ["memory at its peak", f"{peak:,} MiB of {server.memory_mib:,.0f} MiB that it prints"],
        ]
        assert peak <= server.memory_mib
    table.show(f"{SCRUBBERS} people drag a slider over 10 GiB", ["", ""], rows)


PARTS = {
    "budgets": budgets,
    "page": page.of_people,
    "peers": beside_others,
    "scrubbing": scrubbing,
    "paint": paint.first_paint,
    "viewers": viewers.many_viewers,
}


def main():
    print(f"{datetime.date.today()}, {platform.machine()}, {len(processes.CORES)} cores\n", flush=True)
    folder = data()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name in sys.argv[1:] or PARTS:
            PARTS[name](folder, scratch)


if __name__ == "__main__":
    main()
