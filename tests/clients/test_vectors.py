"""`/v1/vectors/…` answers vertices as a stream that pyarrow opens, with what the stores' own library wrote."""

import json
import pathlib

import pyarrow
import pytest
import requests

import processes

DATA = pathlib.Path(__file__).parent.parent / "data" / "vectors"


@pytest.fixture(scope="module")
def server():
    """A server whose mount `data` holds the fixtures."""
    with processes.zarrd(f"data={DATA}") as running:
        yield running


def vertices(server, store, **query):
    url = f"{server.base}/v1/vectors/data/{store}/vertices"
    answer = requests.get(url, params={"format": "arrow", **query}, timeout=processes.SECONDS)
    answer.raise_for_status()
    with pyarrow.ipc.open_stream(answer.content) as stream:
        return stream.read_all()


@pytest.mark.parametrize("name", ["points_tiny", "points_cloud", "points_negative_f64", "points_2d_sharded", "graph"])
def test_pyarrow_reads_the_vertices_of_every_box(server, name):
    for level in json.loads((DATA / "real" / "expected_bbox.json").read_text())[name]:
        for query in level["queries"]:
            if "error" in query:
                continue
            bbox = ",".join(str(float(number)) for number in query["lo"] + query["hi"])
            found = vertices(server, f"real/{name}.zarrvectors", bbox=bbox, interval=query["interval"])
            assert found.num_rows == query["vertex_count"]
            if query["positions_sorted"] is None:
                continue
            assert sorted(found["position"].to_pylist()) == query["positions_sorted"]


def test_pyarrow_reads_attributes_and_categories(server):
    query = {"attributes": "intensity,color,kind", "columns": "position,chunk,row,fragment,object_id"}
    found = vertices(server, "real/points_tiny.zarrvectors", **query)
    assert found.schema.names == ["position", "chunk", "row", "fragment", "object_id", "intensity", "color", "kind"]
    assert found["kind"].to_pylist() == ["a", "b", "a", "c", "a", "b", "b", "a", "c"]
    assert pyarrow.types.is_dictionary(found.schema.field("kind").type)
    assert found["color"].to_pylist()[0] == [0, 1, 2]
    assert found["object_id"].null_count == found.num_rows == 9
    assert json.loads(found.schema.field("position").metadata[b"axes"]) == ["x", "y", "z"]
    assert found.schema.metadata[b"zvf.level"] == b"0"


def test_pyarrow_reads_an_empty_table_for_a_box_without_vertices(server):
    found = vertices(server, "real/points_tiny.zarrvectors", bbox="1e9,1e9,1e9,2e9,2e9,2e9")
    assert found.num_rows == 0 and found.schema.names == ["position", "chunk", "row"]
