"""Clients of S3 write, unmodified: objects, long uploads in parts, and whole hierarchies of Zarr. Once with signatures that
are ignored, as by a server without credentials, and once with keys that are checked."""

import json
import os
import subprocess

import boto3
import botocore
import botocore.exceptions
import icechunk
import numpy
import obstore
import obstore.store
import pytest
import requests
import s3fs
import tensorstore
import xarray
import zarr
import zarr.storage

import arrays
import clients
import conftest
import processes
import table
from processes import SECONDS

KEY, SECRET = "WRITERKEY", "writer-secret-of-at-least-32-letters"
READER = "READERKEY", "reader-secret-of-at-least-32-letters"
PART = 5 << 20
"""The shortest part of an upload."""


@pytest.fixture(scope="session")
def keyed(endpoint, tmp_path_factory):
    """A server with the same kinds of mounts, which takes no request without a key."""
    mounts = {}
    for backend in table.BACKENDS:
        folder = tmp_path_factory.mktemp("keyed")
        url = {"local": str(folder), "memory": "memory://", "s3": f"s3://{conftest.BUCKET}/{folder.name}"}[backend]
        mounts[f"writable-{backend}"] = {"url": url, "writable": True}
        if backend == "s3":
            mounts[f"writable-{backend}"]["options"] = {
                "endpoint": endpoint, "allow_http": True, "access_key_id": "key", "secret_access_key": "secret"
            }
    scopes = {"writer": ["read", "list", "write", "delete"], "reader": ["read", "list"]}
    keys = {"writer": (KEY, SECRET), "reader": READER}
    lines = [conftest.toml(mounts)]
    for name, (key, secret) in keys.items():
        lines += [
            f"[access.s3_keys.{name}]",
            f'access_key_id = "{key}"',
            f'secret_access_key = "{secret}"',
            f'grants = [{{ mount = "*", scopes = {json.dumps(scopes[name])} }}]',
        ]
    config = tmp_path_factory.mktemp("config") / "keyed.toml"
    config.write_text("\n".join(lines))
    with processes.zarrd("--config", str(config)) as running:
        yield running


class Bucket:
    """A writable mount as clients of S3 reach it."""

    def __init__(self, server, name, is_keyed):
        self.server, self.name, self.is_keyed = server, name, is_keyed
        self.endpoint = f"{server.base}/s3"
        # Without keys on the server, any will do.
        self.key, self.secret = KEY, SECRET

    @property
    def storage_options(self):
        return {"key": self.key, "secret": self.secret, "endpoint_url": self.endpoint}

    def url(self, key):
        return f"s3://{self.name}/{key}"

    def boto(self, **config):
        s3 = {"addressing_style": "path"} | config.pop("s3", {})
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            config=botocore.config.Config(s3=s3, retries={"total_max_attempts": 1}, **config),
        )

    def obstore(self, prefix=None, **config):
        return obstore.store.S3Store(
            self.name,
            prefix=prefix,
            config={
                "endpoint": self.endpoint,
                "access_key_id": self.key,
                "secret_access_key": self.secret,
                "region": "us-east-1",
                **config,
            },
            client_options={"allow_http": True},
        )

    def tensorstore(self, prefix):
        return {"driver": "s3", "bucket": self.name, "endpoint": self.endpoint, "aws_region": "us-east-1", "path": prefix}


@pytest.fixture(params=["open", "keyed"])
def bucket(request, backend):
    server = request.getfixturevalue("server" if request.param == "open" else "keyed")
    return Bucket(server, f"writable-{backend}", request.param == "keyed")


@pytest.mark.client("boto3", "write")
def test_boto3_writes_objects_with_each_checksum(bucket):
    boto, key = bucket.boto(), "boto/a b+é.bin"
    # What it computes itself, and what takes another package.
    computed = [{"ChecksumAlgorithm": algorithm} for algorithm in ["CRC32", "SHA1", "SHA256"]]
    for options in [{}, *computed, {"ChecksumCRC32C": "8P9ykg=="}, {"ChecksumCRC64NVME": "D3gOhIHSoh8="}]:
        put = boto.put_object(Bucket=bucket.name, Key=key, Body=b"hello world\n", **options)
        assert put["ETag"] == boto.head_object(Bucket=bucket.name, Key=key)["ETag"]
        assert boto.get_object(Bucket=bucket.name, Key=key)["Body"].read() == b"hello world\n"
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        boto.put_object(Bucket=bucket.name, Key=key, Body=b"other", ChecksumCRC32C="8P9ykg==")
    assert refused.value.response["Error"]["Code"] == "BadDigest"
    assert boto.get_object(Bucket=bucket.name, Key=key)["Body"].read() == b"hello world\n"


