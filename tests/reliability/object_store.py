"""A store that speaks the part of S3 that a writing server needs, checks conditions, and fails as often as its arguments say.

It can also lose what it says it has stored, which no server can make good: so a check of what is stored can be seen to fail. A program of its own: it prints its port, and at the end of its input the counts of requests and faults.
"""

import asyncio
import contextlib
import email.utils
import hashlib
import json
import random
import re
import subprocess
import sys
import time
import urllib.parse
import xml.sax.saxutils

FAULTS = ("busy", "cut before", "cut after", "failed after", "conflict", "slow")
"""Refused as busy; the connection is cut before the request has any effect, or after it; an error after it; the conflict that S3 has
with another request of the same time; late."""
PAGE = 1000


class Objects:
    def __init__(self, lost):
        self.values = {}
        """The bytes, the entity tag, the time and the metadata of each key."""
        self.lost = lost
        """Each of this many changes of a value is answered as if it was stored, and is not."""
        self.changes = 0

    def put(self, key, body, headers):
        found = self.values.get(key)
        wanted = headers.get("if-match")
        if wanted is not None and found is None:
            return 404, {}, error("NoSuchKey")
        if (headers.get("if-none-match") == "*" and found) or (wanted is not None and wanted.strip('"') != found[1]):
            return 412, {}, error("PreconditionFailed")
        tag = hashlib.md5(body).hexdigest()
        kept = {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}
        self.changes += found is not None
        if not (self.lost and found and self.changes % self.lost == 0):
            self.values[key] = body, tag, time.time(), kept
        return 200, {"etag": f'"{tag}"'}, b""

    def get(self, key, headers):
        if key not in self.values:
            return 404, {}, error("NoSuchKey")
        body, tag, stored, kept = self.values[key]
        if headers.get("if-match", tag).strip('"') != tag:
            return 412, {}, error("PreconditionFailed")
        facts = {"etag": f'"{tag}"', "last-modified": email.utils.formatdate(stored, usegmt=True), "accept-ranges": "bytes", **kept}
        part = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("range", ""))
        if not part:
            return 200, facts, body
        first = int(part[1]) if part[1] else max(len(body) - int(part[2]), 0)
        last = min(int(part[2]) if part[1] and part[2] else len(body) - 1, len(body) - 1)
        if first > last:
            return 416, {}, error("InvalidRange")
        facts["content-range"] = f"bytes {first}-{last}/{len(body)}"
        return 206, facts, body[first : last + 1]

    def delete(self, key, headers):
        found = self.values.get(key)
        if "if-match" in headers and (found is None or headers["if-match"].strip('"') != found[1]):
            return 412, {}, error("PreconditionFailed")
        self.values.pop(key, None)
        return 204, {}, b""

    def delete_many(self, body):
        keys = [xml.sax.saxutils.unescape(key) for key in re.findall("<Key>(.*?)</Key>", body.decode())]
        for key in keys:
            self.values.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{xml.sax.saxutils.escape(key)}</Key></Deleted>" for key in keys)
        return 200, {}, document("DeleteResult", deleted)

    def list(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        entries = {}
        for key in sorted(self.values):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            cut = rest.find(delimiter) if delimiter else -1
            name = key if cut < 0 else prefix + rest[: cut + 1]
            if name > after:
                entries[name] = key if cut < 0 else None
        page = list(entries.items())[:PAGE]
        text = "".join(self.entry(name, key) for name, key in page)
        is_cut = len(entries) > len(page)
        text += f"<IsTruncated>{str(is_cut).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"
        if is_cut:
            text += f"<NextContinuationToken>{xml.sax.saxutils.escape(page[-1][0])}</NextContinuationToken>"
        return 200, {}, document("ListBucketResult", text)

    def entry(self, name, key):
        name = xml.sax.saxutils.escape(name)
        if key is None:
            return f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
        body, tag, stored, _ = self.values[key]
        when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored))
        return f"<Contents><Key>{name}</Key><LastModified>{when}</LastModified><ETag>&quot;{tag}&quot;</ETag><Size>{len(body)}</Size></Contents>"


def document(name, text):
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{text}</{name}>'.encode()


def error(code):
    return document("Error", f"<Code>{code}</Code><Message>{code}</Message>")


class Connections:
    def __init__(self, rate, lost):
        self.objects, self.rate, self.dice = Objects(lost), rate, random.Random(1)
        self.counts = dict.fromkeys(("requests", *FAULTS), 0)

    def fault(self, method):
        self.counts["requests"] += 1
        if self.dice.random() * 1000 >= self.rate:
            return None
        fault = self.dice.choice(FAULTS)
        if fault == "conflict" and method != "PUT":
            return None
        self.counts[fault] += 1
        return fault

    def carry_out(self, method, target, headers, body):
        path, _, text = target.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        _, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        if method == "PUT":
            return self.objects.put(key, body, headers)
        if method == "DELETE":
            return self.objects.delete(key, headers)
        if method == "POST" and "delete" in query:
            return self.objects.delete_many(body)
        if method in ("GET", "HEAD") and key:
            return self.objects.get(key, headers)
        if method == "GET":
            return self.objects.list(query)
        return 501, {}, error("NotImplemented")

    async def converse(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self.answer(reader, writer):
                await writer.drain()
        writer.close()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        fault = self.fault(method)
        if fault == "slow":
            await asyncio.sleep(self.dice.random() * 0.2)
        if fault == "cut before":
            return False
        if fault in ("busy", "conflict"):
            status, facts, content = (503, {}, error("SlowDown")) if fault == "busy" else (409, {}, error("ConditionalRequestConflict"))
        else:
            status, facts, content = self.carry_out(method, target, headers, body)
        if fault == "cut after":
            return False
        if fault == "failed after":
            status, facts, content = 500, {}, error("InternalError")
        lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in facts.items()), f"content-length: {len(content)}", "", ""]
        writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" or status == 204 else content))
        return True


async def serve(rate, lost):
    connections = Connections(rate, lost)
    server = await asyncio.start_server(connections.converse, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(connections.counts), flush=True)
    server.close()


@contextlib.contextmanager
def running(rate, lost=0):
    """The store as a program, of which `rate` of a thousand requests fail, and one of `lost` changes of a value is lost. Its port, and a
    list that has its counts in the end."""
    command = [sys.executable, "-B", __file__, str(rate), str(lost)]
    counts = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline()), counts
            process.stdin.close()
            counts.append(json.loads(process.stdout.readline()))
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2])))
