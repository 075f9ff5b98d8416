"""Icechunk repositories of many shapes, made by the real library: all arrays of all versions are equal to what icechunk itself
reads, through `/store` (zarr-python), `/v1/data` and `/rechunk`. And icechunk itself reads a repository whose files are in
a mount."""

import io
import random

import icechunk
import numpy
import pytest
import requests
import zarr
import zarr.storage

from processes import SECONDS, files, zarrd

REPOSITORIES = 30
TYPES = ["|i1", "<u2", "<i4", ">i4", "<i8", "<f4", "<f8", "|b1", "<c8"]


def config(draw):
    splitting = None
    if draw.random() < 0.5:
        condition = icechunk.ManifestSplitCondition.AnyArray()
        dimensions = {icechunk.ManifestSplitDimCondition.Any(): draw.randint(1, 4)}
        splitting = icechunk.ManifestSplittingConfig.from_dict({condition: dimensions})
    return icechunk.RepositoryConfig(
        inline_chunk_threshold_bytes=draw.choice([0, 16, 512, 4096]),
        manifest=icechunk.ManifestConfig(splitting=splitting) if splitting else None,
    )


def add(draw, group, name):
    """An array with a random part of it written."""
    rank = draw.choice([0, 1, 1, 2, 2, 3])
    shape = tuple(draw.randint(1, 13) for _ in range(rank))
    chunks = tuple(draw.randint(1, max(1, length)) for length in shape)
    options = {}
    if rank and draw.random() < 0.3:
        options["shards"] = tuple(chunk * draw.randint(1, 3) for chunk in chunks)
    if draw.random() < 0.5:
        options["compressors"] = None
    data_type = numpy.dtype(draw.choice(TYPES))
    array = group.create_array(name, shape=shape, chunks=chunks or "auto", dtype=data_type, fill_value=0, **options)
    change(draw, array)


def change(draw, array):
    part = tuple(slice(*sorted(draw.sample(range(length + 1), 2))) for length in array.shape)
    values = numpy.random.default_rng(draw.randrange(1 << 30)).integers(0, 100, array[part].shape)
    array[part] = values.astype(array.dtype)


def repository(draw, folder):
    """A repository with a random history, and its versions: how icechunk opens each, and how paths name it."""
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)), config(draw))
    versions, branches = [], ["main"]
    for step in range(draw.randint(1, 4)):
        branch = draw.choice(branches)
        session = made.writable_session(branch)
        root = zarr.open_group(session.store, mode="a")
        groups = [root, *(node for _, node in root.members(max_depth=None) if isinstance(node, zarr.Group))]
        arrays = [(path, node) for path, node in root.members(max_depth=None) if isinstance(node, zarr.Array)]
        for number in range(draw.randint(1, 3)):
            group = draw.choice(groups)
            if draw.random() < 0.4:
                group = group.create_group(f"g{step}-{number}")
            add(draw, group, f"a{step}.{number}")
        if arrays:
            change(draw, draw.choice(arrays)[1])
        if len(arrays) > 2:
            path, _ = arrays.pop(draw.randrange(len(arrays)))
            del root[path]
        snapshot = session.commit(f"step {step}")
        versions.append(({"snapshot_id": snapshot}, snapshot))
        if draw.random() < 0.5:
            made.create_tag(f"v{step}", snapshot_id=snapshot)
            versions.append(({"tag": f"v{step}"}, f"tag.v{step}"))
        if draw.random() < 0.4:
            made.create_branch(f"b{step}", snapshot_id=snapshot)
            branches.append(f"b{step}")
    versions += [({"branch": branch}, f"branch.{branch}") for branch in branches]
    return made, versions


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("icechunk")
    return folder, [repository(random.Random(seed), folder / f"r{seed}") for seed in range(REPOSITORIES)]


