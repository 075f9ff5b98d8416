"""rclone, webdav4 and cadaver copy a hierarchy to a mount and back, move it, list it and remove it."""

import subprocess

import pytest
import requests

import arrays
import processes
import table

ODD = {"a b/ü%20+&'(c).txt": b"odd", "a b/nothing": b"", ".zgroup": b"{}", "large": bytes(range(256)) * 20_000}
"""Keys that a client must escape, and values that it may send in other ways than others."""


@pytest.fixture
def folder(tmp_path):
    """A folder with an array and keys of odd names."""
    folder = tmp_path / "folder"
    arrays.ARRAYS["v3_zstd_missing_nan"].write(folder / "array")
    for key, value in ODD.items():
        (folder / key).parent.mkdir(exist_ok=True)
        (folder / key).write_bytes(value)
    return folder


def rclone(*arguments):
    command = [table.program("rclone"), "--config=/dev/null", "--retries=1", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, timeout=60, text=True)
    return output.stdout.splitlines()


def keys(folder):
    return sorted(key for key, _ in processes.files(folder))


def listed(server, mount, prefix=""):
    """Every key below the prefix, from the server's own listing."""
    answer = requests.get(server.store(mount, prefix), params={"recursive": "", "format": "json"}, timeout=30)
    return sorted(key["key"].removeprefix(prefix) for key in answer.json()["keys"])


@pytest.mark.client("rclone http", "read", "list")
def test_rclone_lists_and_copies_over_http(server, mount, tmp_path):
    remote = [":http:", "--http-url", server.store(mount)]
    assert sorted(rclone("lsf", "--recursive", "--files-only", *remote)) == keys(server.files)
    rclone("copy", *remote, str(tmp_path))
    assert dict(processes.files(tmp_path)) == dict(processes.files(server.files))
    rclone("check", "--download", *remote, str(tmp_path))


@pytest.mark.client("rclone webdav", "read", "list")
def test_rclone_lists_and_copies_over_webdav(server, mount, tmp_path):
    remote = [":webdav:", "--webdav-url", server.store(mount)]
    assert sorted(rclone("lsf", "--recursive", "--files-only", *remote)) == keys(server.files)
    rclone("copy", *remote, str(tmp_path))
    assert dict(processes.files(tmp_path)) == dict(processes.files(server.files))


@pytest.mark.client("rclone webdav", "read", "write", "list")
def test_rclone_copies_checks_moves_and_purges_over_webdav(server, empty, folder):
    def remote(path=""):
        return f":webdav:{path}"

    url = ["--webdav-url", server.store(empty)]
    rclone("copy", str(folder), remote("there"), *url)
    assert listed(server, empty, "there/") == keys(folder)
    rclone("check", "--download", str(folder), remote("there"), *url)

    (folder / "large").write_bytes(b"small now")
    rclone("sync", str(folder), remote("there"), *url)
    rclone("check", "--download", str(folder), remote("there"), *url)

    rclone("moveto", remote("there/large"), remote("moved/to/here"), *url)
    assert requests.get(server.store(empty, "moved/to/here"), timeout=30).content == b"small now"
    rclone("moveto", remote("there/array"), remote("array"), *url)
    rclone("check", "--download", str(folder / "array"), remote("array"), *url)
    rclone("deletefile", remote("there/.zgroup"), *url)
    assert listed(server, empty, "there/") == sorted(key for key in keys(folder) if key.startswith("a b/"))
    for path in ["there", "moved", "array"]:
        rclone("purge", remote(path), *url)
    assert listed(server, empty) == []


@pytest.mark.client("webdav4", "read", "write", "list")
def test_webdav4_copies_moves_and_removes(server, empty, folder, tmp_path):
    client = table.module("webdav4.client").Client(server.root(empty))
    # It does not escape the percent sign.
    (folder / "a b/ü%20+&'(c).txt").rename(folder / "a b/ü+&'(c).txt")
    for path in sorted(folder.rglob("*")):
        there = path.relative_to(folder).as_posix()
        if path.is_dir():
            client.mkdir(there)
        else:
            client.upload_file(path, there)
    assert listed(server, empty) == keys(folder)
    assert sorted(client.ls("/", detail=False)) == [".zgroup", "a b", "array", "large"]
    assert client.isdir("array") and client.isfile("large") and not client.exists("neither")
    assert client.content_length("large") == len(ODD["large"])
    for key in keys(folder):
        client.download_file(key, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (folder / key).read_bytes()

    client.copy("a b", "copied")
    client.move("large", "copied/large")
    assert listed(server, empty, "copied/") == ["large", "nothing", "ü+&'(c).txt"]
    # It cannot ask for a prefix to be erased: that ends in a slash.
    for key in [*client.ls("copied", detail=False), ".zgroup"]:
        client.remove(key)
    assert not client.exists("copied")
    assert listed(server, empty) == [key for key in keys(folder) if key not in (".zgroup", "large")]


@pytest.mark.client("cadaver", "read", "write", "list")
def test_cadaver_lists_copies_moves_and_removes(server, empty, folder, tmp_path):
    def cadaver(*commands):
        return subprocess.run(
            [table.program("cadaver"), server.root(empty)],
            input="\n".join([*commands, "quit\n"]),
            cwd=tmp_path,
            env={"HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            timeout=60,
            text=True,
        ).stdout

    output = cadaver(f"lcd {folder}", "put large", "mkcol there", "put .zgroup there/.zgroup", "ls", "cd there", "ls")
    assert listed(server, empty) == ["large", "there/.zgroup"]
    lines = [line.split() for line in output.splitlines()]
    assert ["Coll:", "there", "0"] in [line[:3] for line in lines]
    assert ["large", str(len(ODD["large"]))] in [line[:2] for line in lines]
    assert [".zgroup", "2"] in [line[:2] for line in lines]
    cadaver("get large back", "copy there copied", "move large copied/large")
    assert (tmp_path / "back").read_bytes() == ODD["large"]
    assert listed(server, empty) == ["copied/.zgroup", "copied/large", "there/.zgroup"]
    cadaver("delete there/.zgroup", "rmcol copied")
    assert listed(server, empty) == []
