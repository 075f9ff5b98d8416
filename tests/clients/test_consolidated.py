"""Clients that want consolidated metadata get it of hierarchies that have none stored, as the server makes it."""

import numpy
import pytest
import requests
import xarray
import zarr

import arrays
import clients
from arrays import ARRAYS, ATTRIBUTES, FORMATS, path
from processes import SECONDS

DOCUMENTS = {2: ".zmetadata", 3: "zarr.json"}


@pytest.mark.parametrize("zarr_format", FORMATS)
@clients.over_each_store("zarr-python", "read")
def test_a_hierarchy_opens_from_its_consolidated_metadata(server, mount, open_store, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    group = zarr.open_consolidated(
        open_store(server.store(f"consolidated-{mount}", outer)), mode="r", zarr_format=zarr_format
    )
    assert dict(group.attrs) == ATTRIBUTES
    names = {name for name, array in ARRAYS.items() if array.zarr_format == zarr_format}
    assert set(group.metadata.consolidated_metadata.flattened_metadata) == {inner} | {f"{inner}/{name}" for name in names}
    assert dict(group[inner].attrs) == {"inner": True}
    for name in names:
        array = group[f"{inner}/{name}"]
        assert dict(array.attrs) == ATTRIBUTES
        clients.assert_same(array[...], ARRAYS[name].values)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_consolidated_metadata_equals_that_of_zarr_python(server, mount, zarr_format, tmp_path):
    outer = FORMATS[zarr_format].split("/")[0]
    store = zarr.storage.LocalStore(tmp_path)
    arrays.write_all(store)
    zarr.consolidate_metadata(store, path=outer, zarr_format=zarr_format)
    document = DOCUMENTS[zarr_format]
    answer = requests.get(server.store(mount, f"{outer}/{document}?consolidated"), timeout=SECONDS)
    assert answer.status_code == 200
    (tmp_path / outer / document).write_bytes(answer.content)
    ours = zarr.open_consolidated(store, path=outer, zarr_format=zarr_format)
    zarr.consolidate_metadata(store, path=outer, zarr_format=zarr_format)
    theirs = zarr.open_consolidated(store, path=outer, zarr_format=zarr_format)
    assert str(ours.metadata.consolidated_metadata.flattened_metadata) == str(
        theirs.metadata.consolidated_metadata.flattened_metadata
    )


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("group", arrays.GROUPS)
@clients.over_each_store("xarray", "read")
def test_xarray_opens_a_dataset_with_consolidated_metadata(server, backend, open_store, zarr_format, group):
    store = open_store(server.store(f"datasets-{backend}", f"v{zarr_format}"))
    with xarray.open_zarr(store, group=group, consolidated=True, zarr_format=zarr_format) as opened:
        xarray.testing.assert_identical(opened.load(), arrays.dataset())
    assert numpy.isnan(opened.temperature.values).any()


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_stored_documents_stay_as_they_are(server, mount, zarr_format):
    outer = FORMATS[zarr_format].split("/")[0]
    stored = requests.get(server.store(mount, f"{outer}/{DOCUMENTS[zarr_format]}"), timeout=SECONDS)
    if zarr_format == 2:
        assert stored.status_code == 404
    else:
        assert stored.content == (server.files / outer / "zarr.json").read_bytes()
    with pytest.raises(ValueError, match="consolidated|zmetadata"):
        zarr.open_consolidated(server.store(mount, outer), mode="r", zarr_format=zarr_format)
