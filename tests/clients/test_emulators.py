"""Buckets of Google Cloud Storage and containers of Azure Blob Storage, as emulators on this machine have them (`emulators`)."""

import asyncio
import concurrent.futures
import io
import json
import os
import re
import subprocess
import uuid

import numpy
import obstore.store
import pytest
import requests
import xarray
import zarr

import clients
import conftest
import emulators
import processes
from processes import SECONDS

KINDS = ["gcs", "azure"]


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory):
    """The URL of each emulator; `careless` is one of GCS that ignores conditions."""
    folder = tmp_path_factory.mktemp("emulators")
    with (
        emulators.azure(folder) as azure,
        emulators.gcs(folder) as gcs,
        emulators.door(gcs) as door,
        emulators.door(gcs, heeds_conditions=False) as careless,
    ):
        yield {"azure": azure, "gcs": door, "careless": careless}


@pytest.fixture(scope="module")
def config(endpoints, tmp_path_factory):
    """A file with a mount of each: `absent-` of no bucket, `careless` where conditions are ignored, `alone` the same with one writer."""

    def mount(kind, container, prefix, **more):
        options = {"endpoint": endpoints[kind], "allow_http": True}
        if kind == "azure":
            options |= {"account": emulators.ACCOUNT, "account_key": emulators.KEY}
        scheme = "az" if kind == "azure" else "gs"
        allowed = {"writable": True, "allow_prefix_delete": True}
        return {"url": f"{scheme}://{container}/{prefix}", **allowed, **more, "options": options}

    mounts = {kind: mount(kind, emulators.BUCKET, "some/prefix") for kind in KINDS}
    mounts |= {f"absent-{kind}": mount(kind, "absent", "") for kind in KINDS}
    mounts["careless"] = mount("careless", emulators.BUCKET, "careless")
    mounts["alone"] = mount("careless", emulators.BUCKET, "alone", writers="one")
    path = tmp_path_factory.mktemp("config") / "zarrd.toml"
    path.write_text(conftest.toml(mounts))
    return path


@pytest.fixture(scope="module")
def served(config):
    with processes.zarrd("--config", str(config)) as running:
        yield running


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def put(url, data=b"", **headers):
    return requests.put(url, data=data, headers={name.replace("_", "-"): value for name, value in headers.items()}, timeout=SECONDS)


def npy(elements):
    body = io.BytesIO()
    numpy.save(body, elements)
    return body.getvalue()


def write(served, mount, path, elements, **params):
    headers = {"Content-Type": "application/x-npy"}
    return requests.put(served.data(mount, path), params=params, data=npy(elements), headers=headers, timeout=SECONDS)


def append(served, mount, path, elements):
    headers = {"Content-Type": "application/x-npy", "Idempotency-Key": str(uuid.uuid4())}
    url = served.data(mount, path)
    return requests.post(url, params={"append": 0}, data=npy(elements), headers=headers, timeout=SECONDS)


def test_values_and_their_ranges_are_those_that_were_put(served, kind):
    url, value = served.store(kind, "values/some key é%25"), os.urandom(1000)
    assert put(url, value).status_code in (201, 204)
    whole = requests.get(url, timeout=SECONDS)
    assert whole.content == value
    head = requests.head(url, timeout=SECONDS)
    assert head.headers["Content-Length"] == "1000" and head.headers["ETag"] == whole.headers["ETag"]
    for text, part in [("0-0", value[:1]), ("10-19", value[10:20]), ("990-", value[990:]), ("-7", value[-7:]), ("-5000", value)]:
        answer = requests.get(url, headers={"Range": f"bytes={text}"}, timeout=SECONDS)
        assert (answer.status_code, answer.content) == (206, part), text
    outside = requests.get(url, headers={"Range": "bytes=1000-"}, timeout=SECONDS)
    assert (outside.status_code, outside.headers["Content-Range"]) == (416, "bytes */1000")
    assert put(served.store(kind, "values/empty")).ok
    assert requests.get(served.store(kind, "values/empty"), timeout=SECONDS).content == b""
    assert requests.get(served.store(kind, "values/absent"), timeout=SECONDS).status_code == 404
    assert requests.head(served.store(kind, "values/absent"), timeout=SECONDS).status_code == 404


def test_a_value_of_several_parts_is_stored_whole(served):
    url, value = served.store("azure", "large"), os.urandom(20 << 20)
    assert put(url, value).ok
    assert requests.get(url, timeout=SECONDS).content == value
    assert requests.get(url, headers={"Range": "bytes=-3"}, timeout=SECONDS).content == value[-3:]


