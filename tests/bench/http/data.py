"""The data set: arrays A, A2, B and B2, lines of few and of many chunks, values of round lengths, and slices of the arrays
as plain files.

A is a volume in shards, A2 the same in plain chunks; B is a field over time with a chunk a step, B2 the same in chunks
along time, of Zarr v2. All are smooth with some noise, so that they compress as measured data does. Made once, and again
when this file changes; small, they have an eighth of the elements.
"""

import dataclasses
import hashlib
import pathlib
import shutil

import numpy
import tensorstore

VALUES = {"16 KiB": 16 << 10, "256 KiB": 256 << 10, "4 MiB": 4 << 20}
"""Values of these lengths are at `values/LENGTH`, in bytes."""

LINES = {"few": 10, "many": 1_000_000}
"""Arrays of one dimension, and how many chunks they have, of which the first ten are stored."""
LINE_CHUNK = 4096

RANGE = (1 << 20, (1 << 20) + (64 << 10))
"""A range of a shard."""


@dataclasses.dataclass(frozen=True)
class Slice:
    """A part of an array: an integer, or where it starts and stops, along each dimension."""

    name: str
    kind: str
    array: str
    axes: tuple

    @property
    def file(self):
        return self.name.replace(" ", "-")

    @property
    def query(self):
        return ",".join(str(axis) if isinstance(axis, int) else f"{axis[0]}:{axis[1]}" for axis in self.axes)

    @property
    def start(self):
        return [axis if isinstance(axis, int) else axis[0] for axis in self.axes]

    @property
    def shape(self):
        return [1 if isinstance(axis, int) else axis[1] - axis[0] for axis in self.axes]

    def of(self, array):
        return array[tuple(axis if isinstance(axis, int) else slice(*axis) for axis in self.axes)]


