"""Makes the zip files of this folder, with zarr-python and Python's zipfile, and `expected.json`: what zipfile reads.

    python make.py        # needs zarr 3.1
"""

import hashlib
import io
import json
import pathlib
import warnings
import zipfile

import numpy
import zarr
from zarr.storage import ZipStore

HERE = pathlib.Path(__file__).parent
DAY = (2020, 1, 2, 3, 4, 6)
warnings.simplefilter("ignore")


def write(file, name, data, method=zipfile.ZIP_STORED, zip64=False):
    info = zipfile.ZipInfo(name, DAY)
    info.compress_type = method
    with file.open(info, "w", force_zip64=zip64) as entry:
        entry.write(data)


def hierarchy(name, compression, zarr_format):
    """A group with an array of 20 x 30, of which one chunk is written twice and one is not there."""
    path = HERE / name
    path.unlink(missing_ok=True)
    store = ZipStore(path, mode="w", compression=compression)
    root = zarr.create_group(store, zarr_format=zarr_format, attributes={"title": "zip"})
    options = {"compressors": None} if zarr_format == 3 else {}
    array = root.create_array("deep/a", shape=(20, 30), chunks=(10, 10), dtype="<i2", fill_value=-1, **options)
    numbers = numpy.arange(600, dtype="<i2").reshape(20, 30)
    array[:, :20] = 0
    array[:, :20] = numbers[:, :20]
    array[:10, 20:] = numbers[:10, 20:]
    store.close()


def names():
    with zipfile.ZipFile(HERE / "names.zip", "w") as file:
        file.writestr(zipfile.ZipInfo("folder/", DAY), b"")
        write(file, "folder/in", b"in the folder")
        write(file, "folder-x", b"sorts before the folder")
        write(file, "日本/é", "names are kept".encode())
        write(file, "e\u0301", b"decomposed")
        write(file, "a b&c%2e", b"odd")
        write(file, "empty", b"")
        write(file, "deflated", b"much of the same, " * 500, zipfile.ZIP_DEFLATED)
        write(file, "deflated-empty", b"", zipfile.ZIP_DEFLATED)
        for bad in ["../up", "a/../b", "/absolute", "back\\slash", "a//b", "./here", "C:\\x"]:
            write(file, bad, b"must not be reached")
        write(file, "twice", b"the first")
        write(file, "twice", b"the second")


def odd():
    """Something before the file and a comment behind it; zip64 where there is no need of it; other compressions."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        write(file, "stored", b"0123456789", zip64=True)
        write(file, "deflated", b"0123456789" * 100, zipfile.ZIP_DEFLATED, zip64=True)
        file.comment = b"PK\x01\x02 is a comment"
    (HERE / "odd.zip").write_bytes(b"#!/bin/sh\nexit 0\n" + buffer.getvalue())

    limit, zipfile.ZIP_FILECOUNT_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT, 1
    with zipfile.ZipFile(HERE / "zip64.zip", "w") as file:
        for number in range(3):
            write(file, f"c/{number}", bytes([number]) * (number + 1), zip64=True)
    zipfile.ZIP_FILECOUNT_LIMIT = limit

    with zipfile.ZipFile(HERE / "methods.zip", "w") as file:
        write(file, "stored", b"fine")
        write(file, "bzip2", b"not read", zipfile.ZIP_BZIP2)
        write(file, "lzma", b"not read", zipfile.ZIP_LZMA)


def expected():
    """Every entry that has a key: of those of one name the last, as zipfile has it."""
    found = {}
    for path in sorted(HERE.glob("*.zip")):
        with zipfile.ZipFile(path) as file:
            entries = found[path.name] = {}
            for info in file.infolist():
                parts = info.filename.split("/")
                if not {"", ".", ".."}.isdisjoint(parts) or "\\" in info.filename:
                    continue
                data = file.read(info.filename)
                entries[info.filename] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return found


hierarchy("v3-stored.zip", zipfile.ZIP_STORED, 3)
hierarchy("v2-deflated.zip", zipfile.ZIP_DEFLATED, 2)
names()
odd()
(HERE / "expected.json").write_text(json.dumps(expected(), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
