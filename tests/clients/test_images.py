"""`/v1/image/…` draws what numpy computes and the published colour tables say, pixel by pixel."""

import io
import json

import matplotlib
import numpy
import PIL.Image
import pytest
import requests
import zarr

import images
import processes

HEIGHT, WIDTH = 40, 56


def plane(dtype):
    """A slope with noise that fills the range of a type; of floats some are no numbers."""
    dtype = numpy.dtype(dtype)
    random = numpy.random.default_rng(7)
    slope = numpy.linspace(0, 1, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) + random.normal(scale=0.05, size=(HEIGHT, WIDTH))
    slope = slope.clip(0, 1)
    if dtype.kind == "b":
        return slope > 0.5
    if dtype.kind == "c":
        values = (slope - 0.3) * numpy.exp(5j * slope)
        values[3, 4] = numpy.nan
        return values.astype(dtype)
    if dtype.kind == "f":
        values = (slope * 300 - 120).astype(dtype)
        values[2, 3], values[5, 6], values[7, 8] = numpy.nan, numpy.inf, -numpy.inf
        return values
    limits = numpy.iinfo(dtype)
    low, high = max(limits.min, -(2**52)), min(limits.max, 2**52)
    return numpy.round(low + slope * (float(high) - low)).astype(dtype)


TYPES = ["bool", "int8", "uint8", "<i2", ">i2", "<u2", ">u4", "int32", "int64", "uint64", "<f2", "<f4", ">f4", "<f8", "complex64", "complex128"]
PACKED = {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768, "missing_value": [-32767], "units": "K"}
PHOTOGRAPH = numpy.random.default_rng(3).integers(0, 256, (30, 20, 3), "uint8")
LABELS = numpy.repeat(numpy.repeat(numpy.arange(20, dtype="uint32").reshape(4, 5) % 7, 10, 0), 8, 1)
CLIMATE = (250 + numpy.random.default_rng(6).random((4, 17, 31)) * 60).astype("float32")
STACK = numpy.random.default_rng(4).integers(0, 4000, (3, 5, 33, 21), "uint16")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A server with what is drawn here, as the mount `m`."""
    folder = tmp_path_factory.mktemp("pictures")
    root = zarr.create_group(folder / "m", zarr_format=3)
    for name in TYPES:
        values = plane(name)
        zarr_format = 2 if values.dtype.byteorder == ">" else 3
        group = zarr.open_group(folder / f"m/v{zarr_format}", mode="a", zarr_format=zarr_format)
        group.create_array(name.strip("<>"), data=values, chunks=(16, 16), overwrite=True)
    packed = numpy.random.default_rng(5).integers(-3000, 3000, (HEIGHT, WIDTH)).astype("int16")
    packed[1, 2], packed[3, 4] = -32768, -32767
    root.create_array("packed", data=packed, chunks=(16, 16), attributes=PACKED)
    root.create_array("photograph", data=PHOTOGRAPH, chunks=(16, 16, 3))
    root.create_array("labels", data=LABELS, chunks=(16, 16), attributes={"flag_values": [1, 2, 3], "flag_colors": "#ff0000 #00ff00 #0000ff"})
    root.create_array("stack", data=STACK, chunks=(1, 1, 16, 16), dimension_names=("t", "z", "y", "x"))
    climate = root.create_group("climate")
    climate.create_array("t2m", data=CLIMATE, chunks=(2, 8, 16), dimension_names=("time", "lat", "lon"), attributes={"units": "K"})
    climate.create_array("lat", data=numpy.linspace(-80, 80, 17), dimension_names=("lat",), attributes={"units": "degrees_north"})
    climate.create_array("lat_bounds", data=numpy.zeros((17, 2)), dimension_names=("lat", "bound"))
    root.create_array("line", data=numpy.arange(10), chunks=(5,))
    images.write(folder / "m/ome", "0.5")
    config = folder / "zarrd.toml"
    config.write_text(f"[mounts.m]\nurl = {json.dumps(str(folder / 'm'))}\n")
    with processes.zarrd("--config", str(config)) as running:
        yield running


def ask(pictures, path, method="get", headers=None, **query):
    query = {name.replace("__", "."): value for name, value in query.items()}
    return requests.request(
        method, f"{pictures.base}/v1/image/m/{path}", params=query, headers=headers, timeout=processes.SECONDS
    )


def pixels(answer):
    """Red, green, blue and opacity of every pixel."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "image/png"
    return numpy.asarray(PIL.Image.open(io.BytesIO(answer.content)).convert("RGBA"))


def table(name):
    """The 256 colours that matplotlib has under this name."""
    return numpy.round(matplotlib.colormaps[name](numpy.arange(256)) * 255).astype("uint8")