def test_conditions_of_reads_and_writes_hold(served, kind):
    url = served.store(kind, "conditions/key")
    assert put(url, b"one", If_Match='"absent"').status_code == 412
    assert put(url, b"one", If_None_Match="*").status_code == 201
    assert put(url, b"two", If_None_Match="*").status_code == 412
    tag = requests.head(url, timeout=SECONDS).headers["ETag"]
    for method in ["GET", "HEAD"]:
        same = requests.request(method, url, headers={"If-None-Match": tag}, timeout=SECONDS)
        assert same.status_code == 304
    assert put(url, b"two", If_Match=tag).status_code == 204
    assert put(url, b"three", If_Match=tag).status_code == 412
    assert requests.get(url, headers={"If-Match": tag}, timeout=SECONDS).status_code == 412
    assert requests.get(url, timeout=SECONDS).content == b"two"
    assert requests.delete(url, headers={"If-Match": tag}, timeout=SECONDS).status_code == 412
    tag = requests.head(url, timeout=SECONDS).headers["ETag"]
    assert requests.delete(url, headers={"If-Match": tag}, timeout=SECONDS).status_code == 204
    assert requests.get(url, timeout=SECONDS).status_code == 404


def test_of_concurrent_creations_and_replacements_one_wins(served, kind):
    url = served.store(kind, "races/key")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for condition in [{"If_None_Match": "*"}, {}]:
            headers = condition or {"If_Match": requests.head(url, timeout=SECONDS).headers["ETag"]}
            bodies = [f"{condition} {racer}".encode() for racer in range(8)]
            statuses = list(pool.map(lambda body: put(url, body, **headers).status_code, bodies))
            won = [body for body, status in zip(bodies, statuses) if status in (201, 204)]
            assert len(won) == 1 and statuses.count(412) == 7, statuses
            assert requests.get(url, timeout=SECONDS).content == won[0]


def listed(served, kind, prefix, **params):
    """All pages of a listing."""
    keys, prefixes, after = [], [], None
    while True:
        params |= {"format": "json", **({"after": after} if after else {})}
        answer = requests.get(served.store(kind, prefix), params=params, timeout=SECONDS)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        keys += [entry["key"] for entry in page["keys"]]
        prefixes += page["prefixes"]
        after = page["next"]
        if after is None:
            return keys, prefixes


def test_a_listing_in_pages_has_each_key_once_and_an_erased_prefix_is_empty(served, kind):
    names = [f"{group}/{name}" for group in ["a", "a.b", "b"] for name in ["1", "10", "2", "x/y", "é"]] + ["a-c", "zarr.json"]
    keys = sorted((f"listed/{name}" for name in names), key=str.encode)
    for key in keys:
        assert put(served.store(kind, key), b"x").ok
    for limit in [1, 4, 1000]:
        assert listed(served, kind, "listed/", recursive="", limit=limit)[0] == keys, limit
        found, prefixes = listed(served, kind, "listed/", limit=limit)
        assert found == ["listed/a-c", "listed/zarr.json"], limit
        assert prefixes == ["listed/a.b/", "listed/a/", "listed/b/"], limit
    assert requests.delete(served.store(kind, "listed/a/"), timeout=SECONDS).ok
    assert listed(served, kind, "listed/", recursive="")[0] == [key for key in keys if not key.startswith("listed/a/")]


def test_more_keys_than_a_page_of_azure_has_are_all_listed(served, endpoints):
    config = {"account_name": emulators.ACCOUNT, "account_key": emulators.KEY, "endpoint": endpoints["azure"]}
    store = obstore.store.AzureStore(
        emulators.BUCKET, prefix="some/prefix/many", config=config, client_options={"allow_http": True}
    )
    names = [f"{number:04}" for number in range(5010)]

    async def put_all():
        for begin in range(0, len(names), 500):
            await asyncio.gather(*(store.put_async(name, b"") for name in names[begin:begin + 500]))

    asyncio.run(put_all())
    # A page of HTML has them all.
    page = requests.get(served.store("azure", "many/"), params={"format": "html"}, timeout=SECONDS).text
    assert re.findall(r'<a href="(\d{4})"', page) == names
    last = {"format": "json", "after": "many/4997", "recursive": ""}
    answer = requests.get(served.store("azure", "many/"), params=last, timeout=SECONDS).json()
    assert [entry["key"] for entry in answer["keys"]] == [f"many/{name}" for name in names[4998:]]


def test_xarray_writes_through_obstore_and_reads_through_fsspec(served, kind):
    data = xarray.Dataset(
        {"t": (("time", "x"), numpy.random.default_rng(1).random((5, 40)))},
        coords={"time": numpy.arange("2026-01-01", "2026-01-06", dtype="datetime64[D]").astype("datetime64[ns]")},
    )
    store = clients.ObstoreWriter(clients.obstore_http_store(served.store(kind, "xarray")))
    data.to_zarr(store, mode="w", consolidated=False, encoding={"t": {"chunks": (2, 20)}})
    read = xarray.open_zarr(served.store(kind, "xarray"), consolidated=False).load()
    xarray.testing.assert_identical(read, data)
    values = requests.get(served.data(kind, "xarray/t"), params={"format": "npy"}, timeout=SECONDS).content
    numpy.testing.assert_array_equal(numpy.load(io.BytesIO(values)), data["t"])