@pytest.fixture(scope="module")
def served(made):
    folder, repositories = made
    mounts = [f"r{seed}=icechunk+file://{folder}/r{seed}" for seed in range(len(repositories))]
    with zarrd(*mounts, f"files={folder}") as server:
        yield server


def arrays_of(store):
    return {
        path: node for path, node in zarr.open_group(store, mode="r").members(max_depth=None) if isinstance(node, zarr.Array)
    }


def test_all_arrays_of_all_versions_are_equal_to_what_icechunk_reads(made, served):
    compared = 0
    for seed, (repository, versions) in enumerate(made[1]):
        for opened, name in versions:
            expected = arrays_of(repository.readonly_session(**opened).store)
            for path, array in expected.items():
                values = numpy.asarray(array[...])
                url = served.data(f"r{seed}", f"@{name}/{path}")
                answer = requests.get(url, params={"format": "npy"}, timeout=SECONDS)
                answer.raise_for_status()
                numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), values, url)
                for base in [f"store/r{seed}/@{name}", f"rechunk/r{seed}/auto/raw/@{name}"]:
                    url = f"{served.base}/{base}/{path}"
                    read = zarr.open_array(zarr.storage.FsspecStore.from_url(url, read_only=True), mode="r", zarr_format=3)
                    numpy.testing.assert_array_equal(numpy.asarray(read[...]), values, url)
                compared += 1
            keys = requests.get(served.store(f"r{seed}", f"@{name}/"), {"recursive": "", "format": "json"}, timeout=SECONDS)
            documents = {entry["key"] for entry in keys.json()["keys"] if entry["key"].endswith("zarr.json")}
            wanted = {f"@{name}/{path}/zarr.json" for path in expected}
            assert wanted <= documents, (seed, name)
    assert compared > 200, compared


def test_the_versions_are_those_that_icechunk_lists(made, served):
    for seed, (repository, _) in enumerate(made[1]):
        listed = requests.get(f"{served.base}/v1/versions/r{seed}", timeout=SECONDS).json()
        for kind, names, lookup in [
            ("branches", repository.list_branches(), repository.lookup_branch),
            ("tags", repository.list_tags(), repository.lookup_tag),
        ]:
            assert {one["name"]: one["snapshot"] for one in listed[kind]} == {name: lookup(name) for name in names}
        history = {info.id for name in repository.list_branches() for info in repository.ancestry(branch=name)}
        assert {snapshot["id"] for snapshot in listed["snapshots"]} == history


@pytest.mark.client("icechunk", "read", "list")
@pytest.mark.parametrize("seed", range(3))
def test_icechunk_reads_a_repository_in_a_mount_of_files(made, server, writable, seed):
    repository, versions = made[1][seed]
    for key, value in files(made[0] / f"r{seed}"):
        requests.put(server.store(writable, f"icechunk/r{seed}/{key}"), value, timeout=SECONDS).raise_for_status()
    storage = icechunk.s3_storage(
        bucket=writable,
        prefix=f"icechunk/r{seed}",
        # Its AWS client joins the bucket to the endpoint without a slash.
        endpoint_url=f"{server.base}/s3/",
        region="us-east-1",
        allow_http=True,
        force_path_style=True,
        anonymous=True,
    )
    opened = icechunk.Repository.open(storage)
    assert opened.list_branches() == repository.list_branches()
    assert opened.list_tags() == repository.list_tags()
    for version, _ in versions:
        expected = arrays_of(repository.readonly_session(**version).store)
        found = arrays_of(opened.readonly_session(**version).store)
        assert found.keys() == expected.keys()
        for path, array in expected.items():
            numpy.testing.assert_array_equal(numpy.asarray(found[path][...]), numpy.asarray(array[...]), path)


