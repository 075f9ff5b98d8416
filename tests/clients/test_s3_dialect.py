"""Clients of S3 read and list every mount as a bucket, anonymously or signed."""

import os
import subprocess

import boto3
import botocore
import botocore.exceptions
import numpy
import obstore.store
import pytest
import requests
import s3fs
import tensorstore
import zarr
import zarr.storage

import clients
import table
from arrays import ARRAYS, ATTRIBUTES, FORMATS, path
from processes import SECONDS

ODD = ["a b", "a+b", "a%41", "a&<b>\"'", "é/日本", "x#y?z", "~", "a/.zarray", "a.b", "a/b/c"]
"""Keys that a client or a server may spell wrongly."""


def endpoint(server):
    return f"{server.base}/s3"


def s3fs_options(server):
    return {"anon": True, "endpoint_url": endpoint(server)}


def obstore_s3(server, mount, prefix=None):
    return obstore.store.S3Store(
        mount,
        prefix=prefix,
        config={"endpoint": endpoint(server), "skip_signature": True, "region": "us-east-1"},
        client_options={"allow_http": True},
    )


def tensorstore_s3(server, mount, prefix):
    return {
        "driver": "s3",
        # It takes names as Amazon does, of three characters and more. The mount has the same keys as `mount`.
        "bucket": f"consolidated-{mount}",
        "endpoint": endpoint(server),
        "path": prefix,
        "aws_credentials": {"type": "anonymous"},
    }


def boto(server, signed=False):
    config = {"s3": {"addressing_style": "path"}, "retries": {"total_max_attempts": 1}}
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"} if signed else {}
    if not signed:
        config["signature_version"] = botocore.UNSIGNED
    return boto3.client(
        "s3",
        endpoint_url=endpoint(server),
        region_name="us-east-1",
        config=botocore.config.Config(**config),
        **keys,
    )


def with_s3fs(server, mount, prefix, _zarr_format):
    return zarr.open_array(f"s3://{mount}/{prefix}", mode="r", storage_options=s3fs_options(server))[...]


def with_obstore(server, mount, prefix, _zarr_format):
    store = zarr.storage.ObjectStore(obstore_s3(server, mount), read_only=True)
    return zarr.open_array(store, path=prefix, mode="r")[...]


def with_tensorstore(server, mount, prefix, zarr_format):
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    spec = {"driver": driver, "kvstore": tensorstore_s3(server, mount, f"{prefix}/")}
    return tensorstore.open(spec, read=True).result(timeout=30).read().result(timeout=30)


READERS = {
    "zarr-python + s3fs": with_s3fs,
    "zarr-python + obstore S3Store": with_obstore,
    "tensorstore s3": with_tensorstore,
}


def with_each_reader(test):
    """Gives a test each way to read an array as `read`."""
    readers = [pytest.param(read, id=name, marks=pytest.mark.client(name, "read")) for name, read in READERS.items()]
    return pytest.mark.parametrize("read", readers)(test)


@pytest.fixture(scope="session")
def keys(server):
    """Every key of the mounts that hold the arrays, and the size of its value."""
    files = (file for file in server.files.rglob("*") if file.is_file())
    return {file.relative_to(server.files).as_posix(): file.stat().st_size for file in files}


@pytest.mark.parametrize("name", ARRAYS)
@with_each_reader
def test_an_array_reads_equal(server, mount, read, name):
    array = ARRAYS[name]
    clients.assert_same(read(server, mount, path(name), array.zarr_format), array.values)


STORES = {
    "s3fs": lambda server, mount, prefix: zarr.storage.FsspecStore.from_url(
        f"s3://{mount}/{prefix}", storage_options=s3fs_options(server), read_only=True
    ),
    "obstore S3Store": lambda server, mount, prefix: zarr.storage.ObjectStore(
        obstore_s3(server, mount, prefix), read_only=True
    ),
}


