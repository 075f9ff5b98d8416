"""Sends each request to a proxy, with another after it, and compares what the proxy says it has sent with what zarrd saw.

`ZARRD` is the binary. Every process is started on a free port and ended here.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time

SECONDS = 10
NEXT = b"GET /healthz?next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def post(fields, body=b""):
    return b"PUT /store/demo/none HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n" + body


def get(fields):
    return b"GET /healthz?first HTTP/1.1\r\n" + fields + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked\r\n"
INNER = b"GET /healthz?inner HTTP/1.1\r\nHost: x\r\n\r\n"
REQUESTS = [
    get(b"Host: x\r\n"),
    get(b""),
    get(b"Host: x\r\nHost: y\r\n"),
    get(b"Host : x\r\n"),
    get(b"Host: x\r\nA: b\r\n c\r\n"),
    get(b" Host: x\r\n"),
    get(b"Host: x\r\nA: b\rc\r\n"),
    get(b"Host: x\r\nA: b\0c\r\n"),
    get(b"Host: x\r\nA: b\n"),
    get(b"Host: x\nA: b\n"),
    get(b"Host: x\r\nContent-Length: %d\r\n" % len(INNER)) + INNER,
    get(b"Host: x\r\n" + CHUNKED) + b"0\r\n\r\n",
    get(b"Host: x\r\nConnection: Content-Length\r\nContent-Length: %d\r\n" % len(INNER)) + INNER,
    get(b"Host: x\r\nConnection: Transfer-Encoding\r\n" + CHUNKED) + b"0\r\n\r\n",
    get(b"Host: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"),
    get(b"Host: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n") + b"abcd",
    post(CHUNKED, b"4\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED + b"Content-Length: 4\r\n", b"0\r\n\r\n" + INNER),
    post(b"Content-Length: 4\r\n" + CHUNKED, b"0\r\n\r\n" + INNER),
    post(b"Content-Length: %d\r\n" % len(INNER) + CHUNKED, INNER),
    post(b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding:\x0bchunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding:\tchunked\r\n", b"0\r\n\r\n"),
    post(b" Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding: identity, chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
    post(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"),
    post(b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    post(b"Content-Length: +4\r\n", b"abcd"),
    post(b"Content-Length: -4\r\n", b"abcd"),
    post(b"Content-Length: 0x4\r\n", b"abcd"),
    post(b"Content-Length: 4, 4\r\n", b"abcd"),
    post(b"Content-Length: 4, 5\r\n", b"abcde"),
    post(b"Content-Length: 4\r\nContent-Length: 4\r\n", b"abcd"),
    post(b"Content-Length: 4\r\nContent-Length: 5\r\n", b"abcde"),
    post(b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(INNER), INNER),
    post(b"Content-Length : %d\r\n" % len(INNER), INNER),
    post(b"Content-Length:\r\n"),
    post(b"Content-Length: 9223372036854775808\r\n", b"abcd"),
    post(b"Content-Length: 18446744073709551620\r\n", b"abcd"),
    post(CHUNKED, b"10000000000000004\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"-4\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"0x4\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"4 \r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"4;a=b\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"4;a=\nb\r\nabcd\r\n0\r\n\r\n"),
    post(CHUNKED, b"4\nabcd\n0\n\n"),
    post(CHUNKED, b"4\r\nabcd0\r\n\r\n"),
    post(CHUNKED, b"4\r\nabcde\r\n0\r\n\r\n"),
    post(CHUNKED, b"0\r\nContent-Length: 50\r\n\r\n"),
    b"GET /healthz?first\r\n\r\n",
    b"GET /healthz?first HTTP/1.0\r\n\r\n",
    b"GET /healthz?first HTTP/1.0\r\nConnection: keep-alive\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    b"GET /healthz?first HTTP/1.2\r\nHost: x\r\n\r\n",
    b"GET  /healthz?first HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /healthz?a b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://y/healthz?first HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\r\n\r\nGET /healthz?first HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /healthz?first HTTP/1.1\r\nHost: x\r\n\r\n",
    b"TRACE /healthz?first HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def process(command, **options):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **options) as started:
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(SECONDS)
            finally:
                started.kill()


def listens(port):
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"no server listens on {port}"
            time.sleep(0.05)


class Seen:
    """What zarrd logs: one line a request."""

    def __init__(self, stream):
        self.urls = []
        self.thread = threading.Thread(target=self.read, args=[stream], daemon=True)
        self.thread.start()

    def read(self, stream):
        for line in stream:
            said = json.loads(line)
            if said.get("message") == "request":
                self.urls.append(f"{said['method']} {said['path']} {said['status']}")


def nginx(folder, front, back):
    (folder / "nginx.conf").write_text(f"""
        daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
        events {{ worker_connections 256; }}
        http {{
            log_format sent '$upstream_addr';
            access_log {folder}/sent.log sent;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
            uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
            upstream zarrd {{ server 127.0.0.1:{back}; keepalive 4; }}
            server {{
                listen 127.0.0.1:{front};
                client_body_timeout 2s; client_header_timeout 2s; keepalive_timeout 2s;
                location / {{
                    proxy_pass http://zarrd; proxy_http_version 1.1; proxy_set_header Connection "";
                    proxy_request_buffering off; proxy_next_upstream off;
                }}
            }}
        }}""")
    return ["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]


def haproxy(folder, front, back):
    (folder / "haproxy.cfg").write_text(f"""
