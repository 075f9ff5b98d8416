"""A connection to a server that is kept, if the server keeps it, and whole responses of a known length."""

import http.client
import time
import urllib.parse

import processes

PIECE_BYTES = 1 << 20


class Connection:
    def __init__(self, base, keep=True):
        address = urllib.parse.urlsplit(base)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=processes.SECONDS)
        self.keep = keep

    def ask(self, method, path, body=None, out=None, body_type="application/json"):
        """The body of a response, or what `out` takes of it."""
        headers = {} if body is None else {"Content-Type": body_type}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        if answer.status not in (200, 201, 204):
            raise AssertionError(f"{path}: {answer.status} {answer.read()[:500]}")
        whole = b""
        if out is None:
            whole = answer.read()
        else:
            buffer = memoryview(bytearray(PIECE_BYTES))
            while length := answer.readinto(buffer):
                out.write(buffer[:length])
        if not self.keep:
            self.connection.close()
        return whole

    def get(self, path, out=None):
        return self.ask("GET", path, out=out)

    def post(self, path, body):
        return self.ask("POST", path, body)

    def timed(self, path):
        """A body, and the seconds until all of it was there."""
        began = time.perf_counter()
        body = self.get(path)
        return body, time.perf_counter() - began