@pytest.mark.client("boto3", "write")
def test_boto3_writes_under_conditions_copies_and_erases(bucket):
    boto, name = bucket.boto(), bucket.name

    def code_of(call, **arguments):
        with pytest.raises(botocore.exceptions.ClientError) as refused:
            call(Bucket=name, **arguments)
        return refused.value.response["Error"]["Code"]

    tag = boto.put_object(Bucket=name, Key="conditions/a", Body=b"1", IfNoneMatch="*")["ETag"]
    assert code_of(boto.put_object, Key="conditions/a", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    assert code_of(boto.put_object, Key="conditions/a", Body=b"2", IfMatch='"other"') == "PreconditionFailed"
    boto.put_object(Bucket=name, Key="conditions/a", Body=b"2", IfMatch=tag)
    boto.copy_object(Bucket=name, Key="conditions/b", CopySource={"Bucket": name, "Key": "conditions/a"})
    assert boto.get_object(Bucket=name, Key="conditions/b")["Body"].read() == b"2"
    source = {"Bucket": name, "Key": "conditions/none"}
    assert code_of(boto.copy_object, Key="conditions/c", CopySource=source) == "NoSuchKey"
    objects = [{"Key": f"conditions/{key}"} for key in ["a", "b", "none"]]
    erased = boto.delete_objects(Bucket=name, Delete={"Objects": objects})
    assert [entry["Key"] for entry in erased["Deleted"]] == [entry["Key"] for entry in objects]
    assert "Contents" not in boto.list_objects_v2(Bucket=name, Prefix="conditions/")
    boto.delete_object(Bucket=name, Key="conditions/a")


@pytest.mark.client("boto3", "write")
def test_boto3_uploads_in_parts_and_nothing_shows_before_the_end(bucket):
    boto, target = bucket.boto(), {"Bucket": bucket.name, "Key": "parts/long"}
    parts = [numpy.random.default_rng(number).bytes(PART) for number in range(2)] + [b"the end"]
    upload = boto.create_multipart_upload(**target) | target
    upload = {name: upload[name] for name in ["Bucket", "Key", "UploadId"]}
    tags = {}
    # In another order, and one of them twice.
    for number, body in [(3, parts[2]), (1, b"replaced"), (2, parts[1]), (1, parts[0])]:
        tags[number] = boto.upload_part(**upload, PartNumber=number, Body=body)["ETag"]
    listed = boto.list_parts(**upload)["Parts"]
    assert [(part["PartNumber"], part["Size"], part["ETag"]) for part in listed] == [
        (number, len(parts[number - 1]), tags[number]) for number in [1, 2, 3]
    ]
    uploads = boto.list_multipart_uploads(Bucket=bucket.name, Prefix="parts/")["Uploads"]
    assert [(found["Key"], found["UploadId"]) for found in uploads] == [("parts/long", upload["UploadId"])]
    assert "Contents" not in boto.list_objects_v2(Bucket=bucket.name, Prefix="parts/")
    assert all(".zarr-server" not in key for key in keys_of(boto, bucket.name))

    def complete(numbers, **conditions):
        named = [{"PartNumber": number, "ETag": tags.get(number, '"none"')} for number in numbers]
        return boto.complete_multipart_upload(**upload, MultipartUpload={"Parts": named}, **conditions)

    for numbers, code in [([1, 4], "InvalidPart"), ([2, 1], "InvalidPartOrder")]:
        with pytest.raises(botocore.exceptions.ClientError) as refused:
            complete(numbers)
        assert refused.value.response["Error"]["Code"] == code
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        tags[4] = boto.upload_part(**upload, PartNumber=4, Body=b"4")["ETag"]
        complete([3, 4])
    assert refused.value.response["Error"]["Code"] == "EntityTooSmall"
    completed = complete([1, 2, 3])
    found = boto.get_object(**target)
    assert (found["Body"].read(), found["ETag"]) == (b"".join(parts), completed["ETag"])
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        boto.upload_part(**upload, PartNumber=1, Body=b"1")
    assert refused.value.response["Error"]["Code"] == "NoSuchUpload"

    # A copy in parts of a part, and an abort.
    copied = boto.create_multipart_upload(Bucket=bucket.name, Key="parts/copy")["UploadId"]
    part = boto.upload_part_copy(
        Bucket=bucket.name, Key="parts/copy", UploadId=copied, PartNumber=7,
        CopySource={"Bucket": bucket.name, "Key": "parts/long"}, CopySourceRange="bytes=10-109",
    )
    boto.complete_multipart_upload(
        Bucket=bucket.name, Key="parts/copy", UploadId=copied,
        MultipartUpload={"Parts": [{"PartNumber": 7, "ETag": part["CopyPartResult"]["ETag"]}]},
    )
    assert boto.get_object(Bucket=bucket.name, Key="parts/copy")["Body"].read() == parts[0][10:110]
    aborted = boto.create_multipart_upload(Bucket=bucket.name, Key="parts/none")["UploadId"]
    boto.abort_multipart_upload(Bucket=bucket.name, Key="parts/none", UploadId=aborted)
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket.name, Prefix="parts/")
    boto.delete_objects(Bucket=bucket.name, Delete={"Objects": [{"Key": "parts/long"}, {"Key": "parts/copy"}], "Quiet": True})


