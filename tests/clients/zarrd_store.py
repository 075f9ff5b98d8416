"""A store of zarr-python over all that the server offers to one: parts of values, conditions, listings as JSON."""

import asyncio
import struct
import threading
import urllib.parse

import requests
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from processes import SECONDS

LOCAL = threading.local()
"""A session for each thread."""
MISSING = 2**64 - 1
"""Stands for the length of a value that does not exist."""

OUTSIDE = 416
"""No part of the value: for zarr-python, one that is empty."""


class ZarrdStore(Store):
    """The mount of a server."""

    def __init__(self, base, mount, *, read_only=False):
        super().__init__(read_only=read_only)
        self.base = base
        self.mount = mount

    supports_writes = supports_deletes = supports_listing = True

    def __eq__(self, other):
        return isinstance(other, ZarrdStore) and self.parts() == other.parts()

    def parts(self):
        return self.base, self.mount, self.read_only

    def __repr__(self):
        return f"ZarrdStore({self.base!r}, {self.mount!r})"

    def with_read_only(self, read_only=False):
        return ZarrdStore(self.base, self.mount, read_only=read_only)

    async def get(self, key, prototype=None, byte_range=None):
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    def get_sync(self, key, *, prototype=None, byte_range=None):
        headers = {"Range": f"bytes={spelled(part_of(byte_range))}"} if byte_range else {}
        answer = ask("GET", self.url(key), headers=headers, missing=True, accepted=[OUTSIDE])
        if answer is None:
            return None
        assert answer.status_code in ([206, OUTSIDE] if headers else [200])
        found = b"" if answer.status_code == OUTSIDE else answer.content
        return (prototype or default_buffer_prototype()).buffer.from_bytes(found)

    async def get_partial_values(self, prototype, key_ranges):
        key_ranges = list(key_ranges)
        parts = [{"key": key, **(part_of(byte_range) if byte_range else {})} for key, byte_range in key_ranges]
        answer = await self.ask("POST", self.route("partial"), json={"get": parts}, accepted=[OUTSIDE])
        if answer.status_code == OUTSIDE:
            return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]
        found, at = [], 0
        for _ in parts:
            (length,) = struct.unpack_from("<Q", answer.content, at)
            at += 8
            here = 0 if length == MISSING else length
            found.append(None if length == MISSING else prototype.buffer.from_bytes(answer.content[at : at + here]))
            at += here
        assert at == len(answer.content)
        return found

    async def exists(self, key):
        return await self.ask("HEAD", self.url(key), missing=True) is not None

    async def getsize(self, key):
        answer = await self.ask("HEAD", self.url(key), missing=True)
        if answer is None:
            raise FileNotFoundError(key)
        return int(answer.headers["Content-Length"])

    async def set(self, key, value):
        await asyncio.to_thread(self.set_sync, key, value)

    def set_sync(self, key, value):
        self._check_writable()
        ask("PUT", self.url(key), data=value.to_bytes())

    async def set_if_not_exists(self, key, value):
        self._check_writable()
        await self.ask("PUT", self.url(key), data=value.to_bytes(), headers={"If-None-Match": "*"}, accepted=[412])

    async def set_part(self, key, offset, data):
        """Writes some bytes into a value, which is empty if there is none."""
        content_range = f"bytes {offset}-{offset + len(data) - 1}/*"
        await self.ask("PATCH", self.url(key), data=data, headers={"Content-Range": content_range})

    async def set_parts(self, parts):
        """Writes bytes into many values: key, offset, and the bytes in base64."""
        await self.ask("POST", self.route("partial"), json={"set": parts})

    async def delete(self, key):
        await asyncio.to_thread(self.delete_sync, key)

    def delete_sync(self, key):
        self._check_writable()
        ask("DELETE", self.url(key))

    async def delete_many(self, keys):
        self._check_writable()
        return (await self.ask("POST", self.route("erase"), json={"keys": keys})).json()["erased"]

    async def delete_dir(self, prefix):
        self._check_writable()
        await self.ask("DELETE", self.url(as_prefix(prefix)))

    async def clear(self):
        await self.delete_dir("")

    def list(self):
        return self.list_prefix("")

    async def list_prefix(self, prefix):
        # zarr-python means any beginning of a key; the specification, and the server, one that ends in a slash.
        async for page in self.pages(prefix[: prefix.rfind("/") + 1], recursive=""):
            for key in page["keys"]:
                if key["key"].startswith(prefix):
                    yield key["key"]

    async def list_dir(self, prefix):
        prefix = as_prefix(prefix)
        async for page in self.pages(prefix):
            for name in [*page["prefixes"], *(key["key"] for key in page["keys"])]:
                yield name.removeprefix(prefix).rstrip("/")

    async def pages(self, prefix, **query):
        # Short pages, so that some listings have many.
        query |= {"format": "json", "limit": 7}
        while True:
            page = (await self.ask("GET", self.url(prefix), params=query)).json()
            yield page
            if page["next"] is None:
                break
            query["after"] = page["next"]

    def url(self, key):
        return f"{self.base}/store/{self.mount}/{urllib.parse.quote(key)}"

    def route(self, name):
        return f"{self.base}/v1/{name}/{self.mount}"

    async def ask(self, *arguments, **options):
        return await asyncio.to_thread(ask, *arguments, **options)


def ask(method, url, *, missing=False, accepted=(), **options):
    """The answer, or `None` if nothing is there and that is `missing`; any other failure is raised."""
    if not hasattr(LOCAL, "session"):
        LOCAL.session = requests.Session()
    answer = LOCAL.session.request(method, url, timeout=SECONDS, **options)
    if missing and answer.status_code == 404:
        return None
    if answer.status_code not in accepted:
        answer.raise_for_status()
    return answer


def as_prefix(path):
    return f"{path}/" if path and not path.endswith("/") else path


def part_of(byte_range):
    """A part as `/v1/partial` is asked for it."""
    match byte_range:
        case RangeByteRequest(start, end):
            return {"offset": start, "length": end - start}
        case OffsetByteRequest(offset):
            return {"offset": offset}
        case SuffixByteRequest(suffix):
            return {"suffix": suffix}
    raise ValueError(f"Unexpected byte_range, got {byte_range}")


def spelled(part):
    """A part as `Range` has it."""
    if "suffix" in part:
        return f"-{part['suffix']}"
    return f"{part['offset']}-" + (str(part["offset"] + part["length"] - 1) if "length" in part else "")
