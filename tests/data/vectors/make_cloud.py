"""Writes a point cloud in Zarr Vector Format 0.9 that is too large to keep: make_cloud.py FOLDER [VERTICES [EDGE]].

EDGE chunks along each of three axes (10), VERTICES in all (10**7), spread evenly. Needs numpy."""

import json
import os
import sys

import numpy as np

folder, vertices, edge = sys.argv[1], int((sys.argv[2:3] or [10**7])[0]), int((sys.argv[3:4] or [10])[0])
rows = vertices // edge**3
group = {"zarr_format": 3, "node_type": "group"}
axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "xyz"]


def write(path, document):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(document, file)


block = {"zv_version": "0.9.2", "chunk_shape": [100.0] * 3, "bounds": [[0] * 3, [edge * 100 - 0.01] * 3],
         "geometry_types": ["point_cloud"]}
scales = [{"axes": axes, "datasets": [{"path": "0"}], "metadata": {"format": "zarr_vectors"}}]
write(f"{folder}/zarr.json", group | {"attributes": {"zarr_vectors": block, "multiscales": scales}})
level = {"level": 0, "vertex_count": rows * edge**3}
write(f"{folder}/0/zarr.json", group | {"attributes": {"zarr_vectors_level": level}})
random = np.random.default_rng(7)
names = []
for x, y, z in np.ndindex(edge, edge, edge):
    names.append(f"{x}.{y}.{z}")
    points = (random.random((rows, 3)) * 99.9 + np.array([x, y, z]) * 100).astype("<f4").tobytes()
    path = f"{folder}/0/vertices/c/{x}/{y}/{z}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write((1).to_bytes(4, "little") + len(points).to_bytes(4, "little") + points)
array = {
    "zarr_format": 3, "node_type": "array", "shape": [edge] * 3, "data_type": "variable_length_bytes",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1] * 3}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "",
    "codecs": [{"name": "vlen-bytes", "configuration": {}}],
    "attributes": {"nonempty_chunks": sorted(names), "dtype": "float32", "encoding": "raw"},
}
write(f"{folder}/0/vertices/zarr.json", array)
