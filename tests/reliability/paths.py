"""S2, hostile paths: URLs that mean to leave the directory that is served, written as people have tried it on others,
sent byte by byte as they are. Nothing outside is disclosed, written or erased, and each gets an answer of the contract."""

import collections
import contextlib
import http.client
import json
import pathlib
import random
import socket
import tempfile
import threading

import data
from server import SECONDS, zarrd

CANARY = "canary-f1d2"
"""Stands in all that lies outside, in values and in a name, and in no request."""
CLIENTS = 4
SETTINGS = {
    "MOUNTS__W__OPTIONS__DURABILITY": "rename",
    "MOUNTS__W__WRITABLE": "true",
    "MOUNTS__W__ALLOW_PREFIX_DELETE": "true",
}
READING = ["GET"] * 8 + ["HEAD", "OPTIONS", "PROPFIND"]
WRITING = ["PUT", "DELETE", "PATCH", "POST", "MKCOL", "COPY", "MOVE"]
"""To a mount of their own: what they write would make documents of the other bad ones."""
ROUTES = [
    *["/store/MOUNT"] * 12, "/v1/data/MOUNT", "/v1/nodes/MOUNT", "/v1/chunk/MOUNT", "/v1/vectors/MOUNT", "/plain/MOUNT",
    "/unshard/MOUNT", "/rechunk/MOUNT/auto/raw", "/rechunk/MOUNT/2,2/zstd-3/dtype=safe", "/s3/MOUNT", "/v1/partial/MOUNT",
    "/v1/erase/MOUNT", "/store", "/s3", "", "http://x/store/MOUNT", "//store//MOUNT", "/store/MOUNT/../MOUNT", "/store/%6d",
    "/store/MOUNT;x", "/STORE/MOUNT", "/docs", "/v1",
]
UP = [
    "..", "%2e%2e", "%2E%2e", ".%2e", "%2e.", "%252e%252e", "%25%32%65%25%32%65", "%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae",
    "%uff0e%uff0e", "%u002e%u002e", "%EF%BC%8E%EF%BC%8E", "..;", "..;x=1", "..%00", "..%0d%0a", "..%09", "..%20", ".. ",
    "...", "....", "..\\", "..%5c", "%2e%2e%5c", "..%c0%af", "..%c1%9c", "..%2f", "..%2F", "..%252f", "..%ef%bc%8f",
    ".", "%2e", "", "%00", "%", "%2", "%zz", "~", "C:", "%7e", "\x7f", "\xff", "{..}", "[..]", "|", "`", "$HOME", "*", "?",
]
LINKS = ["file", "folder", "chain", "whole", "self", "loop", "inside", "pipe"]
NAMES = [
    "zarr.json", ".zarray", ".zgroup", "secret", "outside/secret", "outside/zarr.json", "outside", "m-two/zarr.json", "w-two/zarr.json",
    "c/0/0", "0.0", ".zarr-server/lock", ".zarr-server/staging/x", "array", "array/zarr.json", "array/c/0/0/0", "etc/passwd",
    "proc/self/environ", "new", "",
]
SEPARATORS = ["/"] * 40 + ["//", "%2f", "%2F", "\\", "%5c", "/./", "/%2e/", "///", ";/", "%00/", "%0a/"]
ENDINGS = [""] * 8 + [
    "/", "//", "?format=json", "?recursive", "?slice=0", "?slice=../..", "?list-type=2&prefix=../", "?prefix=%2e%2e%2f",
    "#../..", "?versions", "%20", ".", "?view=rebased", "?consolidated",
]
SENT = {"PUT": b"written", "PATCH": b"written", "POST": b'{"get": [{"key": "../secret"}], "keys": ["../secret"]}'}


