"""What goes over the wire: a door before a server that passes every byte on, and keeps the heads of the requests."""

import contextlib
import socket
import threading
import urllib.parse


class Wire:
    """The door. `requests` are the request line and the fields, names in lower case, of each in order."""

    def __init__(self, base):
        self.requests = []
        self.server = urllib.parse.urlsplit(base)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection((self.server.hostname, self.server.port))
                for source, sink, kept in [(client, server, self.requests), (server, client, None)]:
                    threading.Thread(target=forward, args=[source, sink, kept], daemon=True).start()


def forward(source, sink, kept):
    """Passes on until either side ends. The lengths of bodies separate them from heads."""
    unread, body = b"", 0
    with contextlib.suppress(OSError), source, sink:
        while data := source.recv(65536):
            unread += data if kept is not None else b""
            while unread:
                if body:
                    skipped = min(body, len(unread))
                    unread, body = unread[skipped:], body - skipped
                    continue
                head, end, rest = unread.partition(b"\r\n\r\n")
                if not end:
                    break
                line, *fields = head.decode("latin-1").split("\r\n")
                fields = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
                kept.append((line, fields))
                unread, body = rest, int(fields.get("content-length", 0))
            sink.sendall(data)


@contextlib.contextmanager
def tap(base):
    """Opens a door before the server at `base`."""
    wire = Wire(base)
    thread = threading.Thread(target=wire.accept, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        # What is waited in must be shut down; to close it wakes no waiter.
        wire.listener.shutdown(socket.SHUT_RDWR)
        wire.listener.close()
        thread.join()
