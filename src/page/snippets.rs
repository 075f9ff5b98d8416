//! Lines that read a slice of an array with common programs.
//!
//! Everything that others wrote is in URLs, where it is percent-encoded, or is quoted as a JSON string, which Python and
//! JavaScript read as well.

use serde_json::Value;

use super::node_page::Place;
use super::state::join;
use super::viewed_array::ViewedArray;
use crate::chunk::AxisRange;

/// Lines for a program.
pub(super) struct Snippet {
    pub(super) title: &'static str,
    pub(super) note: Option<&'static str>,
    pub(super) text: String,
}

fn quoted(text: &str) -> String {
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

/// An index or slice as zarrita has it.
fn zarrita(range: &AxisRange, length: u64) -> String {
    if !range.keep {
        return range.start.to_string();
    }
    if range.step == 1 && range.start == 0 && range.count == length {
        return "null".to_owned();
    }
    let last = range.at(range.count.saturating_sub(1));
    format!("zarr.slice({}, {}, {})", range.start, last.saturating_add(1), range.step.max(1))
}

/// An expression that reads the slice of `array`. Zarr has no steps backwards: what is read forwards is reversed.
fn forwards(viewed: &ViewedArray<'_>) -> String {
    let up = |range: &AxisRange| {
        let last = range.at(range.count.saturating_sub(1));
        AxisRange { start: last, step: range.step.saturating_neg(), ..*range }
    };
    let goes_down = |range: &AxisRange| range.keep && range.step < 0;
    let parts = viewed.view.subset.iter().zip(&viewed.facts.shape);
    let parts: Vec<String> = parts
        .map(|(range, &length)| python(&if goes_down(range) { up(range) } else { *range }, length))
        .collect();
    let index = if parts.is_empty() { "...".to_owned() } else { parts.join(", ") };
    if !viewed.view.subset.iter().any(goes_down) {
        return format!("array[{index}]");
    }
    let kept = viewed.view.subset.iter().filter(|range| range.keep);
    let turned: Vec<&str> = kept.map(|range| if goes_down(range) { "::-1" } else { ":" }).collect();
    format!("array[{index}][{}]", turned.join(", "))
}

fn joined(viewed: &ViewedArray<'_>, one: fn(&AxisRange, u64) -> String) -> String {
    let parts = viewed.view.subset.iter().zip(&viewed.facts.shape).map(|(range, &length)| one(range, length));
    parts.collect::<Vec<_>>().join(", ")
}

/// The lines for all programs.
pub(super) fn all(viewed: &ViewedArray<'_>, origin: &str, place: &Place) -> Vec<Snippet> {
    let links = viewed.links;
    let store = format!("{origin}{}", links.store);
    let store = store.trim_end_matches('/');
    let slice = viewed.view.slice(&viewed.facts.shape);
    let data = |format: &str| {
        format!("{origin}{}", join(&links.data, [("slice", slice.as_str()), ("format", format)].into_iter()))
    };
    let snippet = |title, text| Snippet { title, note: None, text };
    let mut all = vec![
        snippet(
            "Python · zarr",
            format!(
                "import zarr\n\narray = zarr.open_array({}, mode=\"r\")\nvalues = {}",
                quoted(store),
                forwards(viewed)
            ),
        ),
        snippet("Python · xarray", xarray(viewed, store, place)),
        Snippet {
            title: "Python · numpy",
            note: Some("Needs nothing but numpy: the server decodes."),
            text: format!(
                "import io, urllib.request\nimport numpy\n\nwith urllib.request.urlopen({}) as response:\n    values = numpy.load(io.BytesIO(response.read()))",
                quoted(&data("npy"))
            ),
        },
        snippet(
            "JavaScript · zarrita",
            format!(
                "import * as zarr from \"zarrita\";\n\nconst array = await zarr.open(new zarr.FetchStore({}), {{ kind: \"array\" }});\nconst {{ data, shape }} = await zarr.get(array, [{}]);",
                quoted(store),
                joined(viewed, zarrita)
            ),
        ),
        snippet(
            "JavaScript · fetch",
            format!(
                "const response = await fetch({});\nconst values = await response.json();",
                quoted(&data("json"))
            ),
        ),
        snippet("curl", format!("curl --output slice.npy '{}'", data("npy"))),
        Snippet {
            title: "GDAL",
            note: Some("The whole array. Zarr v3 needs GDAL 3.8 or newer."),
            text: format!(
                "gdalmdiminfo 'ZARR:\"/vsicurl/{store}\"'\ngdal_translate 'ZARR:\"/vsicurl/{store}\"' picture.tif"
            ),
        },
        snippet("R", format!("values <- read.csv({})", quoted(&data("csv")))),
        Snippet {
            title: "Julia",
            note: Some("The whole array."),
            text: format!(
                "using Zarr\n\narray = zopen({})  # dimensions in reverse order, counted from 1",
                quoted(store)
            ),
        },
    ];
    all.extend(viewers(viewed, origin, store));
    all
}

fn xarray(viewed: &ViewedArray<'_>, store: &str, place: &Place) -> String {
    let facts = viewed.facts;
    let parent = store.rsplit_once('/').filter(|_| !place.path.is_empty() && !viewed.coordinates.is_empty());
    let Some((parent, name)) = parent else {
        // Arrays beside it need not have the same dimensions, as those of a dataset do.
        let kept = facts.names.iter().zip(&viewed.view.subset).filter(|(_, range)| range.keep);
        let names: Vec<String> = kept.map(|(name, _)| quoted(name)).collect();
        return format!(
            "import xarray\nimport zarr\n\narray = zarr.open_array({}, mode=\"r\")\nvalues = xarray.DataArray({}, dims=[{}])",
            quoted(store),
            forwards(viewed),
            names.join(", ")
        );
    };
    let own = place.path.rsplit('/').next().unwrap_or(name);
    let whole = |(range, &length): (&AxisRange, &u64)| range.keep && range.count == length && range.step == 1;
    let parts: Vec<String> = viewed
        .view
        .subset
        .iter()
        .zip(&facts.shape)
        .zip(&facts.names)
        .filter(|(one, _)| !whole(*one))
        .map(|((range, _), name)| {
            let value = if range.keep {
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

/// Programs that show pictures: they get the array as an image of several levels.
fn viewers(viewed: &ViewedArray<'_>, origin: &str, store: &str) -> Vec<Snippet> {
    let pyramid = format!("{origin}{}", viewed.links.pyramid);
    let pyramid = pyramid.trim_end_matches('/');
    vec![
        Snippet {
            title: "Neuroglancer",
            note: Some("As the source of a layer. The server makes the coarser levels."),
            text: format!("zarr://{pyramid}/"),
        },
        Snippet {
            title: "Viv",
            note: None,
            text: format!(
                "import {{ loadOmeZarr }} from \"@vivjs/loaders\";\n\nconst {{ data }} = await loadOmeZarr({}, {{ type: \"multiscales\" }});",
                quoted(pyramid)
            ),
        },
        Snippet {
            title: "QGIS",
            note: Some("Layer › Add Layer › Add Raster Layer, with this as the source."),
            text: format!("ZARR:\"/vsicurl/{store}\""),
        },
    ]
}
