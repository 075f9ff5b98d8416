"""The arrays of these tests: how zarr-python writes each, and what it holds, by name."""

import dataclasses
import math

import numcodecs
import numpy
import xarray
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

ATTRIBUTES = {"unit": "µm", "nested": {"list": [1, 2.5, None, True]}}


@dataclasses.dataclass(frozen=True)
class Array:
    """An array, and the arguments of `zarr.create_array` for it."""

    values: numpy.ndarray
    options: dict
    stored: tuple = (...,)
    """The part that is written; the rest is `fill_value` already, and its chunks stay missing."""

    @property
    def zarr_format(self):
        return self.options["zarr_format"]

    def write(self, store, name=None):
        made = zarr.create_array(
            store,
            name=name,
            shape=self.values.shape,
            dtype=self.values.dtype,
            attributes=ATTRIBUTES,
            **self.options,
        )
        made[self.stored] = self.values[self.stored]


def values(dtype, *shape):
    """Elements that differ from their neighbours in every byte."""
    dtype = numpy.dtype(dtype)
    random = numpy.random.default_rng(math.prod(shape))
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "fc":
        parts = random.normal(scale=1000, size=(2, *shape))
        return (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)
    limits = numpy.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


def filled(array, fill_value, *stored):
    """The array with `fill_value` in all but a part."""
    sparse = numpy.full_like(array, fill_value)
    sparse[stored] = array[stored]
    return sparse


def v3(array, *, stored=(...,), **options):
    return Array(array, {"zarr_format": 3, **options}, stored)


def v2(array, *, stored=(...,), **options):
    return Array(array, {"zarr_format": 2, **options}, stored)


CORNER = (slice(0, 20), slice(10, 30))

ARRAYS = {
    "v3_sharded": v3(values("uint16", 50, 40, 30), shards=(32, 32, 16), chunks=(8, 16, 8), compressors=ZstdCodec()),
    "v3_sharded_start": v3(
        values("float32", 45, 70),
        chunks=(20, 32),
        serializer=ShardingCodec(
            chunk_shape=(5, 16), codecs=[BytesCodec(), GzipCodec(level=1), Crc32cCodec()], index_location="start"
        ),
        compressors=None,
    ),
    "v3_sharded_sparse": v3(
        filled(values("int32", 64, 64), -7, *CORNER),
        stored=CORNER,
        shards=(32, 32),
        chunks=(4, 8),
        compressors=BloscCodec(cname="lz4", typesize=4),
        fill_value=-7,
    ),
    "v3_zstd_missing_nan": v3(
        filled(values("float32", 60, 70), numpy.nan, *CORNER),
        stored=CORNER,
        chunks=(16, 16),
        compressors=ZstdCodec(level=5, checksum=True),
        fill_value=numpy.nan,
        dimension_names=("y", "x"),
    ),
    "v3_blosc_big_endian": v3(
        values("uint64", 33, 21),
        chunks=(10, 10),
        serializer=BytesCodec(endian="big"),
        compressors=BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=8),
    ),
    "v3_transposed_complex": v3(
        values("complex64", 11, 12, 13),
        chunks=(4, 5, 6),
        filters=[TransposeCodec(order=(2, 0, 1))],
        compressors=[GzipCodec(), Crc32cCodec()],
    ),
    "v3_bool_v2_keys": v3(
        values("bool", 40, 9), chunks=(16, 4), chunk_key_encoding={"name": "v2", "separator": "."}, compressors=None
    ),
    "v3_half": v3(values("float16", 30, 10), chunks=(7, 7)),
    "v3_scalar": v3(numpy.array(-2.5, dtype="float64"), chunks=()),
    "v3_empty": v3(numpy.zeros((0, 5), dtype="int8"), chunks=(2, 2)),
    "v2_blosc": v2(
        values("int32", 60, 50, 9), chunks=(20, 25, 4), compressors=numcodecs.Blosc(cname="lz4", clevel=5, shuffle=1)
    ),
    "v2_fortran": v2(values("uint16", 31, 17, 5), chunks=(8, 8, 3), order="F", compressors=numcodecs.Zlib(level=1)),
    "v2_fortran_slashes": v2(
        values("float32", 25, 33),
        chunks=(10, 10),
        order="F",
        compressors=numcodecs.Zstd(level=3),
        chunk_key_encoding={"name": "v2", "separator": "/"},
    ),
    "v2_big_endian": v2(values(">i8", 30, 20), chunks=(16, 16), compressors=None),
    "v2_complex_missing": v2(
        filled(values("complex128", 40, 40), 1 - 2j, *CORNER),
        stored=CORNER,
        chunks=(16, 16),
        compressors=numcodecs.GZip(level=1),
        fill_value=1 - 2j,
    ),
    "v2_bool": v2(values("bool", 100), chunks=(33,), compressors=numcodecs.Blosc(cname="zstd")),
    "v2_scalar": v2(numpy.array(42, dtype="uint8"), chunks=()),
}

FORMATS = {2: "old/inner", 3: "new/inner"}
"""In which nested group the arrays of each format are."""


def path(name):
    return f"{FORMATS[ARRAYS[name].zarr_format]}/{name}"


def write_all(store):
    """Writes every array, in nested groups, one hierarchy for each format."""
    for zarr_format, nested in FORMATS.items():
        outer = zarr.create_group(store, path=nested.split("/")[0], zarr_format=zarr_format, attributes=ATTRIBUTES)
        outer.create_group(nested.split("/")[1], attributes={"inner": True})
    for name, array in ARRAYS.items():
        array.write(store, path(name))


GROUPS = (None, "below/deeper")
"""The groups of a hierarchy that are datasets of xarray."""


def dataset():
    """A dataset with coordinates, an attribute and a fill value that JSON has no number for."""
    temperature = filled(values("float32", 6, 4), numpy.nan, slice(0, 3))
    return xarray.Dataset(
        {"temperature": (("time", "x"), temperature, {"unit": "K"})},
        {"time": numpy.arange(6), "x": numpy.linspace(0, 1, 4)},
        {"title": "µ"},
    )
