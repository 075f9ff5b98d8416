"""Makes the repositories of this folder, and `expected-N.json`: what icechunk itself, with zarr-python, reads in them.

    python make.py        # once with icechunk 1.1 (version 1 of the format), once with icechunk 2.3 (version 2); zarr 3.1
"""

import hashlib
import json
import pathlib
import shutil

import icechunk
import numpy
import zarr

HERE = pathlib.Path(__file__).parent.resolve()
FORMAT = int(icechunk.__version__.split(".")[0])
FILES = HERE / "files"
REMOTE = "s3://remote/files/"
expected = []
FILES.mkdir(exist_ok=True)
VIRTUAL = numpy.arange(600, dtype="<i2")
(FILES / "values.bin").write_bytes(b"head" + VIRTUAL.tobytes())


def create(name, **config):
    path = HERE / f"{name}-{FORMAT}"
    shutil.rmtree(path, ignore_errors=True)
    storage = icechunk.local_filesystem_storage(str(path))
    return path, icechunk.Repository.create(storage, icechunk.RepositoryConfig(**config))


def commit(session, message):
    return session.commit(message)


def record(path, repository, **version):
    """What icechunk reads of all arrays of a version."""
    store = repository.readonly_session(**version).store
    root = zarr.open(store, mode="r")
    arrays = [("", root)] if isinstance(root, zarr.Array) else [
        (name, node) for name, node in root.members(max_depth=None) if isinstance(node, zarr.Array)
    ]
    (kind, value), = version.items()
    value = value if kind != "snapshot_id" else value
    name = {"branch": f"branch.{value}", "tag": f"tag.{value}", "snapshot_id": value}[kind]
    for array_path, array in arrays:
        if array_path.startswith("virtual"):
            continue
        values = numpy.asarray(array[...])
        values = values.astype(values.dtype.newbyteorder("<"))
        expected.append({
            "repository": path.name, "version": name, "path": array_path, "shape": list(values.shape),
            "sha256": hashlib.sha256(numpy.ascontiguousarray(values).tobytes()).hexdigest(),
        })


def clean(path):
    # Readers need neither, and they are most of the files.
    for directory in ["transactions", "overwritten"]:
        shutil.rmtree(path / directory, ignore_errors=True)
    for left in path.rglob("*"):
        if left.is_dir() and not any(left.iterdir()):
            left.rmdir()


def history():
    path, repository = create("history")
    session = repository.writable_session("main")
    root = zarr.group(session.store, attributes={"title": "history"})
    root.create_array("a", data=numpy.arange(100, dtype="<i4").reshape(10, 10), chunks=(5, 5), dimension_names=["y", "x"])
    root.create_array("scalar", data=numpy.float64(2.5))
    root.create_array("tiny", data=numpy.arange(3, dtype="|i1"))
    big = numpy.random.default_rng(1).random((64, 64)).astype("<f4")
    root.create_array("big", data=big, chunks=(32, 32), compressors=None)
    holes = root.create_array("holes", shape=(8, 8), chunks=(2, 2), dtype="<f8", fill_value=9.5)
    holes[2:4, :2] = 1
    deep = root.create_group("g").create_group("h")
    deep.create_array("x", data=numpy.arange(6, dtype="<u2").reshape(2, 3), chunks=(1, 2))
    sharded = root["g"].create_array("sharded", shape=(32, 32), shards=(16, 16), chunks=(8, 8), dtype="<i8")
    sharded[...] = numpy.arange(1024).reshape(32, 32)
    # Names that sort between others, and one that begins as a version does.
    root.create_array("a-b", data=numpy.arange(4, dtype="<i2"))
    root.create_array("é x", data=numpy.arange(4, dtype="<i2"))
    root.create_group("@odd").create_array("y", data=numpy.arange(2, dtype="<i2"))
    first = commit(session, "first")
    repository.create_tag("v1", snapshot_id=first)
    repository.create_branch("dev", snapshot_id=first)
    repository.create_branch("left", snapshot_id=first)
    repository.delete_branch("left")

    session = repository.writable_session("main")
    root = zarr.open_group(session.store)
    root["a"][:5] = -1
    del root["g/h/x"]
    root["a-b"].resize((6,))
    second = commit(session, "second: a changed, x deleted")
    repository.create_tag("v2", snapshot_id=second)
    repository.create_tag("gone", snapshot_id=second)
    repository.delete_tag("gone")

    session = repository.writable_session("dev")
    zarr.open_group(session.store).create_array("only_dev", data=numpy.arange(5, dtype=">f4"))
    commit(session, "on dev")
    if FORMAT >= 2:
        session = repository.rearrange_session("dev")
        session.move("/g/h", "/moved")
        commit(session, "moved")
    for version in [{"branch": "main"}, {"branch": "dev"}, {"tag": "v1"}, {"tag": "v2"}, {"snapshot_id": first}]:
        record(path, repository, **version)
    clean(path)


