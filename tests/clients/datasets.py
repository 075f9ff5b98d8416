"""Datasets that other formats are compared with: each type of element, and one as climate models write them, in v2 and v3."""

import numpy
import xarray
import zarr
import zarr.storage

FORMATS = (2, 3)
SHAPE = (5, 4, 3)
DIMENSIONS = ("x", "y", "z")


def numbers(dtype):
    """Values that have all bits of their type: the largest, the smallest, and some between."""
    dtype = numpy.dtype(dtype)
    count = int(numpy.prod(SHAPE))
    if dtype.kind in "iu":
        bounds = numpy.iinfo(dtype)
        values = numpy.linspace(bounds.min, bounds.max, count).astype(object)
        values = [max(min(int(value), bounds.max), bounds.min) for value in values]
        return numpy.array(values, dtype=dtype).reshape(SHAPE)
    if dtype.kind == "b":
        return (numpy.arange(count) % 3 == 0).reshape(SHAPE)
    values = numpy.linspace(-1000.25, 1000.25, count).astype(dtype)
    values[::7] = numpy.nan
    return values.reshape(SHAPE)


NUMBERS = {
    name: numbers(name)
    for name in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    + ["float16", "float32", "float64"]
}
TEXTS = numpy.array(["", "déjà, vu", 'say "hi"', "back\\slash", "x"], dtype=object)
OTHERS = {
    "text": TEXTS,
    "unicode": TEXTS.astype("<U8"),
    "fixed": numpy.array([b"a", b"", b"abc", b"de", b"f"], dtype="S3"),
}
ATTRIBUTES = {
    "units": "K",
    "long_name": 'the "temperature" \\ of air: °C',
    "one": 3,
    "half": 0.5,
    "list": [1, 2, 3],
    "floats": [0.1, 1e30],
    "truth": True,
    "large": 2**40,
    "nested": {"a": [1, {"b": None}]},
    "texts": ["a", "b c"],
    "empty": "",
}


def write_types(root):
    """Writes the group `types{format}` of each format."""
    for zarr_format in FORMATS:
        group = zarr.create_group(root, path=f"types{zarr_format}", zarr_format=zarr_format, attributes={"title": "types"})
        for name, values in {**NUMBERS, **OTHERS}.items():
            dimensions = DIMENSIONS[: values.ndim]
            named = {"dimension_names": dimensions} if zarr_format == 3 else {}
            array = group.create_array(
                name,
                shape=values.shape,
                chunks=(2,) * values.ndim,
                dtype="str" if values.dtype == object else values.dtype,
                **named,
            )
            array[...] = values
            array.attrs.update(ATTRIBUTES if name == "float32" else {})
            if zarr_format == 2:
                array.attrs["_ARRAY_DIMENSIONS"] = list(dimensions)
        coordinates = {"x": numpy.arange(5, dtype="int32") * 10, "y": numpy.linspace(60, 30, 4), "z": numpy.arange(3.0)}
        for name, values in coordinates.items():
            named = {"dimension_names": (name,)} if zarr_format == 3 else {}
            array = group.create_array(name, shape=values.shape, chunks=(3,), dtype=values.dtype, **named)
            array[...] = values
            if zarr_format == 2:
                array.attrs["_ARRAY_DIMENSIONS"] = [name]


def climate():
    """A dataset with packed values, missing ones, times, texts and a scalar coordinate."""
    random = numpy.random.default_rng(7)
    times = numpy.datetime64("2020-01-01", "ns") + numpy.arange(12) * numpy.timedelta64(6, "h")
    air = random.uniform(220, 320, (12, 9, 7))
    air[3, 2] = numpy.nan
    rain = random.uniform(0, 1, (12, 9, 7)).astype("float32")
    rain[::4, :, 1] = numpy.nan
    return xarray.Dataset(
        {
            "air": (("time", "lat", "lon"), air, {"units": "K", "grid_mapping": "crs"}),
            "rain": (("time", "lat", "lon"), rain, {"units": "mm"}),
            "land": (("lat", "lon"), random.uniform(size=(9, 7)) > 0.5),
            "height": (("lat", "lon"), random.integers(-9000, 9000, (9, 7), dtype="int16"), {"valid_range": [-9000, 9000]}),
            "crs": ((), numpy.int32(0), {"grid_mapping_name": "latitude_longitude"}),
        },
        {
            "time": ("time", times),
            "lat": ("lat", numpy.linspace(80, 0, 9), {"units": "degrees_north"}),
            "lon": ("lon", numpy.arange(0, 70, 10, dtype="float32"), {"units": "degrees_east"}),
            "level": ((), 850.0),
        },
        {"Conventions": "CF-1.8", "title": "climate", "history": "made\nby hand"},
    )


ENCODING = {
    "air": {"dtype": "int16", "scale_factor": 0.01, "add_offset": 270.0, "_FillValue": -32768, "chunks": (5, 4, 4)},
    "rain": {"_FillValue": numpy.float32(9.969209968386869e36), "chunks": (5, 4, 4)},
    "time": {"units": "hours since 1990-01-01", "dtype": "int64"},
}


def write_climate(root):
    """Writes the dataset as the group `climate{format}` of each format."""
    for zarr_format in FORMATS:
        climate().to_zarr(
            f"{root}/climate{zarr_format}", encoding=ENCODING, consolidated=False, zarr_format=zarr_format
        )


def stored(root, zarr_format, **options):
    """The dataset as xarray reads it from the directory."""
    return xarray.open_zarr(f"{root}/climate{zarr_format}", consolidated=False, zarr_format=zarr_format, **options).load()


def selections(seed, lengths, count):
    """Random selections by index: slices with steps, and indices."""
    random = numpy.random.default_rng(seed)
    for _ in range(count):
        chosen = {}
        for name, length in lengths.items():
            kind = random.integers(4)
            if kind == 0:
                continue
            start = int(random.integers(length))
            if kind == 1:
                chosen[name] = start
            else:
                stop = int(random.integers(start, length)) + 1
                chosen[name] = slice(start, stop, int(random.integers(1, 4)))
        yield chosen
