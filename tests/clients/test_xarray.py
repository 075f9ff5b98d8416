"""xarray reads datasets that have no consolidated metadata, and writes and extends others."""

import pytest
import xarray
import zarr

import arrays
import clients
from arrays import FORMATS

# xarray says that consolidated metadata is not in the specification of v3, each time.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("group", arrays.GROUPS)
@clients.over_each_store("xarray", "read", "list")
def test_a_dataset_is_listed_and_read(server, backend, open_store, zarr_format, group):
    # At the root, as obstore lists only there.
    store = open_store(server.root(f"datasets-{backend}"))
    group = f"v{zarr_format}" + (f"/{group}" if group else "")
    with xarray.open_zarr(store, group=group, consolidated=False, zarr_format=zarr_format) as opened:
        xarray.testing.assert_identical(opened.load(), arrays.dataset())


@pytest.mark.parametrize("zarr_format", FORMATS)
@clients.over_each_store("xarray", "write", "read", "list", ways=clients.WRITERS)
def test_a_dataset_is_written_and_extended(server, empty, open_store, zarr_format):
    # Not in the root itself: fsspec takes an empty page for a file that is there, and the root always has one.
    store, group = open_store(server.root(empty)), "group"
    dataset = arrays.dataset()
    # fsspec erases no keys over HTTP, and so no chunks that hold nothing.
    with zarr.config.set({"array.write_empty_chunks": True}):
        for times in [slice(0, 2), slice(2, 6)]:
            mode = {"append_dim": "time"} if times.start else {"mode": "w-", "zarr_format": zarr_format}
            dataset.isel(time=times).to_zarr(store, group=group, **mode)
    for consolidated in [True, False]:
        with xarray.open_zarr(store, group=group, consolidated=consolidated) as opened:
            xarray.testing.assert_identical(opened.load(), dataset)
