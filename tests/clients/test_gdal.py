"""GDAL's Zarr driver over /vsicurl: a group that only its listing shows, and an address without a slash at its end.

Debian's GDAL reads v2 alone, and of that no complex fill value.
"""

import json
import subprocess

import pytest
import zarr

import clients
import table
from arrays import ARRAYS, ATTRIBUTES, path

NAMES = {name for name, array in ARRAYS.items() if array.zarr_format == 2}
COMPLEX = {"v2_complex_missing"}


def gdal(program, *arguments):
    command = [table.program(program), *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


@pytest.mark.client("GDAL", "read", "list")
def test_a_group_is_listed_and_its_arrays_read_equal(server, mount, tmp_path):
    copy = tmp_path / "copy.zarr"
    gdal("gdalmdimtranslate", "-of", "Zarr", f'ZARR:"/vsicurl/{server.store(mount, "old")}"', str(copy))
    inner = zarr.open_group(copy, mode="r")["inner"]
    assert set(inner) == NAMES - COMPLEX
    for name, array in inner.arrays():
        assert dict(array.attrs) == ATTRIBUTES
        # GDAL has no truths, only bytes.
        clients.assert_same(array[...].astype(ARRAYS[name].values.dtype), ARRAYS[name].values)


@pytest.mark.client("GDAL", "read", "list")
@pytest.mark.parametrize(("asked", "expected"), [("old/inner", NAMES), (path("v2_fortran_slashes"), set())])
def test_an_address_without_a_slash_is_found_to_be_zarr(server, mount, asked, expected):
    read = json.loads(gdal("gdalinfo", "-json", f"/vsicurl/{server.store(mount, asked)}"))
    assert read["driverShortName"] == "Zarr"
    datasets = read["metadata"].get("SUBDATASETS", {})
    assert {value.split("/")[-1] for name, value in datasets.items() if name.endswith("_NAME")} == expected
