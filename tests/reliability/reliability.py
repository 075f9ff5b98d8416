"""Runs the parts and prints their table. Each part is a function of how long it may take. It asserts, and returns rows."""

import argparse
import datetime
import pathlib
import platform
import subprocess
import sys
import traceback

import appends
import cuts
import disk_cuts
import documents
import element_cuts
import elements
import fair
import keys
import leaks
import long_put
import memory
import overload
import paths
import redirects
import reload
import slow
import soak
import stale
import storm
import suites
import tls
import watch

PARTS = {
    "cuts": cuts.run,
    "disk_cuts": disk_cuts.run,
    "faults": suites.faults,
    "damaged": suites.damaged,
    "killed": suites.killed,
    "copies": suites.copies,
    "disk": suites.disk,
    "writers": suites.writers,
    "paths": paths.run,
    "stale": stale.run,
    "storm": storm.run,
    "memory": memory.run,
    "slow": slow.run,
    "fair": fair.run,
    "overload": overload.run,
    "documents": documents.run,
    "elements": elements.run,
    "element_cuts": element_cuts.run,
    "appends": appends.run,
    "long_put": long_put.run,
    "leaks": leaks.run,
    "tls": tls.run,
    "keys": keys.run,
    "reload": reload.run,
    "redirects": redirects.run,
    "watch": watch.run,
    "soak": soak.run,
    "replicas": suites.replicas,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="as long as a release deserves")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - PARTS.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    rows, failed = [], []
    for name in arguments.parts or PARTS:
        print(f"-- {name}", file=sys.stderr, flush=True)
        try:
            rows += PARTS[name](arguments.long)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            rows.append((name, "**failed**"))
    print(f"\n{machine()}\n\n| what | measured |\n|---|---|")
    for what, measured in rows:
        print(f"| {what} | {measured} |")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def machine():
    """When, what and where."""
    said = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(said, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    facts = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) >> 20
    date = datetime.date.today().isoformat()
    return f"{date}, commit {commit}, {len(models)} × {models[0]}, {memory} GiB, Linux {platform.release()}"


if __name__ == "__main__":
    main()
