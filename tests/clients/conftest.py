"""What the tests share: one server over every kind of backend, filled by zarr-python before it starts, and the table.

A test of a client has the fixture `backend` (or `mount` or `writable`, which follow from it) and a marker that names
the client and what it does, and so counts for the table that is printed at the end:

    @pytest.mark.client("zarr-python + fsspec", "read", "list")
    def test_something(server, backend): ...

`server.store(mount, key)` is the address of a store or of a key in it, and these are the mounts of each backend:

    {backend}               the hierarchy of `arrays`, also in the directory `server.files`
    consolidated-{backend}  the same, with consolidated metadata that the server makes
    datasets-{backend}      those of xarray (`arrays.dataset`), with consolidated metadata that the server makes
    writable-{backend}      for tests to write to and, with one request, to erase from; they keep to keys of their own
    empty-{backend}         the same for suites that want a store of their own, and empty it themselves

All but the second are stores at the root of an address of their own too: `server.root(mount, key)`.

`server.upload(folder, mount, prefix)` puts every file of a folder there. What is in memory got there so. A client's
program is found by `table.program("rclone")`, and its package, if only one test needs it, by
`table.module("webdav4.client")`: then one that is not there is `missing` in the table, and the run fails.
"""

import functools
import http.server
import json
import os
import pathlib
import threading

import obstore.store
import pytest
import requests
import zarr.storage

import arrays
import processes
import programs
import table

BUCKET = "bucket"


def pytest_configure(config):
    table.register(config)


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """An S3 server with a bucket."""
    with processes.s3(tmp_path_factory.mktemp("s3")) as endpoint:
        requests.put(f"{endpoint}/{BUCKET}", timeout=processes.SECONDS).raise_for_status()
        yield endpoint


@pytest.fixture(scope="session")
def server(endpoint, tmp_path_factory):
    """The server, with the mounts described above."""
    hierarchy, datasets = tmp_path_factory.mktemp("hierarchy"), tmp_path_factory.mktemp("datasets")
    arrays.write_all(zarr.storage.LocalStore(hierarchy))
    for group in arrays.GROUPS:
        for zarr_format in arrays.FORMATS:
            path = datasets / f"v{zarr_format}"
            arrays.dataset().to_zarr(path, group=group, consolidated=False, zarr_format=zarr_format)
    for folder in [hierarchy, datasets]:
        bucket = obstore.store.S3Store(
            BUCKET,
            prefix=folder.name,
            config={"endpoint": endpoint, "access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"},
            client_options={"allow_http": True},
        )
        for key, value in processes.files(folder):
            bucket.put(key, value)

    mounts = {}
    rooted = {"listen": "127.0.0.1:0"}
    writable = rooted | {"writable": True, "allow_prefix_delete": True}
    for name, folder, options in [
        ("", hierarchy, rooted),
        ("consolidated-", hierarchy, {"consolidated": True}),
        ("datasets-", datasets, rooted | {"consolidated": True}),
        ("writable-", tmp_path_factory.mktemp("writable"), writable),
        ("empty-", tmp_path_factory.mktemp("empty"), writable),
    ]:
        mounts[f"{name}local"] = {"url": str(folder), **options}
        mounts[f"{name}memory"] = {"url": "memory://", **options, "writable": True}
        mounts[f"{name}s3"] = {"url": f"s3://{BUCKET}/{folder.name}", **options, "options": {
            "endpoint": endpoint, "allow_http": True, "access_key_id": "key", "secret_access_key": "secret"
        }}
    config = tmp_path_factory.mktemp("config") / "zarrd.toml"
    config.write_text(toml(mounts))
    roots = [name for name, mount in mounts.items() if "listen" in mount]
    with processes.zarrd("--config", str(config), rooted=roots) as running:
        running.upload(hierarchy, "memory")
        running.upload(hierarchy, "consolidated-memory")
        running.upload(datasets, "datasets-memory")
        running.files = hierarchy
        yield running


def toml(mounts):
    """The mounts as a configuration. What JSON calls a string, a number or a truth is one in TOML too."""
    lines = []
    for name, mount in mounts.items():
        options = mount.pop("options", {})
        for table, values in [(f"mounts.{name}", mount), (f"mounts.{name}.options", options)]:
            lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines)


@pytest.fixture(scope="session", params=table.BACKENDS)
def backend(request):
    """What is behind the server."""
    return request.param


@pytest.fixture(scope="session")
def mount(backend):
    """A mount that holds every array. Tests only read from it."""
    return backend


@pytest.fixture(scope="session")
def writable(backend):
    """A writable mount. Tests keep to keys of their own."""
    return f"writable-{backend}"


@pytest.fixture
def empty(server, backend):
    """A writable mount with nothing in it. A test does what it likes with it."""
    requests.delete(server.root(f"empty-{backend}"), timeout=processes.SECONDS).raise_for_status()
    return f"empty-{backend}"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where the programs are."""
    return programs.of_node(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def pages(folder, tmp_path_factory):
    """The address of a server of its own for pages: another origin than any store."""
    bundle = tmp_path_factory.mktemp("pages")
    programs.run("node", folder / "bundle.mjs", bundle)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Says nothing."""

    handler = functools.partial(Handler, directory=bundle)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browse(pages, folder):
    """Opens a page, with what is the fragment of its address, and a file for its screenshot; what it finishes with."""
    with programs.running("node", folder / "browse.mjs", table.program("chromium")) as ask:

        def browse(page, fragment, png=None):
            found = ask({"url": f"{pages}/{page}.html#{fragment}", "png": png and str(png)})
            assert "error" not in found, found
            return found

        yield browse


@pytest.fixture(scope="session")
def visit(folder):
    """Visits a page of the server itself."""
    with programs.running("node", folder / "view.mjs", table.program("chromium")) as ask:

        def visited(url, **question):
            found = ask({"url": url, **question})
            assert "error" not in found, (found["error"], found)
            return found

        yield visited


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory, request):
    """Where screenshots are left."""
    folder = pathlib.Path(os.environ.get("ZARRD_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"screenshots are left in {folder}")
    return folder
