"""Starts the servers, writes in turn, and prints the tables: all of them, or those that are named."""

import concurrent.futures
import contextlib
import datetime
import http.client
import importlib.metadata
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import h5py
import numpy
import tensorstore
import zarr

import hsds
import processes
import table
from connection import Connection
from table import Goal

CHUNKS = Goal("ratio", 0.8, 1.0)
SHARD = Goal("ratio", 5, 10)
APPENDS = Goal("ratio", 3, 5)
UPLOAD = Goal("ratio", 0.8, 1.0)

SIZES = {
    "small": {"rounds": 3, "chunks": 64, "seconds": 2, "frames": 24, "upload": 128 << 20},
    "whole": {"rounds": 5, "chunks": 256, "seconds": 5, "frames": 100, "upload": 1 << 30},
}
CHUNK = (1, 512, 512)
"""Of float32: 1 MiB."""
CLIENTS = 16
INNER, SIDE = 64, 512
"""A shard has 8 by 8 inner chunks, and each write a quarter of one."""
PART = 16 << 20
BYTES = "application/octet-stream"


class Bench:
    """The folder, and a server of it for each promise: what is acknowledged is on the disk, or is visible."""

    def __init__(self, size, scratch, stack):
        self.size, self.scratch, self.stack = size, scratch, stack
        self.servers, self.names, self.nginx = {}, iter(range(1_000_000)), None

    def folder(self, durability):
        folder = self.scratch / durability
        folder.mkdir(exist_ok=True)
        return folder

    def server(self, durability):
        if durability not in self.servers:
            settings = {"WRITABLE": "true", "ALLOW_PREFIX_DELETE": "true", "OPTIONS__DURABILITY": durability}
            settings = {f"MOUNTS__BENCH__{name}": value for name, value in settings.items()}
            # The long value of the whole run is longer than values are by default.
            settings["HTTP__MAX_VALUE_SIZE"] = "2GiB"
            log = self.scratch / f"{durability}.log"
            self.servers[durability] = self.stack.enter_context(processes.zarrd(self.folder(durability), log, **settings))
        return self.servers[durability]

    def new(self, durability, document):
        """A new array in the folder of a server, with the same document for all contenders: its name and its path."""
        name = f"a{next(self.names)}"
        path = self.folder(durability) / name
        Connection(self.server(durability).base).ask("PUT", f"/v1/nodes/bench/{name}", json.dumps(document))
        return name, path


    def bare(self):
        """nginx with WebDAV, and the folder where it stores bodies as they come."""
        folder = self.scratch / "nginx"
        if self.nginx is None:
            words = "root {0}; dav_methods PUT; client_max_body_size 0; client_body_buffer_size 1m; client_body_temp_path {0}/part;"
            self.nginx = self.stack.enter_context(processes.nginx_with(folder, words.format(folder)))
        return self.nginx.base, folder


def stored_bytes(pid="self"):
    """The bytes that a process has had the kernel store."""
    return int(re.search(r"^write_bytes: (\d+)$", pathlib.Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)[1])


@contextlib.contextmanager
def measured(rounds, row, who, written, pid="self"):
    """Notes the rate and the amplification of what is written meanwhile."""
    before, began = stored_bytes(pid), time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    rounds.add(row, who, rate=written / seconds / 1e6, time=seconds, amplification=(stored_bytes(pid) - before) / written)


def opened(path, sync):
    """The array in tensorstore, without a cache."""
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}, "context": {"file_io_sync": sync}}
    return tensorstore.open(spec, open=True).result()


def frames_of(count, data_type="float32"):
    """Chunks of values that compress somewhat, as measured ones do."""
    rng = numpy.random.default_rng(1)
    smooth = numpy.add.outer(numpy.sin(numpy.arange(CHUNK[1]) / 40), numpy.cos(numpy.arange(CHUNK[2]) / 60))
    return numpy.stack([numpy.round(100 * smooth + rng.normal(0, 3, smooth.shape)) for _ in range(count)]).astype(data_type)


