"""Several zarrd over one bucket, and nginx before them, as `config/deploy` has it: on free ports, each ended here."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import processes
import requests

DEPLOY = pathlib.Path(__file__).parents[2] / "config" / "deploy"
SECONDS = processes.SECONDS
BUCKET = "zarr"
CREDENTIALS = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}


def until_it_answers(url, process):
    """Waits until what a process serves there is well."""
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(requests.ConnectionError):
            if requests.get(url, timeout=SECONDS).ok:
                return
        assert process.poll() is None, f"{process.args} has ended with {process.returncode}"
        assert time.monotonic() < deadline, f"{url} is never well"
        time.sleep(0.02)


class Replica:
    """One server, always at the same address, however often it starts and ends."""

    def __init__(self, endpoint, log, settings):
        self.port = processes.free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.log = log
        self.settings = {"SERVER__LISTEN": f"127.0.0.1:{self.port}", "LOG__LEVEL": "warn"} | settings
        for mount, freshness in [("DATA", "always"), ("SLOW", "ttl:2s")]:
            mounted = {"URL": f"s3://{BUCKET}", "FRESHNESS": freshness, "WRITABLE": "true"}
            self.settings |= {f"MOUNTS__{mount}__{name}": value for name, value in mounted.items()}
            options = {"ENDPOINT": endpoint, "ALLOW_HTTP": "true", "REGION": "us-east-1"} | CREDENTIALS
            self.settings |= {f"MOUNTS__{mount}__OPTIONS__{name}": value for name, value in options.items()}
        self.process = None

    def start(self):
        """Returns when it is ready."""
        environment = {f"ZARRD__{name}": value for name, value in self.settings.items()}
        command = [os.environ["ZARRD"], "serve", "--config", DEPLOY / "zarrd.toml"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        until_it_answers(f"{self.base}/readyz", self.process)

    def stop(self):
        """As a rolling restart does: requests in flight are finished."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SECONDS) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def replicas(count, endpoint, folder, **settings):
    """Servers over the bucket, with these settings beside those of `config/deploy/zarrd.toml`."""
    with open(folder / "zarrd.log", "ab") as log:
        each = [Replica(endpoint, log, settings) for _ in range(count)]
        try:
            for replica in each:
                replica.start()
            yield each
        finally:
            for replica in each:
                if replica.process:
                    replica.kill()


def nginx_program():
    return shutil.which("nginx") or "/usr/sbin/nginx"


def nginx_configuration(scratch, port, ports, hashed=True):
    """`config/deploy/nginx.conf` with this machine's addresses in place of the names in it, and a folder for `/tmp`."""
    text = (DEPLOY / "nginx.conf").read_text().replace(" /tmp/", f" {scratch}/")
    servers = re.findall(r"^ +server zarrd-\d:8000 (.*;)\n", text, re.MULTILINE)
    assert len(servers) == 3 and len(set(servers)) == 1, "three replicas, all alike"
    lines = "".join(f"server 127.0.0.1:{port} {servers[0]}\n" for port in ports)
    for pattern, instead in [
        (r"(?:^ +server zarrd-\d:8000 .*;\n)+", lines),
        (r"listen 8080;", f"listen 127.0.0.1:{port};"),
        # One process, which writes into a folder of its own. A master that root starts gives its workers another name.
        (r"^worker_processes auto;", "worker_processes 1;\ndaemon off;\nmaster_process off;"),
        *([] if hashed else [(r"^ +hash \$uri consistent;\n", "")]),
    ]:
        text, times = re.subn(pattern, lambda _: instead, text, flags=re.MULTILINE)
        assert times == 1, f"{pattern} stands there {times} times"
    file = scratch / "nginx.conf"
    file.write_text(text)
    return file


@contextlib.contextmanager
def nginx(scratch, each, hashed=True):
    """nginx before these replicas; yields its address. Without hashing it asks them in turn."""
    scratch.mkdir()
    port = processes.free_port()
    file = nginx_configuration(scratch, port, [replica.port for replica in each], hashed)
    with (
        open(scratch / "nginx.log", "wb") as log,
        subprocess.Popen(
            [nginx_program(), "-c", file, "-p", scratch], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            base = f"http://127.0.0.1:{port}"
            until_it_answers(f"{base}/healthz", process)
            yield base
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
            process.kill()
