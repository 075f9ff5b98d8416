"""A web server in this process whose objects change and describe themselves, and that fails as often as a test wants; and readers
that know what they may get of it."""

import contextlib
import http.client
import http.server
import random
import re
import threading
import time

from server import SECONDS


def content(key, number, length):
    """The bytes of an object: each block says which one it is of."""
    block = b"%s %d %d\n" % (key.encode(), number, length)
    return (block * (length // len(block) + 1))[:length]


class Bucket:
    """Objects with a number that grows. A part of a thousand requests fails."""

    def __init__(self, keys, longest):
        dice = random.Random(1)
        self.lengths = {f"data/{at}": dice.choice([700, 9_000, 70_000, longest]) for at in range(keys)}
        self.numbers = dict.fromkeys(self.lengths, 0)
        self.replaced = {key: [] for key in self.lengths}
        """When each number of a key was replaced by the next."""
        self.lock = threading.Lock()
        self.failing = 0
        self.faults = self.requests = 0
        bucket = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Heads and bodies are written one after the other, and would wait for each other.
            disable_nagle_algorithm = True

            def do_HEAD(self):
                bucket.answer(self, has_body=False)

            def do_GET(self):
                bucket.answer(self, has_body=True)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def change(self, key):
        with self.lock:
            self.numbers[key] += 1
            self.replaced[key].append(time.monotonic())

    def answer(self, request, has_body):
        key = request.path.strip("/")
        with self.lock:
            self.requests += 1
            fails = random.random() * 1000 < self.failing
            self.faults += fails
            number = self.numbers.get(key)
        if fails or number is None:
            request.send_response(503 if fails else 404)
            request.send_header("content-length", "0")
            request.end_headers()
            return
        body = content(key, number, self.lengths[key])
        status, size = 200, len(body)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        tag = f'"{number}"'
        if request.headers.get("if-match", tag) != tag:
            request.send_response(412)
            request.send_header("content-length", "0")
            request.end_headers()
            return
        request.send_response(206 if wanted else 200)
        if wanted:
            first, last = int(wanted[1]), min(int(wanted[2] or size), size - 1)
            request.send_header("content-range", f"bytes {first}-{last}/{size}")
            body = body[first:last + 1]
        request.send_header("etag", tag)
        request.send_header("last-modified", "Tue, 01 Sep 2026 00:00:00 GMT")
        request.send_header("content-length", str(len(body)))
        request.send_header("accept-ranges", "bytes")
        request.end_headers()
        if has_body:
            with contextlib.suppress(OSError):
                request.wfile.write(body)


class Reader:
    """Reads keys at random, and checks each byte. Between the beginning of a request and its answer a key may have had several
    numbers; `older` says by how many seconds an answer may be older than its request. `pause` are the seconds between two
    requests."""

    def __init__(self, bucket, seed, older=-1, pause=0):
        self.bucket, self.dice, self.older, self.pause = bucket, random.Random(seed), older, pause
        self.answers = self.failures = self.wrong = 0
        self.stops = False

    def begin(self, server):
        self.stops = False
        self.thread = threading.Thread(target=self.read, args=(server,))
        self.thread.start()

    def end(self):
        self.stops = True
        self.thread.join()

    def read(self, server):
        with contextlib.suppress(OSError, http.client.HTTPException):
            with contextlib.closing(http.client.HTTPConnection(server.host, server.port, timeout=SECONDS)) as connection:
                while not self.stops:
                    self.check(connection, self.dice.choice(list(self.bucket.lengths)))
                    time.sleep(self.pause)

    def check(self, connection, key):
        begun = time.monotonic()
        with self.bucket.lock:
            least = self.bucket.numbers[key]
        connection.request("GET", f"/store/m/{key}")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            assert answer.status >= 500, answer.status
            self.failures += 1
            return
        self.answers += 1
        with self.bucket.lock:
            most, replaced = self.bucket.numbers[key], self.bucket.replaced[key]
        found = re.match(rb"\S+ (\d+) ", body)
        number = int(found[1]) if found else -1
        is_whole = body == content(key, number, self.bucket.lengths[key])
        is_current = least <= number <= most or 0 <= number < least and replaced[number] >= begun - self.older
        self.wrong += not (is_whole and is_current)


def changing(bucket, seconds, pause=0.01):
    """Changes objects for some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bucket.change(random.choice(list(bucket.lengths)))
        time.sleep(pause)