global
    log {folder}/log.sock local0
defaults
    mode http
    log global
    log-format "%si:%sp"
    timeout connect 2s
    timeout client 2s
    timeout server 5s
    timeout http-request 2s
    retries 0
frontend front
    bind 127.0.0.1:{front}
    default_backend back
backend back
    http-reuse always
    server zarrd 127.0.0.1:{back}
""")
    return ["haproxy", "-db", "-f", f"{folder}/haproxy.cfg"]


class Sent:
    """What a proxy says it has sent: nginx to a file, haproxy to a socket."""

    def __init__(self, folder, back):
        self.folder, self.end, self.lines = folder, f"127.0.0.1:{back}", []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "log.sock"))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError):
            while line := self.socket.recv(65536):
                self.lines.append(line.decode("latin-1"))

    def count(self):
        log = self.folder / "sent.log"
        lines = log.read_text().splitlines() if log.exists() else self.lines
        return sum(line.rstrip().endswith(self.end) for line in lines)


def send(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as stream:
        with contextlib.suppress(OSError):
            stream.sendall(request + NEXT)
        answer = b""
        with contextlib.suppress(OSError):
            while part := stream.recv(65536):
                answer += part
    return answer


def settled(counts):
    """Counts, once they have not changed for a while: a proxy may say late what it has sent."""
    while True:
        before = counts()
        time.sleep(0.3)
        if counts() == before:
            return before


def behind(name, make):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        os.chmod(folder, 0o777)
        command = [os.environ["ZARRD"], "serve", "--demo", "--listen", "127.0.0.1:0"]
        settings = {"LOG__FORMAT": "json", "LOG__LEVEL": "warn,zarrd=info", "HTTP__BODY_STALL_TIMEOUT": "1s"}
        environment = {f"ZARRD__{name}": value for name, value in settings.items()}
        with process(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as zarrd:
            back = int(zarrd.stdout.readline().rsplit(":", 1)[1])
            seen, front = Seen(zarrd.stderr), free_port()
            sent = Sent(folder, back)
            with process(make(folder, front, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                listens(front)
                passed = 0
                for request in REQUESTS:
                    seen_before, sent_before = len(seen.urls), sent.count()
                    answer = send(front, request)
                    seen_after, sent_after = settled(lambda: (len(seen.urls), sent.count()))
                    arrived, forwarded = seen_after - seen_before, sent_after - sent_before
                    passed += arrived
                    # What is refused before any route is not in the log, but answered.
                    refused = sum(answer.count(b"HTTP/1.1 %d " % status) for status in (400, 431, 501))
                    if not arrived <= forwarded <= arrived + refused:
                        failures += 1
                        print(f"{name}: {request!r}: sent {forwarded}, seen {seen.urls[seen_before:]}: {answer!r}")
                print(
                    f"{name}: {len(REQUESTS)} requests, each with another after it: {passed} were passed on and served, "
                    f"{failures} times not as many as were sent"
                )
                assert passed > 20, "nearly nothing was passed on"
    return failures


if __name__ == "__main__":
    raise SystemExit(behind("nginx", nginx) + behind("haproxy", haproxy))