def keys_of(boto, name):
    pages = boto.get_paginator("list_objects_v2").paginate(Bucket=name)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


def test_only_a_key_with_the_right_may_write(keyed, backend):
    bucket = Bucket(keyed, f"writable-{backend}", True)
    bucket.boto().put_object(Bucket=bucket.name, Key="rights", Body=b"1")

    def code_of(key, secret, method, **arguments):
        bucket.key, bucket.secret = key, secret
        with pytest.raises(botocore.exceptions.ClientError) as refused:
            getattr(bucket.boto(), method)(Bucket=bucket.name, **arguments)
        return refused.value.response["Error"]["Code"]

    body = {"Key": "rights", "Body": b"2"}
    assert code_of("UNKNOWN", SECRET, "put_object", **body) == "InvalidAccessKeyId"
    assert code_of("UNKNOWN", SECRET, "get_object", Key="rights") == "InvalidAccessKeyId"
    assert code_of(KEY, SECRET[::-1], "put_object", **body) == "SignatureDoesNotMatch"
    assert code_of(*READER, "put_object", **body) == "AccessDenied"
    assert code_of(*READER, "delete_object", Key="rights") == "AccessDenied"
    assert code_of(*READER, "create_multipart_upload", Key="rights") == "AccessDenied"
    bucket.key, bucket.secret = READER
    failed = bucket.boto().delete_objects(Bucket=bucket.name, Delete={"Objects": [{"Key": "rights"}]})
    assert [error["Code"] for error in failed["Errors"]] == ["AccessDenied"]
    assert bucket.boto().get_object(Bucket=bucket.name, Key="rights")["Body"].read() == b"1"
    assert requests.put(f"{bucket.endpoint}/{bucket.name}/rights", data=b"2", timeout=SECONDS).status_code == 401


def test_a_presigned_url_writes_and_reads_until_it_expires(keyed, backend):
    bucket = Bucket(keyed, f"writable-{backend}", True)
    target = {"Bucket": bucket.name, "Key": "signed/é +"}
    boto = bucket.boto(signature_version="s3v4")
    put, get = (boto.generate_presigned_url(method, target, ExpiresIn=60) for method in ["put_object", "get_object"])
    requests.put(put, data=b"by anyone", timeout=SECONDS).raise_for_status()
    assert requests.get(get, timeout=SECONDS).content == b"by anyone"
    assert requests.put(get, data=b"x", timeout=SECONDS).status_code == 403
    assert requests.get(get.replace("Expires=60", "Expires=600"), timeout=SECONDS).status_code == 403
    expired = boto.generate_presigned_url("get_object", target, ExpiresIn=-1)
    assert requests.get(expired, timeout=SECONDS).status_code in (400, 403)


