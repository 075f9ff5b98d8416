"""The clients that are no Python: programs in `node/` and `zarrs/`, and how they are asked what they read.

`ZARRD_NODE_MODULES` is the folder of the packages that those of `node/` need, and `ZARRD_ZARRS` the program that was
built of `zarrs/`.
"""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import threading

import numpy

import table

FOLDER = pathlib.Path(__file__).parent / "node"
SECONDS = 60
"""How long a program may take, or an answer of it."""


def of_node(folder):
    """Copies the programs for Node to where they find their packages."""
    packages = pathlib.Path(os.environ.get("ZARRD_NODE_MODULES", FOLDER / "node_modules"))
    if not packages.is_dir():
        raise table.Missing(packages)
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(packages.resolve())
    return folder


def run(*command):
    """Runs a program to its end; what it prints."""
    command = [table.program(command[0]), *map(str, command[1:])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def running(*command):
    """Runs a program that answers each question, a line of JSON, with another; yields how to ask it.

    One that does not answer in time is ended, and the next question is for a new one: a test that fails spoils no other.
    """
    command = [table.program(command[0]), *map(str, command[1:])]
    with contextlib.ExitStack() as stack:
        process = None

        def ask(question):
            nonlocal process
            if process is None:
                process = stack.enter_context(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                )
                stack.callback(process.kill)
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            try:
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            finally:
                timer.cancel()
            if not line:
                process.kill()
                process = None
                raise AssertionError(f"no answer to {question}")
            return json.loads(line)

        yield ask
        if process is not None:
            process.stdin.close()
            assert process.wait(SECONDS) == 0


def array(read):
    """An array as numpy has it, of what a client has read."""
    assert "error" not in read, read["error"]
    if "element" in read:
        return numpy.array(read["element"], dtype=read["dtype"])
    values = numpy.frombuffer(base64.b64decode(read["values"]), dtype=read["dtype"])
    if read["stride"] is None:
        return values.reshape(read["shape"])
    assert values.size == numpy.prod(read["shape"])
    return numpy.lib.stride_tricks.as_strided(values, read["shape"], [values.itemsize * by for by in read["stride"]])
