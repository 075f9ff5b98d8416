"""The description of a dataset (`/v1/nodes?dataset`) says what xarray says of the same store: dimensions, coordinates with their
ends, variables and which of them share dimensions."""

import numpy
import pytest
import requests
import xarray

import datasets
import processes

pytestmark = pytest.mark.filterwarnings("ignore")

CALENDARS = ["standard", "proleptic_gregorian", "noleap", "360_day", "julian"]
COUNT = 24


def random_dataset(seed):
    """A dataset with coordinates of several kinds, of which some dimensions have none."""
    random = numpy.random.default_rng(seed)
    lengths = {name: int(random.integers(1, 9)) for name in ["time", "lat", "lon", "station", "level"]}
    coordinates, encoding = {}, {}
    step = int(random.integers(1, 30))
    numbers = numpy.cumsum(random.integers(1, 9, lengths["time"])) if seed % 3 == 0 else numpy.arange(lengths["time"]) * step
    attributes = {"units": ["hours", "days"][seed % 2] + " since 1990-01-30", "calendar": CALENDARS[seed % len(CALENDARS)]}
    coordinates["time"] = ("time", numbers.astype(["int32", "float64", "int64"][seed % 3]), attributes)
    latitudes = numpy.linspace(*random.uniform(-80, 80, 2), lengths["lat"])
    coordinates["lat"] = ("lat", latitudes.astype(["float32", "float64"][seed % 2]), {"units": "degrees_north", "axis": "Y"})
    coordinates["lon"] = ("lon", numpy.arange(lengths["lon"]) * 10 + 3, {"units": "degrees_east"})
    if seed % 4:
        coordinates["station"] = ("station", numpy.array([f"station é {n}" for n in range(lengths["station"])]))
    if seed % 5 == 0:
        coordinates["height"] = ((), random.uniform(0, 100), {"units": "m"})
    if seed % 5 == 1:
        coordinates["distance"] = (("lat", "lon"), random.uniform(size=(lengths["lat"], lengths["lon"])))
    variables = {}
    for number in range(int(random.integers(1, 5))):
        chosen = [name for name in lengths if random.random() < 0.5]
        values = random.uniform(size=[lengths[name] for name in chosen]).astype(["float32", "int16"][number % 2])
        variables[f"v{number}"] = (chosen, values, {"units": "K", "long_name": f'the "{number}"'})
    # Each dimension has an array, whichever were chosen.
    variables["all"] = (list(lengths), numpy.zeros(list(lengths.values()), "uint8"), {})
    return xarray.Dataset(variables, coordinates, {"Conventions": "CF-1.8"} if seed % 2 else {}), encoding


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("dataset")
    for seed in range(COUNT):
        random_dataset(seed)[0].to_zarr(f"{root}/r{seed}", consolidated=False, zarr_format=datasets.FORMATS[seed % 2])
    datasets.write_climate(root)
    tree = xarray.DataTree.from_dict({"/": datasets.climate()[["lat", "lon"]], "/deep": datasets.climate()[["land"]]})
    tree.to_zarr(f"{root}/tree", consolidated=False, zarr_format=3, write_inherited_coords=False)
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


def described(server, path, query="dataset", **options):
    answer = requests.get(f"{server.base}/v1/nodes/data/{path}?{query}", timeout=processes.SECONDS, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def iso(value):
    """A time as the server writes it."""
    if isinstance(value, numpy.datetime64):
        return str(value.astype("datetime64[s]"))
    return value.isoformat()


def label(value):
    if isinstance(value, numpy.datetime64) or hasattr(value, "isoformat"):
        return iso(value)
    return str(value) if isinstance(value, str) else value


def compare(document, stored):
    assert {one["name"]: one["size"] for one in document["dimensions"]} == dict(stored.sizes)
    assert len(document["dimensions"]) == len(stored.sizes)
    coordinates = {one["name"]: one for one in document["coordinates"]}
    variables = {one["name"]: one for one in document["data_variables"]}
    assert set(coordinates) == set(stored.coords)
    assert set(variables) == set(stored.data_vars)
    for name, one in {**coordinates, **variables}.items():
        assert tuple(one["dimensions"]) == stored[name].dims
        assert tuple(one["shape"]) == stored[name].shape
        attributes = {**stored[name].encoding, **stored[name].attrs}
        assert one["units"] == attributes.get("units")
        assert one["long_name"] == attributes.get("long_name")
    for name, one in coordinates.items():
        assert one["is_dimension"] == (name in stored.indexes)
        if stored[name].ndim > 1:
            assert one["first"] is None
            continue
        values = stored[name].values.ravel()
        first, last = label(values[0]), label(values[-1])
        if isinstance(first, str):
            assert (one["first"], one["last"]) == (first, last), name
        else:
            # Its decimal is that of the stored type.
            dtype = stored[name].dtype.type
            assert (dtype(one["first"]), dtype(one["last"])) == (first, last), name
        steps = numpy.diff(values) if values.dtype.kind in "iufM" else []
        if len(steps) and values.dtype.kind in "iuf":
            assert one["step"] == pytest.approx(steps[0], rel=1e-4)
            assert one["order"] == ("ascending" if steps[0] > 0 else "descending")
        elif len(steps):
            assert (one["step"] is not None) == (len(set(steps)) == 1)
    shared = {tuple(grid["dimensions"]): grid["variables"] for grid in document["grids"]}
    assert sorted(name for names in shared.values() for name in names) == sorted(variables)
    for dimensions, names in shared.items():
        assert set(names) == {name for name in stored.data_vars if stored[name].dims == dimensions}


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_random_dataset_is_described_as_xarray_sees_it(server, root, seed):
    stored = xarray.open_zarr(f"{root}/r{seed}", consolidated=False)
    document = described(server, f"r{seed}")
    compare(document, stored)
    times = [iso(value) for value in stored["time"].values]
    assert [time.removesuffix("Z") for time in document["time_range"]] == [min(times), max(times)]
    edges = [stored["lon"].values.min(), stored["lat"].values.min(), stored["lon"].values.max(), stored["lat"].values.max()]
    assert document["bbox"] == pytest.approx([float(edge) for edge in edges])
    assert document["crs"]["code"] == "EPSG:4326"


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_a_climate_dataset_is_described_with_its_place_and_its_times(server, root, zarr_format):
    document = described(server, f"climate{zarr_format}")
    compare(document, datasets.stored(root, zarr_format))
    assert document["time_range"] == ["2020-01-01T00:00:00Z", "2020-01-03T18:00:00Z"]
    assert document["bbox"] == [0.0, 0.0, 60.0, 80.0]
    assert document["crs"]["grid_mapping_name"] == "latitude_longitude"
    time = next(one for one in document["coordinates"] if one["name"] == "time")
    assert (time["step"], time["axis"]) == ("6 hours", "T")


def test_a_group_has_the_coordinates_above_it(server, root):
    stored = xarray.open_datatree(f"{root}/tree", engine="zarr", consolidated=False)
    compare(described(server, "tree/deep"), stored["deep"].to_dataset(inherit=True).load())


def test_variables_are_chosen_by_name(server):
    document = described(server, "climate3", "dataset&vars=land")
    assert [one["name"] for one in document["data_variables"]] == ["land"]
    assert {one["name"] for one in document["coordinates"]} >= {"lat", "lon"}


def test_an_array_is_described_with_its_coordinates(server):
    document = described(server, "climate3/land")
    assert [one["name"] for one in document["data_variables"]] == ["land"]
    assert {one["name"] for one in document["coordinates"]} >= {"lat", "lon"}