def chunks(bench):
    """Whole chunks: an array that is written as a whole, and one that four clients write."""
    count = bench.size["chunks"]
    data = frames_of(count)
    rows = []
    for codecs in ("raw", "zstd-3"):
        document = {"shape": data.shape, "data_type": "float32", "chunks": CHUNK, "codecs": codecs}
        for durability, others in (("fsync", ("tensorstore",)), ("rename", ("tensorstore", "zarr-python"))):
            rounds, server = table.Rounds(), bench.server(durability)
            # What a server over HTTP can reach at most: one that stores the same bodies as they come, each in a file.
            bounds = ("nginx, 4 clients",) if (codecs, durability) == ("raw", "rename") else ()
            row = f"{codecs}, acknowledged when {'on the disk' if durability == 'fsync' else 'visible'}"
            for turn in range(bench.size["rounds"] + 1):
                for who in turns(("zarrd", "zarrd, 4 clients", *others, *bounds), turn):
                    if who in bounds:
                        base, folder = bench.bare()
                        each = [body_of(part) for part in numpy.split(data, 4)]
                        with measured(rounds, row, who, data.nbytes):
                            together(4, lambda at: Connection(base).ask("PUT", f"/part{at}", each[at]), range(4))
                        assert all((folder / f"part{at}").read_bytes() == part for at, part in enumerate(each))
                        continue
                    name, path = bench.new(durability, document)
                    pid = server.process.pid if who.startswith("zarrd") else "self"
                    with measured(rounds, row, who, data.nbytes, pid):
                        if who == "zarrd":
                            Connection(server.base).ask("PUT", f"/v1/data/bench/{name}", body_of(data), body_type=BYTES)
                        elif who == "zarrd, 4 clients":
                            each = [slice(at, at + count // 4) for at in range(0, count, count // 4)]
                            together(4, lambda at: put(server, name, each[at], data[each[at]]), range(4))
                        elif who == "tensorstore":
                            opened(path, durability == "fsync").write(data).result()
                        else:
                            zarr.open_array(path, mode="r+")[:] = data
                    numpy.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], data)
                    shutil.rmtree(path)
            best = max(others, key=lambda who: rounds.median(row, who, "rate"))
            for who in ("zarrd", "zarrd, 4 clients"):
                rows.append(row_of(rounds, row, who, (best,), CHUNKS, [other for other in (*others, *bounds) if other != best]))
    table.show(
        f"Whole chunks: {count} of 1 MiB float32", ["", "", "zarrd", "the better one", "others", "ratio", "floor", "aim", "", "amplification, both"], rows
    )


def row_of(rounds, row, who, against, goal, others=()):
    """A row: the rates, their ratio, what is asked of it, and the amplification."""
    (other,) = against
    ratio = rounds.ratio(row, "rate", who, other)
    rate = lambda name: f"{name}: {rounds.median(row, name, 'rate'):,.1f} MB/s"
    amplification = " and ".join(f"{rounds.median(row, name, 'amplification'):.2f}" for name in (who, other))
    return [row, who, f"{rounds.median(row, who, 'rate'):,.1f} MB/s", rate(other), ", ".join(map(rate, others)) or "–", f"{ratio:.2f}", *table.judged((goal,), {"ratio": ratio}), amplification]


def turns(names, turn):
    """Who is first takes turns too."""
    at = turn % len(names)
    return names[at:] + names[:at]


