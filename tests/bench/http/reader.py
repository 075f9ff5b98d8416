"""Reads parts of arrays as lines of JSON ask for, and says how many seconds each took; what `readers/` is for zarrs.

    reader.py tensorstore|zarr-python FOLDER
"""

import json
import sys
import time

import numpy

import data


def opener(library, folder):
    if library == "tensorstore":
        return lambda name: data.open_array(folder, name)
    import zarr

    return lambda name: zarr.open_array(f"{folder}/{name}", mode="r")


def main(library, folder):
    open_array = opener(library, folder)
    arrays = {}
    for line in sys.stdin:
        question = json.loads(line)
        name = question["array"]
        if name not in arrays:
            arrays[name] = open_array(name)
        array = arrays[name]
        box = tuple(slice(at, at + length) for at, length in zip(question["start"], question["shape"]))
        start = time.perf_counter()
        read = array[box].read().result() if library == "tensorstore" else array[box]
        seconds = time.perf_counter() - start
        total = numpy.frombuffer(numpy.ascontiguousarray(read), numpy.uint8).sum(dtype=numpy.uint64)
        print(json.dumps({"seconds": seconds, "sum": int(total)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
