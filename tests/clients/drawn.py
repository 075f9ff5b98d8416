"""Arrays drawn at random, of every type and codec that zarr-python writes, and selections of them.

The same seed draws the same. What is drawn is what zarr-python can write: some of its filters fail for some types.
"""

import numcodecs
import numpy
import zarr
import zarr.codecs.numcodecs as v3_codecs
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    VLenBytesCodec,
    VLenUTF8Codec,
    ZstdCodec,
)
from zarr.core.dtype import VariableLengthBytes, VariableLengthUTF8

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
OTHERS = ["b1", "S1", "S7", "U1", "U5", "V3", "M8[ns]", "M8[15m]", "M8[D]", "m8[s]", "m8[7us]"]
FIELDS = [("a", "i2"), ("b", "f8"), ("c", "S3"), ("d", "U2"), ("e", "M8[ms]"), ("f", "b1"), ("g", "c8")]
LONGEST = [1, 40, 14, 9, 6]
"""The longest edge of an array, by rank."""

CNAMES = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]


class Drawn:
    """An array that is about to be written."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.zarr_format = 2 + seed % 2
        rank = self.random.integers(0, 5)
        longest = LONGEST[rank]
        self.shape = tuple(int(self.number(longest) if self.chance(0.95) else 0) for _ in range(rank))
        self.dtype = self.draw_type()
        self.tame = False
        """Whether numbers are few and small, as lossy filters need them."""

    def number(self, most, least=1):
        return int(self.random.integers(least, most, endpoint=True))

    def chance(self, probability):
        return self.random.random() < probability

    def one_of(self, choices):
        return choices[self.random.integers(len(choices))]

    def some_of(self, choices, most):
        return [self.one_of(choices) for _ in range(self.number(most, 0))]

    def draw_type(self):
        kind = self.random.random()
        order = self.one_of("<>") if self.zarr_format == 2 else "<"
        if kind < 0.55:
            return numpy.dtype(order + self.one_of(NUMBERS))
        if kind < 0.75:
            return numpy.dtype(order + self.one_of(OTHERS))
        if kind < 0.9:
            return self.one_of([VariableLengthUTF8(), VariableLengthBytes()])
        fields = [FIELDS[at] for at in self.random.permutation(len(FIELDS))[: self.number(len(FIELDS))]]
        # In v3, zarr-python writes fields as they are in memory and reads them as little-endian.
        of_v2 = self.zarr_format == 2
        return numpy.dtype([(name, (self.one_of("<>") if of_v2 else "<") + kind) for name, kind in fields])

    @property
    def is_variable(self):
        return not isinstance(self.dtype, numpy.dtype)

    @property
    def element_bytes(self):
        return 4 if self.is_variable else self.dtype.itemsize

    def elements(self, shape):
        """Elements without a pattern, every bit of them where the type allows it."""
        count = int(numpy.prod(shape))
        if self.is_variable:
            drawn = numpy.empty(count, dtype=object)
            for at in range(count):
                drawn[at] = self.element_of_any_length()
            return drawn.reshape(shape)
        return self.of_type(self.dtype, count).reshape(shape)

    def element_of_any_length(self):
        if isinstance(self.dtype, VariableLengthUTF8):
            return "".join(self.some_of("aZ0 éµ漢😀\n", 6))
        return self.random.bytes(self.number(6, 0))

    def of_type(self, dtype, count):
        if dtype.names:
            drawn = numpy.zeros(count, dtype)
            for name in dtype.names:
                drawn[name] = self.of_type(dtype[name], count)
            return drawn
        if dtype.kind == "b":
            return self.random.integers(0, 2, count).astype(dtype)
        if dtype.kind == "U":
            return numpy.array(["".join(self.some_of("aZ0 éµ漢😀", 5)) for _ in range(count)], dtype=dtype)
        if self.tame and dtype.kind in "fiu":
            return self.random.integers(0, 100, count).astype(dtype)
        return numpy.frombuffer(self.random.bytes(count * dtype.itemsize), dtype=dtype).copy()

    def fill_value(self):
        if self.is_variable:
            texts = isinstance(self.dtype, VariableLengthUTF8)
            return self.one_of(["", "é"] if texts else [b"", b"\x00\xff"])
        special = {
            "f": [0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1.5],
            "c": [0, complex(-0.0, numpy.nan), complex(numpy.inf, -0.0), 1 - 2j],
            "b": [False, True],
            "M": [numpy.datetime64("NaT"), 0, 1000],
            "m": [numpy.timedelta64("NaT"), 0, -3],
            "S": [b"", b"a"],
            "U": ["", "é"],
        }
        if self.dtype.kind == "V":
            return numpy.zeros((), self.dtype)[()]
        if self.dtype.kind in "iu":
            limits = numpy.iinfo(self.dtype)
            return self.one_of([0, 7] if self.tame else [0, 7, limits.min, limits.max])
        if self.tame:
            return 0
        return numpy.array(self.one_of(special[self.dtype.kind])).astype(self.dtype)[()]

    def edges(self, lengths):
        return tuple(self.number(length + 3) for length in lengths)

    def write(self, path):
        """Writes the array with zarr-python."""
        options = self.in_v2() if self.zarr_format == 2 else self.in_v3()
        fill_value = self.fill_value()
        elements = self.elements(self.shape)
        for _ in range(self.number(2, 0)):
            starts = [self.number(length, 0) for length in self.shape]
            elements[tuple(slice(start, start + self.number(20)) for start in starts)] = fill_value
        made = zarr.create_array(path, shape=self.shape, dtype=self.dtype, fill_value=fill_value, **options)
        made[...] = elements

    def in_v2(self):
        options = {
            "zarr_format": 2,
            "chunks": self.edges(self.shape),
            "order": self.one_of("CF"),
            "chunk_key_encoding": {"name": "v2", "separator": self.one_of("./")},
            "compressors": self.compressor_of_v2(),
        }
        if not self.is_variable:
            options["filters"] = self.filters(numcodecs) or None
        return options

    def compressor_of_v2(self):
        if not self.is_variable and self.dtype.names and "e" in self.dtype.names:
            # Half of the compressors of numcodecs take no structs with dates.
            return self.one_of([None, numcodecs.Zlib(1)])
        return self.one_of(
            [
                None,
                numcodecs.Zlib(self.number(9, 0)),
                numcodecs.GZip(self.number(9, 0)),
                numcodecs.BZ2(self.number(9)),
                numcodecs.LZMA(preset=1),
                numcodecs.LZ4(self.number(3)),
                numcodecs.Zstd(self.number(5), checksum=self.chance(0.5)),
                numcodecs.Blosc(self.one_of(CNAMES), clevel=self.number(9, 0), shuffle=self.number(2, -1)),
                numcodecs.Blosc("lz4", shuffle=1, blocksize=64),
            ]
        )

    def filters(self, codecs):
        """Filters of elements that suit the type, and in v2 some of bytes behind them, by the names of numcodecs."""
        found = []
        kind, code = self.dtype.kind, self.dtype.str
        # zarr-python loses the byte order of what a filter makes of a type that has none.
        single = self.zarr_format == 3 and self.dtype.itemsize == 1
        if kind in "Mm":
            return []
        if self.chance(0.4) and kind in "iu":
            self.tame = True
            found = self.one_of(
                [
                    [codecs.Delta(dtype=code)],
                    [codecs.Delta(dtype=code, astype=code)],
                    [codecs.AsType(encode_dtype="<i8", decode_dtype=code)],
                    [codecs.FixedScaleOffset(offset=3, scale=2, dtype=code, astype="<i4")],
                ][: 2 if single else 4]
            )
        elif self.chance(0.5) and kind == "f" and self.dtype.itemsize > 2:
            self.tame = True
            found = self.one_of(
                [
                    [codecs.Delta(dtype=code)],
                    [codecs.FixedScaleOffset(offset=50, scale=10, dtype=code, astype="<i2")],
                    [codecs.Quantize(digits=self.number(3), dtype=code)],
                    [codecs.AsType(encode_dtype="<f8", decode_dtype=code)],
                    [codecs.BitRound(keepbits=self.number(20))],
                ][: 5 if self.dtype.isnative else 4]
            )
        elif self.chance(0.5) and kind == "b":
            found = [codecs.PackBits()]
        if codecs is numcodecs and not found and self.chance(0.2):
            found = [codecs.Shuffle(elementsize=self.element_bytes)]
        if codecs is numcodecs:
            found += self.some_of(self.checksums(codecs), 1)
        return found

    def checksums(self, codecs):
        return [
            codecs.CRC32(),
            codecs.CRC32(location="end"),
            codecs.CRC32C(),
            codecs.Adler32(),
            codecs.Adler32(location="end"),
            codecs.Fletcher32(),
            codecs.JenkinsLookup3(initval=self.number(9)),
        ]

    def in_v3(self):
        chunks = self.edges(self.shape)
        filters = [] if self.is_variable else self.filters(v3_codecs)
        # zarr-python writes no structs into shards, no shards behind its filters, and none that are a single number.
        plain = filters or not self.shape or (not self.is_variable and self.dtype.names)
        shards = 0 if plain or self.chance(0.4) else self.number(2)
        # The innermost chunks first: each level holds some of the one before, not the same number along each axis.
        levels = [chunks]
        for _ in range(shards):
            levels.append(tuple(edge * self.number(3) for edge in levels[-1]))
        turns = [self.transpose() for _ in range(self.number(1, 0))]
        # zarr-python wants inner chunks to divide the shard as if nothing had been turned.
        if shards and not all(divides(levels[-2], levels[-1], turn) for turn in turns):
            turns = []
        return {
            "zarr_format": 3,
            "chunks": levels[-1],
            "filters": turns + filters,
            # zarr-python's own filters misread what was stored in the other byte order.
            "serializer": self.serializer(levels, turns, ["little"] if filters else ["little", "big"]),
            "compressors": self.one_of([[], [], [Crc32cCodec()], [GzipCodec()]]) if shards else self.compressors_of_v3(),
            "chunk_key_encoding": self.one_of(
                [{"name": name, "separator": separator} for name in ("default", "v2") for separator in "./"]
            ),
        }

    def transpose(self):
        return TransposeCodec(order=tuple(int(axis) for axis in self.random.permutation(len(self.shape))))

    def serializer(self, levels, turns, orders):
        """What makes bytes of a chunk of the last of these shapes, after the elements were turned."""
        if len(levels) == 1:
            if self.is_variable:
                return VLenUTF8Codec() if isinstance(self.dtype, VariableLengthUTF8) else VLenBytesCodec()
            # For types without a byte order, zarr-python insists on none.
            ordered = self.dtype.kind not in "SVb"
            return BytesCodec(endian=self.one_of(orders) if ordered else None)
        for turn in turns:
            levels = [tuple(shape[axis] for axis in turn.order) for shape in levels]
        inner_turns = [self.transpose() for _ in range(self.number(1, 0))]
        if len(levels) > 2 and not all(divides(levels[-3], levels[-2], turn) for turn in inner_turns):
            inner_turns = []
        codecs = [*inner_turns, self.serializer(levels[:-1], inner_turns, orders)]
        codecs += self.compressors_of_v3() if len(levels) == 2 else []
        index = [BytesCodec(endian=self.one_of(["little", "big"]))] + self.some_of([Crc32cCodec()], 1)
        return ShardingCodec(
            chunk_shape=levels[-2], codecs=codecs, index_codecs=index, index_location=self.one_of(["start", "end"])
        )

    def compressors_of_v3(self):
        shuffle = self.one_of(["noshuffle", "shuffle", "bitshuffle"])
        codecs = [
            GzipCodec(level=self.number(9, 0)),
            ZstdCodec(level=self.number(5), checksum=self.chance(0.5)),
            BloscCodec(cname=self.one_of(CNAMES), shuffle=shuffle, typesize=self.element_bytes),
            Crc32cCodec(),
            v3_codecs.Zlib(level=1),
            v3_codecs.BZ2(level=1),
            v3_codecs.LZ4(acceleration=1),
            v3_codecs.LZMA(preset=1),
            *self.checksums(v3_codecs),
        ]
        return self.some_of(codecs, 2)

    def selections(self, count):
        """The whole array and selections of numpy's with how they are spelled; each has a meaning in this shape."""
        yield (...,), "..."
        for _ in range(count):
            picks = [self.pick(length) for length in self.shape[: self.number(len(self.shape), 0)]]
            yield (*picks, ...), ",".join(map(spelled, picks))

    def pick(self, length):
        if length and self.chance(0.3):
            return self.number(length - 1, -length)
        bounds = [self.one_of([None, self.number(length + 2, -length - 2)]) for _ in range(2)]
        return slice(*bounds, self.one_of([None, None, 1, 2, 3, -1, -2, -5]))


def divides(inner, outer, turn):
    """Whether inner chunks, turned, divide an outer one that is not."""
    return all(edge % inner[axis] == 0 for edge, axis in zip(outer, turn.order))


def spelled(pick):
    if not isinstance(pick, slice):
        return str(pick)
    return ":".join("" if part is None else str(part) for part in (pick.start, pick.stop, pick.step))


def as_array(read, array):
    """What zarr-python has read, as an array of numpy: it gives a single element without its type."""
    whole = numpy.empty(array.shape, object if array.is_variable else array.dtype)
    if array.is_variable and not array.shape:
        whole[()] = read.item() if isinstance(read, numpy.ndarray) else read
    else:
        whole[...] = read
    return whole


def canonical(values):
    """Elements as `/v1/data` answers them: C order, little-endian, packed; those of any length behind their length."""
    if values.dtype.kind == "O":
        elements = [value.encode() if isinstance(value, str) else value for value in values.ravel()]
        return b"".join(len(element).to_bytes(4, "little") + element for element in elements)
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