def drawn(numbers, low, high, colors, missing=(0, 0, 0, 0)):
    """The picture in other words."""
    numbers = numbers.astype("float64")
    with numpy.errstate(invalid="ignore"):
        places = numpy.floor((numbers - low) / (high - low) * 256).clip(0, 255)
    found = colors[numpy.nan_to_num(places).astype(int)]
    found[numpy.isnan(numbers)] = missing
    return found


def path_of(name):
    return f"v{2 if name.startswith('>') else 3}/{name.strip('<>')}"


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("colormap", ["viridis", "gray_r"])
def test_a_picture_is_numpys_in_the_colours_of_the_table(pictures, name, colormap):
    values = plane(name)
    numbers = numpy.abs(values.astype("complex128")) if values.dtype.kind == "c" else values
    finite = numbers[numpy.isfinite(numbers)].astype("float64")
    low, high = (numpy.percentile(finite, [3, 90]) if values.dtype.kind != "b" else (0, 1))
    answer = ask(pictures, path_of(name), colormap=colormap, range=f"{low!r},{high!r}".replace("np.float64(", "").replace(")", ""))
    expected = drawn(numbers, low, high, table(colormap))
    numpy.testing.assert_array_equal(pixels(answer), expected)
    assert answer.headers["Image-Range-From"] == "request"


@pytest.mark.parametrize(
    "name", ["viridis", "magma", "inferno", "plasma", "cividis", "gray", "turbo", "RdBu", "Spectral", "coolwarm"]
)
def test_a_colormap_is_the_published_one(pictures, name):
    # Ours of these three is of fewer published digits.
    tolerance = 1 if name == "coolwarm" else 0
    values = plane("uint8")
    found = pixels(ask(pictures, path_of("uint8"), colormap=name, range="0,255")).astype(int)
    expected = drawn(values, 0, 255, table(name)).astype(int)
    assert numpy.abs(found - expected).max() <= tolerance


def test_missing_values_are_transparent_and_packed_ones_are_unpacked(pictures):
    stored = zarr_values(pictures, "packed")
    numbers = numpy.where(numpy.isin(stored, [-32768, -32767]), numpy.nan, stored * 0.01 + 273.15)
    answer = ask(pictures, "packed", range="250,300")
    numpy.testing.assert_array_equal(pixels(answer), drawn(numbers, 250, 300, table("viridis")))
    answer = ask(pictures, "packed", range="250,300", missing="ff0000")
    numpy.testing.assert_array_equal(pixels(answer), drawn(numbers, 250, 300, table("viridis"), (255, 0, 0, 255)))
    answer = ask(pictures, "packed", range="-3000,3000", decode="none")
    numpy.testing.assert_array_equal(pixels(answer), drawn(stored, -3000, 3000, table("viridis")))


def zarr_values(pictures, path):
    answer = requests.get(pictures.data("m", path), params={"format": "npy"}, timeout=processes.SECONDS)
    return numpy.load(io.BytesIO(answer.content))


@pytest.mark.parametrize(
    ("scale", "place"),
    [("log", lambda t, low, high: numpy.log(t / low) / numpy.log(high / low)), ("sqrt", lambda t, low, high: numpy.sqrt((t - low) / (high - low))), ("gamma:2", lambda t, low, high: ((t - low) / (high - low)) ** 2)],
)
def test_numbers_are_mapped_to_colours_by_the_formula_of_the_scale(pictures, scale, place):
    values, low, high = plane("uint8").astype("float64"), 8, 200
    places = place(values.clip(low, high), low, high)
    expected = table("magma")[numpy.floor(places * 256).clip(0, 255).astype(int)]
    found = pixels(ask(pictures, path_of("uint8"), colormap="magma", range=f"{low},{high}", scale=scale))
    # The last digit of a logarithm differs between libraries, so a few pixels may have the colour beside.
    assert (found != expected).any(axis=-1).mean() < 0.001


def test_numbers_outside_the_range_have_their_own_colours(pictures):
    values = plane("<f4")
    found = pixels(ask(pictures, path_of("<f4"), range="0,100", below="ff0000", above="transparent"))
    assert (found[values < 0] == (255, 0, 0, 255)).all()
    assert (found[values > 100] == (0, 0, 0, 0)).all()


@pytest.mark.parametrize("part", ["abs", "real", "imag", "arg"])
def test_parts_of_complex_numbers_are_drawn(pictures, part):
    values = plane("complex128")
    numbers = {"abs": numpy.abs, "real": numpy.real, "imag": numpy.imag, "arg": numpy.angle}[part](values)
    found = pixels(ask(pictures, path_of("complex128"), part=part, range="-0.7,0.7"))
    expected = drawn(numbers, -0.7, 0.7, table("viridis"))
    assert (found != expected).any(axis=-1).sum() <= 1