@pytest.mark.client("s3fs", "write")
def test_s3fs_writes_long_and_short_files_and_erases_trees(bucket):
    files = s3fs.S3FileSystem(**bucket.storage_options, skip_instance_cache=True)
    long = numpy.random.default_rng(0).bytes(2 * PART + 1)
    root = f"{bucket.name}/s3fs"
    files.pipe({f"{root}/a/1": b"1", f"{root}/a/b/2": b"2"})
    with files.open(f"{root}/long", "wb", block_size=PART) as file:
        file.write(long)
    assert files.cat(f"{root}/long") == long
    files.cp(f"{root}/a", f"{root}/c", recursive=True)
    assert sorted(files.find(root)) == [f"{root}/{key}" for key in ["a/1", "a/b/2", "c/1", "c/b/2", "long"]]
    files.rm(root, recursive=True)
    files.invalidate_cache()
    assert files.find(root) == []


@pytest.mark.client("obstore S3Store", "write")
def test_obstore_writes_in_parts_under_conditions_copies_and_erases(bucket):
    store = bucket.obstore("obstore")
    long = numpy.random.default_rng(1).bytes(2 * PART + 1)
    store.put("long", long, use_multipart=True, chunk_size=PART)
    assert bytes(store.get("long").bytes()) == long
    tag = store.put("a", b"1", mode="create")["e_tag"]
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        store.put("a", b"2", mode="create")
    store.put("a", b"2", mode={"e_tag": tag})
    with pytest.raises(obstore.exceptions.PreconditionError):
        store.put("a", b"3", mode={"e_tag": tag})
    store.copy("a", "b c+é")
    store.rename("b c+é", "d")
    assert sorted(entry["path"] for page in store.list() for entry in page) == ["a", "d", "long"]
    store.delete(["a", "d", "long"])
    assert [entry for page in store.list() for entry in page] == []


@pytest.mark.client("rclone s3", "write")
def test_rclone_copies_a_tree_and_purges_it(bucket, tmp_path):
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "short é+").write_bytes(b"short")
    (tmp_path / "tree" / "long").write_bytes(numpy.random.default_rng(2).bytes(2 * PART + 1))

    def rclone(*arguments):
        options = [
            "--s3-provider", "Other", "--s3-endpoint", bucket.endpoint, "--s3-access-key-id", bucket.key,
            "--s3-secret-access-key", bucket.secret, "--s3-upload-cutoff", "5Mi", "--s3-chunk-size", "5Mi",
            "--config", os.devnull, "--retries", "1", "--low-level-retries", "1",
        ]
        command = [table.program("rclone"), *arguments, *options]
        # A bundle of certificates of the environment, which it does not take together with its own client.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=SECONDS, env=environment
        ).stdout

    remote = f":s3:{bucket.name}/rclone"
    rclone("copy", str(tmp_path / "tree"), remote)
    rclone("check", "--download", str(tmp_path / "tree"), remote)
    rclone("purge", remote)
    assert rclone("lsf", f":s3:{bucket.name}", "--include", "rclone/**") == ""


@pytest.mark.client("tensorstore s3", "write")
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_tensorstore_creates_writes_and_erases(bucket, driver, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret)
    values = arrays.values("int32", 70, 50)
    prefix = f"tensorstore/{driver}-{bucket.is_keyed}/"
    spec = {"driver": driver, "kvstore": bucket.tensorstore(prefix)}
    array = tensorstore.open(spec, create=True, dtype=tensorstore.int32, shape=[70, 50]).result(timeout=SECONDS)
    array[...].write(values).result(timeout=SECONDS)
    array[10:20, 5:].write(values[10:20, 5:] + 1).result(timeout=SECONDS)
    values[10:20, 5:] += 1
    clients.assert_same(zarr.open_array(bucket.url(prefix), mode="r", storage_options=bucket.storage_options)[...], values)
    store = tensorstore.KvStore.open(spec["kvstore"]).result(timeout=SECONDS)
    store.delete_range(tensorstore.KvStore.KeyRange()).result(timeout=SECONDS)
    assert store.list().result(timeout=SECONDS) == []


@pytest.mark.client("icechunk", "write")
def test_icechunk_commits_to_a_repository(bucket):
    storage = icechunk.s3_storage(
        bucket=bucket.name, prefix="icechunk", region="us-east-1", endpoint_url=f"{bucket.endpoint}/", allow_http=True,
        access_key_id=bucket.key, secret_access_key=bucket.secret, force_path_style=True,
    )
    repository = icechunk.Repository.create(storage)
    values = arrays.values("float32", 40, 30)
    session = repository.writable_session("main")
    zarr.create_array(session.store, name="a", data=values, chunks=(10, 10))
    session.commit("first")
    session = repository.writable_session("main")
    zarr.open_array(session.store, path="a")[:10] = 7
    session.commit("second")
    values[:10] = 7
    again = icechunk.Repository.open(storage)
    clients.assert_same(zarr.open_array(again.readonly_session("main").store, path="a", mode="r")[...], values)


