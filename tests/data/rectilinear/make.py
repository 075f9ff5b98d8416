"""Makes these fixtures: arrays with rectilinear chunk grids as zarr-python writes them (3.4.2, Python 3.13).

    pip install zarr==3.4.2
    python make.py

Each array is read back with zarr-python, and `expected.json` holds the hashes of what it read. The files of another run
may differ in bytes that mean nothing; the hashes may not.
"""

import hashlib
import json
import pathlib
import shutil

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

HERE = pathlib.Path(__file__).parent
ZSTD = ZstdCodec(level=3)
expected = []


def elements(array: np.ndarray) -> bytes:
    """C order, little-endian, packed; text as a little-endian u32 length and its bytes."""
    if array.dtype.kind in "OT":
        texts = [str(text).encode() for text in array.reshape(-1)]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(elements(array)).hexdigest()


def selections(shape: tuple[int, ...]) -> list[list[list[int]]]:
    """A box, every third element, and the last one."""
    return [
        [[n // 4, max(n // 4 + 1, 3 * n // 4), 1] for n in shape],
        [[0, n, 3] for n in shape],
        [[n - 1, n, 1] for n in shape],
    ]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 + 1).astype(dtype)


def write(name, shape, chunks, *, dtype="<i4", shards=None, shrink=None, blank=None, data=None, **options):
    """One array: all of it written, some of it blanked again, and made smaller at last."""
    options.setdefault("compressors", None)
    array = zarr.create_array(HERE, name=name, shape=shape, dtype=dtype, chunks=chunks, shards=shards, **options)
    if data is None:
        data = numbers(shape, dtype)
    if all(shape):
        array[...] = data
    if blank is not None:
        array[blank] = array.fill_value
    if shrink is not None:
        array.resize(shrink)
    describe(name, array)


def describe(name, array):
    array = zarr.open_array(HERE, path=name, mode="r")
    document = json.loads((HERE / name / "zarr.json").read_text())
    whole = np.asarray(array[...])
    slices = []
    for selection in selections(array.shape) if all(array.shape) else []:
        part = np.asarray(array[tuple(slice(*dim) for dim in selection)])
        assert elements(part) == elements(whole[tuple(slice(*dim) for dim in selection)])
        slices.append({"sel": selection, "sha256": sha256(part)})
    expected.append({
        "path": name,
        "zarr_format": 3,
        "shape": list(array.shape),
        "chunk_shapes": document["chunk_grid"]["configuration"]["chunk_shapes"],
        "dtype": document["data_type"],
        "codecs": [codec["name"] for codec in document["codecs"]],
        "expect": "value",
        "readers": ["zarr_python"],
        "sha256": sha256(whole),
        "slices": slices,
    })


def edit(name, chunk_shapes):
    """The same grid in another form that means the same."""
    path = HERE / name / "zarr.json"
    document = json.loads(path.read_text())
    document["chunk_grid"]["configuration"]["chunk_shapes"] = chunk_shapes
    path.write_text(json.dumps(document, indent=2))
    expected.pop()
    describe(name, None)


def main():
    for path in HERE.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    (HERE / "zarr.json").unlink(missing_ok=True)
    zarr.config.set({"array.rectilinear_chunks": True})

    write("one_dimension", (23,), [[4, 3, 3, 1, 12]])
    write("long_runs", (60,), [[2] * 10 + [5] * 6 + [10]], dtype="<u2", compressors=[ZSTD])
    write("run_forms", (12,), [[1, 2, 2, 2, 2, 3]], dtype="|u1")
    edit("run_forms", [[[1, 1], 2, [2, 2], [2, 1], [3, 1]]])
    write("short_last", (10,), [[4, 4, 2]], dtype="<f8")
    write("mixed_axes", (10, 12), [4, [5, 7]], dtype=">i2", compressors=[GzipCodec(level=6)])
    write("three_axes", (5, 7, 9), [[1, 4], 3, [2, 5, 2]], dtype="<f4", compressors=[BloscCodec(cname="lz4")])
    write("fill", (9, 9), [[2, 3, 4], [1, 8]], fill_value=-5, blank=(slice(2, 5), slice(0, 9)),
          config={"write_empty_chunks": False})
    # Chunks that reach over the array's end, and ones that lie wholly beyond it.
    write("overflow", (28, 15), [[2, 2, 6, 9, 9], [5, 7, 3]], shrink=(11, 12), compressors=[Crc32cCodec()])
    write("overflow_integer", (9, 30), [4, [7, 7, 16]], shrink=(9, 8))
    write("one_overhanging_chunk", (9, 4), [[9], [1, 3]], shrink=(2, 4))
    write("no_length", (0, 6), [3, [2, 4]])
    write("shrunk_to_nothing", (6, 5), [[2, 4], [3, 2]], shrink=(0, 5))
    write("sharded", (12, 18), [2, 3], shards=[[4, 8], [6, 3, 9]], compressors=[ZSTD])
    write("sharded_overflow", (12, 18), [2, 3], shards=[[4, 8], [6, 3, 9]], shrink=(7, 8), compressors=[ZSTD])
    write("sharded_fill", (12, 12), [2, 2], shards=[[4, 2, 6], 6], dtype="<u2", fill_value=9,
          blank=(slice(3, 12), slice(1, 9)), config={"write_empty_chunks": False})
    write("transposed", (6, 10), [[1, 5], [4, 3, 3]], filters=[TransposeCodec(order=(1, 0))])
    write("transposed_three_axes", (4, 5, 6), [[1, 3], [2, 3], [5, 1]], filters=[TransposeCodec(order=(2, 0, 1))],
          compressors=[ZSTD])
    texts = np.array([f"{place} {'ä' * (place % 5)}" for place in range(63)]).reshape(7, 9)
    write("text", (7, 9), [[2, 5], [4, 1, 4]], dtype=str, data=texts.astype(object), compressors=[ZSTD])
    write("text_sharded", (6, 9), [2, 3], shards=[[2, 4], [3, 6]], dtype=str, data=texts[:6].astype(object),
          compressors=[ZSTD])
    write("other_keys", (7, 5), [[3, 4], [1, 4]], chunk_key_encoding={"name": "v2", "separator": "."})

    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
