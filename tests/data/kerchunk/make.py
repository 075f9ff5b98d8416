"""Makes the files of this folder: small netCDF files, references into them by kerchunk and VirtualiZarr, and `expected.json`:
what fsspec's reference file system and zarr-python read through these references.

    python make.py        # needs kerchunk 0.2, virtualizarr 2.5, h5py, netCDF4, jinja2, fastparquet, pandas 2, pyarrow, scipy, zarr 3.1
"""

import hashlib
import json
import os
import pathlib
import shutil
import warnings

import fsspec
import h5py
import netCDF4
import numpy
import obspec_utils.registry
import obstore.store
import pyarrow.parquet
import virtualizarr
import virtualizarr.parsers
import xarray
import zarr
from kerchunk.combine import MultiZarrToZarr
from kerchunk.df import refs_to_dataframe
from kerchunk.hdf import SingleHdf5ToZarr
from kerchunk.netCDF3 import NetCDF3ToZarr

HERE = pathlib.Path(__file__).parent.resolve()
FILES = HERE / "files"
warnings.simplefilter("ignore")
os.chdir(HERE)
for old in [*HERE.glob("*.json"), *HERE.glob("*.parq"), FILES]:
    shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
FILES.mkdir()


def month(name, first):
    """A netCDF file of three days, in compressed chunks."""
    with h5py.File(FILES / name, "w", libver="earliest", track_order=False) as file:
        days = numpy.arange(first, first + 3, dtype="f8")
        file["time"] = days
        file["time"].make_scale("time")
        file["time"].attrs["units"] = "days since 2020-01-01"
        file["lat"] = numpy.linspace(-40, 40, 5, dtype="f4")
        file["lat"].make_scale("lat")
        values = (numpy.arange(60).reshape(3, 5, 4) + 100 * first).astype("<i2")
        packed = file.create_dataset(
            "deep/t2m" if name == "nested.nc" else "t2m",
            data=values, chunks=(1, 5, 2), compression="gzip", shuffle=True, fillvalue=-1,
        )
        packed.attrs["scale_factor"] = 0.5
        if name != "nested.nc":
            packed.dims[0].attach_scale(file["time"])
            packed.dims[1].attach_scale(file["lat"])
        # Chunks that were never written.
        holes = file.create_dataset("holes", shape=(4, 4), chunks=(2, 2), dtype="<f4", fillvalue=9.5)
        holes[2:, :2] = [[1, 2], [3, 4]]
        file["scalar"] = numpy.int32(first)


def classic(name):
    with netCDF4.Dataset(FILES / name, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("x", 7)
        file.createDimension("record", None)
        file.createVariable("x", "i4", ("x",))[:] = numpy.arange(7)
        file.createVariable("rain", "f4", ("record", "x"))[:] = numpy.arange(21).reshape(3, 7) / 4


month("jan.nc", 0)
month("feb.nc", 3)
month("nested.nc", 6)
classic("classic.nc")


def save(name, document):
    with open(name, "w") as file:
        json.dump(document, file, indent=None, sort_keys=False)


def kerchunk(name, inline=0):
    """References with paths that begin where the document lies."""
    with open(FILES / name, "rb") as file:
        return SingleHdf5ToZarr(file, f"files/{name}", inline_threshold=inline).translate()


save("hdf5.json", kerchunk("jan.nc"))
save("inline.json", kerchunk("jan.nc", inline=500))
save("nested.json", kerchunk("nested.nc"))
save("version0.json", kerchunk("feb.nc", inline=100)["refs"])
save("classic.json", NetCDF3ToZarr("files/classic.nc", inline_threshold=20).translate())
combined = MultiZarrToZarr(
    [kerchunk("jan.nc"), kerchunk("feb.nc")], concat_dims=["time"], identical_dims=["lat"], remote_protocol="file",
    preprocess=lambda refs: {k: v for k, v in refs.items() if not k.startswith(("holes", "scalar"))},
).translate()
combined["refs"] = {k: [f"files/{pathlib.Path(v[0]).name}", *v[1:]] if isinstance(v, list) else v
                    for k, v in combined["refs"].items()}
save("combined.json", combined)

# References to complete files.
zarr.create_array(FILES / "whole.zarr", data=numpy.arange(36, dtype="<u2").reshape(6, 6), chunks=(4, 4), zarr_format=2,
                  compressors=None)
refs = {".zgroup": {"zarr_format": 2}}
for path in sorted((FILES / "whole.zarr").rglob("*")):
    key = "a/" + path.name
    refs[key] = json.loads(path.read_text()) if path.name.startswith(".z") else [f"files/whole.zarr/{path.name}"]
save("whole.json", {"version": 1, "refs": refs})

# Templates and rules, as the specification of kerchunk has them.
raw = numpy.arange(120, dtype="<i4")
(FILES / "raw.bin").write_bytes(b"HEAD" + raw.tobytes())
for number in range(3):
    (FILES / f"part-{number}.bin").write_bytes((raw[:10] * (number + 1)).tobytes())


def array(shape, chunks):
    return json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<i4", "fill_value": -7, "order": "C",
                       "compressor": None, "filters": None})


