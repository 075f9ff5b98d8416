"""The answers that curl gets: ranges, HEAD, conditions, absence, listings, and uploads of every kind."""

import email
import json
import subprocess

import pytest

from arrays import path

KEY = f"{path('v3_sharded')}/c/1/0/1"
"""A shard: bytes that a client reads by range."""


def curl(url, *arguments):
    """Status, headers and body."""
    command = ["curl", "--silent", "--show-error", "--include", "--max-time", "30", *arguments, url]
    output = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    head, body = output.split(b"\r\n\r\n", 1)
    line, fields = head.decode().split("\r\n", 1)
    return int(line.split()[1]), email.message_from_string(fields), body


@pytest.fixture
def shard(server):
    return (server.files / KEY).read_bytes()


@pytest.fixture
def url(server, mount):
    return server.store(mount, KEY)


@pytest.mark.client("curl", "read")
def test_a_value_is_the_stored_bytes(url, shard):
    status, headers, body = curl(url)
    assert (status, body) == (200, shard)
    assert headers["Content-Length"] == str(len(shard))
    assert headers["Accept-Ranges"] == "bytes"
    assert "Content-Encoding" not in headers


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("0-0", 0, 1),
        ("100-199", 100, 200),
        ("7-", 7, None),
        ("-20", -20, None),
        ("9-99999999", 9, None),
        ("-99999999", 0, None),
    ],
)
@pytest.mark.client("curl", "read")
def test_a_range_is_the_part_that_it_names(url, shard, asked, start, end):
    status, headers, body = curl(url, "-r", asked)
    first, last, _ = slice(start, end).indices(len(shard))
    assert (status, body) == (206, shard[start:end])
    assert headers["Content-Range"] == f"bytes {first}-{last - 1}/{len(shard)}"
    assert headers["Content-Length"] == str(last - first)
    assert headers["ETag"] == curl(url)[1]["ETag"]


@pytest.mark.client("curl", "read")
def test_several_ranges_are_answered_with_the_whole_value(url, shard):
    status, _, body = curl(url, "-r", "0-3,8-11")
    assert (status, body) == (200, shard)


@pytest.mark.client("curl", "read")
def test_a_range_past_the_end_is_416_with_the_length(url, shard):
    status, headers, _ = curl(url, "-r", f"{len(shard)}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(shard)}")


@pytest.mark.client("curl", "read")
def test_head_is_get_without_the_body(url, shard):
    status, headers, body = curl(url, "--head")
    _, of_get, _ = curl(url)
    assert (status, body) == (200, b"")
    assert headers["Content-Length"] == str(len(shard))
    for field in ["ETag", "Last-Modified", "Content-Type", "Accept-Ranges", "Cache-Control"]:
        assert headers[field] == of_get[field], field
        assert headers[field]


@pytest.mark.client("curl", "read")
def test_conditions_are_checked_in_order(url, shard):
    etag = curl(url)[1]["ETag"]
    assert etag.startswith('"')

    def ask(*fields):
        status, headers, body = curl(url, *[argument for field in fields for argument in ("-H", field)])
        return status, headers["ETag"] if status < 400 else None, body if status < 400 else None

    assert ask(f"If-None-Match: {etag}") == (304, etag, b"")
    assert ask(f"If-None-Match: {etag}", "Range: bytes=0-3") == (304, etag, b"")
    assert ask('If-None-Match: "other"', "Range: bytes=0-3") == (206, etag, shard[:4])
    assert ask(f"If-Match: {etag}", "Range: bytes=0-3") == (206, etag, shard[:4])
    assert ask('If-Match: "other"', "Range: bytes=0-3") == (412, None, None)
    assert ask(f"If-Range: {etag}", "Range: bytes=0-3") == (206, etag, shard[:4])
    assert ask('If-Range: "other"', "Range: bytes=0-3") == (200, etag, shard)


