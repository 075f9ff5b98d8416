"""HSDS, a server of arrays in HDF5, in a folder of its own: frames are appended to its datasets by its own interface."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.parse

import processes

BUCKET = "hsds.bench"
CREDENTIALS = {"Authorization": "Basic " + base64.b64encode(b"bench:bench").decode()}


class Hsds:
    def __init__(self, port):
        self.port = port
        self.domain = None
        self.names = iter(range(1_000_000))
        for folder in ("/home", "/home/bench"):
            self.ask("PUT", "/", {"folder": 1}, domain=folder, also=(409,))

    def ask(self, method, path, body=None, also=(), connection=None, **words):
        """A response of JSON, or of bytes for bytes. `also`: further statuses that are right."""
        words = {"domain": self.domain, "bucket": BUCKET} | words
        is_json = not isinstance(body, (bytes, memoryview))
        headers = CREDENTIALS | {"Content-Type": "application/json" if is_json else "application/octet-stream"}
        if body is None:
            headers |= {"Accept": "application/octet-stream"}
        connection = connection or self.connection()
        text = json.dumps(body) if is_json and body is not None else body
        connection.request(method, f"{path}?{urllib.parse.urlencode(words)}", text, headers)
        answer = connection.getresponse()
        whole = answer.read()
        assert answer.status in (200, 201, *also), (path, answer.status, whole[:500])
        return json.loads(whole) if body is not None and whole.startswith(b"{") else whole

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=processes.SECONDS)

    def new(self, shape, chunks):
        """A new dataset of uint16, of which the first dimension grows; its elements are not compressed."""
        self.domain = f"/home/bench/a{next(self.names)}.h5"
        self.ask("PUT", "/", {})
        layout = {"layout": {"class": "H5D_CHUNKED", "dims": chunks}}
        dataset = {"type": "H5T_STD_U16LE", "shape": shape, "maxdims": [0, *shape[1:]], "creationProperties": layout}
        return self.ask("POST", "/datasets", dataset)["id"]

    def append(self, dataset, frame, connection=None):
        self.ask("PUT", f"/datasets/{dataset}/value", frame, append=1, connection=connection)

    def elements(self, dataset):
        return self.ask("GET", f"/datasets/{dataset}/value")


@contextlib.contextmanager
def running(folder):
    """HSDS with as many data nodes as there are cores, until the end of the block."""
    port = processes.free_port()
    (folder / BUCKET).mkdir(parents=True)
    program = pathlib.Path(sys.executable).with_name("hsds")
    options = {"root_dir": folder, "bucket_name": BUCKET, "host": "127.0.0.1", "hs_username": "bench", "hs_password": "bench", "port": port}
    options |= {"count": len(processes.CORES), "loglevel": "ERROR", "logfile": folder / "nodes.log"}
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    log = folder / "hsds.log"
    with open(log, "w") as out:
        # Its nodes are processes too, which end with their group.
        process = subprocess.Popen([program, *words], stdout=out, stderr=out, start_new_session=True)
    try:
        ends = time.monotonic() + processes.SECONDS
        while "READY" not in log.read_text():
            assert process.poll() is None and time.monotonic() < ends, log.read_text()
            time.sleep(0.1)
        yield Hsds(port)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(processes.SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