def test_ranges_of_the_picture_are_numpys(pictures):
    values = plane("<f8")
    finite = values[numpy.isfinite(values)]
    for word, (low, high) in [
        ("slice", (finite.min(), finite.max())),
        ("2%,98%", numpy.percentile(finite, [2, 98])),
        ("auto", numpy.percentile(finite, [1, 99])),
    ]:
        answer = ask(pictures, path_of("<f8"), range=word)
        assert numpy.allclose([float(end) for end in answer.headers["Image-Range"].split(",")], [low, high], rtol=1e-14)
        numpy.testing.assert_array_equal(pixels(answer), drawn(values, low, high, table("viridis")))


def test_a_photograph_is_drawn_as_stored_or_by_the_requested_channels(pictures):
    found = pixels(ask(pictures, "photograph"))
    numpy.testing.assert_array_equal(found[..., :3], PHOTOGRAPH)
    assert (found[..., 3] == 255).all()
    found = pixels(ask(pictures, "photograph", rgb="2,1,0"))
    numpy.testing.assert_array_equal(found[..., :3], PHOTOGRAPH[..., ::-1])


def test_labels_have_colours_and_0_is_transparent(pictures):
    found = pixels(ask(pictures, "labels"))
    for label, color in [(0, (0, 0, 0, 0)), (1, (255, 0, 0, 255)), (2, (0, 255, 0, 255)), (3, (0, 0, 255, 255))]:
        assert (found[LABELS == label] == color).all()
    others = {tuple(color) for color in found[LABELS > 3]}
    assert len(others) == 3 and all(color[3] == 255 for color in others)


def test_a_plane_is_chosen_by_names_and_by_the_request(pictures):
    def gray(**query):
        answer = ask(pictures, "stack", colormap="none", bits="16", range="0,65535", **query)
        assert answer.status_code == 200, answer.text
        return answer, numpy.asarray(PIL.Image.open(io.BytesIO(answer.content)))

    for query, expected, said in [
        ({}, STACK[0, 2], "0,2,0:33,0:21"),
        ({"slice": "1"}, STACK[1, 2], "1,2,0:33,0:21"),
        ({"isel__z": "4"}, STACK[0, 4], "0,4,0:33,0:21"),
        ({"slice": "...,::-1,3:9"}, STACK[0, 2, ::-1, 3:9], "0,2,32::-1,3:9"),
        ({"axes": "x,y"}, STACK[0, 2].T, "0,2,0:33,0:21"),
        ({"slice": ":,:,7,3"}, STACK[:, :, 7, 3], "0:3,0:5,7,3"),
        ({"box": "2,5,10,8"}, STACK[0, 2, 5:13, 2:12], "0,2,5:13,2:12"),
        ({"origin": "lower"}, STACK[0, 2, ::-1], "0,2,0:33,0:21"),
    ]:
        answer, found = gray(**query)
        numpy.testing.assert_array_equal(found, expected)
        assert answer.headers["Array-Slice"] == said
        again = requests.get(pictures.base + answer.headers["Content-Location"], timeout=processes.SECONDS)
        assert query.get("box") or again.content == answer.content


