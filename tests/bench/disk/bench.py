"""The disk cache in front of a slow store, beside nginx's `proxy_cache` on the same disk, in one run: tables in Markdown.

    ZARRD=target/dist/zarrd python3 tests/bench/disk/bench.py [--rounds N]

The store is a web server in this process with 30 ms before each answer. Latency: one client, one key after the other, at the
store itself, and through zarrd: cold, and from the disk after a restart, with a check of each version and without. Throughput:
raw keys from the disk by 16 connections of wrk, for keys that never change; contenders take turns, and the median counts; servers
have one core, and the load another. Every answer is compared before anything is measured. Only ratios apply to other machines. Needs wrk and nginx.
"""

import argparse
import asyncio
import contextlib
import http.client
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "http"))
from processes import pinned  # noqa: E402

DELAY = 0.03
KEYS = 200
SIZES = [16 << 10, 256 << 10, 4 << 20]
SETTINGS = ["DECODED_SIZE", "INDEX_SIZE", "NODE_SIZE", "VALUE_SIZE", "ENCODED_SIZE"]


def value(name):
    """The bytes of a key, which begin with its name."""
    size, number = name.split("-")
    return (f"{name} ".encode() * (int(size) // len(name) + 1))[: int(size)]


class Store:
    """A web server whose every answer takes a while."""

    def __init__(self):
        self.requests = {"HEAD": 0, "GET": 0}
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.run(ready)), daemon=True).start()
        ready.wait()

    async def run(self, ready):
        server = await asyncio.start_server(self.converse, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.Event().wait()

    async def converse(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split(" ", 2)
                self.requests[method] += 1
                await asyncio.sleep(DELAY)
                name = path.rsplit("/", 1)[1]
                if "-" not in name:
                    # What checks whether the store answers.
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                body = value(name)
                writer.write(
                    f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nETag: "{name}"\r\n'
                    "Cache-Control: max-age=3600\r\nAccept-Ranges: bytes\r\n\r\n".encode()
                )
                if method == "GET":
                    writer.write(body)
                await writer.drain()


@contextlib.contextmanager
def zarrd(store, folder, freshness):
    """A server without caches in memory, so that every read reaches the disk."""
    environment = {f"ZARRD__CACHE__{name}": "0" for name in SETTINGS} | {
        "ZARRD__CACHE__DISK__PATH": f"{folder}/cache",
        "ZARRD__MOUNTS__M__URL": f"http://127.0.0.1:{store.port}/",
        "ZARRD__MOUNTS__M__FRESHNESS": freshness,
        "ZARRD__LOG__LEVEL": "error",
    }
    command = pinned(0, os.environ["ZARRD"], "serve", "--listen", "127.0.0.1:0")
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)$", process.stdout.readline().strip())[1])
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield port, "/store/m/"
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def nginx(store, folder):
    """nginx with a cache of one worker in a folder."""
    (folder / "nginx").mkdir(exist_ok=True)
    port = 18_000 + os.getpid() % 10_000
    (folder / "nginx.conf").write_text(
        f"""daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; sendfile on; keepalive_requests 1000000;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/temp;
            proxy_cache_path {folder}/nginx levels=1:2 keys_zone=keys:10m max_size=10g inactive=1h use_temp_path=off;
            server {{ listen 127.0.0.1:{port}; location / {{
                proxy_pass http://127.0.0.1:{store.port}; proxy_http_version 1.1; proxy_cache keys;
                proxy_cache_valid 200 1h; proxy_set_header Connection "";
            }} }}
        }}"""
    )
    command = pinned(0, "nginx", "-p", folder, "-c", folder / "nginx.conf")
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield port, "/"
    finally:
        process.terminate()
        process.wait(30)


def latencies(place, names):
    """Milliseconds of each key, one after the other; every answer is compared."""
    port, prefix = place
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times = []
    for name in names:
        begun = time.perf_counter()
        connection.request("GET", prefix + name)
        body = connection.getresponse().read()
        times.append(1000 * (time.perf_counter() - begun))
        assert body == value(name), name
    return statistics.median(times)


def throughput(place, size, folder):
    """Requests a second of 16 connections."""
    port, prefix = place
    script = folder / "load.lua"
    script.write_text(
        f'local n = 0\nrequest = function() n = (n + 7) % {KEYS}\n'
        f'return wrk.format("GET", "{prefix}{size}-" .. n) end\n'
    )
    command = pinned(-1, "wrk", "-t1", "-c16", "-d3s", "-s", script, f"http://127.0.0.1:{port}")
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in printed, printed
    return float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    store = Store()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print("| size | the store | zarrd, cold | disk, versions checked | disk, immutable | store ÷ disk, immutable |")
        print("|---|---|---|---|---|---|")
        for size in SIZES:
            names = [f"{size}-{n}" for n in range(KEYS)]
            direct = latencies((store.port, "/"), names[:50])
            with zarrd(store, folder, "always") as place:
                cold = latencies(place, names)
            with zarrd(store, folder, "always") as place:
                store.requests["GET"] = 0
                checked = latencies(place, names)
                assert store.requests["GET"] == 0, store.requests
            with zarrd(store, folder, "immutable") as place:
                warm = latencies(place, names)
            row = [f"{n:.2f} ms" for n in (direct, cold, checked, warm)]
            print(f"| {size >> 10} KiB | {' | '.join(row)} | {direct / warm:.0f} |", flush=True)
        print("\n| raw keys, 16 connections | nginx | zarrd, disk | zarrd ÷ nginx |\n|---|---|---|---|")
        with nginx(store, folder) as other, zarrd(store, folder, "immutable") as own:
            for size in SIZES:
                for n in range(KEYS):
                    for place in (other, own):
                        latencies(place, [f"{size}-{n}"])
                store.requests["GET"] = 0
                pairs = [(throughput(other, size, folder), throughput(own, size, folder)) for _ in range(rounds)]
                assert store.requests["GET"] == 0, store.requests
                ratio = statistics.median(b / a for a, b in pairs)
                a, b = (statistics.median(column) for column in zip(*pairs))
                print(f"| {size >> 10} KiB | {a:,.0f}/s | {b:,.0f}/s | {ratio:.2f} |", flush=True)


main()