def at_root():
    path, repository = create("root")
    session = repository.writable_session("main")
    zarr.create_array(session.store, data=numpy.arange(12, dtype="<i4").reshape(3, 4), chunks=(2, 2))
    commit(session, "an array at the root")
    record(path, repository, branch="main")
    clean(path)


def split():
    """An array whose chunks are in many manifests."""
    condition = icechunk.ManifestSplitCondition.AnyArray()
    splitting = icechunk.ManifestSplittingConfig.from_dict(
        {condition: {icechunk.ManifestSplitDimCondition.Any(): 3}}
    )
    path, repository = create(
        "split", manifest=icechunk.ManifestConfig(splitting=splitting), inline_chunk_threshold_bytes=0
    )
    session = repository.writable_session("main")
    root = zarr.group(session.store)
    array = root.create_array("a", shape=(12, 11), chunks=(2, 1), dtype="<i4", fill_value=-5)
    array[:, 2:9] = numpy.arange(84).reshape(12, 7)
    commit(session, "many manifests")
    record(path, repository, branch="main")
    clean(path)


def virtual():
    config = {}
    if FORMAT >= 2:
        # The fewest chunks for which locations are compressed.
        compression = icechunk.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=10)
        config["manifest"] = icechunk.ManifestConfig(virtual_chunk_location_compression=compression)
    path, repository = create("virtual", **config)
    session = repository.writable_session("main")
    root = zarr.group(session.store)
    location = f"{REMOTE}values.bin"

    def add(name, location, count=2, **checksum):
        root.create_array(name, shape=(count * 3,), chunks=(3,), dtype="<i2", compressors=None, fill_value=-1)
        for chunk in range(count):
            session.store.set_virtual_ref(
                f"{name}/c/{chunk}", location, offset=4 + 6 * chunk, length=6, validate_container=False, **checksum
            )

    add("virtual", location)
    add("virtual_missing", f"{REMOTE}none.bin")
    add("virtual_short", location, 201)
    add("virtual_refused", "s3://other/values.bin")
    add("virtual_file", "file:///etc/passwd")
    add("virtual_metadata", "http://169.254.169.254/latest/meta-data/")
    add("virtual_tag", location, checksum="0123456789abcdef")
    import datetime
    add("virtual_old", location, checksum=datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc))
    add("virtual_new", location, checksum=datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc))
    if FORMAT >= 2:
        add("virtual_named", "vcc://remote/values.bin")
    commit(session, "virtual chunks")
    session = repository.writable_session("main")
    root = zarr.open_group(session.store)
    root.create_array("virtual_many", shape=(600,), chunks=(3,), dtype="<i2", compressors=None)
    for chunk in range(200):
        # Many files, of which there is one.
        name = "values.bin" if chunk < 150 else f"a/long/path/to/other/files/{chunk}.bin"
        session.store.set_virtual_ref(
            f"virtual_many/c/{chunk}", REMOTE + name, offset=4 + 6 * chunk, length=6, validate_container=False
        )
    commit(session, "many virtual chunks")
    clean(path)


history()
at_root()
split()
virtual()
(HERE / f"expected-{FORMAT}.json").write_text(json.dumps(expected, indent=0) + "\n")