def test_a_smaller_picture_has_the_means_of_the_elements(pictures):
    answer = ask(pictures, "stack", colormap="none", bits="16", range="0,65535", size="16")
    expected = STACK[0, 2].astype("float64")
    for _ in range(2):
        expected = numpy.pad(expected, ((0, expected.shape[0] % 2), (0, expected.shape[1] % 2)), constant_values=numpy.nan)
        windows = expected.reshape(expected.shape[0] // 2, 2, expected.shape[1] // 2, 2).swapaxes(1, 2)
        expected = numpy.rint(numpy.nanmean(windows.reshape(*windows.shape[:2], 4), axis=-1))
    found = numpy.asarray(PIL.Image.open(io.BytesIO(answer.content)))
    numpy.testing.assert_array_equal(found, expected.astype("uint16"))
    assert answer.headers["Array-Downsample"] == "4,4"


def test_the_colours_of_channels_are_added(pictures):
    answer = ask(pictures, "ome", size="max")
    red, green = images.PIXELS[0, 1], images.PIXELS[1, 1]
    found = pixels(answer)
    numpy.testing.assert_array_equal(found[..., 0], red)
    numpy.testing.assert_array_equal(found[..., 1], green)
    assert (found[..., 2] == 0).all()
    assert answer.headers["Image-Range-From"] == "omero;omero"
    small = ask(pictures, "ome", size="32")
    assert small.headers["Array-Level"] == "1"
    numpy.testing.assert_array_equal(pixels(small)[..., 0], red[::2, ::2])
    blue = pixels(ask(pictures, "ome/0", channels="1:0000ff:0:255", isel__z="2"))
    numpy.testing.assert_array_equal(blue[..., 2], images.PIXELS[1, 2])


def test_north_is_at_the_top(pictures):
    values = CLIMATE[1]
    query = {"range": "250,310", "isel__time": "1"}
    expected = drawn(values, 250, 310, table("viridis"))
    numpy.testing.assert_array_equal(pixels(ask(pictures, "climate/t2m", **query)), expected[::-1])
    numpy.testing.assert_array_equal(pixels(ask(pictures, "climate/t2m", origin="upper", **query)), expected)
    backwards = pixels(ask(pictures, "climate/t2m", slice="1,::-1", range="250,310"))
    numpy.testing.assert_array_equal(backwards, expected[::-1])


def test_the_picture_of_a_dataset_is_that_of_its_first_variable(pictures):
    answer = ask(pictures, "climate", range="250,310")
    numpy.testing.assert_array_equal(pixels(answer), drawn(CLIMATE[0], 250, 310, table("viridis"))[::-1])


def test_tiles_are_those_of_the_stored_levels(pictures):
    description = requests.get(f"{pictures.base}/v1/tilejson/m/ome", params={"isel.z": "2"}, timeout=processes.SECONDS).json()
    assert (description["tilejson"], description["minzoom"], description["maxzoom"]) == ("3.0.0", 0, 0)
    url = description["tiles"][0].replace("{z}/{x}/{y}", "0/0/0")
    found = pixels(requests.get(pictures.base + url, timeout=processes.SECONDS))
    assert found.shape == (256, 256, 4)
    numpy.testing.assert_array_equal(found[:48, :64, 0], images.PIXELS[0, 2])
    numpy.testing.assert_array_equal(found[:48, :64, 1], images.PIXELS[1, 2])
    assert (found[48:] == 0).all() and (found[:, 64:] == 0).all()
    legend = requests.get(pictures.base + description["legend"], params={"format": "json"}, timeout=processes.SECONDS).json()
    assert [channel["color"] for channel in legend["channels"]] == ["ff0000", "00ff00"]


def test_the_range_of_tiles_is_that_of_the_picture(pictures):
    answer = ask(pictures, path_of("<f4"))
    description = requests.get(f"{pictures.base}/v1/tilejson/m/{path_of('<f4')}", timeout=processes.SECONDS).json()
    assert description["range"] == [float(end) for end in answer.headers["Image-Range"].split(",")]
    url = description["tiles"][0].replace("{z}/{x}/{y}", "0/0/0")
    found = pixels(requests.get(pictures.base + url, timeout=processes.SECONDS))
    numpy.testing.assert_array_equal(found[:HEIGHT, :WIDTH], pixels(answer))


def test_a_picture_that_has_not_changed_is_not_sent_again(pictures):
    first = ask(pictures, "stack")
    tag = first.headers["ETag"]
    assert ask(pictures, "stack", headers={"If-None-Match": tag}).status_code == 304
    head = ask(pictures, "stack", method="head")
    assert head.status_code == 200 and head.headers["ETag"] == tag and head.content == b""
    assert ask(pictures, "stack", colormap="magma").headers["ETag"] != tag
    assert ask(pictures, "stack", headers={"If-Match": '"other"'}).status_code == 412


@pytest.mark.parametrize(
    ("path", "query", "status", "part"),
    [
        ("line", {}, 422, "two dimensions"),
        ("stack", {"colromap": "gray"}, 400, "did you mean `colormap`"),
        ("stack", {"slice": "0:2"}, 400, "indices of `t`"),
        ("stack", {"format": "jpeg"}, 400, "PNG"),
        ("stack", {"range": "0,1", "scale": "log"}, 400, "begins above 0"),
        ("stack", {"channels": "omero"}, 400, "channels"),
        ("stack", {"box": "100,0,5,5"}, 400, "21 columns"),
        ("v3", {}, 200, ""),
        ("nothing", {}, 404, "nothing"),
    ],
)
def test_a_request_that_cannot_be_drawn_is_refused_with_the_reason(pictures, path, query, status, part):
    answer = ask(pictures, path, **query)
    assert answer.status_code == status, answer.text
    assert status == 200 or part in answer.json()["detail"]
    assert ask(pictures, "stack", headers={"Accept": "image/jpeg"}).status_code == 406