def run(long):
    count = 1_000_000 if long else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        roots = build(folder)
        before = outside(folder, roots)
        with zarrd(*(f"{name}={root}" for name, root in roots.items()), **SETTINGS) as server:
            statuses, wrong = collections.Counter(), []
            arguments = (server, folder, count // CLIENTS, statuses, wrong)
            threads = [threading.Thread(target=attack, args=(seed, *arguments)) for seed in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert server.process.poll() is None
        assert not wrong, (len(wrong), wrong[:5])
        assert outside(folder, roots) == before, "something outside is not what it was"
        assert sum(statuses.values()) == count // CLIENTS * CLIENTS, statuses
        assert all(statuses[status] for status in (200, 201, 400, 404)), statuses
        return [("hostile paths / escapes", f"{count:,}, answered {dict(sorted(statuses.items()))} / 0")]


def build(folder):
    """Makes what is served, by the names of mounts, and around it what must not be."""
    group = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"is": CANARY}})
    for key, value in [
        ("zarr.json", group), ("secret", CANARY), ("outside/secret", CANARY), ("outside/zarr.json", group),
        (f"outside/{CANARY}", CANARY), ("m-two/zarr.json", group), ("w-two/zarr.json", group),
    ]:
        data.write(folder, key, value)
    roots = {name: folder / name for name in "mw"}
    for root in roots.values():
        data.write(root, "zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}))
        data.volume(root, "array", 1)
        for name, target in [
            ("file", "../secret"), ("folder", "../outside"), ("chain", "folder"), ("whole", str(folder)), ("loop", "loop"),
            ("self", "/proc/self/root"), ("inside", "array"), ("pipe", "/dev/stdin"),
        ]:
            (root / name).symlink_to(target)
    return roots


def outside(folder, roots):
    """All that lies outside of what is served, with what it says."""
    found = (file for file in folder.rglob("*") if not {file, *file.parents} & {*roots.values()})
    return {str(file): file.read_bytes() if file.is_file() else None for file in found}


def target(dice, folder):
    """A request target that means no good."""
    parts = []
    for _ in range(dice.randrange(5)):
        odd = dice.random()
        pieces = UP if odd < 0.3 else LINKS if odd < 0.7 else NAMES
        parts += [dice.choice(pieces), dice.choice(SEPARATORS)]
    if dice.random() < 0.1:
        parts.append(str(folder))
    return dice.choice(ROUTES) + dice.choice(SEPARATORS) + "".join(parts) + dice.choice(NAMES) + dice.choice(ENDINGS)


def attack(seed, server, folder, count, statuses, wrong):
    dice = random.Random(seed)
    with contextlib.ExitStack() as stack:
        client = None
        for _ in range(count):
            if client is None:
                client = stack.enter_context(socket.create_connection((server.host, server.port), SECONDS))
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            writes = dice.random() < 0.3
            method, mount = dice.choice(WRITING if writes else READING), "w" if writes else "m"
            url, other = (target(dice, folder).replace("MOUNT", mount) for _ in range(2))
            status, head, body, goes_on = ask(client, method, url, other)
            statuses[status] += 1
            if CANARY.encode() in head + body:
                wrong.append(f"{method} {url!r} discloses: {status} {body[:100]}")
            # Keys may be called like it by now.
            if status >= 400 and str(folder).encode() in body and str(folder) not in url:
                wrong.append(f"{method} {url!r} names the folder: {status} {body[:100]}")
            # What a dialect does not have is a 501, and a copy to another server a 502 (RFC 4918). A link that is not
            # followed is a 500, by name.
            is_link = status == 500 and (method == "HEAD" or b"symbolic link" in body)
            if status >= 500 and status != 501 and not is_link and b"destination-elsewhere" not in body:
                wrong.append(f"{method} {url!r}: {status} {body[:100]}")
            if not goes_on:
                client.close()
                client = None


def ask(client, method, url, destination):
    """Sends a request as it is; the status, the headers and the body, and whether the connection goes on."""
    sent = SENT.get(method, b"")
    lines = [f"{method} {url} HTTP/1.1", "Host: x", f"Content-Length: {len(sent)}"]
    if method in ("COPY", "MOVE"):
        lines += [f"Destination: {destination}"]
    if method == "PATCH":
        lines += ["Content-Range: bytes 0-6/*"]
    client.sendall("".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + sent)
    answer = http.client.HTTPResponse(client, method=method)
    answer.begin()
    body = answer.read()
    return answer.status, str(answer.headers).encode("latin-1", "replace"), body, not answer.will_close
