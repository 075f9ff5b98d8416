"""S7, fairness: small requests of every class beside slow readers of long slices, and a good token beside bad ones from the
same address. None of the small and the good may be refused, not even with `Retry-After`."""

import contextlib
import hashlib
import http.client
import pathlib
import selectors
import socket
import tempfile
import threading
import time

import data
from server import SECONDS, Clients, clients, zarrd

LONG = "/v1/data/m/long"
SMALL = [
    f"{LONG}?slice=:4", f"{LONG}?slice=9:12&format=json", "/v1/nodes/m/long", "/store/m/long/zarr.json", "/store/m/small",
    "/store/m/?format=json", "/store/m/", "/s3/m?list-type=2", "/v1/chunk/m/tiny/c/0", "/rechunk/m/8/raw/tiny/c/0",
    # Their length is known only once they were made.
    "/v1/data/m/tiny?format=csv", "/v1/data/m/tiny?coords=1&format=parquet", "/v1/data/m/tiny?format=nc", "/dap/m/tiny.ascii",
    "/dap/m/tiny.dods",
]
# A long slice holds an eighth of all, as with the defaults.
SETTINGS = {"HTTP__INFLIGHT_SIZE": 64 << 20, "READ__SEGMENT_SIZE": 4 << 20}
READERS = {"127.0.0.3": 8, "127.0.0.4": 8, "127.0.0.5": 8}
"""Connections that read slowly, by their addresses."""
SECRET = "s" * 32


def run(long):
    seconds = 120 if long else 6
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data.write(folder, "long/zarr.json", data.document([1 << 28], [1 << 20], [], "uint8"))
        data.write(folder, "tiny/zarr.json", data.document([16], [16], [], "uint8"))
        data.write(folder, "tiny/c/0", bytes(range(16)))
        data.write(folder, "small", "0123456789")
        return [slow_readers(folder, seconds), bad_tokens(folder, seconds)]


def slow_readers(folder, seconds):
    with zarrd(f"m={folder}", **SETTINGS) as server:
        found = {path: server.get(path) for path in SMALL}
        assert all(status == 200 for status, _ in found.values()), found
        answers = {path: body for path, (_, body) in found.items()}
        over, held = threading.Event(), []
        thread = threading.Thread(target=read_slowly, args=(server, over, held))
        thread.start()
        try:
            time.sleep(1)
            with clients(server, answers, 3) as good:
                time.sleep(seconds)
        finally:
            over.set()
            thread.join()
        assert max(held) >= 5, f"{max(held)} slow readers are no attack"
        assert not good.failed, (len(good.failed), good.failed[:3])
        return (
            f"long slices read slowly from {len(READERS)} addresses, {seconds} s",
            f"up to {max(held)} at a time, more waiting; {len(good.seconds):,} small requests of every class from another: "
            f"p99 {good.p99():.1f} ms, 0 refused, 0 failed",
        )


def read_slowly(server, over, held):
    """Keeps the connections of `READERS` asking for long slices, and reads some 40 KiB a second of each. Appends to `held` how
    many are answered."""
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as ready:
        def begin(address):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.bind((address, 0))
            reader.connect((server.host, server.port))
            reader.sendall(f"GET {LONG} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            ready.register(reader, selectors.EVENT_READ, [address, b""])

        for address, count in READERS.items():
            for _ in range(count):
                begin(address)
        while not over.is_set():
            for key, _ in ready.select(0):
                part = key.fileobj.recv(4096)
                key.data[1] = key.data[1] or part[:12]
                if not part or key.data[1] != b"HTTP/1.1 200":
                    # A reader that is refused asks again at once.
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
                    begin(key.data[0])
            held.append(sum(key.data[1] == b"HTTP/1.1 200" for key in ready.get_map().values()))
            time.sleep(0.1)


def bad_tokens(folder, seconds):
    settings = {
        "ACCESS__TOKENS__GOOD__SHA256": hashlib.sha256(SECRET.encode()).hexdigest(),
        "ACCESS__TOKENS__GOOD__GRANTS": '[{ mount = "m", scopes = ["read", "list"] }]',
    }
    with zarrd(f"m={folder}", **SETTINGS, **settings) as server:
        over, statuses = threading.Event(), []
        flood = [threading.Thread(target=guess, args=(server, over, statuses, n)) for n in range(4)]
        for thread in flood:
            thread.start()
        try:
            headers = {"Authorization": f"Bearer zs_good_{SECRET}"}
            with clients(server, {"/store/m/small": b"0123456789"}, 2, headers=headers) as good:
                time.sleep(seconds)
        finally:
            over.set()
            for thread in flood:
                thread.join()
        counts = {status: statuses.count(status) for status in set(statuses)}
        assert counts.keys() == {401, 429}, counts
        assert not good.failed, (len(good.failed), good.failed[:3])
        return (
            f"bad tokens from the address of a good one, {seconds} s",
            f"{counts[401]:,} answered 401 and {counts[429]:,} answered 429; {len(good.seconds):,} requests with the good token: "
            "0 refused",
        )


def guess(server, over, statuses, n):
    connection = http.client.HTTPConnection(server.host, server.port, SECONDS, source_address=(Clients.ADDRESS, 0))
    with contextlib.closing(connection):
        while not over.is_set():
            n += 4
            connection.request("GET", "/store/m/small", headers={"Authorization": f"Bearer zs_good_{n:032}"})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