def together(count, work, items):
    """Does something for each item in threads; raises what fails."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for done in pool.map(work, items):
            pass


def body_of(elements):
    """Elements as plain bytes, without a copy where they lie one after another."""
    return memoryview(numpy.ascontiguousarray(elements)).cast("B")


def put(server, name, part, data):
    Connection(server.base).ask("PUT", f"/v1/data/bench/{name}?slice={part.start}:{part.stop}", body_of(data), body_type=BYTES)


def shard(bench):
    """16 clients write small boxes of one shard, one box after another. Those of zarrd are of wrk, because 16 clients of Python take
    longer than the server; those of tensorstore are threads of its process."""
    box = INNER // 2
    along = SIDE // box
    wanted = elements_of_boxes(box, along)
    document = {"shape": [SIDE, SIDE], "data_type": "uint16", "chunks": [INNER, INNER], "shards": [SIDE, SIDE]}
    rows = []
    for durability in ("fsync", "rename"):
        rounds, server = table.Rounds(), bench.server(durability)
        row = f"acknowledged when {'on the disk' if durability == 'fsync' else 'visible'}"
        for turn in range(bench.size["rounds"]):
            for who in turns(("zarrd", "tensorstore"), turn):
                name, path = bench.new(durability, document)
                pid = server.process.pid if who == "zarrd" else "self"
                before, began = stored_bytes(pid), time.perf_counter()
                if who == "zarrd":
                    writes = boxes_by_wrk(server, name, (box, along), bench.size["seconds"])
                else:
                    writes = boxes_under_a_lock(opened(path, durability == "fsync"), wanted, box, bench.size["seconds"])
                seconds = time.perf_counter() - began
                rounds.add(row, who, rate=writes / seconds, amplification=(stored_bytes(pid) - before) / (writes * box * box * 2))
                assert writes >= along**2, "some boxes were not written"
                numpy.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], wanted)
                shutil.rmtree(path)
        ratio = rounds.ratio(row, "rate", "zarrd", "tensorstore")
        rates = [f"{rounds.median(row, who, 'rate'):,.0f} /s" for who in ("zarrd", "tensorstore")]
        amplification = [f"{rounds.median(row, who, 'amplification'):.1f}" for who in ("zarrd", "tensorstore")]
        rows.append([row, *rates, f"{ratio:.1f}", *table.judged((SHARD,), {"ratio": ratio}), *amplification])
    table.show(
        f"Writes of {box} × {box} uint16 by {CLIENTS} clients into one shard of {SIDE} × {SIDE}, tensorstore under a lock",
        ["", "zarrd", "tensorstore", "ratio", "floor", "aim", "", "amplification of zarrd", "of tensorstore"],
        rows,
    )


def elements_of_boxes(box, along):
    """What `boxes.lua` writes."""
    states = itertools.accumulate(range(along**2 * box**2), lambda state, _: state * 16807 % 2147483647, initial=1)
    numbers = numpy.fromiter(itertools.islice(states, 1, None), "int64") % 1000
    return numbers.reshape(along, along, box, box).swapaxes(1, 2).reshape(along * box, along * box).astype("uint16")


def boxes_by_wrk(server, name, boxes, seconds):
    """How many boxes were written in some seconds."""
    script = pathlib.Path(__file__).with_name("boxes.lua")
    words = ["-t1", f"-c{CLIENTS}", f"-d{seconds}", "-s", script, server.base, "--", f"/v1/data/bench/{name}", *boxes]
    said = subprocess.run(["wrk", *map(str, words)], capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said and "Socket errors" not in said, said
    return int(re.search(r"(\d+) requests in", said)[1])


def boxes_under_a_lock(array, wanted, box, seconds):
    """The same by threads of this process."""
    lock, places, ends = threading.Lock(), itertools.cycle(numpy.ndindex(*(side // box for side in wanted.shape))), time.monotonic() + seconds

    def write(_):
        writes = 0
        while time.monotonic() < ends:
            with lock:
                part = tuple(slice(at * box, at * box + box) for at in next(places))
                array[part].write(wanted[part]).result()
            writes += 1
        return writes

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(write, range(CLIENTS)))


def appends(bench):
    """Frames that are appended one by one, by one client and by 16: to zarrd and HSDS, which are servers, and by libraries."""
    count = bench.size["frames"]
    data = frames_of(count, "uint16")
    rows = []
    with hsds.running(bench.scratch / "hsds") as other:
        for codecs, durability in itertools.product(("raw", "zstd-3"), ("rename", "fsync")):
            document = {"shape": [0, *CHUNK[1:]], "data_type": "uint16", "chunks": CHUNK, "codecs": codecs, "dimension_names": ["time", "y", "x"]}
            rounds, server = table.Rounds(), bench.server(durability)
            row = f"{codecs}, acknowledged when {'on the disk' if durability == 'fsync' else 'visible'}"
            # HSDS and h5py compress nothing here, and do not wait for the disk.
            servers = ("HSDS", "HSDS, 16 clients", "h5py SWMR") if (codecs, durability) == ("raw", "rename") else ()
            contenders = ("zarrd", "zarrd, 16 clients", "zarr-python", *servers)
            for turn in range(bench.size["rounds"]):
                for who in turns(contenders, turn):
                    name, path = bench.new(durability, document)
                    began = time.perf_counter()
                    found = append_frames(who, data, (server, name, path), other, bench.scratch / "frames.h5")
                    # Of many clients, the order is that of the server.
                    order = lambda frames: sorted(frame.tobytes() for frame in frames) if "16" in who else [frame.tobytes() for frame in frames]
                    rounds.add(row, who, time=found[0] - began)
                    assert order(found[1]()) == order(data), who
                    shutil.rmtree(path)
            for who in contenders:
                rate = f"{count / rounds.median(row, who, 'time'):,.0f} /s"
                against = [name for name in ("HSDS", "HSDS, 16 clients") if name in contenders and ("16" in name) == ("16" in who)] or ["zarr-python"]
                ratio = rounds.ratio(row, "time", against[0], who)
                goal = table.judged((APPENDS,), {"ratio": ratio}) if who.startswith("zarrd") else ["", "", ""]
                rows.append([row, who, rate, f"{ratio:.2f} × {against[0]}", *goal])
    table.show(
        f"{count} frames of 512 × 512 uint16, appended one by one; zarr-python, h5py and HSDS do not wait for the disk",
        ["", "", "frames", "ratio", "floor", "aim", ""],
        rows,
    )


def append_frames(who, data, ours, other, file):
    """Appends all frames. Returns when that was done, and what reads them."""
    server, name, path = ours
    if who.startswith("HSDS"):
        dataset = other.new([0, *CHUNK[1:]], CHUNK)
        if who == "HSDS":
            connection = other.connection()
            for frame in data:
                other.append(dataset, body_of(frame), connection)
        else:
            together(CLIENTS, lambda frame: other.append(dataset, body_of(frame)), data)
        return time.perf_counter(), lambda: numpy.frombuffer(other.elements(dataset), "<u2").reshape(data.shape)
    if who == "h5py SWMR":
        swmr(file, data)
        ended = time.perf_counter()

        def read():
            with h5py.File(file) as opened_file:
                return opened_file["frames"][:]

        return ended, read
    if who == "zarrd":
        connection = Connection(server.base)
        for frame in data:
            connection.ask("POST", f"/v1/data/bench/{name}?append=time", body_of(frame), body_type=BYTES)
    elif who == "zarrd, 16 clients":
        together(CLIENTS, lambda frame: append(server, name, frame), data)
    else:
        array = zarr.open_array(path, mode="r+")
        for frame in data:
            array.append(frame[None])
    return time.perf_counter(), lambda: zarr.open_array(path, mode="r")[:]


def append(server, name, frame):
    Connection(server.base).ask("POST", f"/v1/data/bench/{name}?append=time", body_of(frame), body_type=BYTES)


def swmr(path, data):
    """Appends frames to a file of HDF5 that readers may follow."""
    with h5py.File(path, "w", libver="latest") as file:
        frames = file.create_dataset("frames", (0, *CHUNK[1:]), "uint16", maxshape=(None, *CHUNK[1:]), chunks=CHUNK)
        file.swmr_mode = True
        for at, frame in enumerate(data):
            frames.resize(at + 1, axis=0)
            frames[at] = frame
            frames.flush()


def upload(bench):
    """One long value: in parts by the dialect of S3, by PUT of `/store`, and by a program that writes the file itself."""
    size = bench.size["upload"]
    data = memoryview(numpy.random.default_rng(3).bytes(size))
    server = bench.server("fsync")
    rounds, row = table.Rounds(), f"{size >> 20} MiB"
    contenders = ("a file", "multipart of /s3", "PUT of /store")
    for turn in range(bench.size["rounds"]):
        for who in turns(contenders, turn):
            path = bench.folder("fsync") / "long"
            with measured(rounds, row, who, size, "self" if who == "a file" else server.process.pid):
                if who == "a file":
                    part = path.with_suffix(".part")
                    with open(part, "wb") as file:
                        file.write(data)
                        file.flush()
                        os.fsync(file.fileno())
                    part.rename(path)
                elif who == "PUT of /store":
                    Connection(server.base).ask("PUT", "/store/bench/long", data, body_type=BYTES)
                else:
                    multipart(server, data)
            assert path.stat().st_size == size
            with open(path, "rb") as file:
                for at in range(0, size, PART):
                    assert file.read(PART) == data[at : at + PART]
            path.unlink()
    rows = []
    for who in contenders[1:]:
        ratio = rounds.ratio(row, "rate", who, "a file")
        rates = [f"{rounds.median(row, name, 'rate'):,.0f} MB/s" for name in (who, "a file")]
        goals = (UPLOAD,) if who.startswith("multipart") else ()
        rows.append([who, *rates, f"{ratio:.2f}", *table.judged(goals, {"ratio": ratio}), f"{rounds.median(row, who, 'amplification'):.2f}"])
    table.show(f"A value of {size >> 20} MiB that is on the disk at the end", ["", "zarrd", "a file", "ratio", "floor", "aim", "", "amplification"], rows)


def multipart(server, data):
    connection = Connection(server.base)
    upload = re.search("<UploadId>(.*?)</UploadId>", connection.ask("POST", "/s3/bench/long?uploads").decode())[1]
    tags = {}

    def send(number):
        own = http.client.HTTPConnection(connection.connection.host, connection.connection.port, timeout=processes.SECONDS)
        own.request("PUT", f"/s3/bench/long?partNumber={number}&uploadId={upload}", data[(number - 1) * PART : number * PART])
        answer = own.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        tags[number] = answer.getheader("etag")
        own.close()

    count = -(-len(data) // PART)
    together(4, send, range(1, count + 1))
    parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tags[number]}</ETag></Part>" for number in range(1, count + 1))
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
    said = connection.ask("POST", f"/s3/bench/long?uploadId={upload}", body, body_type="application/xml")
    assert b"<Error>" not in said, said


TABLES = {"chunks": chunks, "shard": shard, "appends": appends, "upload": upload}


def machine(size):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    models = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("zarr", "tensorstore", "h5py", "hsds"))
    return f"{datetime.date.today().isoformat()}, commit {commit}, {len(models)} × {models[0]}, Linux {platform.release()}, {size['rounds']} rounds, {versions}"


def main(words):
    size = SIZES["small" if "--small" in words else "whole"]
    named = [word for word in words if word != "--small"] or list(TABLES)
    unknown = set(named) - set(TABLES)
    assert not unknown, f"there are {', '.join(TABLES)}, and no {', '.join(unknown)}"
    print(machine(size))
    with tempfile.TemporaryDirectory(dir=os.environ["ZARRD_BENCH_WRITTEN"]) as scratch, contextlib.ExitStack() as stack:
        bench = Bench(size, pathlib.Path(scratch), stack)
        for name in named:
            TABLES[name](bench)


if __name__ == "__main__":
    main(sys.argv[1:])
