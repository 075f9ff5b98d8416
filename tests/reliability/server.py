"""A server of its own process, what it takes of the machine, and clients that know every byte of the answers."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import threading
import time

TLS = pathlib.Path(__file__).parents[1] / "data" / "tls"
"""A certificate of this machine, and the authority behind it."""
SECONDS = 60
"""How long a process may take to start and to end, and an answer to come."""


class Server:
    """A running server."""

    def __init__(self, process):
        self.process = process
        self.base = re.fullmatch("zarrd listens on (.*)\n", process.stdout.readline())[1]
        scheme, _, authority = self.base.partition("://")
        self.host, _, port = authority.partition(":")
        self.port = int(port)
        self.tls = ssl.create_default_context(cafile=TLS / "authority.pem") if scheme == "https" else None
        memory = json.loads(self.get("/v1/mounts")[1])["memory"]
        self.bound = memory["most_bytes"]
        """What it says it takes at most, without connections."""
        self.connection = memory["connection_bytes"]

    def resident(self, field="VmRSS"):
        """Bytes of memory now; with `VmHWM`, the most so far."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)[1]) << 10

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def get(self, path, address=""):
        """The status and the body of an answer, over a connection of its own, from an address."""
        with contextlib.closing(self.connect(address)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def connect(self, address=""):
        """A connection from an address, encrypted if the server speaks TLS."""
        own = (address, 0)
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=SECONDS, source_address=own, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, SECONDS, source_address=own)

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def zarrd(*mounts, before=None, around=(), errors=None, **settings):
    """Serves the mounts with these settings; ends it, and sees that it ends well if it was not killed before. Called before
    it runs, and the command that runs it; where it writes its log."""
    environment = {"ZARRD__LOG__LEVEL": "off", "PATH": os.environ["PATH"]}
    environment |= {f"ZARRD__{name}": str(value) for name, value in settings.items()}
    with subprocess.Popen(
        [*around, os.environ["ZARRD"], "serve", *mounts, "--listen", "127.0.0.1:0"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        preexec_fn=before,
    ) as process:
        try:
            yield Server(process)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(SECONDS) == 0, "it did not end well"
        finally:
            process.kill()


class Clients:
    """Clients that ask for known answers until `over` is set. They have an address of their own, so that a server that shares
    by address can distinguish them from others."""

    ADDRESS = "127.0.0.2"

    def __init__(self, server, answers, count, also=(), headers=None, address=ADDRESS):
        self.server = server
        self.address = address
        self.headers = headers or {}
        self.answers = list(answers.items())
        self.also = set(also)
        """Statuses of refusals after which a client asks again; they do not count as failures."""
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.seconds, self.refused, self.failed = [], 0, []
        self.threads = [threading.Thread(target=self.ask, args=(n,)) for n in range(count)]

    def ask(self, n):
        connection = self.server.connect(self.address)
        while not self.over.is_set():
            path, expected = self.answers[n % len(self.answers)]
            n += 1
            begun = time.perf_counter()
            try:
                connection.request("GET", path, headers=self.headers)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.count(failure=f"{path}: {error!r}")
                continue
            if answer.status in self.also:
                self.count(refused=1)
                time.sleep(0.05)
            elif answer.status != 200 or body != expected:
                self.count(failure=f"{path}: {answer.status}, {len(body)} bytes of {len(expected)}")
            else:
                self.count(seconds=time.perf_counter() - begun)
        connection.close()

    def count(self, seconds=None, refused=0, failure=None):
        with self.lock:
            self.refused += refused
            if failure:
                self.failed.append(failure)
            if seconds is not None:
                self.seconds.append(seconds)

    def p99(self):
        """Milliseconds, of those who were answered."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[len(ordered) * 99 // 100] if ordered else float("nan")


@contextlib.contextmanager
def clients(server, answers, count=4, also=(), headers=None, address=Clients.ADDRESS):
    """Clients as long as the block lasts."""
    running = Clients(server, answers, count, also, headers, address)
    for thread in running.threads:
        thread.start()
    try:
        yield running
    finally:
        running.over.set()
        for thread in running.threads:
            thread.join()


def mib(count):
    return f"{count / (1 << 20):,.0f} MiB"
