"""ome-zarr-py finds an image, its levels and its labels, and reads them."""

import warnings

import numpy
import ome_zarr.format
import ome_zarr.io
import ome_zarr.reader
import ome_zarr.writer
import pytest
import zarr

import arrays

IMAGE = arrays.values("uint16", 2, 64, 48)
LABELS = arrays.values("uint8", 64, 48) // 64
FORMATS = {"0.4": ome_zarr.format.FormatV04(), "0.5": ome_zarr.format.FormatV05()}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def images(server, backend, tmp_path_factory):
    """The address of an image of each version, by version."""
    folder = tmp_path_factory.mktemp("ome")
    with warnings.catch_warnings(action="ignore"):
        for version, fmt in FORMATS.items():
            group = zarr.open_group(folder / f"{version}.zarr", mode="w", zarr_format=fmt.zarr_format)
            ome_zarr.writer.write_image(IMAGE, group, scale_factors=[2, 4], fmt=fmt, axes="cyx")
            options = {"scaler": None, "scale_factors": [2, 4], "fmt": fmt, "axes": "yx"}
            ome_zarr.writer.write_labels(LABELS, group, name="cells", **options)
    server.upload(folder, f"writable-{backend}", "ome/")
    return {version: server.store(f"writable-{backend}", f"ome/{version}.zarr") for version in FORMATS}


@pytest.mark.client("ome-zarr-py", "read")
@pytest.mark.parametrize("version", FORMATS)
def test_an_image_its_levels_and_its_labels_read_equal(images, version):
    location = ome_zarr.io.parse_url(images[version])
    assert location.fmt.version == version
    nodes = {node.zarr.basename(): node for node in ome_zarr.reader.Reader(location)()}
    image, cells = nodes[f"{version}.zarr"], nodes["cells"]
    assert [axis["name"] for axis in image.metadata["axes"]] == ["c", "y", "x"]
    assert [level.shape for level in image.data] == [(2, 64, 48), (2, 32, 24), (2, 16, 12)]
    numpy.testing.assert_array_equal(image.data[0].compute(), IMAGE)
    assert [level.shape for level in cells.data] == [(64, 48), (32, 24), (16, 12)]
    numpy.testing.assert_array_equal(cells.data[0].compute(), LABELS)
