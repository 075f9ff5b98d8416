"""Writes the arrays of Zarr v1 beside this file, as the specification describes them: no library writes them any more.

Needs numpy and numcodecs. Run it in this folder; what it writes is the same each time.
"""

import hashlib
import json
import pathlib

import numcodecs
import numpy

COMPRESSORS = {
    ("none", None): (None, None),
    ("blosc", "dict"): (numcodecs.Blosc("lz4", 5, 1), {"cname": "lz4", "clevel": 5, "shuffle": 1}),
    ("zlib", 1): (numcodecs.Zlib(1), 1),
    ("bz2", 1): (numcodecs.BZ2(1), 1),
    ("lzma", "dict"): (numcodecs.LZMA(preset=1), {"preset": 1, "format": 1, "check": 0, "filters": None}),
}
SHAPE, CHUNKS = (5, 7), (2, 3)


def write(folder, name, options, order, dtype, fill_value):
    codec, compression_opts = options
    values = numpy.arange(35, dtype=dtype).reshape(SHAPE) * 3 - 20
    # One chunk is missing, and has the fill value.
    values[2:4, 3:6] = 0 if fill_value is None else fill_value
    array = folder / f"{name}_{order}_{numpy.dtype(dtype).str[1:]}"
    array.mkdir(exist_ok=True)
    meta = {
        "zarr_format": 1,
        "shape": SHAPE,
        "chunks": CHUNKS,
        "dtype": numpy.dtype(dtype).str,
        "compression": None if codec is None else name,
        "compression_opts": compression_opts,
        "fill_value": fill_value,
        "order": order,
        "written_by": {"must_understand": True, "filters": ["none that count"]},
    }
    (array / "meta").write_text(json.dumps(meta, indent=4, sort_keys=True))
    (array / "attrs").write_text(json.dumps({"name": name} if order == "C" else {}))
    for row in range(3):
        for column in range(3):
            if (row, column) == (1, 1):
                continue
            chunk = numpy.full(CHUNKS, 99, dtype, order)
            part = values[2 * row : 2 * row + 2, 3 * column : 3 * column + 3]
            chunk[: part.shape[0], : part.shape[1]] = part
            encoded = chunk.tobytes("A") if codec is None else codec.encode(chunk)
            (array / f"{row}.{column}").write_bytes(bytes(encoded))
    elements = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return {"path": array.name, "sha256": hashlib.sha256(elements).hexdigest(), "values": values.tolist()}


def main():
    folder = pathlib.Path(__file__).parent
    expected = []
    for (name, _), options in COMPRESSORS.items():
        for order in "CF":
            expected.append(write(folder, name, options, order, "<i4", -7))
    expected.append(write(folder, "zlib", COMPRESSORS["zlib", 1], "C", ">f8", None))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
