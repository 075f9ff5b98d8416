"""Writes `cases.json`: arrays as others write them, chunk by chunk, and what numpy says is in them.

Needs numpy, numcodecs and the `zstd` program. Shards, blosc frames of snappy and keys are put together here by hand,
as the specifications have them. Run it in this folder; what it writes is the same each time.
"""

import base64
import gzip
import itertools
import json
import random
import struct
import subprocess
import zlib

import numcodecs
import numpy

RANDOM = random.Random(7)
CASES = {}


def canonical(values):
    """Little-endian, packed, C order: as the server gives elements."""
    values = numpy.ascontiguousarray(values)
    if values.dtype.names:
        # A slice keeps the zeros behind a text, a record does not.
        flat = values.reshape(-1)
        parts = [canonical(flat[name][at : at + 1]) for at in range(flat.size) for name in values.dtype.names]
        return b"".join(parts)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def slices_of(values):
    """Selections as numpy has them: one element, backwards, every other."""
    found = {}
    if values.size == 0 or values.ndim == 0:
        return found
    for _ in range(5):
        texts, selection = [], []
        for length in values.shape:
            kind = RANDOM.randrange(4)
            if kind == 0:
                at = RANDOM.randrange(length)
                texts.append(str(at))
                selection.append(at)
            elif kind == 1:
                texts.append("::-1")
                selection.append(slice(None, None, -1))
            elif kind == 2:
                start = RANDOM.randrange(length)
                texts.append(f"{start}::2")
                selection.append(slice(start, None, 2))
            else:
                start = RANDOM.randrange(length)
                stop = RANDOM.randrange(start, length) + 1
                texts.append(f"{start}:{stop}")
                selection.append(slice(start, stop))
        found[",".join(texts)] = canonical(values[tuple(selection)]).hex()
    return found


def case(promise, what, document, chunks, values=None, refused=None):
    """One array: either `values`, or the code of the problem it is `refused` with."""
    entry = {"what": what, "document": json.dumps(document), "chunks": {k: v.hex() for k, v in chunks.items()}}
    if refused:
        entry["refused"] = refused
    else:
        entry |= {"shape": values.shape, "elements": canonical(values).hex(), "slices": slices_of(values)}
    CASES.setdefault(promise, []).append(entry)


def numbers(shape, dtype):
    return (numpy.arange(numpy.prod(shape, dtype=int)) * 7 % 120 + 1).reshape(shape).astype(dtype)


