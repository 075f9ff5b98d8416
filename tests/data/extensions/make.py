"""Makes the arrays of this folder and `expected.json`. Needs zarr 3.4.2, cast-value-rs 0.5.1 and zarr-n5 0.3.1.

What zarr-python writes (`cast_value`, `scale_offset`), it reads back for the hashes. It has no `reshape` and no
`conditional`: there it writes what stands behind the codec, and this script puts the codec before it. Blocks of N5
are packed by hand here and read by zarr-n5 for the hashes.

`cast_value.txt` has casts that cast-value-rs makes: types, rounding, out of range, elements, what becomes of them.
"""

import gzip
import hashlib
import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import zarr
from cast_value_rs import cast_array
from zarr.codecs import BytesCodec, CastValue, GzipCodec, ScaleOffset, ShardingCodec, TransposeCodec
from zarr_n5.codec.default import N5DefaultCodec
import zarr.registry

ROOT = Path(__file__).parent
EXPECTED = []


def digest(array):
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return hashlib.sha256(little.tobytes()).hexdigest()


def expect(path, array, dtype, codecs):
    slices = []
    for step in (1, 2):
        sel = [[length // 3, length, step] for length in array.shape]
        part = array[tuple(slice(*one) for one in sel)]
        slices.append({"sel": sel, "sha256": digest(part)})
    EXPECTED.append(
        {
            "path": path,
            "zarr_format": 3,
            "dtype": dtype,
            "shape": list(array.shape),
            "codecs": codecs,
            "expect": "value",
            "sha256": digest(array),
            "slices": slices,
        }
    )


def written(path, data, filters, chunks, fill_value=0, serializer=None, skip=None, **more):
    """An array that zarr-python writes and reads; `skip` is left unwritten."""
    array = zarr.create_array(
        ROOT / path,
        shape=data.shape,
        chunks=chunks,
        dtype=data.dtype,
        fill_value=fill_value,
        filters=filters,
        serializer=serializer or BytesCodec(endian="little"),
        compressors=more.pop("compressors", None),
        **more,
    )
    if skip is None:
        array[...] = data
    else:
        array[skip:] = data[skip:]
    document = json.loads((ROOT / path / "zarr.json").read_text())
    names = [codec["name"] for codec in document["codecs"]]
    expect(path, zarr.open_array(ROOT / path, mode="r")[...], str(data.dtype), names)


def behind(path, data, encoded, codec, chunks, inner, codecs):
    """An array with `codec` before what zarr-python wrote for `encoded`, which is one chunk for each of its rows."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(data.shape),
        "data_type": str(data.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "attributes": {},
    }
    for number, part in enumerate(encoded):
        scratch = ROOT / "scratch"
        array = zarr.create_array(
            scratch, shape=part.shape, dtype=data.dtype, chunks=part.shape, filters=None, compressors=None,
            serializer=inner, overwrite=True, fill_value=0,
        )
        array[...] = part
        key = ROOT / path / "c" / "/".join([str(number)] + ["0"] * (data.ndim - 1))
        key.parent.mkdir(parents=True, exist_ok=True)
        source = scratch / "c" / "/".join(["0"] * part.ndim)
        if source.exists():
            key.write_bytes(source.read_bytes())
        serialized = json.loads((scratch / "zarr.json").read_text())["codecs"]
    shutil.rmtree(scratch)
    document["codecs"] = [codec, *serialized]
    (ROOT / path / "zarr.json").write_text(json.dumps(document, indent=1))
    expect(path, data, str(data.dtype), codecs)


def by_hand(path, data, codecs, chunks, values, names, **more):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(data.shape),
        "data_type": str(data.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": more.get("keys", {"name": "default", "configuration": {"separator": "/"}}),
        "fill_value": more.get("fill_value", 0),
        "codecs": codecs,
        "attributes": {},
    }
    for key, value in values.items():
        (ROOT / path / key).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path / key).write_bytes(value)
    (ROOT / path / "zarr.json").write_text(json.dumps(document, indent=1))
    if more.get("read"):
        assert np.array_equal(zarr.open_array(ROOT / path, mode="r")[...], data), path
    expect(path, data, str(data.dtype), names)


def casts():
    rng = np.random.default_rng(1)
    floats = np.concatenate([np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, -127.5]), rng.normal(0, 40, 51)])
    floats = floats.clip(-128, 127).reshape(6, 10)
    for rounding in ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]:
        name = rounding.replace("-", "_")
        written(f"cast_value/int8_{name}", floats, [CastValue(data_type="int8", rounding=rounding)], (4, 4))
        written(f"cast_value/float16_{name}", floats, [CastValue(data_type="float16", rounding=rounding)], (4, 4))
        large = rng.integers(-(2**63), 2**63 - 1, (5, 7), dtype="int64")
        written(f"cast_value/int64_float32_{name}", large, [CastValue(data_type="float32", rounding=rounding, out_of_range="clamp")], (3, 3))
    wide = rng.integers(-(2**40), 2**40, (5, 8), dtype="int64")
    for target in ["int8", "int16", "uint16", "uint32"]:
        for mode in ["clamp", "wrap"]:
            written(f"cast_value/{target}_{mode}", wide, [CastValue(data_type=target, out_of_range=mode)], (2, 5))
    written("cast_value/uint64_wrap_of_float64", floats * 1e18, [CastValue(data_type="uint64", out_of_range="wrap")], (4, 4))
    special = floats.copy()
    special[::2, ::3] = np.nan
    special[1, 1] = np.inf
    written(
        "cast_value/scalar_map", special,
        [CastValue(data_type="int16", scalar_map={"encode": [("NaN", -9999), ("Infinity", 9999)], "decode": [(-9999, "NaN"), (9999, "Infinity")]})],
        (4, 4), fill_value=float("nan"), skip=2,
    )
    written("cast_value/float32_clamp", special * 1e37, [CastValue(data_type="float32", out_of_range="clamp")], (4, 4), fill_value=float("nan"))
    packed = [ScaleOffset(offset=-10, scale=0.1), CastValue(data_type="uint8", scalar_map={"encode": [("NaN", 0)], "decode": [(0, "NaN")]})]
    temperature = rng.uniform(0, 2540, (12, 9))
    temperature[3] = np.nan
    written("scale_offset/float64_uint8", temperature, packed, (5, 4), fill_value=float("nan"), skip=6)
    written("scale_offset/before_a_shard", temperature, packed, (12, 8), fill_value=float("nan"), skip=6,
            serializer=ShardingCodec(chunk_shape=(3, 4), codecs=[BytesCodec(), GzipCodec()]))
    written("scale_offset/inside_a_shard", temperature, None, (12, 8), fill_value=float("nan"), skip=6,
            serializer=ShardingCodec(chunk_shape=(3, 4), codecs=[*packed, TransposeCodec(order=(1, 0)), BytesCodec()]))
    written("scale_offset/uint16_uint8", rng.integers(1000, 1255, (9, 9), dtype="uint16"),
            [ScaleOffset(offset=1000), CastValue(data_type="uint8")], (4, 4), fill_value=1000, skip=5)
    for dtype in ["float16", "float32", "float64"]:
        written(f"scale_offset/{dtype}", rng.normal(20, 9, (6, 6)).astype(dtype), [ScaleOffset(offset=20.3, scale=7.1)], (4, 4), fill_value=1)
    for dtype in ["int8", "int16", "int32", "int64", "uint16", "uint64"]:
        written(f"scale_offset/{dtype}", rng.integers(11, 40, (6, 6)).astype(dtype), [ScaleOffset(offset=10, scale=3)], (4, 4), fill_value=11, skip=4)
    written("scale_offset/int64_negative", rng.integers(-(2**60), 2**60, (6, 6)), [ScaleOffset(offset=7, scale=-3)], (4, 4))


def reshapes():
    data = np.arange(2 * 3 * 4 * 5, dtype="int32").reshape(4, 3, 10)
    reshape = lambda shape: {"name": "reshape", "configuration": {"shape": shape}}
    parts = [data[at : at + 2] for at in (0, 2)]
    behind("reshape/merged", data, [part.reshape(6, 10) for part in parts], reshape([[0, 1], [2]]), [2, 3, 10],
           BytesCodec(endian="big"), ["reshape", "bytes"])
    behind("reshape/before_a_shard", data, [part.reshape(6, 2, 5) for part in parts], reshape([[0, 1], 2, -1]), [2, 3, 10],
           ShardingCodec(chunk_shape=(2, 2, 5), codecs=[TransposeCodec(order=(2, 0, 1)), BytesCodec()]), ["reshape", "sharding_indexed(bytes)"])


def conditionals():
    data = np.concatenate([np.arange(16), np.zeros(16)]).astype("uint32").reshape(8, 4)
    little = lambda at: data[at : at + 2].astype("<u4").tobytes()
    checked = lambda value: value + struct.pack("<I", zlib.crc32(value))
    inner = [{"name": "gzip", "configuration": {"level": 1}}, {"name": "numcodecs.crc32", "configuration": {"location": "end"}}]
    values = {
        "c/0/0": b"\x00\x00" + little(0),
        "c/1/0": b"\x01\x00" + gzip.compress(little(2), mtime=0),
        "c/2/0": b"\x02\x00" + checked(little(4)),
        "c/3/0": b"\x03\x00" + checked(gzip.compress(little(6), mtime=0)),
    }
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}},
              {"name": "conditional", "configuration": {"codecs": inner, "header_bits": 16}}]
    by_hand("conditional/each_its_own", data, codecs, [2, 4], values, ["bytes", "conditional"])


def blocks():
    zarr.registry.register_codec("n5_default", N5DefaultCodec)
    data = np.arange(5 * 7, dtype="int16").reshape(5, 7)

    def block(part, compress):
        head = struct.pack(">HH", 0, part.ndim) + b"".join(struct.pack(">I", length) for length in part.shape)
        return head + compress(part.astype(part.dtype.newbyteorder(">")).tobytes(order="F"))

    keys = {"name": "v2", "configuration": {"separator": "/"}}
    inner = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}}]
    for name, codecs, compress in [
        ("raw", inner, lambda value: value),
        ("gzip", [*inner, {"name": "gzip", "configuration": {"level": 5}}], lambda value: gzip.compress(value, mtime=0)),
    ]:
        for cut in (True, False):
            padded = np.pad(data, ((0, 1), (0, 2)))
            whole = data if cut else padded
            values = {f"{i}/{j}": block(whole[3 * i : 3 * i + 3, 3 * j : 3 * j + 3], compress) for i in range(2) for j in range(3)}
            by_hand(f"n5_default/{name}_{'cut' if cut else 'padded'}", data, [{"name": "n5_default", "configuration": {"codecs": codecs}}],
                    [3, 3], values, ["n5_default"], keys=keys, read=True)


def cast_vectors():
    rows = []
    inf, nan = np.inf, np.nan

    def row(values, source, target, rounding="nearest-even", mode=None):
        elements = np.array(values, dtype=source)
        target = np.dtype(target)
        try:
            cast = cast_array(elements, target_dtype=target, rounding_mode=rounding, out_of_range_mode=mode).tobytes().hex()
        except (ValueError, OverflowError):
            cast = "error"
        rows.append(f"{elements.dtype} {target} {rounding} {mode or 'error'} {elements.tobytes().hex()} {cast}")

    for rounding in ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]:
        row([2.5, -2.5, 3.5, 0.5, -0.5, 1.4999999999999998, -0.0], "f8", "i4", rounding)
        row([0.1, -0.1, 1e-46, -1e-46, 16777217, 1e-40], "f8", "f4", rounding)
        row([1 + 2**-11, 1 + 3 * 2**-11, 1e-8, -1e-8, -65503, 6e-8], "f8", "f2", rounding)
        row([2**24 + 1, -(2**24 + 1), 2**63 - 1, -(2**63), 2**62 + 2**38 + 1], "i8", "f4", rounding)
        row([2**53 + 1, 2**64 - 1, 2**63 + 1025], "u8", "f8", rounding)
        row([65519, -2049, 2051], "i4", "f2", rounding)
        row([65535.0], "f8", "f2", rounding)
        row([-65505], "i4", "f2", rounding, "clamp")
        row([65536], "i4", "f2", rounding)
        row([-0.6], "f8", "u1", rounding)
    row([1e39], "f8", "f4")
    row([1e39, -1e39, inf, -inf, 3.4028235677973366e38], "f8", "f4", mode="clamp")
    row([inf, -inf, -0.0], "f8", "f2")
    for mode in (None, "clamp", "wrap"):
        row([inf], "f8", "i1", mode=mode)
        row([nan], "f4", "i1", mode=mode)
    row([127.4, -128.4], "f8", "i1")
    row([127.5], "f8", "i1")
    row([127.5, -128.5, 1e30], "f8", "i1", mode="clamp")
    row([127.5, -128.6, 1e30, 3e4], "f8", "i1", mode="wrap")
    row([1e19, -1e19, 2.0**64 + 4096, 1e300], "f8", "u8", mode="wrap")
    row([1e19, -1e19, 2.0**64 + 4096, -1e300], "f8", "i8", mode="wrap")
    row([1e19, -1e19, 2.0**63, -(2.0**63)], "f8", "i8", mode="clamp")
    row([1e19, -1.0, 2.0**64], "f8", "u8", mode="clamp")
    row([2.0**64], "f8", "u8")
    row([2.0**63], "f8", "i8")
    row([-(2.0**63), 2.0**63 - 1024], "f8", "i8")
    row([128, -129, 32768, -32769, 2**63 - 1], "i8", "i1", mode="wrap")
    row([32768, 32769, -32769], "i4", "i2", mode="wrap")
    row([-1, 2**63 - 1], "i8", "u8", mode="wrap")
    row([2**63, 2**64 - 1], "u8", "i8", mode="clamp")
    row([2**63], "u8", "i8")
    row([-1], "i1", "u8")
    row([255, 0], "u1", "i2")
    (ROOT / "cast_value.txt").write_text("\n".join(rows) + "\n")


for folder in ROOT.iterdir():
    if folder.is_dir():
        shutil.rmtree(folder)
cast_vectors()
casts()
reshapes()
conditionals()
blocks()
(ROOT / "expected.json").write_text("[\n" + ",\n".join(json.dumps(one) for one in EXPECTED) + "\n]\n")
print(len(EXPECTED), "arrays")