@pytest.mark.parametrize(
    "arguments", [[], ["--head"], ["-r", "0-9"], ["-r", "-9"], ["-H", "Origin: https://viewer.example"]]
)
@pytest.mark.parametrize(
    "missing", ["nothing/zarr.json", f"{path('v3_sharded')}/c/9/9/9", f"{path('v3_half')}/.zarray"]
)
@pytest.mark.client("curl", "read")
def test_a_missing_key_is_404_for_every_kind_of_request(server, mount, missing, arguments):
    status, headers, _ = curl(server.store(mount, missing), *arguments)
    assert status == 404
    assert headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.client("curl", "read")
def test_a_slice_is_revalidated_by_its_tag(server, mount):
    url = server.data(mount, path("v3_sharded")) + "?slice=3:9,::-1,7"
    status, headers, body = curl(url)
    assert (status, len(body)) == (200, 6 * 40 * 2)
    assert curl(url, "-H", f"If-None-Match: {headers['ETag']}")[::2] == (304, b"")
    assert curl(url, "-r", "-10")[::2] == (206, body[-10:])


@pytest.mark.client("curl", "list")
def test_a_recursive_listing_names_every_key_and_its_size(server, mount):
    status, _, body = curl(server.store(mount) + "?recursive&format=json")
    listed = json.loads(body)
    files = {file.relative_to(server.files).as_posix(): file for file in server.files.rglob("*") if file.is_file()}
    assert status == 200
    assert listed["next"] is None
    assert {key["key"]: key["size"] for key in listed["keys"]} == {
        key: file.stat().st_size for key, file in files.items()
    }


@pytest.mark.client("curl", "list")
def test_a_directory_listing_names_keys_and_prefixes(server, mount):
    status, _, body = curl(server.store(mount, "old/inner/"), "-H", "Accept: application/json")
    listed = json.loads(body)
    here = server.files / "old/inner"
    assert status == 200
    assert [key["key"] for key in listed["keys"]] == sorted(
        f"old/inner/{file.name}" for file in here.iterdir() if file.is_file()
    )
    assert listed["prefixes"] == sorted(f"old/inner/{folder.name}/" for folder in here.iterdir() if folder.is_dir())


@pytest.mark.parametrize("backend", ["local", "s3"], indirect=True)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_mount_is_read_only_by_default(server, mount, shard, method):
    status, headers, _ = curl(server.store(mount, KEY), "-X", method)
    assert status == 405
    assert "GET" in headers["Allow"]
    assert method not in headers["Allow"]
    assert (server.files / KEY).read_bytes() == shard


UPLOADS = {
    "of known length": (["--upload-file", "{file}"], None),
    "in chunks": (["--upload-file", "-"], "{file}"),
    "that waits to be asked for": (["--upload-file", "{file}", "--header", "Expect: 100-continue"], None),
    "in chunks that waits": (["--upload-file", "-", "--header", "Expect: 100-continue"], "{file}"),
    "as a body": (["--request", "PUT", "--data-binary", "@{file}"], None),
}


@pytest.mark.client("curl", "write", "read")
@pytest.mark.parametrize("size", [0, 5, 3_000_000])
@pytest.mark.parametrize("upload", UPLOADS)
def test_an_upload_is_stored(server, writable, tmp_path, upload, size):
    file = tmp_path / "file"
    file.write_bytes(bytes(range(251)) * (size // 251 + 1))
    with open(file, "r+b") as opened:
        opened.truncate(size)
    arguments, given = UPLOADS[upload]
    url = server.store(writable, f"curl/{upload.replace(' ', '-')}/{size}")
    command = ["curl", "--silent", "--show-error", "--fail", "--max-time", "30", "--write-out", "%{http_code}"]
    command += [argument.format(file=file) for argument in arguments] + [url]
    # S3 does not say whether there was a value before.
    for statuses in [{"201", "204"}, {"204"}]:
        with open(file if given else "/dev/null", "rb") as stdin:
            answer = subprocess.run(command, stdin=stdin, check=True, capture_output=True, timeout=60)
        assert answer.stdout.decode() in statuses
        assert curl(url)[::2] == (200, file.read_bytes())
    assert curl(url, "--request", "DELETE")[0] == 204
    assert curl(url)[0] == 404