class Data:
    """The data set, made if it is not there."""

    def __init__(self, folder, small):
        self.folder = pathlib.Path(folder) / ("small" if small else "full")
        depth, height, width = self.volume = (256, 512, 512) if small else (512, 1024, 1024)
        self.shard = tuple(length // 2 for length in self.volume) if small else (256, 512, 512)
        steps, latitudes, longitudes = self.field = (365, 256, 512) if small else (365, 721, 1440)
        self.field_chunk = (30, 64, 128) if small else (30, 180, 360)
        z, y, x = depth // 4, height // 4, width // 4
        # Around a corner where shards meet, along the grid of the chunks within them.
        patch = ((height // 2 - 128, height // 2 + 128), (width // 2 - 128, width // 2 + 128))
        everywhere = ((0, height), (0, width))
        pixel = ((0, steps), latitudes // 2, longitudes // 2)
        self.slices = [
            Slice("A patch", "plane", "A", (z + 3, *patch)),
            Slice("A plane", "plane", "A", (z + 3, *everywhere)),
            Slice("A2 plane", "plane", "A2", (z + 3, *everywhere)),
            Slice("A block", "block", "A", ((z, z + 128), (y, y + 128), (x, x + 128))),
            Slice("B step", "block", "B", (100, (0, latitudes), (0, longitudes))),
            Slice("B2 pixel", "series", "B2", pixel),
            Slice("B pixel", "series", "B", pixel),
        ]
        # Of whole chunks, so that each MiB takes as many.
        self.blocks = [
            Slice(f"A {d * h * w >> 19} MiB", "block", "A", ((0, d), (0, h), (0, w)))
            for d, h, w in ((64, 64, 128), (64, 128, 256), (64, 256, 512), (128, 512, 512))
        ]
        made_of = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
        mark = self.folder / "made-of"
        if not mark.is_file() or mark.read_text() != made_of:
            print(f"making the data set in {self.folder}", flush=True)
            self.make()
            mark.write_text(made_of)

    def make(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in ("values", "slices"):
            (self.folder / folder).mkdir(parents=True)
        random = numpy.random.default_rng(5)
        for length in VALUES.values():
            (self.folder / "values" / str(length)).write_bytes(random.bytes(length))
        self.make_volumes(random)
        self.make_fields(random)
        for name, count in LINES.items():
            little = {"name": "bytes", "configuration": {"endian": "little"}}
            line = self.create(name, (count * LINE_CHUNK,), "uint16", (LINE_CHUNK,), [little])
            stored = min(LINES.values()) * LINE_CHUNK
            line[:stored].write(numpy.arange(stored, dtype=numpy.uint16)).result()
        for part in self.slices + self.blocks:
            values = numpy.ascontiguousarray(part.of(self.open(part.array)).read().result())
            self.file(part).write_bytes(values.tobytes())

    def make_volumes(self, random):
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
        zstd = {"name": "zstd", "configuration": {"level": 3}}
        shards = {
            "chunk_shape": (64, 64, 64),
            "codecs": [little, {"name": "blosc", "configuration": blosc}],
            "index_codecs": [little, {"name": "crc32c"}],
        }
        sharded = [{"name": "sharding_indexed", "configuration": shards}]
        volumes = [
            self.create("A", self.volume, "uint16", self.shard, sharded),
            self.create("A2", self.volume, "uint16", (64, 128, 128), [little, zstd]),
        ]
        slab = self.shard[0]
        y, x = numpy.ogrid[: self.volume[1], : self.volume[2]]
        for at in range(0, self.volume[0], slab):
            values = random.integers(0, 24, (slab, *self.volume[1:]), numpy.uint16)
            for z in range(slab):
                smooth = 2000 + 800 * numpy.sin(x / 97 + (at + z) / 31) * numpy.cos(y / 71)
                values[z] += smooth.astype(numpy.uint16)
            for volume in volumes:
                volume[at : at + slab].write(values).result()

    def make_fields(self, random):
        zstd = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3}}]
        blosc = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
        fields = [
            self.create("B", self.field, "float32", (1, *self.field[1:]), zstd),
            self.create_v2("B2", self.field, "<f4", self.field_chunk, blosc),
        ]
        slab = self.field_chunk[0]
        y, x = numpy.ogrid[: self.field[1], : self.field[2]]
        for at in range(0, self.field[0], slab):
            steps = min(slab, self.field[0] - at)
            values = random.integers(0, 16, (steps, *self.field[1:])).astype(numpy.float32)
            for step in range(steps):
                values[step] += numpy.round(18000 + 1900 * numpy.cos(y / 230) + 300 * numpy.sin(x / 150 + (at + step) / 9))
            # Of as many digits as are measured.
            values /= 64
            for field in fields:
                field[at : at + steps].write(values).result()

    def create(self, name, shape, data_type, chunk, codecs):
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        metadata = {"shape": shape, "data_type": data_type, "chunk_grid": grid, "codecs": codecs}
        return self.open(name, "zarr3", metadata=metadata, create=True)

    def create_v2(self, name, shape, data_type, chunk, compressor):
        metadata = {"shape": shape, "dtype": data_type, "chunks": chunk, "compressor": compressor}
        return self.open(name, "zarr", metadata=metadata, create=True)

    def open(self, name, driver=None, **more):
        """An array, as tensorstore has it."""
        return open_array(self.folder, name, driver, **more)

    @property
    def shard_file(self):
        return "A/c/0/0/0"

    def file(self, part):
        """A slice's elements as a plain file."""
        return self.folder / "slices" / part.file


def open_array(folder, name, driver=None, **more):
    """An array in a folder, as tensorstore has it: it keeps no decoded chunks."""
    folder = pathlib.Path(folder) / name
    driver = driver or ("zarr3" if (folder / "zarr.json").is_file() else "zarr")
    store = {"driver": "file", "path": str(folder)}
    return tensorstore.open({"driver": driver, "kvstore": store, **more}).result()
