"""The processes of a run: the servers on free ports, the readers, the load. Each is ended by who started it."""

import contextlib
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
SECONDS = 60
"""How long a process may take to start, to answer and to end."""

CORES = sorted(os.sched_getaffinity(0))
TICKS = os.sysconf("SC_CLK_TCK")


def pinned(core, *command):
    """A command on one core, where there is more than one: servers on the first, the load on the last."""
    return [*(["taskset", "-c", str(CORES[core])] if len(CORES) > 1 else []), *map(str, command)]


class Server:
    """A running server."""

    def __init__(self, process, base, memory_mib=None, admin=None):
        self.process = process
        self.base = base
        self.admin = admin
        self.memory_mib = memory_mib
        """What it says it takes at most."""

    def processes(self):
        """It and those that it started."""
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [pid, *map(int, children.split())]

    def cpu_seconds(self):
        """What its threads have used by now, those that have ended too."""
        total = 0
        for pid in self.processes():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def resident_bytes(self, field="VmRSS"):
        total = 0
        for pid in self.processes():
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))
        return total


def get(url, headers=()):
    """A response's headers and its body."""
    request = urllib.request.Request(url, headers=dict(headers))
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        return response.headers, response.read()


def purge(server, path):
    """Has the server drop all that it caches below a path, which begins with the mount."""
    request = urllib.request.Request(f"{server.admin}/v1/cache/{path}", method="DELETE")
    urllib.request.urlopen(request, timeout=SECONDS).close()


class Client:
    """A client with one connection. To purge, it needs the server's admin listener."""

    PIECE_BYTES = 1 << 20

    def __init__(self, server):
        self.server = server
        self.buffer = bytearray(self.PIECE_BYTES)
        address = urllib.parse.urlsplit(server.base)
        self.connection = socket.create_connection((address.hostname, address.port), SECONDS)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def cold(self, path, array):
        """Seconds that a request takes when nothing of the array is in the server's cache."""
        purge(self.server, f"bench/{array}")
        # The array's documents: readers have it open.
        get(f"{self.server.base}/v1/nodes/bench/{array}")
        return self.timed(path)

    def timed(self, path):
        """Seconds that a request takes."""
        start = time.perf_counter()
        self.ask(path)
        return time.perf_counter() - start

    def ask(self, path):
        """Asks, and takes the whole answer."""
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.connection.recv(1 << 16)
        head, _, body = head.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        assert head.split(b" ", 2)[1] == b"200", head
        left = int(fields[b"content-length"]) - len(body)
        while left > 0:
            left -= self.connection.recv_into(self.buffer)


@contextlib.contextmanager
def ended(process):
    """Ends a process: asks first."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


@contextlib.contextmanager
def zarrd(folder, log, core=None, **settings):
    """Serves the folder, if there is one, as the mount `bench`, as shipped but for the settings; its log goes to a file."""
    mounts = [] if folder is None else [f"bench={folder}"]
    command = [os.environ["ZARRD"], "serve", *mounts, "--listen", "127.0.0.1:0"]
    with (
        open(log, "ab") as lines,
        subprocess.Popen(
            command if core is None else pinned(core, *command),
            env={f"ZARRD__{name}": value for name, value in settings.items()} | {"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=lines,
            text=True,
        ) as process,
        ended(process),
    ):
        line = process.stdout.readline().strip()
        assert line.startswith("zarrd listens on "), line
        base = line.removeprefix("zarrd listens on ")
        memory, admin = "Memory: at most ", "/metrics, /healthz, "
        address = None
        for line in process.stdout:
            if admin in line:
                address = line.partition(admin)[0].strip()
            if line.startswith(memory):
                break
        number, unit = line.removeprefix(memory).split()[:2]
        yield Server(process, base, float(number) * {"MiB": 1, "GiB": 1024}[unit], address)


def start_up_seconds(folder, log):
    """From the start of zarrd to its first answer."""
    start = time.perf_counter()
    with zarrd(folder, log) as server:
        get(f"{server.base}/healthz")
        return time.perf_counter() - start


NGINX = """
daemon off;
worker_processes 1;
user {user};
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
events {{ worker_connections 8192; }}
http {{
    sendfile on;
    tcp_nopush off;
    keepalive_requests 1000000000;
    client_body_temp_path {scratch}/body;
    proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi;
    {all_servers}
    server {{
        listen 127.0.0.1:{port};
        {server}
    }}
}}
"""


@contextlib.contextmanager
def nginx_with(scratch, server, all_servers="access_log off;", core=None):
    """nginx in a folder, with these directives of `server` and of `http`."""
    scratch.mkdir(exist_ok=True)
    port = free_port()
    configuration = scratch / "nginx.conf"
    configuration.write_text(
        NGINX.format(user=getpass.getuser(), scratch=scratch, port=port, server=server, all_servers=all_servers)
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-c", configuration, "-p", scratch, "-e", scratch / "error.log"]
    if core is not None:
        command = pinned(core, *command)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process, ended(process):
        wait_for(port, process)
        yield Server(process, f"http://127.0.0.1:{port}")


def nginx(folder, scratch, core, open_files=False, access_log=False):
    """Serves the folder, keeping files open or not, with an access log in batches or with none."""
    log = f"access_log {scratch}/access.log combined buffer=64k flush=1s;" if access_log else "access_log off;"
    cache = "open_file_cache max=10000 inactive=1h; open_file_cache_valid 1m;" if open_files else ""
    return nginx_with(scratch, f"root {folder};", f"{log} {cache}", core)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(port, process):
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), SECONDS).close()
        except ConnectionRefusedError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)


class Reader:
    """A reader in a process of its own."""

    def __init__(self, process):
        self.process = process

    def read(self, part):
        """Reads a slice; the seconds that it took, and the sum of the bytes."""
        question = {"array": part.array, "start": part.start, "shape": part.shape}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the reader has ended"
        answer = json.loads(line)
        return answer["seconds"], answer["sum"]


@contextlib.contextmanager
def reader(name, folder):
    """A reader by its library's name."""
    command = {
        "zarrs": [os.environ["ZARRD_BENCH_READERS"], folder],
    }.get(name, [sys.executable, "-B", HERE / "reader.py", name, folder])
    with (
        subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        ended(process),
    ):
        yield Reader(process)


def load(url, connections, seconds, headers=()):
    """Requests a URL repeatedly for `seconds`; returns what `load.lua` prints, and requests a second. If nothing is answered
    in that time, as on a busy machine, it tries again for longer."""
    while True:
        result = wrk(url, connections, seconds, headers)
        assert result["errors"] == 0, f"{url}: {result}"
        if result["requests"]:
            return result | {"rate": result["requests"] / result["duration"] * 1e6}
        seconds *= 3
        assert seconds < SECONDS, f"{url}: no answer"


def wrk(url, connections, seconds, headers):
    lines = [item for name, value in headers for item in ("-H", f"{name}: {value}")]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", f"--timeout={SECONDS}s", "-s", HERE / "load.lua"]
    with subprocess.Popen(
        pinned(-1, *command, *lines, url), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            time.sleep(seconds)
            # wrk takes whole seconds only, and prints its results when it is interrupted. While it starts, it ignores signals.
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
            output = process.stdout.read()
        finally:
            process.kill()
    return json.loads(output.splitlines()[-1])
