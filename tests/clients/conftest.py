"""What the tests share: one server over every kind of backend, filled by zarr-python before it starts."""

import json

import obstore.store
import pytest
import requests
import zarr.storage

import arrays
import processes

BUCKET = "bucket"


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """An S3 server with a bucket."""
    with processes.s3(tmp_path_factory.mktemp("s3")) as endpoint:
        requests.put(f"{endpoint}/{BUCKET}", timeout=processes.SECONDS).raise_for_status()
        yield endpoint


@pytest.fixture(scope="session")
def server(endpoint, tmp_path_factory):
    """A server with a read-only mount for each of `local` and `s3`, which hold the same, and others to write to.

    `consolidated-local`, `consolidated-s3` are the same once more, and `datasets` are xarray's, with consolidated metadata
    that the server makes. `server.files` is the directory behind `local`.
    """
    data, scratch = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("scratch")
    datasets = tmp_path_factory.mktemp("datasets")
    arrays.write_all(zarr.storage.LocalStore(data))
    for zarr_format in arrays.FORMATS:
        for group in arrays.GROUPS:
            arrays.dataset().to_zarr(datasets / f"v{zarr_format}", group=group, consolidated=False, zarr_format=zarr_format)
    bucket = obstore.store.S3Store(
        BUCKET,
        prefix="data",
        config={"endpoint": endpoint, "access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"},
        client_options={"allow_http": True},
    )
    arrays.write_all(zarr.storage.ObjectStore(bucket))

    options = f"""
        endpoint = {json.dumps(endpoint)}
        allow_http = true
        access_key_id = "key"
        secret_access_key = "secret"
    """
    config = tmp_path_factory.mktemp("config") / "zarrd.toml"
    config.write_text(f"""
        [mounts.s3]
        url = "s3://{BUCKET}/data"
        [mounts.s3.options]
        {options}
        [mounts.consolidated-s3]
        url = "s3://{BUCKET}/data"
        consolidated = true
        [mounts.consolidated-s3.options]
        {options}
        [mounts.consolidated-local]
        url = {json.dumps(str(data))}
        consolidated = true
        [mounts.datasets]
        url = {json.dumps(str(datasets))}
        consolidated = true
        [mounts.writable-s3]
        url = "s3://{BUCKET}/scratch"
        writable = true
        [mounts.writable-s3.options]
        {options}
        [mounts.writable-local]
        url = {json.dumps(str(scratch))}
        writable = true
        [mounts.writable-memory]
        url = "memory://"
        writable = true
    """)
    with processes.zarrd(f"local={data}", "--config", str(config)) as running:
        running.files = data
        yield running


@pytest.fixture(params=["local", "s3"])
def mount(request):
    """A read-only mount that holds every array."""
    return request.param


@pytest.fixture(params=["writable-local", "writable-memory", "writable-s3"])
def writable(request):
    """A writable mount of each kind. Tests keep to keys of their own."""
    return request.param
