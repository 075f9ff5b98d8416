"""Arrays whose elements follow from where they are, and bombs, written without any library of Zarr."""

import bz2
import gzip
import json
import lzma
import zlib

EDGE = 256
"""Of a chunk: this number of planes of 64 × 64 numbers of two bytes makes 2 MiB."""
SIDE = 64
CHUNK_BYTES = EDGE * SIDE * SIDE * 2
VALUE = bytes(range(256)) * (16 << 10)


def document(shape, chunk, codecs, data_type="uint16"):
    return json.dumps({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *codecs],
    })


def plane(z):
    return (z % 65521).to_bytes(2, "little") * (SIDE * SIDE)


def write(folder, key, value):
    file = folder / key
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(value if isinstance(value, bytes) else value.encode())


def volume(folder, name, chunks):
    """Stores an array; returns answers by their paths, each a part of a chunk, of a few chunks, or a value."""
    write(folder, f"{name}/zarr.json", document([EDGE * chunks, SIDE, SIDE], [EDGE, SIDE, SIDE], [{
        "name": "gzip", "configuration": {"level": 1}
    }]))
    found = {}
    for n in range(chunks):
        stored = gzip.compress(b"".join(plane(z) for z in range(n * EDGE, (n + 1) * EDGE)), 1)
        write(folder, f"{name}/c/{n}/0/0", stored)
        found[f"/store/m/{name}/c/{n}/0/0"] = stored
        first = n * EDGE + 7
        found[f"/v1/data/m/{name}?slice={first}:{first + 20}"] = b"".join(plane(z) for z in range(first, first + 20))
    middle = EDGE * chunks // 2
    found[f"/v1/data/m/{name}?slice={middle - 30}:{middle + 30}"] = b"".join(
        plane(z) for z in range(middle - 30, middle + 30)
    )
    return found


def bombs(folder):
    """Stores chunks of a MiB that would decode to a GiB; their paths."""
    mebibyte = bytes(1 << 20)
    made = {
        "gzip": ("gzip", gzip.compress(mebibyte) * 1024),
        "zlib": ("numcodecs.zlib", zlib.compress(bytes(1 << 28), 9)),
        "bz2": ("numcodecs.bz2", bz2.compress(mebibyte) * 1024),
        "lzma": ("numcodecs.lzma", lzma.compress(mebibyte) * 1024),
        # A frame that says that it holds 2^46 bytes.
        "zstd": ("zstd", b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\x40\0\0\x01\0\0"),
        # A header of 2 GiB over nothing.
        "blosc": ("numcodecs.blosc", b"\x02\x01\x21\x04\xef\xff\xff\x7f\0\0\x01\0\x14\0\0\0\x14\0\0\0"),
        "lz4": ("numcodecs.lz4", b"\xff\xff\xff\xff\x10\0"),
    }
    for name, (codec, stored) in made.items():
        configuration = {"level": 1} | ({"checksum": False} if codec == "zstd" else {})
        codecs = [{"name": codec, "configuration": configuration}]
        write(folder, f"bomb-{name}/zarr.json", document([1 << 20], [1 << 19], codecs))
        write(folder, f"bomb-{name}/c/0", stored)
    return [f"/v1/data/m/bomb-{name}?slice=0:10" for name in made]
