"""The processes of these tests: zarrd, and an S3 server behind it. Each is started on a free port and ended here."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

import requests

SECONDS = 30
"""How long a process may take to start, and to end."""


class Zarrd:
    """A running server."""

    def __init__(self, process, rooted):
        self.process = process
        self.base = self.line().removeprefix("zarrd listens on ")
        assert self.base.startswith("http://127.0.0.1:")
        self.roots = {}
        while self.roots.keys() != set(rooted):
            self.roots |= root(self.line(), rooted)

    def line(self):
        """The next line that the server prints when it starts. It never closes its output: ask for no more."""
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return line.rstrip("\n")

    def store(self, mount, key=""):
        return f"{self.base}/store/{mount}/{key}"

    def root(self, mount, key=""):
        """The address of a key of a mount that is also the store at the root of an address of its own."""
        return f"{self.roots[mount]}/{key}"

    def data(self, mount, path):
        return f"{self.base}/v1/data/{mount}/{path}"

    def upload(self, folder, mount, prefix=""):
        """Puts every file of the folder into the store."""
        with requests.Session() as session:
            for key, value in files(folder):
                url = self.store(mount, urllib.parse.quote(prefix + key))
                session.put(url, data=value, timeout=SECONDS).raise_for_status()


def root(line, mounts):
    """The URL at which one of these mounts is at the root, if the printed line says so."""
    match = re.fullmatch(r"  (http://127\.0\.0\.1:\d+)/ is /store/(\S+)/", line)
    return {match[2]: match[1]} if match and match[2] in mounts else {}


def files(folder):
    """Every file below a folder: its path from there, and what is in it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


@contextlib.contextmanager
def zarrd(*arguments, rooted=(), public_metrics=False, environment=None):
    """Runs `zarrd serve` and asserts that SIGTERM ends it well. The mounts `rooted` have addresses of their own."""
    of_server = {"ZARRD__LOG__LEVEL": "warn", "ZARRD__HTTP__PUBLIC_METRICS": json.dumps(public_metrics)}
    with subprocess.Popen(
        [os.environ["ZARRD"], "serve", *arguments, "--listen", "127.0.0.1:0"],
        env=of_server | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Zarrd(process, rooted)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


@contextlib.contextmanager
def s3(folder):
    """Runs an S3 server; yields its endpoint."""
    port = free_port()
    environment = os.environ | {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3"}
    with (
        open(folder / "s3.log", "wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            endpoint = f"http://127.0.0.1:{port}"
            wait_for(endpoint, process)
            yield endpoint
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
            process.kill()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(url, process):
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return requests.get(url, timeout=SECONDS)
        except requests.ConnectionError:
            assert process.poll() is None, "the S3 server has ended"
            assert time.monotonic() < deadline, "the S3 server does not start"
            time.sleep(0.05)
