"""S2 and S7, TLS: handshakes that are silent, slow, garbage, broken off or far too many, beside a client that is served over
new connections and old ones. It fails nothing, and nothing is left of the others."""

import asyncio
import contextlib
import pathlib
import random
import ssl
import subprocess
import tempfile
import threading
import time

import data
from server import SECONDS, TLS, Clients, clients, mib, zarrd

HALF_OPEN = 4000
SETTINGS = {"SERVER__TLS__CERTIFICATE": TLS / "one.pem", "SERVER__TLS__KEY": TLS / "one.key", "SERVER__TLS_HANDSHAKE_TIMEOUT": "3s"}
ADDRESSES = ["127.0.0.3", "127.0.0.4"]
"""Of those who attack."""


def run(long):
    seconds = 120 if long else 6
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data.write(folder, "value", data.VALUE[:4096])
        answers = {"/store/m/value": data.VALUE[:4096]}
        with zarrd(f"m={folder}", **SETTINGS) as server:
            with clients(server, answers, 2) as alone:
                time.sleep(1)
            descriptors = server.descriptors()
            attack = Attack(server)
            thread = threading.Thread(target=attack.run, args=(seconds,))
            with clients(server, answers, 2) as good:
                thread.start()
                fresh = handshakes(server, seconds)
                thread.join()
            renegotiated = [renegotiate(server) for _ in range(3)]
            assert not alone.failed and not good.failed, (alone.failed[:3], good.failed[:3])
            assert attack.held >= HALF_OPEN // 2, f"{attack.held} half-open connections are no attack"
            assert all(attack.count.values()), attack.count
            assert not any(renegotiated), "it negotiates again in the middle of a connection"
            until(lambda: server.descriptors() <= descriptors + 2, "connections are left open")
            assert server.get("/store/m/value") == (200, data.VALUE[:4096])
            peak, bound = server.resident("VmHWM"), server.bound + attack.held * server.connection
            assert peak <= bound, f"{mib(peak)} of {mib(bound)}"
            counts = ", ".join(f"{count:,} {kind}" for kind, count in attack.count.items())
            return [(
                f"TLS handshakes, {seconds} s",
                f"up to {attack.held:,} half-open at a time, {counts}; a good client: {len(good.seconds):,} requests, p99 "
                f"{good.p99():.0f} ms (alone {alone.p99():.0f}), and {len(fresh):,} new connections, p99 "
                f"{1000 * sorted(fresh)[len(fresh) * 99 // 100]:.0f} ms, 0 failed; renegotiation refused; RSS {mib(peak)}",
            )]


def handshakes(server, seconds):
    """How long each new connection takes, from its beginning to the end of an answer."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        assert server.get("/healthz", Clients.ADDRESS)[0] == 200
        took.append(time.monotonic() - begun)
        time.sleep(0.02)
    return took


def renegotiate(server):
    """Whether a client of TLS 1.2 that asks to negotiate again gets another handshake."""
    command = ["openssl", "s_client", "-tls1_2", "-connect", f"{server.host}:{server.port}", "-CAfile", TLS / "authority.pem"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as process:
        process.stdin.write(b"R\n")
        process.stdin.flush()
        # Another handshake would verify the certificates again. What is refused it waits for in vain.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        process.kill()
        printed = process.communicate()[0]
    assert b"RENEGOTIATING" in printed and b"verify return:1" in printed, printed
    return printed.count(b"verify return:1") > 2


def until(holds, otherwise):
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)


def greeting():
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


class Attack:
    """All at once, by one thread of its own."""

    def __init__(self, server):
        self.server = server
        self.hello = greeting()
        self.dice = random.Random(1)
        self.held = self.open = 0
        self.count = {"broken off behind the server's answer": 0, "of garbage": 0, "a byte at a time": 0, "whole": 0}

    def run(self, seconds):
        asyncio.run(self.all(time.monotonic() + seconds))

    async def all(self, end):
        kinds = [self.half_open] * 8 + [self.break_off] * 24 + [self.garbage] * 8 + [self.dribble] * 64 + [self.whole] * 4
        # In eight parts, so that not all begin in one moment.
        await asyncio.gather(*(self.again(kind, number, end) for number, kind in enumerate(kinds)))

    async def again(self, kind, number, end):
        while time.monotonic() < end:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await kind(ADDRESSES[number % 2], end)
            await asyncio.sleep(0.01)

    async def connect(self, address, **more):
        own = (address, 0)
        return await asyncio.open_connection(self.server.host, self.server.port, local_addr=own, limit=1 << 16, **more)

    async def half_open(self, address, end):
        """Keeps an eighth of them open, of which each has sent a part of its greeting."""
        async with contextlib.AsyncExitStack() as stack:
            streams = []
            for _ in range(HALF_OPEN // 8 + 1):
                reader, writer = await self.connect(address)
                stack.callback(writer.close)
                writer.write(self.hello[:self.dice.randrange(len(self.hello))])
                streams.append(reader)
                self.open += 1
                self.held = max(self.held, self.open)
            # The server closes them when their time is over; the last is the youngest.
            try:
                await asyncio.wait_for(streams[-1].read(), end - time.monotonic() + 1)
            finally:
                self.open -= len(streams)

    async def break_off(self, address, end):
        """Has the server answer, which costs it a signature, and goes."""
        reader, writer = await self.connect(address)
        with contextlib.closing(writer):
            writer.write(self.hello)
            await asyncio.wait_for(reader.readexactly(5), SECONDS)
            self.count["broken off behind the server's answer"] += 1

    async def garbage(self, address, end):
        reader, writer = await self.connect(address)
        with contextlib.closing(writer):
            heads = [b"", b"\x16\x03\x01", b"\x16\x03\x03\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01\x00\x02"]
            head = self.dice.choice(heads)
            hello = bytearray(self.hello)
            hello[self.dice.randrange(len(hello))] ^= 1 << self.dice.randrange(8)
            writer.write(self.dice.choice([head + self.dice.randbytes(2000), bytes(hello), self.hello * 40]))
            self.count["of garbage"] += 1
            await asyncio.wait_for(reader.read(), 0.2)

    async def dribble(self, address, end):
        reader, writer = await self.connect(address)
        with contextlib.closing(writer):
            self.count["a byte at a time"] += 1
            for byte in self.hello:
                writer.write(bytes([byte]))
                await asyncio.gather(writer.drain(), asyncio.sleep(0.05))

    async def whole(self, address, end):
        reader, writer = await self.connect(address, ssl=self.server.tls)
        with contextlib.closing(writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(reader.readexactly(12), SECONDS)
            self.count["whole"] += 1
