"""zarrs reads over each of its stores that speak HTTP; at a root, it writes, lists and erases too, and object_store's
own tests of a store pass there."""

import base64
import os

import numpy
import pytest
import requests

import arrays
import clients
import processes
import programs
from arrays import ARRAYS, path
from processes import Zarrd

CLIENTS = {
    "http": "zarrs_http",
    "object_store": "zarrs + object_store",
    "opendal-http": "zarrs + opendal http",
    "opendal-webdav": "zarrs + opendal webdav",
}
LISTERS = ["object_store", "opendal-webdav"]
"""Those that list and write."""


def each(names, *verbs):
    """Gives a test each of these clients as `client`."""
    named = [pytest.param(name, id=name, marks=pytest.mark.client(CLIENTS[name], *verbs)) for name in names]
    return pytest.mark.parametrize("client", named)


@pytest.fixture(scope="session")
def ask():
    """Asks a client of a store for something, and has its answer."""
    with programs.running(os.environ.get("ZARRD_ZARRS", "zarrd-clients-zarrs")) as ask:

        def asked(client, url, verb, **rest):
            answer = ask({"client": client, "url": url, "verb": verb, **rest})
            assert "error" not in answer, answer["error"]
            return answer

        yield asked


def assert_reads(ask, client, url, expected):
    """Reads the arrays at the paths of what is expected there."""
    found = ask(client, url, "read", paths=[f"/{path}" for path in expected])
    for read, values in zip(found, expected.values(), strict=True):
        assert "error" not in read, read["error"]
        decoded = base64.b64decode(read["values"])
        native = values.dtype.newbyteorder("=")
        clients.assert_same(numpy.frombuffer(decoded, native).reshape(read["shape"]), values)


@each(CLIENTS, "read")
@pytest.mark.parametrize("address", [Zarrd.store, Zarrd.root], ids=["below", "root"])
def test_an_array_reads_equal(server, mount, ask, client, address):
    expected = {path(name): array.values for name, array in ARRAYS.items()}
    assert_reads(ask, client, address(server, mount).rstrip("/"), expected)


PREFIXES = ["new/", "old/inner/", "new/inner/v3_sharded/c/1/", "missing/"]


@each(LISTERS, "list")
@pytest.mark.parametrize("prefix", ["", *PREFIXES])
def test_the_keys_below_a_prefix_are_listed(server, mount, ask, client, prefix):
    listed = ask(client, server.root(mount), "list", prefix=prefix)
    assert sorted(listed["keys"]) == sorted(key for key, _ in processes.files(server.files) if key.startswith(prefix))


@each(LISTERS, "list")
@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_is_right_below_a_prefix_is_listed(server, mount, ask, client, prefix):
    assert_lists(server, mount, ask, client, prefix)


# The other client cannot read the listing of its own root.
@each(["object_store"], "list")
def test_what_is_right_below_the_root_is_listed(server, mount, ask, client):
    assert_lists(server, mount, ask, client, "")


def assert_lists(server, mount, ask, client, prefix):
    keys = [key for key, _ in processes.files(server.files) if key.startswith(prefix)]
    rests = [key.removeprefix(prefix) for key in keys]
    listed = ask(client, server.root(mount), "list_dir", prefix=prefix)
    assert sorted(listed["keys"]) == sorted(prefix + rest for rest in rests if "/" not in rest)
    assert sorted(listed["prefixes"]) == sorted({f"{prefix}{rest.split('/')[0]}/" for rest in rests if "/" in rest})


@each(LISTERS, "write")
def test_what_is_written_is_read_by_all_and_erased_as_a_whole(server, writable, ask, client):
    root, name = server.root(writable), f"zarrs-{client}"
    values = arrays.values("uint16", 50, 40)
    written = base64.b64encode(values.tobytes()).decode()
    for path in [f"/{name}/first", f"/{name}/second"]:
        ask(client, root, "write", path=path, shape=values.shape, shards=[32, 32], chunks=[8, 16], values=written)
    for reader in CLIENTS:
        assert_reads(ask, reader, root, {f"{name}/first": values, f"{name}/second": values})
    clients.assert_same(clients.fsspec(server.store(writable), f"{name}/first", 3), values)
    answer = requests.get(server.data(writable, f"{name}/second"), timeout=processes.SECONDS)
    assert answer.content == values.tobytes()

    def keys():
        return [key for key in ask(client, root, "list", prefix="")["keys"] if key.startswith(f"{name}/")]

    assert len(keys()) == 2 * 5
    ask(client, root, "erase", prefix=f"{name}/first/")
    assert len(keys()) == 5
    assert ask(client, root, "list_dir", prefix=f"{name}/") == {"keys": [], "prefixes": [f"{name}/second/"]}
    ask(client, root, "erase", prefix=f"{name}/")
    assert keys() == []
    assert requests.get(f"{root}{name}/", timeout=processes.SECONDS).status_code == 404


@pytest.mark.parametrize(
    "test",
    [
        "put_get_delete_list without pages",
        "list_uses_directories_correctly",
        "list_with_delimiter",
        "rename_and_copy",
        "copy_if_not_exists",
        "get_opts",
    ],
)
@pytest.mark.client("object_store", "read", "write", "list")
def test_a_test_of_object_store_passes(server, empty, ask, test):
    ask("object_store", server.root(empty), "integration", test=test)


def test_object_store_is_redirected_to_a_listing_where_it_expects_nothing(server, empty, ask):
    # It wants that a prefix without its slash is not found; people, fsspec and others want to be led to its listing.
    with pytest.raises(AssertionError, match='location: Path { raw: "test_dir" }.*text/html'):
        ask("object_store", server.root(empty), "integration", test="put_get_delete_list")