def grid_of(shape, chunks):
    return itertools.product(*(range(-(-length // edge)) for length, edge in zip(shape, chunks)))


def block(values, chunks, coords, fill):
    """A chunk at its full size; what overhangs is `fill`."""
    chunk = numpy.full(chunks, fill, dtype=values.dtype)
    part = values[tuple(slice(c * e, (c + 1) * e) for c, e in zip(coords, chunks))]
    chunk[tuple(slice(0, n) for n in part.shape)] = part
    return chunk


def v2(promise, what, values, chunks=None, encode=bytes, filters=None, written_filters=None, order="C", **members):
    """An array of Zarr v2 whose compressed chunks `encode` makes of the bytes that the filters made."""
    chunks = values.shape if chunks is None else chunks
    document = {
        "zarr_format": 2, "shape": values.shape, "chunks": chunks, "dtype": values.dtype.str, "fill_value": 0,
        "order": order, "compressor": None, "filters": filters if written_filters is None else written_filters,
    } | members
    stored = {}
    for coords in grid_of(values.shape, chunks):
        chunk = block(values, chunks, coords, 0).reshape(-1, order=order)
        for config in filters or []:
            chunk = numcodecs.get_codec(dict(config)).encode(chunk)
        stored[".".join(map(str, coords)) or "0"] = encode(numpy.ascontiguousarray(chunk).tobytes())
    case(promise, what, document, stored, values)


def v3_document(values, chunks, codecs, fill=0, **members):
    return {
        "zarr_format": 3, "node_type": "array", "shape": values.shape, "data_type": values.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs, "fill_value": fill,
    } | members


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def v3(promise, what, values, chunks, codecs, fill=0, missing=(), noise=None):
    stored = {}
    for coords in grid_of(values.shape, chunks):
        if coords not in missing:
            chunk = block(values, chunks, coords, fill if noise is None else noise)
            stored["/".join(["c", *map(str, coords)])] = encode(chunk, codecs, fill)
    case(promise, what, v3_document(values, chunks, codecs, fill), stored, values)


CRC32C = numcodecs.get_codec({"id": "crc32c"})


def encode(chunk, codecs, fill):
    """A chain of Zarr v3, codec by codec."""
    data = chunk
    for codec in codecs:
        config = codec.get("configuration", {})
        match codec["name"]:
            case "transpose":
                data = data.transpose(config["order"])
            case "bytes":
                data = data.astype(data.dtype.newbyteorder("<" if config.get("endian") == "little" else ">")).tobytes()
            case "sharding_indexed":
                data = shard(data, config, fill)
            case "gzip":
                data = gzip.compress(data, config["level"], mtime=0)
            case "crc32c":
                data = bytes(CRC32C.encode(data))
            case "numcodecs.delta":
                flat = numcodecs.Delta(config["dtype"]).encode(data.reshape(-1))
                data = flat.reshape(data.shape)
            case "blosc":
                data = numcodecs.Blosc(config["cname"], config["clevel"], 0).encode(data)
    return data


def shard(chunk, config, fill):
    """Inner chunks that are nothing but the fill value are not there; the others stand in reverse, a byte apart."""
    inner, at_start = config["chunk_shape"], config.get("index_location") == "start"
    grid = [length // edge for length, edge in zip(chunk.shape, inner)]
    index = numpy.full((*grid, 2), 2**64 - 1, dtype="u8")
    start = len(encode(index, config["index_codecs"], 0)) if at_start else 0
    body = b""
    for coords in reversed(list(itertools.product(*map(range, grid)))):
        part = chunk[tuple(slice(c * e, (c + 1) * e) for c, e in zip(coords, inner))]
        if (part != fill).any():
            encoded = encode(part, config["codecs"], fill)
            index[coords] = (start + len(body), len(encoded))
            body += encoded + b"?"
    index = encode(index, config["index_codecs"], 0)
    return index + body if at_start else body + index


def sharding(inner, codecs, index_codecs=None, location="end"):
    index_codecs = index_codecs or [named("bytes", endian="little"), named("crc32c")]
    return named("sharding_indexed", chunk_shape=inner, codecs=codecs, index_codecs=index_codecs,
                 index_location=location)


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True, check=True).stdout


LITTLE, BIG = named("bytes", endian="little"), named("bytes", endian="big")

# blosc
P = "blosc_frames_describe_their_own_compression"
said = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
for dtype in ["<i4", "|u1"]:
    auto = numcodecs.Blosc("lz4", 5, -1)
    v2(P, f"shuffle -1 of {dtype}", numbers((100,), dtype), encode=auto.encode, compressor=said | {"shuffle": -1})
for cname, shuffle in [("zstd", 0), ("blosclz", 2), ("zlib", 0), ("lz4hc", 1)]:
    # Bytes alone: the frame's element is one byte, the array's four.
    made = numcodecs.Blosc(cname, 9, shuffle, 256)
    v2(P, f"{cname} with shuffle {shuffle}", numbers((100,), "<i4"), encode=made.encode, compressor=said)
for more in [{}, {"typesize": 0}, {"typesize": 4}]:
    values = numbers((100,), "<i4")
    config = {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0} | more
    v3(P, f"noshuffle and {more}", values, [300], [LITTLE, {"name": "blosc", "configuration": config}])

P = "blosc_frames_of_stored_bytes_and_of_snappy_are_read"
v2(P, "stored", numbers((100,), "<i4"), encode=numcodecs.Blosc("lz4", 0, 1).encode, compressor=said)


def snappy_frame(data):
    """One block, which is one literal of snappy: the length as a varint, the tag, the bytes."""
    literal = bytes([len(data) & 0x7F | 0x80, len(data) >> 7, 61 << 2]) + struct.pack("<H", len(data) - 1) + data
    numbers = (len(data), len(data), 16 + 4 + 4 + len(literal), 20, len(literal))
    return bytes([2, 1, 2 << 5 | 0x10, 1]) + struct.pack("<5i", *numbers) + literal


v2(P, "snappy", numbers((100,), "<i4"), encode=snappy_frame, compressor=said | {"cname": "snappy"})

# zstd, gzip, zlib
P = "zstd_frames_may_omit_their_content_size"
plain = {"id": "zstd", "level": 1}
values = numbers((10, 60), "<u2")
v2(P, "streamed", values, (5, 60), encode=lambda data: zstd(data, "--no-check"), compressor=plain)

P = "several_zstd_frames_and_frames_to_skip_are_one_value"
skip = bytes.fromhex("502a4d1803000000aabbcc")
half = lambda data: [data[: len(data) // 3], data[len(data) // 3:]]
for what, frames in [
    ("with content sizes", lambda a, b: [numcodecs.Zstd(1).encode(a), numcodecs.Zstd(9).encode(b)]),
    ("with one to skip", lambda a, b: [numcodecs.Zstd(1).encode(a), skip, zstd(b)]),
    ("with those to skip outside", lambda a, b: [skip, zstd(a), zstd(b"", "--check"), zstd(b), skip]),
]:
    v2(P, what, values, encode=lambda data: b"".join(frames(*half(data))), compressor=plain)

P = "unknown_members_of_a_v2_compressor_are_ignored"
v2(P, "zstd with a checksum", values, encode=numcodecs.Zstd(3, checksum=True).encode,
   compressor=plain | {"checksum": True, "window": 5})
v2(P, "zlib", values, encode=zlib.compress, compressor={"id": "zlib", "level": 1, "wbits": 15})
v2(P, "blosc", values, encode=numcodecs.Blosc().encode, compressor=said | {"nthreads": 4, "typesize": 2})

P = "gzip_members_are_one_value_and_only_zeros_may_follow"
members = lambda data: b"".join(gzip.compress(part, mtime=0) for part in half(data))
gz = {"id": "gzip", "level": 1}
v2(P, "two members", values, encode=members, compressor=gz)
v2(P, "padded", values, encode=lambda data: members(data) + bytes(5), compressor=gz)
for garbage in [b"\1", b"\0\0\1", b"\x1f\x8b", b"text"]:
    document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C",
                "filters": None, "compressor": gz}
    case(P, f"then {garbage}", document, {"0": members(b"abcd") + garbage}, refused="corrupt-data")

P = "zlib_and_gzip_are_distinguished_by_their_first_bytes"
v2(P, "zlib called gzip", values, encode=zlib.compress, compressor=gz)
v2(P, "gzip called zlib", values, encode=lambda data: gzip.compress(data, mtime=0), compressor={"id": "zlib", "level": 1})

P = "numbers_of_a_v2_codec_may_be_strings"
v2(P, "zlib", values, encode=zlib.compress, compressor={"id": "zlib", "level": "1"})
v2(P, "gzip", values, encode=lambda data: gzip.compress(data, mtime=0), compressor={"id": "gzip", "level": "5"})
v2(P, "zstd", values, encode=numcodecs.Zstd(3).encode, compressor={"id": "zstd", "level": "3"})
v2(P, "blosc", values, encode=numcodecs.Blosc().encode,
   compressor={"id": "blosc", "cname": "lz4", "clevel": "5", "shuffle": "1", "blocksize": "0"})
v2(P, "shuffle", values, filters=[{"id": "shuffle", "elementsize": 2}],
   written_filters=[{"id": "shuffle", "elementsize": "2"}])

P = "an_empty_list_of_filters_is_none"
v2(P, "no compressor", values, (7, 60), filters=[])
v2(P, "zlib", values, encode=zlib.compress, filters=[], compressor={"id": "zlib", "level": 1})

# Order and grids
P = "chunks_in_order_f_are_read_column_by_column"
for dtype in ["<f8", ">i2", "|u1"]:
    v2(P, f"one chunk of {dtype}", numbers((2, 3, 4), dtype), order="F")
    v2(P, f"chunks of {dtype} that overhang", numbers((5, 4, 7), dtype), (2, 3, 4), order="F", encode=zlib.compress,
       compressor={"id": "zlib", "level": 1})

P = "filters_take_the_elements_in_stored_order"
v2(P, "delta", numbers((2, 3, 4), "<i4"), order="F", filters=[{"id": "delta", "dtype": "<i4"}])
v2(P, "delta, to another type", numbers((3, 5), ">i4"), order="F",
   filters=[{"id": "delta", "dtype": ">i4", "astype": "<i2"}])
v2(P, "packbits", numbers((2, 3, 5), "|u1") % 3 == 1, order="F", filters=[{"id": "packbits"}], fill_value=False)
v2(P, "delta in order C", numbers((2, 3, 4), "<i4"), filters=[{"id": "delta", "dtype": "<i4"}])

P = "a_chunk_may_be_larger_than_the_array"
v2(P, "v2", numbers((2, 3), "<i4"), (5, 4), encode=zlib.compress, compressor={"id": "zlib", "level": 1})
v3(P, "v3", numbers((2, 3), "<i4"), [5, 4], [BIG], noise=99)

P = "an_array_of_rank_0_is_one_element"
scalar = numpy.array(77, dtype="<i4")
v2(P, "v2", scalar)
v2(P, "v2 in order F", scalar, order="F", encode=zlib.compress, compressor={"id": "zlib", "level": 1})
v3(P, "v3", scalar, [], [named("transpose", order=[]), BIG])
for location in ["start", "end"]:
    v3(P, f"a shard with its index at the {location}", scalar, [], [sharding([], [LITTLE], location=location)])
document = v3_document(scalar, [], [sharding([], [LITTLE])], fill=5)
case(P, "no chunk", document, {}, numpy.array(5, dtype="<i4"))

P = "a_dimension_without_length_has_no_chunks"
for shape, chunks in [((0,), (1,)), ((0, 5), (0, 5)), ((0, 0, 0), (0, 0, 0)), ((3, 0, 2), (2, 0, 2)), ((0, 2), (7, 1))]:
    empty = numpy.zeros(shape, "<i4")
    document = {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<i4", "fill_value": 0, "order": "F",
                "filters": None, "compressor": said}
    # The chunk that another reader would request is not read.
    broken = {".".join("0" for _ in shape): b"not a chunk"}
    case(P, f"v2 {shape} in {chunks}", document, broken, empty)
    case(P, f"v3 {shape} in {chunks}", v3_document(empty, chunks, [LITTLE]), {"/".join("c" + "0" * len(shape)): b"?"}, empty)
empty = numpy.zeros((0, 4), "<i4")
case(P, "shards", v3_document(empty, (2, 4), [sharding((1, 2), [LITTLE])]), {"c/0/0": b"?"}, empty)

P = "transpose_follows_the_specification"
for order in [[2, 0, 1], [1, 2, 0], [0, 2, 1]]:
    v3(P, f"{order}", numbers((2, 3, 4), "int16"), [2, 3, 4], [named("transpose", order=order), BIG])
    v3(P, f"{order} in chunks", numbers((5, 4, 7), "int16"), [2, 3, 4], [named("transpose", order=order), LITTLE])
v3(P, "twice", numbers((5, 4, 7), "int16"), [2, 3, 4],
   [named("transpose", order=[2, 0, 1]), named("transpose", order=[1, 0, 2]), LITTLE])

# Shards
values = numbers((4, 9, 8), "uint16")
values[2:, 3:6] = 0
PLAIN = [LITTLE]
P = "inner_chunks_are_counted_by_the_grid_of_each_dimension"
for location in ["start", "end"]:
    v3(P, f"index at the {location}", values, [4, 9, 8], [sharding([2, 3, 2], PLAIN, location=location)])
    v3(P, f"several shards, {location}", values, [2, 9, 4], [sharding([1, 3, 1], [BIG], location=location)])

P = "an_index_is_encoded_by_its_own_codecs"
TURNED = named("transpose", order=[2, 0, 3, 1])
for what, index_codecs in [("big-endian without a checksum", [BIG]), ("little-endian without a checksum", [LITTLE]),
                           ("transposed", [TURNED, BIG, named("crc32c")]),
                           ("with two checksums", [LITTLE, named("crc32c"), named("crc32c")])]:
    for location in ["start", "end"]:
        v3(P, f"{what}, at the {location}", values, [4, 9, 8], [sharding([2, 3, 2], PLAIN, index_codecs, location)])

P = "codecs_before_and_after_sharding_are_applied"
for location in ["start", "end"]:
    inner = sharding([2, 2, 3], [named("transpose", order=[1, 2, 0]), BIG, named("crc32c")], location=location)
    turn = named("transpose", order=[2, 0, 1])
    v3(P, f"transposed, {location}", values, [4, 9, 8], [turn, inner])
    v3(P, f"compressed, {location}", values, [4, 9, 8], [sharding([2, 3, 2], PLAIN, location=location), named("gzip", level=1)])
    v3(P, f"both, {location}", values, [4, 9, 8], [turn, inner, named("crc32c"), named("gzip", level=1)])
    v3(P, f"differences, {location}", values, [4, 9, 8],
       [named("numcodecs.delta", dtype="<u2"), sharding([2, 3, 2], PLAIN, location=location)])

P = "chains_inside_shards_are_chains_of_the_inner_chunk"
delta = [named("numcodecs.delta", dtype="<u2"), BIG, named("gzip", level=1), named("crc32c")]
v3(P, "differences", values, [4, 9, 8], [sharding([2, 3, 4], delta)])
nested = sharding([1, 3, 2], [named("transpose", order=[2, 0, 1]), *delta], [BIG], "start")
for location in ["start", "end"]:
    v3(P, f"shards in shards, {location}", values, [4, 9, 8], [sharding([2, 3, 4], [nested], location=location)])
v3(P, "shards in shards, transposed", values, [4, 9, 8],
   [named("transpose", order=[1, 2, 0]), sharding([3, 4, 2], [named("transpose", order=[2, 0, 1]),
    sharding([1, 3, 2], PLAIN)])])

P = "missing_shards_and_inner_chunks_are_fill_values"
holes = numbers((8, 8), "uint16")
holes[:4, :4] = 7
holes[4:6] = 7
v3(P, "of 7", holes, [4, 4], [sharding([2, 2], [LITTLE, named("crc32c")])], fill=7, missing=[(0, 0)])

P = "data_beyond_the_array_may_be_stored_or_absent"
edge = numbers((5, 3), "uint16")
for noise in [0, 99]:
    v3(P, f"{noise}", edge, [8, 8], [sharding([2, 2], PLAIN)], noise=noise)
    v3(P, f"{noise}, transposed", edge, [8, 4], [named("transpose", order=[1, 0]), sharding([2, 2], PLAIN)], noise=noise)

# Structs
P = "each_field_of_a_struct_has_its_own_byte_order"
fields = [("a", ">i4"), ("b", "<f8"), ("c", "|S3"), ("d", ">u2", (2,)), ("e", [("x", ">f4"), ("y", "<i2")])]


def records(fields, count):
    made = numpy.zeros(count, numpy.dtype(fields))
    made["a"], made["b"] = numpy.arange(count) * 70000 - 9, numpy.arange(count) / 3
    made["c"] = [b"ab", b"c", b"def", b""][:count]
    made["d"] = numpy.arange(2 * count).reshape(count, 2) * 1000
    made["e"]["x"], made["e"]["y"] = numpy.arange(count) * -1.5, numpy.arange(count) - 2
    return made


values = records(fields, 4)
written = [[*field[:1], [list(part) for part in field[1]] if isinstance(field[1], list) else field[1], *map(list, field[2:])]
           for field in fields]
document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": written, "fill_value": None, "order": "C",
            "filters": None, "compressor": None}
case(P, "mixed", document, {"0": values.tobytes()}, values)

P = "a_struct_is_filled_with_zeros_or_with_the_bytes_of_an_element"
for legacy in [0, None, 0.0]:
    case(P, f"{legacy}", document | {"fill_value": legacy}, {}, numpy.zeros(4, values.dtype))
one = values[2]
text = base64.standard_b64encode(one.tobytes()).decode()
case(P, "base64", document | {"fill_value": text}, {}, numpy.array([one] * 4, values.dtype))
short = base64.standard_b64encode(one.tobytes()[1:]).decode()
for wrong in [short, 1, "no base64", True, {"a": 1}]:
    case(P, f"{wrong}", document | {"fill_value": wrong}, {}, refused="invalid-metadata")

with open("cases.json", "w") as file:
    json.dump(CASES, file, separators=(",", ":"), indent=0)
    file.write("\n")