def test_names_of_virtual_files_are_those_that_icechunk_reads(tmp_path):
    files_folder = tmp_path / "files"
    files_folder.mkdir()
    names = ["plain.bin", "p q.bin", "p%20q.bin", "é+b=c.bin"]
    for number, name in enumerate(names):
        (files_folder / name).write_bytes(bytes([number]) * 8)
    prefix = files_folder.as_uri() + "/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(str(files_folder))))
    credentials = icechunk.containers_credentials({prefix: None})
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    repository = icechunk.Repository.create(storage, config, authorize_virtual_chunk_access=credentials)
    session = repository.writable_session("main")
    group = zarr.group(session.store)
    # As they are written, and as a URL has them.
    locations = [prefix + name for name in names] + [(files_folder / name).as_uri() for name in names]
    for number, location in enumerate(locations):
        group.create_array(f"a{number}", shape=8, chunks=8, dtype="u1", compressors=None, fill_value=255)
        session.store.set_virtual_ref(f"a{number}/c/0", location, offset=0, length=8)
    session.commit("virtual")
    expected = zarr.open_group(repository.readonly_session("main").store, mode="r")
    settings = tmp_path / "zarrd.toml"
    settings.write_text(f'[mounts.m]\nurl = "icechunk+{(tmp_path / "repository").as_uri()}"\n[mounts.m.virtual."{prefix}"]\n')
    with zarrd("--config", settings) as server:
        for number, location in enumerate(locations):
            values = expected[f"a{number}"][:].tobytes()
            response = requests.get(f"{server.base}/v1/data/m/a{number}", timeout=SECONDS)
            assert (response.status_code, response.content) == (200, values), location


def test_of_a_path_with_two_nodes_only_that_path_is_refused(tmp_path):
    """Icechunk commits such snapshots where two sessions overwrite a node and the second is rebased."""
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    for name in ["other", "twin"]:
        zarr.group(session.store).create_array(name, shape=4, chunks=4, dtype="i4")[:] = 1
    session.commit("both")
    sessions = [repository.writable_session("main") for _ in range(2)]
    for value, session in enumerate(sessions):
        array = zarr.open_group(session.store).create_array("twin", shape=4, chunks=4, dtype="i4", overwrite=True)
        array[:] = value
    sessions[0].commit("first")
    sessions[1].rebase(icechunk.BasicConflictSolver())
    sessions[1].commit("second")
    members = [path for path, _ in zarr.open_group(repository.readonly_session("main").store, mode="r").members()]
    assert sorted(members) == ["other", "twin", "twin"], members
    with zarrd(f"m=icechunk+{tmp_path.as_uri()}") as server:
        group = zarr.open_group(f"{server.base}/store/m", mode="r")
        numpy.testing.assert_array_equal(group["other"][:], [1] * 4)
        for route in ["store/m/twin/zarr.json", "store/m/twin/c/0", "v1/data/m/twin", "v1/nodes/m/twin"]:
            response = requests.get(f"{server.base}/{route}", timeout=SECONDS)
            assert (response.status_code, response.json()["code"]) == (502, "reference-broken"), route
        for route in ["rechunk/m/auto/raw/twin/zarr.json", "unshard/m/twin/c/0", "plain/m/twin/zarr.json"]:
            assert requests.get(f"{server.base}/{route}", timeout=SECONDS).status_code == 502, route
        for route in ["rechunk/m/auto/raw", "unshard/m", "plain/m"]:
            array = zarr.open_array(f"{server.base}/{route}/other", mode="r", zarr_format=3)
            numpy.testing.assert_array_equal(array[:], [1] * 4, route)
            listed = requests.request("PROPFIND", f"{server.base}/{route}/", headers={"Depth": "1"}, timeout=SECONDS)
            assert listed.status_code == 207 and b"/other/" in listed.content, route
        exported = requests.get(f"{server.base}/v1/data/m", {"format": "nc"}, timeout=SECONDS)
        assert exported.status_code == 200 and b"other" in exported.content, exported.content[:400]
        children = requests.get(f"{server.base}/v1/nodes/m", timeout=SECONDS).json()["children"]
        assert {child["name"]: child["node_type"] for child in children} == {"other": "array", "twin": None}, children