def create(served, mount, path):
    store = clients.obstore_store(served.store(mount, path))
    return zarr.create_array(store, shape=(0, 6), chunks=(2, 3), shards=(4, 6), dtype="int32", fill_value=-1)


def test_written_and_appended_elements_are_those_of_numpy(served, kind):
    array = create(served, kind, "elements")
    expected = numpy.zeros((0, 6), "int32")
    for turn in range(5):
        rows = numpy.arange(18, dtype="int32").reshape(3, 6) + 100 * turn
        answer = append(served, kind, "elements", rows)
        assert answer.status_code == 200, answer.text
        expected = numpy.concatenate([expected, rows])
    block = numpy.full((7, 2), -7, "int32")
    answer = write(served, kind, "elements", block, slice="3:10,2:4")
    assert answer.status_code in (200, 204), answer.text
    expected[3:10, 2:4] = block
    numpy.testing.assert_array_equal(zarr.open_array(array.store, mode="r")[:], expected)


def test_where_conditions_are_ignored_what_needs_them_is_refused_with_the_cure(served):
    array = create(served, "careless", "elements")
    assert put(served.store("careless", "plain"), b"x").ok
    creation = put(served.store("careless", "new"), b"x", If_None_Match="*")
    appending = append(served, "careless", "elements", numpy.zeros((3, 6), "int32"))
    assert (creation.status_code, appending.status_code) == (405, 501), (creation.text, appending.text)
    for answer in [creation, appending]:
        assert 'set `writers = "one"` of the mount' in answer.json()["detail"]
    assert requests.get(served.store("careless", "new"), timeout=SECONDS).status_code == 404
    assert zarr.open_array(array.store, mode="r").shape == (0, 6)
    # What helps, helps.
    array = create(served, "alone", "elements")
    assert append(served, "alone", "elements", numpy.ones((3, 6), "int32")).status_code == 200
    numpy.testing.assert_array_equal(zarr.open_array(array.store, mode="r")[:], numpy.ones((3, 6)))


def test_an_absent_bucket_is_no_empty_store(served, kind):
    mount = f"absent-{kind}"
    listing = requests.get(served.store(mount), params={"format": "json"}, timeout=SECONDS)
    assert listing.status_code >= 500, listing.text
    if kind == "azure":
        # What the emulator of GCS answers for a key does not distinguish the two.
        assert requests.get(served.store(mount, "zarr.json"), timeout=SECONDS).status_code >= 500
        assert requests.head(served.store(mount, "zarr.json"), timeout=SECONDS).status_code >= 500
    assert put(served.store(mount, "key"), b"x").status_code >= 400


def check(*arguments, environment=None):
    command = [os.environ["ZARRD"], "check", "--connect", *arguments]
    done = subprocess.run(command, env=environment or {}, capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout + done.stderr


def test_check_says_which_bucket_is_absent(config):
    code, said = check("--config", str(config))
    assert code == 1, said
    silent = [line for line in said.splitlines() if "does not answer" in line]
    assert silent == ["zarrd: the mount `absent-azure` does not answer: there is no such bucket or container"]
    assert emulators.KEY not in said


VARIABLES = {
    "gcs": lambda url: {"STORAGE_EMULATOR_HOST": url},
    "gcs, host alone": lambda url: {"STORAGE_EMULATOR_HOST": url.removeprefix("http://")},
    "azure": lambda url: {"AZURE_STORAGE_CONNECTION_STRING": emulators.connection_string(url)},
    "azure, each": lambda url: {
        "AZURE_STORAGE_ACCOUNT_NAME": emulators.ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": emulators.KEY,
        "AZURE_STORAGE_ENDPOINT": f"{url}/",
    },
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_url_on_the_command_line_is_opened_by_the_variables_of_other_tools(endpoints, name):
    kind = name.split(",")[0]
    environment = VARIABLES[name](endpoints[kind])
    url = {"gcs": "gs", "azure": "az"}[kind] + f"://{emulators.BUCKET}/of-variables"
    code, said = check(f"m={url}", environment=environment)
    assert code == 0, said
    with processes.zarrd(f"m={url}", "--writable", environment=environment) as running:
        assert put(running.store("m", "key"), b"value", If_None_Match="*").status_code in (201, 412)
        assert requests.get(running.store("m", "key"), timeout=SECONDS).content == b"value"
        assert listed(running, "m", "")[0] == ["key"]
