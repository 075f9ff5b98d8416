"""The server as a container runs it: the first process there is, without rights, on a read-only root."""

import os
import pathlib
import re
import signal
import subprocess

import processes
import requests

USER = 65532
# Becomes the first process: it makes everything read-only, and switches to a user without rights.
SCRIPT = f"""
set -e
mount --make-rprivate /
mount -t tmpfs none /mnt
cp "$ZARRD" /mnt/zarrd
mount -o remount,ro /mnt
mount -o remount,ro,bind /
exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \\
    /mnt/zarrd serve --demo --listen 127.0.0.1:0
"""


def test_it_runs_as_the_first_process_without_rights_on_a_read_only_root():
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT],
        env={"ZARRD": os.environ["ZARRD"], "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            base = re.fullmatch("zarrd listens on (.*)\n", process.stdout.readline())[1]
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            child = int(children)
            status = pathlib.Path(f"/proc/{child}/status").read_text()
            assert re.search(rf"^NSpid:\t{child}\t1$", status, re.MULTILINE)
            assert re.search(rf"^Uid:\t{USER}\t", status, re.MULTILINE)
            assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
            answer = requests.get(f"{base}/v1/data/demo/field?slice=0,0,0:3&format=json", timeout=processes.SECONDS)
            assert answer.status_code == 200
            os.kill(child, signal.SIGTERM)
            assert process.wait(processes.SECONDS) == 0
        finally:
            process.kill()
