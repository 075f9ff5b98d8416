"""Reads the bucket in all ways, and prints a table for each reader."""

import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import urllib.request

import dask.array
import numpy
import obstore.store
import tensorstore
import zarr

import data
import processes
import servers

VIEWER = pathlib.Path(__file__).parent.parent / "scale/viewer.trace"
REPLAY = pathlib.Path(__file__).parent / "viewer.mjs"
CONNECTIONS = 16
ROUNDS = 5
FIELD = "field/t2m"
STATIONS = numpy.random.default_rng(5).integers(0, data.FIELD[1:], (12, 2))
REGION = (slice(0, 1460), slice(20, 50), slice(60, 110))


def fetch(url):
    with urllib.request.urlopen(url, timeout=processes.SECONDS) as response:
        return response.read()


class Viewer:
    """The keys that Neuroglancer asked for, by a program that reads them as browsers do."""

    name = "a viewer flies through a volume: 16 connections"

    def __init__(self, folder):
        lines = [line.split("\t") for line in VIEWER.read_text().splitlines()]
        keys = [key for _, key, part in lines if part == "-" and (folder / key).is_file()]
        self.least = sum((folder / key).stat().st_size for key in keys)
        command = ["node", REPLAY, str(CONNECTIONS), folder, *keys]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("ready")

    def expect(self, word):
        line = self.program.stdout.readline().strip()
        assert line == word, "the replay of the viewer has failed"

    def read(self, base):
        print(base, file=self.program.stdin, flush=True)
        self.expect("done")

    def ways(self):
        return {
            "the bucket itself": lambda bucket, _: self.read(f"{bucket.base}/bench"),
            "files of this machine, by nginx": lambda _, base: self.read(base),
            "nginx": lambda _, base: self.read(f"{base}/bench"),
            "varnish": lambda _, base: self.read(f"{base}/bench"),
            "zarrd": lambda _, base: self.read(f"{base}/store/m"),
        }


def by_obstore(base):
    """The bucket as the store of zarr-python."""
    endpoint, _, prefix = base.partition("|")
    found = obstore.store.S3Store(
        "bench", endpoint=endpoint, region="us-east-1", skip_signature=True, client_options={"allow_http": True}, prefix=prefix or None
    )
    return zarr.storage.ObjectStore(found, read_only=True)