save("templates.json", {
    "version": 1,
    "templates": {"f": "files", "named": "files/{{name}}.bin"},
    "gen": [
        {"key": "rule/{{i}}.{{j}}", "url": "{{f}}/raw.bin", "offset": "{{4 + (i * 3 + j) * 40}}", "length": "{{4 * 10}}",
         "dimensions": {"i": {"stop": 4}, "j": {"start": 0, "stop": 3, "step": 1}}},
        {"key": "parts/{{i}}", "url": "{{named(name='part-0')}}", "dimensions": {"i": [0, 2]}},
    ],
    "refs": {
        ".zgroup": "{\"zarr_format\": 2}",
        "rule/.zarray": array([4, 30], [1, 10]),
        "parts/.zarray": array([30], [10]),
        "parts/1": ["{{f}}/part-1.bin"],
        "called/.zarray": array([20], [10]),
        "called/0": ["{{named(name=\"part-2\")}}", 0, 40],
        "called/1": ["{{ f }}/raw.bin", 44, 40],
    },
})

# VirtualiZarr, with URLs of its own.
registry = obspec_utils.registry.ObjectStoreRegistry({"file://": obstore.store.LocalStore()})
with virtualizarr.open_virtual_dataset(
    f"file://{FILES}/feb.nc", registry=registry, parser=virtualizarr.parsers.HDFParser(), loadable_variables=["lat"],
) as virtual:
    refs = virtual.vz.to_kerchunk(format="dict")
    refs["refs"] = {k: [f"files/{pathlib.Path(v[0]).name}", *v[1:]] if isinstance(v, list) else v
                    for k, v in refs["refs"].items()}
    save("virtualizarr.json", refs)

# Parquet: plain paths, paths in a dictionary, and files by pyarrow with pages of version 2.
for name, document, size, threshold in [
    ("hdf5.parq", "hdf5.json", 10, 10), ("combined.parq", "combined.json", 4, 10), ("whole.parq", "whole.json", 1000, 10),
    ("virtualizarr.parq", "virtualizarr.json", 100, 1), ("arrow.parq", "hdf5.json", 5, 10),
]:
    refs = json.loads((HERE / document).read_text())["refs"]
    refs = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in refs.items()
            if not key.startswith("scalar/") or name != "virtualizarr.parq"}
    refs_to_dataframe(refs, str(HERE / name), record_size=size, categorical_threshold=threshold)
for path in (HERE / "arrow.parq").glob("*/*.parq"):
    table = pyarrow.parquet.read_table(path)
    table = pyarrow.table({name: table[name].cast(type) for name, type in
                           [("path", "string"), ("offset", "int64"), ("size", "int64"), ("raw", "binary")]})
    pyarrow.parquet.write_table(table, path, compression="zstd", data_page_version="2.0")

expected = []
for name in sorted([*HERE.glob("*.json"), *HERE.glob("*.parq")]):
    options = {"simple_templates": False} if name.name == "templates.json" else {}
    fs = fsspec.filesystem("reference", fo=str(name), remote_protocol="file", asynchronous=False, **options)
    if hasattr(fs.references, "zmetadata"):
        keys = [key.rsplit("/", 1)[0] for key in fs.references.zmetadata if key.endswith(".zarray")]
        count = None
    else:
        keys = [key.rsplit("/", 1)[0] for key in fs.references if key.endswith(".zarray")]
        count = len(fs.references)
    store = zarr.storage.FsspecStore(
        fsspec.filesystem("reference", fo=str(name), remote_protocol="file", asynchronous=True, **options), path="")
    for key in sorted(keys):
        if (name.name, key) == ("virtualizarr.json", "scalar"):
            # VirtualiZarr names the chunk `scalar/`, which zarr-python does not ask for: what is in the file.
            value = numpy.int32(3)
        else:
            value = numpy.asarray(zarr.open_array(store, path=key, mode="r", zarr_format=2)[...])
        value = numpy.ascontiguousarray(value.astype(value.dtype.newbyteorder("<")))
        expected.append({"document": name.name, "keys": count, "path": key, "shape": value.shape, "dtype": value.dtype.str,
                         "sha256": hashlib.sha256(value.tobytes()).hexdigest()})
save("expected.json", expected)
print(len(expected), "arrays")
