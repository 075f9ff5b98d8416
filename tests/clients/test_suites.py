"""zarr-python's own tests of a store, over obstore and over all that the server offers.

What a client cannot do is listed below with the reason, and must fail. A client that can do more than these says so here.
"""

import pytest
import requests
import zarr.storage
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests

import clients
from processes import SECONDS
from zarrd_store import ZarrdStore

NO_SYNC = "zarr-python has no synchronous methods for obstore"
OBSTORE = {
    "test_set_if_not_exists": "obstore cannot create a key only if it is missing over HTTP",
    "test_get_sync": NO_SYNC,
    "test_get_sync_missing": NO_SYNC,
    "test_set_sync": NO_SYNC,
    "test_delete_sync": NO_SYNC,
    "test_delete_sync_missing": NO_SYNC,
}


class Suite(StoreTests):
    """What both have in common."""

    buffer_cls = cpu.Buffer
    cannot = {}

    @pytest.fixture(autouse=True)
    def surroundings(self, request, server, empty):
        self.root = server.root(empty)
        self.base, self.mount = server.base, empty
        name = request.node.originalname
        if name in self.cannot:
            request.applymarker(pytest.mark.xfail(reason=self.cannot[name], strict=True))

    async def set(self, store, key, value):
        requests.put(f"{self.root}{key}", data=value.to_bytes(), timeout=SECONDS).raise_for_status()

    async def get(self, store, key):
        answer = requests.get(f"{self.root}{key}", timeout=SECONDS)
        answer.raise_for_status()
        return self.buffer_cls.from_bytes(answer.content)

    def test_store_repr(self, store):
        assert self.mount in repr(store) or self.root.rstrip("/") in repr(store)

    def test_store_supports_writes(self, store):
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.mark.client("zarr-python + obstore", "read", "write", "list")
class TestObstore(Suite):
    store_cls = zarr.storage.ObjectStore
    cannot = OBSTORE

    @pytest.fixture
    def store_kwargs(self):
        return {"store": clients.obstore_http_store(self.root)}


@pytest.mark.client("zarr-python + all routes", "read", "write", "list")
class TestZarrd(Suite):
    store_cls = ZarrdStore

    @pytest.fixture
    def store_kwargs(self):
        return {"base": self.base, "mount": self.mount}
