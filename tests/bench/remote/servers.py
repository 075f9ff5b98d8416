"""The bucket, and what stands in front of it. Each is a program of its own, and is ended by who started it."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import processes

HERE = pathlib.Path(__file__).parent
SECONDS = 0.03
"""What the bucket waits before each response."""


class Bucket:
    """The running bucket."""

    def __init__(self, folder, port):
        self.folder = folder
        self.base = f"http://127.0.0.1:{port}"

    def counts(self):
        """Requests and bytes since the last call."""
        with urllib.request.urlopen(f"{self.base}/counts", timeout=processes.SECONDS) as response:
            return tuple(json.load(response))


@contextlib.contextmanager
def bucket(folder):
    command = [sys.executable, "-B", HERE / "slow_bucket.py", folder, str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, processes.ended(process):
        yield Bucket(folder, int(process.stdout.readline()))


@contextlib.contextmanager
def zarrd(place, scratch, disk=None):
    """The bucket as the mount `m`, whose values never change, as shipped; with a cache on the disk, if a folder is named."""
    mount = {
        "URL": "s3://bench",
        "FRESHNESS": "immutable",
        "OPTIONS__ENDPOINT": place.base,
        "OPTIONS__ALLOW_HTTP": "true",
        "OPTIONS__REGION": "us-east-1",
        "OPTIONS__CREDENTIALS": "anonymous",
    }
    settings = {f"MOUNTS__M__{name}": value for name, value in mount.items()}
    if disk:
        settings |= {"CACHE__DISK__PATH": str(disk), "CACHE__DISK__SIZE": "4GiB"}
    settings["SERVER__ADMIN_LISTEN"] = "127.0.0.1:0"
    with processes.zarrd(None, scratch / "zarrd.log", **settings) as server:
        # Whether there is a bucket is asked once at the start, and not part of what a reader needs.
        urllib.request.urlopen(f"{server.base}/readyz", timeout=processes.SECONDS).close()
        yield server


PROXY = """
        location / {
            proxy_pass http://bucket;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_cache keys;
            proxy_cache_valid 200 404 1h;
        }
"""


@contextlib.contextmanager
def nginx(place, scratch):
    """nginx with `proxy_cache`; its cache stays in the folder."""
    folder, address = scratch / "nginx", place.base.removeprefix("http://")
    cache = f"proxy_cache_path {folder}/cache levels=1:2 keys_zone=keys:10m max_size=10g inactive=1h use_temp_path=off;"
    bucket = f"upstream bucket {{ server {address}; keepalive 64; }}"
    with processes.nginx_with(folder, PROXY, f"access_log off; {cache} {bucket}") as server:
        yield server.base


@contextlib.contextmanager
def varnish(place, scratch):
    """Varnish with a cache in memory."""
    folder, port = scratch / "varnish", processes.free_port()
    folder.mkdir()
    command = ["varnishd", "-F", "-n", folder, "-a", f"127.0.0.1:{port}", "-b", place.base.removeprefix("http://"), "-s", "malloc,1g"]
    with (
        open(scratch / "varnish.log", "wb") as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=os.environ) as process,
        processes.ended(process),
    ):
        processes.wait_for(port, process)
        time.sleep(1)
        yield f"http://127.0.0.1:{port}"
