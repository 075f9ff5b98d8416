"""The programs of the clients' tests that open pages in a Chromium, and ask them."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import processes

PROGRAMS = pathlib.Path(__file__).parents[2] / "clients/node"


def programs(folder):
    """A copy of the programs in a new folder, which find their packages."""
    packages = pathlib.Path(os.environ["ZARRD_NODE_MODULES"])
    assert packages.is_dir(), "not installed; tests/clients/run installs it"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(packages.resolve())


@contextlib.contextmanager
def asking(program):
    """Asks a program that answers each line of JSON with another one."""
    chromium = shutil.which("chromium")
    assert chromium, "not installed; tests/clients/run installs it"
    with subprocess.Popen(["node", program, chromium], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(**question):
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer
            return answer

        try:
            yield ask
            # It ends itself and the browser when there are no more questions.
            process.stdin.close()
            process.wait(processes.SECONDS)
        finally:
            process.kill()
