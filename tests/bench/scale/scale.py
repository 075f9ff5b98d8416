"""Records traces, or replays them: scale.py [record]."""

import pathlib
import sys
import tempfile

import record
import simulate

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        (record if sys.argv[1:] == ["record"] else simulate).main(pathlib.Path(scratch))
