"""Viewers that open a pyramid of an array of a million chunks at once.

Each reads the documents, then tiles from the coarsest level to the finest, and asks again where a tile is being built, after
the time that the response says. Every answer is one that the documentation has, and memory stays within what the server prints.
"""

import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import statistics
import threading
import time
import urllib.parse

import numpy
import zarr

import processes
import table

GRID, CHUNK = 1000, 32
"""Chunks along each side, and elements along each side of a chunk."""
DISTINCT = 64
"""Chunks that differ; the others are other names of them."""
MISSING = 20
"""Of this many rows of chunks, one is not stored."""
VIEWERS, SECONDS = 16, 300
TILES = 12
"""Tiles of each level that a viewer reads."""
ROOT = "/pyramid/bench/mean/256,256/zstd-1/million"


def data():
    """The folder with the array, made if it is not there: of uint8 in rows and columns."""
    folder = pathlib.Path(os.environ["ZARRD_BENCH_DATA"]) / "million-1"
    if folder.exists():
        return folder
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    side = GRID * CHUNK
    options = {"shape": (side, side), "chunks": (CHUNK, CHUNK), "dtype": "uint8", "compressors": None, "dimension_names": ("y", "x")}
    zarr.create_array(part / "million", **options)
    distinct = numpy.random.default_rng(3).integers(1, 255, (DISTINCT, CHUNK, CHUNK), "uint8")
    for row in range(GRID):
        if row % MISSING == MISSING - 1:
            continue
        chunks = part / f"million/c/{row}"
        chunks.mkdir(parents=True)
        for column in range(GRID):
            which = (row + column) % DISTINCT
            first = part / f"chunk-{row // 500}-{which}"
            if not first.exists():
                first.write_bytes(distinct[which].tobytes())
            os.link(first, chunks / str(column))
    part.rename(folder)
    return folder


class Viewer:
    """A client with one connection, and what it has seen."""

    def __init__(self, base, seed, end):
        address = urllib.parse.urlsplit(base)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=processes.SECONDS)
        self.chance, self.end = random.Random(seed), end
        self.answers, self.milliseconds, self.coarsest, self.finished = {}, {}, None, False

    def get(self, path):
        """Status, fields and body of a response."""
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        body = response.read()
        self.answers[response.status] = self.answers.get(response.status, 0) + 1
        return response.status, response.headers, body

    def document(self, path):
        status, _, body = self.get(path)
        assert status == 200, (path, status, body[:300])
        return json.loads(body)

    def tile(self, path):
        """Reads a tile, however long it is being built; whether it arrived in time."""
        while time.monotonic() < self.end:
            began = time.perf_counter()
            status, fields, body = self.get(path)
            if status in (200, 404):
                level = path.removeprefix(f"{ROOT}/").split("/")[0]
                self.milliseconds.setdefault(level, []).append((time.perf_counter() - began) * 1000)
                return True
            assert status == 503, (path, status, body[:300])
            problem = json.loads(body)
            assert problem["code"] == "being-built", problem
            time.sleep(min(float(fields["Retry-After"]), max(self.end - time.monotonic(), 0)))
        return False

    def run(self, began):
        image = self.document(f"{ROOT}/zarr.json")["attributes"]["ome"]["multiscales"][0]
        levels = [level["path"] for level in image["datasets"]]
        shapes = {level: self.document(f"{ROOT}/{level}/zarr.json")["shape"] for level in levels}
        for level in reversed(levels[1:]):
            counts = [-(-length // 256) for length in shapes[level]]
            all_tiles = [(row, column) for row in range(counts[0]) for column in range(counts[1])]
            for row, column in self.chance.sample(all_tiles, min(TILES, len(all_tiles))):
                if not self.tile(f"{ROOT}/{level}/c/{row}/{column}"):
                    return
            if level == levels[-1]:
                self.coarsest = time.monotonic() - began
        self.finished = True


def many_viewers(_folder, scratch):
    """A table of what the viewers saw, and one of what tiles take when all of them were built."""
    with processes.zarrd(data(), scratch / "viewers.log") as server:
        began = time.monotonic()
        viewers = [Viewer(server.base, seed, began + SECONDS) for seed in range(VIEWERS)]
        failures = []

        def run(viewer):
            try:
                viewer.run(began)
            except Exception as failure:
                failures.append(failure)
                raise

        threads = [threading.Thread(target=run, args=(viewer,)) for viewer in viewers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        peak = server.resident_bytes("VmHWM") >> 20
        answers = {}
        for viewer in viewers:
            for status, count in viewer.answers.items():
                answers[status] = answers.get(status, 0) + count
        arrived = sorted(viewer.coarsest for viewer in viewers if viewer.coarsest is not None)
        rows = [
            ["viewers that have all their tiles", f"{sum(viewer.finished for viewer in viewers)} of {VIEWERS}, after {took:,.0f} s"],
            ["the coarsest level arrives after", f"{arrived[0]:,.1f} to {arrived[-1]:,.1f} s" if arrived else "–"],
            ["responses", ", ".join(f"{count:,} of {status}" for status, count in sorted(answers.items()))],
            ["processor time", f"{server.cpu_seconds():,.0f} s"],
            ["memory at its peak", f"{peak:,} MiB of {server.memory_mib:,.0f} MiB that it prints"],
        ]
        table.show(f"{VIEWERS} viewers open a pyramid of {GRID * GRID:,} chunks", ["", ""], rows)
        assert not failures, failures[0]
        assert len(arrived) == VIEWERS, "the coarsest level did not arrive everywhere"
        assert peak <= server.memory_mib
        rows = []
        again = Viewer(server.base, 99, time.monotonic() + SECONDS)
        with contextlib.closing(again.connection):
            for level in map(str, range(6, 0, -1)):
                path = f"{ROOT}/{level}/c/0/0"
                if again.get(path)[0] == 404 or not again.tile(path):
                    continue
                again.milliseconds.clear()
                for _ in range(20):
                    again.tile(path)
                sources = (256 * 2 ** int(level) // CHUNK) ** 2
                rows.append([level, f"{sources:,}", f"{statistics.median(again.milliseconds[level]):,.2f} ms"])
        table.show("A tile that was made before, checked again", ["level", "stored chunks", "p50"], rows)
