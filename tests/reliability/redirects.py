"""S2, backends that redirect: to other hosts, to this machine and to addresses that clouds serve secrets at, from https to
http, in circles and in long chains. No redirect is followed, and no credential is sent to a host other than the backend. No
client gets a 404 or a byte from another host."""

import collections
import contextlib
import http.server
import pathlib
import ssl
import tempfile
import threading

import data
from server import TLS, clients, zarrd

STATUSES = [302, 307, 301, 308, 300, 303, 304, 305, 306, 399]
SECRET, KEY_ID = "very-secret-access-key", "AKIAREDIRECTED"
CANARY = b"canary-7c1e"
"""The body of the answers of the servers that redirects lead to."""


def run(long):
    rounds, statuses = (50, STATUSES) if long else (1, STATUSES[:2])
    with tempfile.TemporaryDirectory() as name, serving() as remote, serving() as backend, serving(True) as secure:
        folder = pathlib.Path(name)
        data.write(folder, "small", "0123456789")
        host, there = backend.url.partition("//")[2], remote.url.partition("//")[2]
        # Where each key of the backends leads.
        backend.led = secure.led = {
            "other": f"{remote.url}/other", "name": f"http://localhost:{remote.server_port}/name",
            "user": f"http://user:{SECRET}@{there}/user", "relative": "/led/there", "circle": "/b/circle",
            "metadata": "http://169.254.169.254/latest/meta-data/iam/", "zero": f"http://0.0.0.0:{remote.server_port}/",
            "six": f"http://[::ffff:127.0.0.1]:{remote.server_port}/six", "file": "file:///etc/passwd", "schemeless": f"//{there}/x",
            "https": f"https://{host}/b/https", "empty": "", "garbage": "http://[::", "long": f"{remote.url}/" + "x" * 6000,
            "back": f"{remote.url}/back?to={backend.url}/led", "data": "data:text/plain,canary-7c1e", "newline": "/%0d%0aX: y",
            "chain": "/b/chain?0", "missing": None,
        }
        s3 = {
            "URL": "s3://b", "OPTIONS__ENDPOINT": backend.url, "OPTIONS__ALLOW_HTTP": "true", "OPTIONS__REGION": "x",
            "OPTIONS__ACCESS_KEY_ID": KEY_ID, "OPTIONS__SECRET_ACCESS_KEY": SECRET,
            "WRITABLE": "true", "ALLOW_PREFIX_DELETE": "true",
        }
        web = {"URL": f"{backend.url}/b"}
        settings = {f"MOUNTS__S__{key}": value for key, value in s3.items()}
        settings |= {f"MOUNTS__H__{key}": value for key, value in web.items()} | {"MOUNTS__T__URL": f"{secure.url}/b"}
        # Each is asked, however many have failed.
        settings |= {f"MOUNTS__{mount}__OPTIONS__CIRCUIT_BREAKER_FAILURES": "0" for mount in "SHT"} | {"MOUNTS__M__URL": str(folder)}
        answers, wrong = collections.Counter(), []
        with zarrd(around=["env", f"SSL_CERT_FILE={TLS / 'authority.pem'}"], **settings) as server:
            with clients(server, {"/store/m/small": b"0123456789"}, 1) as good:
                for _ in range(rounds):
                    for status in statuses:
                        backend.status = secure.status = status
                        for mount in "sht":
                            for path in paths(mount, backend.led):
                                ask(server, *path, status, answers, wrong)
            assert server.process.poll() is None
        assert not good.failed, good.failed[:3]
        assert not wrong, (len(wrong), wrong[:5])
        followed = [*remote.asked, *backend.followed, *secure.followed]
        assert not followed, followed[:3]
        assert backend.asked and secure.asked, "nothing was asked of a backend"
        count, asked = sum(answers.values()), len(backend.asked) + len(secure.asked)
        return [(
            "redirects by backends over HTTP, HTTPS and S3",
            f"{count:,} requests, {asked:,} redirects ({len(backend.led)} targets, {len(statuses)} statuses): 0 "
            f"followed, 0 credentials sent to others, 0 answered 404; answered {dict(sorted(answers.items()))}",
        )]


def paths(mount, names):
    """Requests of every kind that reach the backend: method, path, body."""
    for name in names:
        yield "GET", f"/store/{mount}/{name}", None
        yield "HEAD", f"/store/{mount}/{name}", None
        yield "GET", f"/v1/data/{mount}/{name}", None
    yield "GET", f"/store/{mount}/?format=json", None
    yield "GET", f"/v1/nodes/{mount}/other", None
    if mount == "s":
        for name in list(names)[:6]:
            yield "PUT", f"/store/{mount}/{name}", b"written"
            yield "DELETE", f"/store/{mount}/{name}", None


def ask(server, method, path, body, status, answers, wrong):
    with contextlib.closing(server.connect()) as connection:
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read()
    answers[answer.status] += 1
    if CANARY in text or SECRET.encode() in text:
        wrong.append(f"{method} {path} ({status}): discloses {text[:200]}")
    # 404 is what clients read as fill values, and 2xx would be a value that was never stored.
    if answer.status < 500 and not (answer.status == 405 and not path.startswith("/store/s/")):
        wrong.append(f"{method} {path} ({status}): {answer.status} {text[:200]}")


@contextlib.contextmanager
def serving(encrypted=False):
    """A server that notes what it is asked, and redirects what it has in `led`."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            server = self.server
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            server.asked.append(self.path)
            name = self.path.partition("?")[0].rpartition("/")[2]
            if self.path.startswith("/led") or (name == "chain" and "?" in self.path and "list-type" not in self.path):
                server.followed.append(self.path)
            if not server.led:
                self.send_response(200)
                self.send_header("Content-Length", str(len(CANARY)))
                self.send_header("ETag", '"x"')
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(CANARY)
                return
            self.send_response(server.status)
            location = server.led.get(name, "/led/listing")
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked, server.followed, server.led, server.status = [], [], {}, 302
        server.url = f"{'https' if encrypted else 'http'}://127.0.0.1:{server.server_port}"
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "one.pem", TLS / "one.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
