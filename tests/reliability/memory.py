"""S7, memory: answers and uploads that could be held whole, each asked for by many clients that hardly read or hardly send.

What is held is charged, so that there is a bound: the server says it at its start, and keeps it in a limit of 2 GiB, where it
is not killed and goes on answering others.
"""

import contextlib
import json
import pathlib
import selectors
import socket
import sys
import tempfile
import time
import zlib

import data
from server import clients, mib, zarrd
from storm import cgroup

LIMIT_BYTES = 2 << 30
CONNECTIONS = (64, 360)
PACE_BYTES = 4 << 10
"""What each client takes at a time, ten times a second: more than who is cut off for its slowness."""
FIRST_SECONDS = 40
"""How long it may take until every client has had its first bytes, on average."""
TRIES = 3
"""How often a request is tried, as it may be refused with `Retry-After` just after the attack."""
ENTRY_BYTES = 64 << 20
NAMES, NAME_BYTES = 60_000, 200
GROUPS, DOCUMENT_BYTES = 15, (4 << 20) - 4096
TEXTS, TEXT_BYTES = 10_000, 4 << 10
SETTINGS = {
    "MOUNTS__W__URL": "s3://bucket/prefix",
    "MOUNTS__W__WRITABLE": "true",
    # Nothing listens at this address. The server does not connect to it before an upload has ended.
    "MOUNTS__W__OPTIONS__ENDPOINT": "http://127.0.0.1:1",
    "MOUNTS__W__OPTIONS__ALLOW_HTTP": "true",
}
ATTACKS = {
    "a deflated entry of 64 MiB in a zip file": b"GET /store/z/bomb HTTP/1.1\r\nHost: x\r\n\r\n",
    "PROPFIND of 60,000 keys": b"PROPFIND /store/m/many/ HTTP/1.1\r\nHost: x\r\nDepth: 1\r\n\r\n",
    "consolidated metadata of 60 MiB": b"GET /store/m/groups/zarr.json?consolidated HTTP/1.1\r\nHost: x\r\n\r\n",
    "JSON of 40 MiB of texts": b"GET /v1/data/m/texts?format=json HTTP/1.1\r\nHost: x\r\n\r\n",
    "conditional uploads of 64 MiB that do not end": (
        b"PUT /store/w/value-%d HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nContent-Length: 67108864\r\n\r\n"
    ),
}


def run(long):
    seconds = 60 if long else 6
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        answers = data.volume(folder / "m", "volume", 4)
        data.write(folder / "m", "value", data.VALUE)
        (folder / "bomb.zip").write_bytes(bomb())
        many(folder / "m")
        groups(folder / "m")
        texts(folder / "m")
        for connections in CONNECTIONS if long else CONNECTIONS[:1]:
            for what, request in ATTACKS.items():
                rows.append(attack(folder, answers, what, request, connections, seconds))
    return rows


def attack(folder, answers, what, request, connections, seconds):
    """One attack on a server of its own."""
    with limited() as (enter, killed), zarrd(
        f"m={folder}/m", f"z={folder}/bomb.zip", before=enter, **SETTINGS
    ) as server:
        bound = server.bound + (connections + 8) * server.connection
        with clients(server, answers, 2, also=[503]) as good, Crowd(server, request, connections) as crowd:
            crowd.press(seconds)
        peak = server.resident("VmHWM")
        assert server.process.poll() is None and killed() == 0, f"{what}: it was killed"
        path, expected = next(iter(answers.items()))
        assert again(server, path) == (200, expected), f"{what}: it does not answer any more"
    assert not good.failed, (what, good.failed[:3])
    assert good.seconds, f"{what}: the good client was refused {good.refused} times and never answered"
    assert crowd.moved > connections * PACE_BYTES, f"{what}: {crowd.moved} bytes are no attack"
    assert peak <= bound, f"{what}, {connections} connections: {mib(peak)} of {mib(bound)}"
    return (
        f"{connections} slow connections, {seconds} s, 2 GiB: {what}",
        f"RSS {mib(peak)} at most of {mib(bound)} said; 0 killed; {crowd.refused:,} refused with `Retry-After`; a good client: "
        f"{len(good.seconds):,} answers, p99 {good.p99():.0f} ms, {good.refused:,} refused, 0 failed",
    )


def again(server, path):
    """An answer to a client at the attackers' address, soon after they have disconnected, which takes a moment to notice."""
    for _ in range(TRIES):
        answer = server.get(path)
        if answer[0] != 503:
            break
        time.sleep(0.2)
    return answer