def over_each_store(*verbs):
    """Gives a test the ways to reach a store as `open_store`."""
    marks = {name: pytest.mark.client(f"zarr-python + {name}", *verbs) for name in STORES}
    return pytest.mark.parametrize(
        "open_store", [pytest.param(way, id=name, marks=marks[name]) for name, way in STORES.items()]
    )


@pytest.mark.parametrize("zarr_format", FORMATS)
@over_each_store("read", "list")
def test_the_members_of_nested_groups_are_listed(server, mount, open_store, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    group = zarr.open_group(open_store(server, mount, outer), mode="r", use_consolidated=False)
    assert dict(group.attrs) == ATTRIBUTES
    members = dict(group.members(max_depth=None))
    names = {name for name, array in ARRAYS.items() if array.zarr_format == zarr_format}
    assert set(members) == {inner} | {f"{inner}/{name}" for name in names}
    for name in names:
        assert members[f"{inner}/{name}"].shape == ARRAYS[name].values.shape


@pytest.mark.parametrize("zarr_format", FORMATS)
@over_each_store("read")
def test_a_hierarchy_opens_from_its_consolidated_metadata(server, mount, open_store, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    store = open_store(server, f"consolidated-{mount}", outer)
    group = zarr.open_consolidated(store, mode="r", zarr_format=zarr_format)
    names = {name for name, array in ARRAYS.items() if array.zarr_format == zarr_format}
    assert set(group.metadata.consolidated_metadata.flattened_metadata) == {inner} | {f"{inner}/{name}" for name in names}
    for name in names:
        clients.assert_same(group[f"{inner}/{name}"][...], ARRAYS[name].values)


@pytest.mark.client("zarr-python + s3fs", "read")
def test_a_part_of_a_shard_reads_equal(server, mount):
    array = zarr.open_array(f"s3://{mount}/{path('v3_sharded')}", mode="r", storage_options=s3fs_options(server))
    numpy.testing.assert_array_equal(array[30:40, 5, ::3], ARRAYS["v3_sharded"].values[30:40, 5, ::3])


@pytest.mark.client("s3fs", "read", "list")
def test_s3fs_finds_every_key_and_reads_parts(server, mount, keys):
    files = s3fs.S3FileSystem(**s3fs_options(server), skip_instance_cache=True)
    found = files.find(mount, detail=True)
    assert {name.removeprefix(f"{mount}/"): info["size"] for name, info in found.items()} == keys
    assert set(files.ls(mount)) == {f"{mount}/{key.split('/')[0]}" for key in keys}
    shard = f"{mount}/{path('v3_sharded')}/c/1/0/1"
    assert files.exists(shard) and files.isdir(f"{mount}/new") and not files.exists(f"{mount}/none")
    value = (server.files / shard.removeprefix(f"{mount}/")).read_bytes()
    assert files.cat_file(shard, start=3, end=10) == value[3:10] and files.cat_file(shard) == value
    with pytest.raises(FileNotFoundError):
        files.cat_file(f"{mount}/none")
    with pytest.raises(FileNotFoundError):
        files.ls("no-such-mount")


@pytest.mark.client("tensorstore s3", "list")
def test_tensorstore_lists_every_key(server, mount, keys):
    store = tensorstore.KvStore.open(tensorstore_s3(server, mount, "")).result(timeout=30)
    assert {key.decode() for key in store.list().result(timeout=30)} == set(keys)
    below = tensorstore.KvStore.KeyRange("new/", "new0")
    found = {key.decode() for key in store.list(below).result(timeout=30)}
    assert found == {key for key in keys if key.startswith("new/")}


@pytest.mark.client("obstore S3Store", "list")
def test_obstore_lists_every_key_and_each_directory(server, mount, keys):
    store = obstore_s3(server, mount)
    found = {meta["path"]: meta["size"] for page in store.list(chunk_size=7) for meta in page}
    assert found == keys
    directory = store.list_with_delimiter("new/inner")
    assert directory["common_prefixes"] == sorted(path(name) for name, array in ARRAYS.items() if array.zarr_format == 3)


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.client("boto3", "read", "list")
def test_boto_pages_through_keys_and_prefixes(server, mount, keys, signed):
    client = boto(server, signed)
    assert mount in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    assert client.head_bucket(Bucket=mount)["BucketRegion"] == "us-east-1"
    assert client.get_bucket_location(Bucket=mount)["LocationConstraint"] is None
    assert "Status" not in client.get_bucket_versioning(Bucket=mount)
    for operation in ["list_objects_v2", "list_objects"]:
        paginator = client.get_paginator(operation)
        pages = paginator.paginate(Bucket=mount, PaginationConfig={"PageSize": 50})
        flat = [entry for page in pages for entry in page["Contents"]]
        assert [entry["Key"] for entry in flat] == sorted(keys)
        assert {entry["Key"]: entry["Size"] for entry in flat} == keys
        sample = flat[len(flat) // 2]
        head = client.head_object(Bucket=mount, Key=sample["Key"])
        assert (head["ETag"], head["ContentLength"]) == (sample["ETag"], sample["Size"])
        assert head["LastModified"] == sample["LastModified"].replace(microsecond=0)
        pages = paginator.paginate(Bucket=mount, Prefix="new/in", Delimiter="/", PaginationConfig={"PageSize": 1})
        assert [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])] == ["new/inner/"]
        grouped = []
        pages = paginator.paginate(Bucket=mount, Prefix="new/inner/", Delimiter="/", PaginationConfig={"PageSize": 2})
        for page in pages:
            grouped += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
            grouped += [item["Key"] for item in page.get("Contents", [])]
        names = {name for name, array in ARRAYS.items() if array.zarr_format == 3}
        assert grouped == sorted({f"new/inner/{name}/" for name in names} | {"new/inner/zarr.json"})
    key = f"{path('v3_sharded')}/c/1/0/1"
    value = (server.files / key).read_bytes()
    assert client.get_object(Bucket=mount, Key=key)["Body"].read() == value
    assert client.get_object(Bucket=mount, Key=key, Range="bytes=-9")["Body"].read() == value[-9:]
    if signed:
        url = client.generate_presigned_url("get_object", Params={"Bucket": mount, "Key": key})
        assert requests.get(url, timeout=SECONDS).content == value


@pytest.mark.client("boto3", "read")
def test_boto_understands_every_error(server, mount):
    client = boto(server)
    key = f"{path('v3_sharded')}/zarr.json"
    for code, status, call, arguments in [
        ("NoSuchKey", 404, client.get_object, {"Key": "none"}),
        ("404", 404, client.head_object, {"Key": "none"}),
        ("InvalidRange", 416, client.get_object, {"Key": key, "Range": "bytes=9999999-"}),
        ("PreconditionFailed", 412, client.get_object, {"Key": key, "IfMatch": '"other"'}),
        ("InvalidArgument", 400, client.list_objects_v2, {"ContinuationToken": "garbage"}),
        ("NotImplemented", 501, client.list_objects_v2, {"Delimiter": "-"}),
        ("NotImplemented", 501, client.get_bucket_acl, {}),
        ("NotImplemented", 501, client.get_bucket_policy, {}),
        ("NotImplemented", 501, client.get_object_tagging, {"Key": key}),
    ]:
        with pytest.raises(botocore.exceptions.ClientError) as raised:
            call(Bucket=mount, **arguments)
        answer = raised.value.response
        assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (code, status), call
        assert answer["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    with pytest.raises(client.exceptions.NoSuchBucket):
        client.list_objects_v2(Bucket="no-such-mount")


def test_boto_reads_that_a_bucket_is_read_only(server):
    client = boto(server)
    for call, arguments in [
        (client.put_object, {"Key": "new", "Body": b"1"}),
        (client.create_multipart_upload, {"Key": "new"}),
        (client.delete_object, {"Key": f"{path('v3_sharded')}/zarr.json"}),
    ]:
        with pytest.raises(botocore.exceptions.ClientError) as raised:
            call(Bucket="local", **arguments)
        answer = raised.value.response
        assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("MethodNotAllowed", 405), call


@pytest.mark.client("boto3", "list")
@pytest.mark.client("obstore S3Store", "list")
def test_odd_keys_are_listed_and_read(server, writable):
    client, prefix = boto(server), "s3-dialect/"
    for key in ODD:
        url = server.store(writable, requests.utils.quote(prefix + key, safe="/"))
        requests.put(url, data=key.encode(), timeout=SECONDS).raise_for_status()
    for encoding in [{}, {"EncodingType": "url"}]:
        page = client.list_objects_v2(Bucket=writable, Prefix=prefix, **encoding)
        found = [requests.utils.unquote(entry["Key"]) if encoding else entry["Key"] for entry in page["Contents"]]
        assert found == sorted(prefix + key for key in ODD)
    for key in ODD:
        assert client.get_object(Bucket=writable, Key=prefix + key)["Body"].read() == key.encode()
        found = client.list_objects_v2(Bucket=writable, Prefix=prefix + key)["Contents"][0]["Key"]
        assert found == prefix + key
    listed = {meta["path"] for page in obstore_s3(server, writable).list(prefix) for meta in page}
    assert listed == {prefix + key for key in ODD}
    for key in ODD:
        url = server.store(writable, requests.utils.quote(prefix + key, safe="/"))
        requests.delete(url, timeout=SECONDS).raise_for_status()


def rclone(server, *arguments):
    """What rclone prints; the mounts are at `zarrd:`."""
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": endpoint(server)}
    # Nothing of what this machine may say of Amazon's S3.
    environment = {"PATH": os.environ["PATH"]} | {f"RCLONE_CONFIG_ZARRD_{name}": value for name, value in remote.items()}
    command = [table.program("rclone"), "--config", "", *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


@pytest.mark.client("rclone s3", "read", "list")
def test_rclone_copies_a_mount(server, mount, keys, tmp_path):
    names = {name + slash for name, slash, _ in (key.partition("/") for key in keys)}
    assert set(rclone(server, "lsf", f"zarrd:{mount}").splitlines()) == names
    assert set(rclone(server, "lsf", "--recursive", "--files-only", f"zarrd:{mount}").splitlines()) == set(keys)
    rclone(server, "copy", f"zarrd:{mount}", str(tmp_path))
    rclone(server, "check", "--download", f"zarrd:{mount}", str(tmp_path))
    copied = (file for file in tmp_path.rglob("*") if file.is_file())
    assert {file.relative_to(tmp_path).as_posix(): file.stat().st_size for file in copied} == keys
    url = f"zarrd:{mount}/new/zarr.json"
    assert rclone(server, "cat", url) == (server.files / "new/zarr.json").read_text()


@pytest.mark.client("icechunk-js style", "list")
def test_references_are_listed_by_directory_and_then_by_key(server, writable):
    for key in ["refs/branch.main/ref.json", "refs/tag.v1/ref.json"]:
        requests.put(server.store(writable, key), data=b"{}", timeout=SECONDS).raise_for_status()
    listing = f"{endpoint(server)}/{writable}/"
    ask = {"list-type": "2", "prefix": "refs/", "delimiter": "/"}
    answer = requests.get(listing, params=ask, headers={"Origin": "https://viewer.example"}, timeout=SECONDS)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for prefix in ["refs/branch.main/", "refs/tag.v1/"]:
        assert f"<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>" in answer.text
        below = requests.get(listing, params={"list-type": "2", "prefix": prefix}, timeout=SECONDS).text
        assert f"<Key>{prefix}ref.json</Key>" in below
    for key in ["refs/branch.main/ref.json", "refs/tag.v1/ref.json"]:
        requests.delete(server.store(writable, key), timeout=SECONDS).raise_for_status()
