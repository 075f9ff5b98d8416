"""Tiled with the arrays of a folder: `server.py FOLDER PORT NAME…`."""

import sys

import uvicorn
import zarr
from tiled.adapters.mapping import MapAdapter
from tiled.adapters.zarr import ZarrArrayAdapter
from tiled.config import Authentication
from tiled.server.app import build_app
from tiled.structures.array import ArrayStructure


def adapter(path):
    array = zarr.open_array(path, mode="r")
    return ZarrArrayAdapter(array, ArrayStructure.from_array(array))


folder, port, *names = sys.argv[1:]
tree = MapAdapter({name: adapter(f"{folder}/{name}") for name in names})
app = build_app(tree, authentication=Authentication(allow_anonymous_access=True))
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