class Series:
    """Time series of stations, one after the other, each from an array that is open."""

    name = "a notebook reads 12 time series"

    def __init__(self, folder):
        self.folder = folder
        array = zarr.open_array(folder / FIELD, mode="r")
        self.expected = [array[:, latitude, longitude] for latitude, longitude in STATIONS]
        chunks = {tuple(station // data.FIELD_CHUNK[1:]) for station in STATIONS}
        self.least = len(chunks) * array.cdata_shape[0] * 4 * int(numpy.prod(data.FIELD_CHUNK))

    def check(self, read):
        for (latitude, longitude), expected in zip(STATIONS.tolist(), self.expected, strict=True):
            assert numpy.array_equal(read(latitude, longitude), expected)

    def zarr_python(self, bucket, _):
        array = zarr.open_array(by_obstore(bucket.base), path=FIELD, mode="r", zarr_format=3)
        self.check(lambda latitude, longitude: array[:, latitude, longitude])

    def tensorstore(self, kvstore):
        array = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, open=True, read=True).result()
        self.check(lambda latitude, longitude: array[:, latitude, longitude].read().result())

    def from_bucket(self, bucket, _):
        self.tensorstore(
            {
                "driver": "s3",
                "bucket": "bench",
                "path": f"{FIELD}/",
                "endpoint": bucket.base,
                "aws_region": "us-east-1",
                "aws_credentials": {"type": "anonymous"},
            }
        )

    def from_files(self, *_):
        self.tensorstore({"driver": "file", "path": f"{self.folder / FIELD}/"})

    def zarrd(self, _, base):
        def read(latitude, longitude):
            return numpy.frombuffer(fetch(f"{base}/v1/data/m/{FIELD}?slice=:,{latitude},{longitude}"), "<f4")

        self.check(read)

    def ways(self):
        return {
            "zarr-python and obstore": self.zarr_python,
            "tensorstore": self.from_bucket,
            "files of this machine, tensorstore": self.from_files,
            "zarrd": self.zarrd,
        }


class Scan:
    """dask, which reads all chunks of a region with this number of threads."""

    def __init__(self, folder, threads):
        self.folder = folder
        self.threads = threads
        self.name = f"dask scans a region: {threads} threads"
        array = zarr.open_array(folder / FIELD, mode="r")
        self.expected = float(array[REGION].mean(dtype="float64"))
        counts = [-(-part.stop // size) - part.start // size for part, size in zip(REGION, data.FIELD_CHUNK, strict=True)]
        self.least = int(numpy.prod(counts)) * 4 * int(numpy.prod(data.FIELD_CHUNK))

    def read(self, store, path):
        array = dask.array.from_zarr(zarr.open_array(store, path=path, mode="r", zarr_format=3))
        mean = array[REGION].mean(dtype="float64").compute(scheduler="threads", num_workers=self.threads)
        assert numpy.isclose(mean, self.expected, rtol=1e-12)

    def ways(self):
        def through(base):
            store = obstore.store.HTTPStore(f"{base}/store/m", client_options={"allow_http": True})
            return zarr.storage.ObjectStore(store, read_only=True)

        return {
            "zarr-python and obstore": lambda bucket, _: self.read(by_obstore(bucket.base), FIELD),
            "files of this machine, zarr-python": lambda *_: self.read(self.folder, FIELD),
            "the same, through zarrd": lambda _, base: self.read(through(base), FIELD),
        }


def timed(way, bucket, base):
    """Seconds, and the bucket's requests and bytes."""
    bucket.counts()
    begun = time.perf_counter()
    way(bucket, base)
    return (time.perf_counter() - begun, *bucket.counts())


def passes(name, way, bucket):
    """What a reader needs in each state of a cache: a list of (state, seconds, requests, bytes)."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if name == "files of this machine, by nginx":
            with processes.nginx_with(scratch / "files", f"root {bucket.folder};") as files:
                return [("", *timed(way, bucket, files.base))]
        if "zarrd" not in name and name not in ("nginx", "varnish"):
            return [("", *timed(way, bucket, None))]
        if name == "varnish":
            with servers.varnish(bucket, scratch) as base:
                return [(state, *timed(way, bucket, base)) for state in ("cold", "memory")]
        if name == "nginx":
            with servers.nginx(bucket, scratch) as base:
                found = [("cold", *timed(way, bucket, base))]
            with servers.nginx(bucket, scratch) as base:
                return [*found, ("disk, after a restart", *timed(way, bucket, base))]
        disk = scratch / "disk"
        with servers.zarrd(bucket, scratch) as server:
            found = cold("cold", way, bucket, server)
            found += [("memory", *timed(way, bucket, server.base))]
        with servers.zarrd(bucket, scratch, disk) as server:
            found += cold("cold, with a disk", way, bucket, server)
            # What is read is written to the disk beside the responses.
            time.sleep(1)
        with servers.zarrd(bucket, scratch, disk) as server:
            return [*found, ("disk, after a restart", *timed(way, bucket, server.base))]


def cold(state, way, bucket, server):
    """Reads with nothing cached: as the first requests of the process, and again after a purge. The first time the system has to
    give the process its memory, which the programs that read directly already have."""
    started = (f"{state}, just started", *timed(way, bucket, server.base))
    processes.purge(server, "m")
    return [started, (state, *timed(way, bucket, server.base))]


def main():
    folder = data.folder()
    with servers.bucket(folder) as bucket:
        # dask by itself takes as many threads as there are processors.
        scans = (Scan(folder, threads) for threads in sorted({os.cpu_count(), 8}))
        for reader in (Viewer(folder), Series(folder), *scans):
            print(f"\n**{reader.name}**; the values have {reader.least / 1e6:.1f} MB\n")
            print("| read from | state | s | requests to the bucket | bytes from the bucket ÷ bytes of the values |")
            print("|---|---|---|---|---|")
            ways = reader.ways()
            rounds = {name: [] for name in ways}
            for done in range(ROUNDS):
                # In turn, each time another one first.
                names = [*ways][done % len(ways):] + [*ways][: done % len(ways)]
                for name in names:
                    rounds[name].append(passes(name, ways[name], bucket))
            for name in ways:
                for states in zip(*rounds[name], strict=True):
                    seconds, requests, received = (statistics.median(column) for column in list(zip(*states))[1:])
                    print(f"| {name} | {states[0][0]} | {seconds:.2f} | {requests:.0f} | {received / reader.least:.2f} |", flush=True)


if __name__ == "__main__":
    main()
