"""The data set: a volume with a pyramid, and a climate field, whose chunks are names of a few files."""

import json
import os
import pathlib
import shutil

import numpy
import zarr

DISTINCT = 32
"""Chunks of an array that differ; the others are other names of them."""
VOLUME = ((256, 2048, 2048), (128, 1024, 1024), (64, 512, 512))
VOLUME_CHUNK = (64, 64, 64)
FIELD, FIELD_CHUNK = (8760, 90, 180), (365, 15, 18)


def array(path, shape, chunk, dtype, **attributes):
    """An array, all chunks of which are stored, without a codec that compresses."""
    made = zarr.create_array(path, shape=shape, chunks=chunk, dtype=dtype, compressors=None, **attributes)
    generator = numpy.random.default_rng(len(shape) + shape[0])
    for number, place in enumerate(numpy.ndindex(*made.cdata_shape)):
        file = path / "c" / "/".join(map(str, place))
        file.parent.mkdir(parents=True, exist_ok=True)
        which = path.parent / f".{path.name}-{number % DISTINCT}"
        if number < DISTINCT:
            values = generator.integers(1, 255, chunk) if dtype == "uint8" else generator.normal(280, 10, chunk)
            which.write_bytes(values.astype(dtype).tobytes())
        os.link(which, file)


def folder():
    """The folder of the data set, made if it is not there."""
    found = pathlib.Path(os.environ["ZARRD_BENCH_DATA"]) / "scale-1"
    if found.exists():
        return found
    part = found.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    volume = part / "volume"
    scale = lambda level: [{"type": "scale", "scale": [2.0**level] * 3}]  # noqa: E731
    image = {
        "axes": [{"name": name, "type": "space"} for name in "zyx"],
        "datasets": [{"path": str(level), "coordinateTransformations": scale(level)} for level in range(len(VOLUME))],
    }
    zarr.create_group(volume, attributes={"ome": {"version": "0.5", "multiscales": [image]}})
    for level, shape in enumerate(VOLUME):
        array(volume / str(level), shape, VOLUME_CHUNK, "uint8", dimension_names=("z", "y", "x"))
    field = part / "field"
    zarr.create_group(field)
    array(field / "t2m", FIELD, FIELD_CHUNK, "float32", dimension_names=("time", "lat", "lon"))
    for name, values in {
        "time": numpy.arange(FIELD[0], dtype="float64"),
        "lat": numpy.linspace(-89, 89, FIELD[1]),
        "lon": numpy.linspace(0, 358, FIELD[2]),
    }.items():
        zarr.create_array(field / name, data=values, dimension_names=(name,), compressors=None)
    (field / "time/zarr.json").write_text(
        json.dumps(json.loads((field / "time/zarr.json").read_text()) | {"attributes": {"units": "hours since 2020-01-01"}})
    )
    part.rename(found)
    return found
