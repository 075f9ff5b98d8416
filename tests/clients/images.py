"""Images in both versions of OME-Zarr, and what is in each: two channels, three slices and two levels."""

import numcodecs
import numpy
import zarr

DIMENSIONS = ("c", "z", "y", "x")

_c, _z, _y, _x = numpy.ogrid[:2, :3, :48, :64]

PIXELS = (_x + _y // 2 + 20 * _z + 100 * ((_x // 8 + _y // 8 + _c) % 2)).astype("uint8")
"""A chessboard on a slope, with a mark in one corner: every rotation and reflection of it is different."""
PIXELS[:, :, :4, :12] = 250

LEVELS = [PIXELS, PIXELS[:, :, ::2, ::2]]

VERSIONS = {"0.4": 2, "0.5": 3}
"""The format of Zarr that each version of OME-Zarr is in."""


def write(folder, version):
    """Writes the image; its first level is sharded where that can be."""
    scales = [[1, 1, by, by] for by in (1, 2)]
    image = {
        "multiscales": [
            {
                "version": version,
                "name": "chessboard",
                "axes": [{"name": "c", "type": "channel"}, *({"name": name, "type": "space"} for name in "zyx")],
                "datasets": [
                    {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
                    for level, scale in enumerate(scales)
                ],
            }
        ],
        "omero": {
            "channels": [
                {"color": color, "active": True, "window": {"start": 0, "end": 255, "min": 0, "max": 255}}
                for color in ("FF0000", "00FF00")
            ],
            "rdefs": {"defaultT": 0, "defaultZ": 1, "model": "color"},
        },
    }
    attributes = image if version == "0.4" else {"ome": {"version": version, **image}}
    zarr_format = VERSIONS[version]
    group = zarr.create_group(folder, zarr_format=zarr_format, attributes=attributes)
    options = {
        2: {"chunk_key_encoding": {"name": "v2", "separator": "/"}, "compressors": numcodecs.Blosc(cname="lz4")},
        3: {"dimension_names": DIMENSIONS},
    }[zarr_format]
    for level, values in enumerate(LEVELS):
        shards = (1, 3, 32, 32) if zarr_format == 3 and level == 0 else None
        group.create_array(str(level), data=values, chunks=(1, 1, 16, 16), shards=shards, **options)
