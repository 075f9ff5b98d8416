"""The API document with what stands in this server's mounts, so that what is drawn from it is mostly there."""

import json
import pathlib
import random
import shutil

DATA = pathlib.Path(__file__).parents[1] / "data"
DOCUMENT = pathlib.Path(__file__).parents[2] / "openapi" / "openapi.json"
FOLDERS = ["zarr-python", "extensions", "rectilinear", "dependent", "v1", "vectors"]
METADATA = {"zarr.json", ".zarray", "meta"}
EACH = 40
"""The number of names of each kind that the document gets, drawn from all names."""

SLICES = ["0", "...", ":", "0:1", "::2", "-1", "0,0", "...,0", "1:0", "::-1", "99999999999999999999", "0:0,:", "0,"]

ODD = ["x", " ", "é", "%", "%2e%2e", "a//b", "a" * 300, "-1", "18446744073709551616", "🦀\u202e"]


def fill(folder, names=FOLDERS):
    """Copies what is in the mounts, without what is no part of a store."""
    for name in names:
        shutil.copytree(DATA / name, folder / name)


def amended():
    """The document, where parameters say what there is: names of mounts, nodes and keys, of levels and slices."""
    dice = random.Random(1)
    nodes, stores, keys = names()
    nodes, keys = dice.sample(nodes, EACH), dice.sample(keys, EACH)
    known = {
        "mount": ["data", "work", "memory", "missing"],
        "path": nodes,
        "key": keys + nodes[:5] + [f"{node}/" for node in nodes[:5]],
        "level": ["0", "1"],
        "chunks": ["auto", "16", "4,4", "as-stored", "0"],
        "codec": ["raw", "zstd", "gzip", "zstd.v2"],
        "chunk": ["0.0.0", "0.0"],
        "id": ["0", "1"],
        "slice": SLICES,
        "format": ["bytes", "npy", "json", "csv", "arrow", "png", "html"],
        "bbox": ["0,0,0,10,10,10", "0,0,10,10"],
        "Range": ["bytes=0-9", "bytes=-5", "bytes=5-", "bytes=9999999-", "bytes=5-1"],
    }
    document = json.loads(DOCUMENT.read_text())
    for path, item in document["paths"].items():
        of_vectors = path.startswith("/v1/vectors/")
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                name = parameter["name"]
                there = stores if of_vectors and name == "path" else known.get(name)
                if there:
                    # What does not follow this is drawn too, to see that it is refused.
                    odd = [] if name == "mount" else ["x"] if parameter["in"] == "header" else dice.sample(ODD, 3)
                    parameter["schema"] = {"enum": there + odd}
    return document


def names():
    """Every node, every vector store, every key."""
    files = sorted(file.relative_to(DATA) for name in FOLDERS for file in (DATA / name).rglob("*") if file.is_file())
    nodes = sorted({file.parent.as_posix() for file in files if file.name in METADATA})
    stores = [node for node in nodes if node.endswith(".zarrvectors")]
    return nodes, stores, [file.as_posix() for file in files]