@contextlib.contextmanager
def limited():
    """A memory cgroup of 2 GiB where there can be one."""
    with contextlib.ExitStack() as stack:
        try:
            inside = stack.enter_context(cgroup(LIMIT_BYTES))
        except OSError as error:
            print(f"no limit of memory: a control group cannot be made here ({error})", file=sys.stderr)
            inside = (None, lambda: 0)
        yield inside


class Crowd:
    """Clients that ask once and then take, or give, a little now and then. Who is refused comes back."""

    def __init__(self, server, request, count):
        self.address, self.request, self.count = (server.host, server.port), request, count
        self.uploads = request.startswith(b"PUT")
        self.selector = selectors.DefaultSelector()
        self.moved = self.refused = self.asked = 0

    def __enter__(self):
        for _ in range(self.count):
            self.ask()
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def ask(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PACE_BYTES)
        client.connect(self.address)
        self.asked += 1
        client.sendall(self.request % self.asked if b"%d" in self.request else self.request)
        client.setblocking(False)
        # No upload sends the last byte of the length that it announced.
        left = ENTRY_BYTES - 1 if self.uploads else 0
        self.selector.register(client, selectors.EVENT_READ | (selectors.EVENT_WRITE if left else 0), [left, True])

    def press(self, seconds):
        """Waits until every client has received or sent bytes, which may take a while, and continues for `seconds`."""
        ends = time.monotonic() + FIRST_SECONDS
        while self.moved <= self.count * PACE_BYTES and time.monotonic() < ends:
            self.round()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.round()

    def round(self):
        gone = 0
        for key, events in self.selector.select(0):
            gone += not self.step(key, events)
        time.sleep(0.1 if not self.uploads else 0.005)
        for _ in range(gone):
            self.ask()

    def step(self, key, events):
        """Moves some bytes. Whether the connection is still of use."""
        client, state = key.fileobj, key.data
        try:
            if events & selectors.EVENT_READ:
                some = client.recv(PACE_BYTES)
                refused = state[1] and some.startswith(b"HTTP/1.1 503")
                self.refused += refused
                if not some or refused:
                    return self.leave(client)
                self.moved += len(some)
                state[1] = False
            elif state[0]:
                state[0] -= (sent := client.send(bytes(min(state[0], 1 << 20))))
                self.moved += sent
                if not state[0]:
                    self.selector.modify(client, selectors.EVENT_READ, state)
        except BlockingIOError:
            pass
        except OSError:
            return self.leave(client)
        return True

    def leave(self, client):
        self.selector.unregister(client)
        client.close()
        return False


def bomb():
    """A zip file with one entry of zeros."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    crc, packed = 0, b""
    for _ in range(64):
        crc = zlib.crc32(bytes(1 << 20), crc)
        packed += deflater.compress(bytes(1 << 20))
    packed += deflater.flush()
    numbers = [crc, len(packed), ENTRY_BYTES]
    sizes = b"".join(number.to_bytes(4, "little") for number in numbers) + (4).to_bytes(2, "little")
    method = bytes([0, 0, 8, 0, 0, 0, 0, 0])
    local = b"PK\x03\x04\x14\0" + method + sizes + bytes(2) + b"bomb"
    entry = b"PK\x01\x02\x14\0\x14\0" + method + sizes + bytes(16) + b"bomb"
    place = len(entry).to_bytes(4, "little") + (len(local) + len(packed)).to_bytes(4, "little")
    return local + packed + entry + b"PK\x05\x06" + bytes(4) + b"\x01\0\x01\0" + place + bytes(2)


def many(folder):
    """Stores very many keys with long names."""
    (folder / "many").mkdir()
    for n in range(NAMES):
        (folder / "many" / str(n).zfill(NAME_BYTES)).touch()


def groups(folder):
    """Stores a hierarchy whose documents are as long as they may be."""
    for n in range(GROUPS):
        attributes = {"text": "x" * DOCUMENT_BYTES}
        document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        data.write(folder, f"groups/g{n}/zarr.json", json.dumps(document))
    data.write(folder, "groups/zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}))


def texts(folder):
    """Stores an array of texts that are as long together as they may be in a response."""
    document = json.loads(data.document([TEXTS], [TEXTS], [], "string")) | {"fill_value": "", "codecs": [{"name": "vlen-utf8"}]}
    data.write(folder, "texts/zarr.json", json.dumps(document))
    text = TEXT_BYTES.to_bytes(4, "little") + b"t" * TEXT_BYTES
    data.write(folder, "texts/c/0", TEXTS.to_bytes(4, "little") + text * TEXTS)
