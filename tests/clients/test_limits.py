"""What clients, as they are published, do not do over HTTP, whatever the server: the table in docs/src/clients.md says so.

A test that fails here is good news: the client has learned it, and its limit can go.
"""

import numpy
import pytest
import xarray
import zarr

import clients

pytestmark = pytest.mark.filterwarnings("ignore")

FILL = 0


def filled(store):
    """An array of one chunk that is there."""
    array = zarr.create_array(store, shape=(4,), chunks=(4,), dtype="int32", fill_value=FILL)
    array[:] = numpy.arange(1, 5)
    return array


@pytest.mark.cannot("zarr-python + fsspec", "write", "erase, overwrite")
@pytest.mark.cannot("xarray + fsspec", "write", "erase, overwrite")
def test_fsspec_erases_nothing_over_http(server, writable):
    url = server.store(writable, "limits/fsspec")
    array = filled(url)
    with pytest.raises(NotImplementedError):
        # A chunk of nothing but the fill value is one that zarr-python erases.
        array[:] = FILL
    with pytest.raises(NotImplementedError):
        zarr.create_array(url, shape=(2,), dtype="int32", overwrite=True)


@pytest.mark.cannot("zarr-python + obstore", "write", "groups below groups")
@pytest.mark.cannot("xarray + obstore", "write", "datasets")
def test_obstore_creates_nothing_on_condition_over_http(server, empty):
    store = clients.obstore_store(server.root(empty))
    with pytest.raises(BaseException, match="not yet implemented|NotImplemented|not supported"):
        zarr.create_array(store, name="group/array", shape=(4,), dtype="int32")
    dataset = xarray.Dataset({"a": ("x", numpy.arange(3))})
    with pytest.raises(BaseException, match="not yet implemented|NotImplemented|not supported"):
        dataset.to_zarr(clients.obstore_store(server.root(empty)), group="dataset", mode="w-")
