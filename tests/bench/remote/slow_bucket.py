"""A bucket as S3 has it, without listings, that waits before each response.

    python3 slow_bucket.py FOLDER SECONDS

Serves the files of the folder as `/bench/KEY`, whole and by range. `GET /counts` has how many requests there were since the last time,
and how many bytes they got. Prints its port.
"""

import asyncio
import contextlib
import email.utils
import hashlib
import json
import pathlib
import sys
import urllib.parse


class Bucket:
    """The folder, and what was asked for."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = folder, seconds
        self.requests = self.bytes = 0

    async def converse(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ", 2)
                fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
                if path == "/counts":
                    head, body = self.counts()
                else:
                    await asyncio.sleep(self.seconds)
                    head, body = self.answer(path, fields.get("range"))
                    self.requests += 1
                    self.bytes += len(body) if method == "GET" else 0
                writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                if method == "GET":
                    writer.write(body)
                await writer.drain()

    def counts(self):
        body = json.dumps([self.requests, self.bytes]).encode()
        self.requests = self.bytes = 0
        return "200 OK", body

    def answer(self, path, wanted):
        key = urllib.parse.unquote(path.partition("?")[0]).removeprefix("/bench").strip("/")
        file = self.folder / key
        if not key:
            return "200 OK", b""
        if not file.is_file():
            return "404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>"
        value = file.read_bytes()
        modified = email.utils.formatdate(file.stat().st_mtime, usegmt=True)
        head = f'\r\nETag: "{hashlib.md5(key.encode()).hexdigest()}"\r\nLast-Modified: {modified}\r\nAccept-Ranges: bytes'
        head += "\r\nCache-Control: max-age=3600"
        if not wanted:
            return f"200 OK{head}", value
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(value) - int(last))
        end = min(len(value), int(last) + 1) if first and last else len(value)
        return f"206 Partial Content{head}\r\nContent-Range: bytes {start}-{end - 1}/{len(value)}", value[start:end]


async def main(folder, seconds):
    bucket = Bucket(pathlib.Path(folder), float(seconds))
    server = await asyncio.start_server(bucket.converse, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