@pytest.mark.client("zarr-python + s3fs", "write")
@pytest.mark.client("zarr-python + obstore S3Store", "write")
@pytest.mark.parametrize("name", ["v3_sharded", "v3_zstd_missing_nan", "v2_blosc", "v2_fortran_slashes"])
def test_zarr_python_writes_through_either_store(bucket, name):
    array = arrays.ARRAYS[name]
    stores = {
        "s3fs": zarr.storage.FsspecStore.from_url(bucket.url(f"zarr/s3fs/{name}"), storage_options=bucket.storage_options),
        "obstore": zarr.storage.ObjectStore(bucket.obstore(f"zarr/obstore/{name}")),
    }
    for store in stores.values():
        array.write(store)
        clients.assert_same(zarr.open_array(store, mode="r")[...], array.values)


@pytest.mark.client("xarray + s3fs", "read", "write")
@pytest.mark.parametrize("zarr_format", arrays.FORMATS)
def test_to_zarr_writes_appends_overwrites_and_erases(bucket, zarr_format):
    url = bucket.url(f"to_zarr/{zarr_format}")
    options = {"storage_options": bucket.storage_options}
    writes = options | {"consolidated": True}
    data = xarray.Dataset(
        {"t": (("time", "x"), numpy.arange(40.0).reshape(4, 10))}, {"time": numpy.arange(4), "x": numpy.arange(10)}
    )
    data.to_zarr(url, mode="w", zarr_format=zarr_format, **writes)

    def stored():
        return xarray.open_zarr(url, **writes).load()

    xarray.testing.assert_identical(stored(), data)
    more = data.assign_coords(time=data.time + 4)
    more.to_zarr(url, append_dim="time", **writes)
    both = xarray.concat([data, more], "time")
    xarray.testing.assert_identical(stored(), both)
    part = (both[["t"]] * 2).isel(time=slice(2, 6)).drop_vars(["time", "x"])
    part.to_zarr(url, region={"time": slice(2, 6)}, **writes)
    both["t"][2:6] *= 2
    xarray.testing.assert_identical(stored(), both)
    # Shorter, so that what is left of the longer one would show, and without the metadata of all nodes in one document.
    writes = options | {"consolidated": False}
    data.to_zarr(url, mode="w", zarr_format=zarr_format, **writes)
    xarray.testing.assert_identical(stored(), data)
    group = zarr.open_group(url, mode="r+", use_consolidated=False, **options)
    del group["t"]
    assert "t" not in zarr.open_group(url, mode="r", use_consolidated=False, **options)


@pytest.mark.client("xarray + s3fs", "write")
def test_dask_writes_chunks_in_parallel(bucket):
    dask = table.module("dask.array")
    url = bucket.url("dask")
    values = arrays.values("int64", 60, 40)
    data = xarray.Dataset({"a": (("y", "x"), dask.from_array(values, chunks=(15, 20)))})
    data.to_zarr(url, mode="w", consolidated=False, storage_options=bucket.storage_options)
    found = xarray.open_zarr(url, consolidated=False, storage_options=bucket.storage_options)
    clients.assert_same(found["a"].values, values)


@pytest.mark.client("zarr-python + s3fs", "write")
def test_groups_and_sharded_arrays_are_created_resized_and_erased(bucket):
    url, options = bucket.url("groups"), {"storage_options": bucket.storage_options}
    root = zarr.open_group(url, mode="w", **options)
    array = root.create_array("a/b/c", shape=(30, 30), shards=(20, 20), chunks=(10, 10), dtype="int16", fill_value=-1)
    values = numpy.full((30, 30), -1, "int16")
    array[5:25, 5:25] = 3
    values[5:25, 5:25] = 3
    array.resize((25, 12))
    clients.assert_same(zarr.open_array(f"{url}/a/b/c", mode="r", **options)[...], values[:25, :12])
    del root["a/b"]
    assert list(root["a"].keys()) == []
