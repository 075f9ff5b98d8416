//! Lines that read a slice of an array with common programs.
//!
//! Everything that others wrote is in URLs, where it is percent-encoded, or is quoted as a JSON string, which Python and
//! JavaScript read as well.

use maud::{Markup, html};
use serde_json::Value;

use super::downloads::has_format;
use super::facts::Drawn;
use super::node_page::Place;
use super::state::{join, split};
use super::viewed_array::ViewedArray;
use crate::chunk::AxisRange;
use crate::metadata::DataType;

/// Lines for a program.
pub(super) struct Snippet {
    pub(super) title: &'static str,
    pub(super) note: Option<&'static str>,
    pub(super) text: String,
}

impl Snippet {
    /// The lines under their title.
    pub(super) fn article(&self) -> Markup {
        html! {
            article.snippet {
                h2 { (self.title) }
                @if let Some(note) = self.note { p.muted { (note) } }
                pre tabindex="0" { code { (self.text) } }
            }
        }
    }
}

/// What lines without the signature of the page's URL need in its place, if it has one.
pub(super) fn signature_note(store: &str) -> Markup {
    let is_signed = split(store).1.contains("signature=");
    html! {
        @if is_signed {
            p.muted {
                "A URL without " code { "signature=" } " below is of a program that adds names to it, and so cannot send the signature \
                 of this page. It needs a token in the header " code { "Authorization: Bearer" } "."
            }
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// An index or slice as Python has it.
fn python(range: &AxisRange, length: u64) -> String {
    if !range.keep {
        return range.start.to_string();
    }
    if range.step == 1 && range.start == 0 && range.count == length {
        return ":".to_owned();
    }
    if range.count == 0 {
        return "0:0".to_owned();
    }
    let last = range.at(range.count.saturating_sub(1));
    match range.step {
        1 => format!("{}:{}", range.start, range.start + range.count),
        step if step > 0 => format!("{}:{}:{step}", range.start, last + 1),
        step => {
            let stop = last.checked_sub(1).map(|stop| stop.to_string()).unwrap_or_default();
            format!("{}:{stop}:{step}", range.start)
        }
    }
}

/// An index or slice as zarrita has it, which has no steps backwards: these are read forwards.
fn zarrita(range: &AxisRange, length: u64) -> String {
    if !range.keep {
        return range.start.to_string();
    }
    if range.step == 1 && range.start == 0 && range.count == length {
        return "null".to_owned();
    }
    let range = forward(range);
    let last = range.at(range.count.saturating_sub(1));
    format!("zarr.slice({}, {}, {})", range.start, last.saturating_add(1), range.step)
}

/// The same elements in ascending order.
fn forward(range: &AxisRange) -> AxisRange {
    if range.step > 0 || !range.keep {
        return *range;
    }
    let last = range.at(range.count.saturating_sub(1));
    AxisRange { start: last, step: range.step.saturating_neg(), ..*range }
}

/// Whether zarrita reads the slice: it knows no texts of a fixed length, and no selection without elements.
fn is_read_by_zarrita(viewed: &ViewedArray<'_>) -> bool {
    let data_type = viewed.array.map(|array| &array.metadata().data_type);
    let has_elements = viewed.view.subset.iter().all(|range| range.count > 0);
    has_elements && !matches!(data_type, Some(DataType::FixedLengthUtf32 { .. }))
}

/// Lines that read the slice with zarrita.
fn with_zarrita(viewed: &ViewedArray<'_>, store: &str) -> String {
    let begin = format!(
        "import * as zarr from \"zarrita\";\n\nconst array = await zarr.open(new zarr.FetchStore({}), {{ kind: \"array\" }});",
        quoted(store)
    );
    let index = joined(viewed, zarrita);
    let kept = viewed.view.subset.iter().filter(|range| range.keep);
    let turned: Vec<String> =
        kept.enumerate().filter(|(_, range)| range.step < 0).map(|(axis, _)| axis.to_string()).collect();
    if turned.is_empty() {
        return format!("{begin}\nconst {{ data, shape }} = await zarr.get(array, [{index}]);");
    }
    format!(
        "{begin}\nconst {{ data, shape, stride }} = await zarr.get(array, [{index}]);\n\
         // There are no steps backwards: these axes are read forwards, and turned here.\n\
         const turned = [{}];\n\
         const from = (at, axis) => {{\n  \
           const index = Math.floor(at / stride[axis]) % shape[axis];\n  \
           return stride[axis] * (turned.includes(axis) ? shape[axis] - 1 - index : index);\n\
         }};\n\
         const values = data.map((_, at) => data[shape.reduce((sum, _, axis) => sum + from(at, axis), 0)]);",
        turned.join(", ")
    )
}

/// An expression that reads the slice of `array`, of one field if the page is of one. Zarr has no steps backwards: what is
/// read forwards is reversed.
fn forwards(viewed: &ViewedArray<'_>) -> String {
    let goes_down = |range: &AxisRange| range.keep && range.step < 0;
    let parts = viewed.view.subset.iter().zip(&viewed.facts.shape);
    let parts: Vec<String> = parts.map(|(range, &length)| python(&forward(range), length)).collect();
    let index = if parts.is_empty() { "...".to_owned() } else { parts.join(", ") };
    let field = viewed.state.get("fields").map(python_field).unwrap_or_default();
    if !viewed.view.subset.iter().any(goes_down) {
        return format!("array[{index}]{field}");
    }
    let kept = viewed.view.subset.iter().filter(|range| range.keep);
    let turned: Vec<&str> = kept.map(|range| if goes_down(range) { "::-1" } else { ":" }).collect();
    format!("array[{index}]{field}[{}]", turned.join(", "))
}

/// Fields of a struct as numpy names them: a field in a field by one name after the other.
fn python_field(fields: &str) -> String {
    let path = |field: &str| format!("[{}]", field.split('.').map(quoted).collect::<Vec<_>>().join("]["));
    match fields.split(',').collect::<Vec<_>>()[..] {
        [field] => path(field),
        ref several => {
            format!("[[{}]]", several.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
        }
    }
}

fn joined(viewed: &ViewedArray<'_>, one: fn(&AxisRange, u64) -> String) -> String {
    let parts = viewed.view.subset.iter().zip(&viewed.facts.shape).map(|(range, &length)| one(range, length));
    parts.collect::<Vec<_>>().join(", ")
}

/// The lines for all programs.
pub(super) fn all(viewed: &ViewedArray<'_>, origin: &str, place: &Place) -> Vec<Snippet> {
    let links = viewed.links;
    // Most programs put names after the URL of a store, where a signature would be in their way.
    let (store, signature) = split(&links.store);
    let store = format!("{origin}{store}");
    let store = store.trim_end_matches('/');
    let slice = viewed.view.slice(&viewed.facts.shape);
    let words = viewed.words_of_elements();
    let data = |format: &str| {
        let words = words.iter().map(|(name, value)| (*name, value.as_str()));
        let query = [("slice", slice.as_str())].into_iter().chain(words).chain([("format", format)]);
        format!("{origin}{}", join(&links.data, query))
    };
    let snippet = |title, text| Snippet { title, note: None, text };
    let with_note = |title, note, text| Snippet { title, note: Some(note), text };
    // These programs have no numbers for structs.
    let is_struct =
        viewed.array.is_some_and(|array| matches!(array.metadata().data_type, DataType::Struct(_)));
    let mut all = vec![
        with_note("Python · zarr", INSTALL_ZARR, with_zarr(viewed, store)),
        with_note("Python · xarray", INSTALL_XARRAY, xarray(viewed, store, place)),
    ];
    let has_npy = has_format(viewed, "npy");
    if has_npy {
        all.push(with_note(
            "Python · numpy",
            "Needs nothing but numpy: the server decodes.",
            format!(
                "import io, urllib.request\nimport numpy\n\nwith urllib.request.urlopen({}) as response:\n    values = numpy.load(io.BytesIO(response.read()))",
                quoted(&data("npy"))
            ),
        ));
    }
    all.push(snippet(
        "JavaScript · fetch",
        format!(
            "const response = await fetch({});\nconst values = await response.json();",
            quoted(&data("json"))
        ),
    ));
    if has_npy {
        all.push(snippet("curl", format!("curl --output slice.npy '{}'", data("npy"))));
    }
    if has_format(viewed, "csv") {
        all.push(snippet("R", format!("values <- read.csv({})", quoted(&data("csv")))));
    }
    all.push(with_note(
        "Julia",
        if is_struct { "The whole array, with all fields." } else { "The whole array." },
        format!(
            "using Zarr\n\narray = zopen({})  # dimensions in reverse order, counted from 1",
            quoted(store)
        ),
    ));
    if is_struct {
        return all;
    }
    let (raster, is_whole) = gdal(viewed, store, place);
    // Text is no raster, and neither is what has one dimension.
    let is_raster = viewed.facts.drawn != Drawn::Text && viewed.facts.shape.len() >= 2;
    let describe = format!("gdalmdiminfo 'ZARR:\"/vsicurl/{store}\"'");
    all.push(Snippet {
        title: "GDAL",
        note: Some(match (is_raster, is_whole) {
            (false, _) => "What the array is. Zarr v3 needs GDAL 3.8 or newer.",
            (true, true) => {
                "The whole array, as it is stored. Zarr v3 needs GDAL 3.8 or newer, its shards GDAL 3.13."
            }
            (true, false) => {
                "The plane of the last two dimensions, as it is stored. Zarr v3 needs GDAL 3.8 or newer, its shards GDAL 3.13."
            }
        }),
        text: if is_raster { format!("{describe}\ngdal_translate '{raster}' picture.tif") } else { describe },
    });
    if is_read_by_zarrita(viewed) {
        // It repeats the query of the store's URL in each request.
        all.push(snippet("JavaScript · zarrita", with_zarrita(viewed, &format!("{store}{signature}"))));
    }
    all.extend(viewers(viewed, origin, place));
    if is_raster {
        all.push(Snippet {
            title: "QGIS",
            note: Some("Layer › Add Layer › Add Raster Layer, with this as the source."),
            text: raster,
        });
    }
    all
}

/// What the lines for zarr need.
pub(super) const INSTALL_ZARR: &str = "pip install zarr \"fsspec[http]\" aiohttp";
/// What the lines for xarray need.
pub(super) const INSTALL_XARRAY: &str = "pip install xarray zarr \"fsspec[http]\" aiohttp";

/// Lines that read the slice with zarr-python: as values, where these are not what is stored.
fn with_zarr(viewed: &ViewedArray<'_>, store: &str) -> String {
    let opened = format!("array = zarr.open_array({}, mode=\"r\")", quoted(store));
    let read = forwards(viewed);
    if !viewed.is_decoded() {
        return format!("import zarr\n\n{opened}\nvalues = {read}");
    }
    let values = &viewed.facts.values;
    let read_as = values.data_type().name();
    let as_type = if read_as == viewed.facts.data_type.name() {
        String::new()
    } else {
        format!(".view({})", quoted(&read_as))
    };
    let unpacked = values
        .packing()
        .map_or_else(|| "stored".to_owned(), |(scale, offset)| format!("stored * {scale:?} + {offset:?}"));
    let missing: Vec<String> = values
        .missing_numbers()
        .iter()
        .filter(|number| number.is_finite())
        .map(|number| format!("{number:?}"))
        .collect();
    let values = if missing.is_empty() {
        unpacked
    } else {
        format!("numpy.where(numpy.isin(stored, [{}]), numpy.nan, {unpacked})", missing.join(", "))
    };
    format!(
        "import numpy\nimport zarr\n\n{opened}\nstored = numpy.asarray({read}){as_type}\nvalues = {values}"
    )
}

/// The name of a raster for GDAL, and whether it is all of the array: of more than two dimensions, a raster has the last two.
fn gdal(viewed: &ViewedArray<'_>, store: &str, place: &Place) -> (String, bool) {
    let array = format!("ZARR:\"/vsicurl/{store}\"");
    let others = viewed.view.subset.len().saturating_sub(2);
    let name = place.path.rsplit('/').next().unwrap_or_default();
    // GDAL has no way to quote a colon in the name of an array.
    if others == 0 || name.is_empty() || name.contains([':', '"', '\'']) {
        return (array, true);
    }
    let places: Vec<String> =
        viewed.view.subset.iter().take(others).map(|range| range.start.to_string()).collect();
    (format!("{array}:/{name}:{}", places.join(":")), false)
}

fn xarray(viewed: &ViewedArray<'_>, store: &str, place: &Place) -> String {
    let facts = viewed.facts;
    let own = place.path.rsplit('/').next().unwrap_or_default();
    // xarray decodes the coordinate of a dimension, such as times.
    let is_coordinate = facts.names.len() == 1 && facts.is_named[0] && facts.names[0] == own;
    let is_in_dataset = is_coordinate || !viewed.coordinates.is_empty();
    let is_variable = !place.path.is_empty() && is_in_dataset && viewed.state.get("fields").is_none();
    let parent = store.rsplit_once('/').filter(|_| is_variable);
    let Some((parent, _)) = parent else {
        // Arrays beside it need not have the same dimensions, as those of a dataset do.
        let kept = facts.names.iter().zip(&viewed.view.subset).filter(|(_, range)| range.keep);
        let names: Vec<String> = kept.map(|(name, _)| quoted(name)).collect();
        let names = names.join(", ");
        if viewed.is_decoded() {
            let lines = with_zarr(viewed, store).replace("import zarr\n", "import xarray\nimport zarr\n");
            return format!("{lines}\nvalues = xarray.DataArray(values, dims=[{names}])");
        }
        return format!(
            "import xarray\nimport zarr\n\narray = zarr.open_array({}, mode=\"r\")\nvalues = xarray.DataArray({}, dims=[{names}])",
            quoted(store),
            forwards(viewed),
        );
    };
    let whole = |(range, &length): (&AxisRange, &u64)| range.keep && range.count == length && range.step == 1;
    let parts: Vec<String> = viewed
        .view
        .subset
        .iter()
        .zip(&facts.shape)
        .zip(&facts.names)
        .filter(|(one, _)| !whole(*one))
        .map(|((range, _), name)| {
            let value = if range.keep && range.count == 0 {
                "slice(0, 0)".to_owned()
            } else if range.keep {
                let last = range.at(range.count.saturating_sub(1));
                let stop = match range.step {
                    1.. => (last + 1).to_string(),
                    // A slice that goes down has no other way to include the first element.
                    _ => last.checked_sub(1).map_or_else(|| "None".to_owned(), |stop| stop.to_string()),
                };
                format!("slice({}, {stop}, {})", range.start, range.step)
            } else {
                range.start.to_string()
            };
            format!("{}: {value}", quoted(name))
        })
        .collect();
    let select = if parts.is_empty() { String::new() } else { format!(".isel({{{}}})", parts.join(", ")) };
    format!(
        "import xarray\n\ndataset = xarray.open_zarr({})\nvalues = dataset[{}]{select}",
        quoted(parent),
        quoted(own)
    )
}

/// Types that Neuroglancer does not read. As float32 it does; numbers that this cannot hold are refused.
const NOT_OF_NEUROGLANCER: [&str; 4] = ["float16", "bfloat16", "float64", "int64"];
/// Types that browsers have no numbers for.
const NOT_OF_BROWSERS: [&str; 4] = ["float16", "bfloat16", "int64", "uint64"];

/// Programs that show pictures: they get the array as an image of several levels, or the image that it is a level of. Other
/// arrays than those of two to five dimensions have no such image.
fn viewers(viewed: &ViewedArray<'_>, origin: &str, place: &Place) -> Vec<Snippet> {
    let facts = viewed.facts;
    let has_pyramid =
        (2..=5).contains(&facts.shape.len()) && facts.elements() > 0 && facts.drawn == Drawn::Numbers;
    if !has_pyramid {
        return Vec::new();
    }
    let links = place.image_above.as_deref().unwrap_or(viewed.links);
    let of_type = |types: [&str; 4], other: &str| {
        let segment =
            if types.contains(&facts.type_name.as_str()) { format!("dtype={other}/") } else { String::new() };
        format!("{origin}{}{segment}{}", links.pyramid.recipe, links.pyramid.path)
    };
    let neuroglancer = of_type(NOT_OF_NEUROGLANCER, "float32");
    let viv = of_type(NOT_OF_BROWSERS, "safe");
    let note = if place.image_above.is_some() {
        "As the source of a layer: the image that this array is a level of."
    } else {
        "As the source of a layer. The server makes the coarser levels."
    };
    vec![
        Snippet {
            title: "Neuroglancer",
            note: Some(note),
            text: format!("zarr://{}/", neuroglancer.trim_end_matches('/')),
        },
        Snippet {
            title: "Viv",
            note: place.image_above.is_some().then_some("The image that this array is a level of."),
            text: format!(
                "import {{ loadOmeZarr }} from \"@vivjs/loaders\";\n\nconst {{ data }} = await loadOmeZarr({}, {{ type: \"multiscales\" }});",
                quoted(viv.trim_end_matches('/'))
            ),
        },
    ]
}
