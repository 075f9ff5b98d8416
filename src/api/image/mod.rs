//! `/v1/image/{mount}/{path}`: pictures of arrays, images and datasets; their tiles and legends.

mod channels;
mod grid;
mod headers;
mod layout;
mod legend;
mod long;
mod memory;
mod montage;
mod opening;
mod orientation;
mod params;
mod picture;
mod picture_tag;
mod planned;
mod query;
mod range;
mod reduced;
mod request;
mod respond;
mod sample;
mod sampled;
mod scene;
mod subject;
mod tilejson;
mod tiles;
mod values;
mod words;

use crate::services::route::Route;

/// The words of pictures that a page leaves out where they are none.
pub(crate) const CHECKED_WORDS: [&str; 3] = ["range", "colormap", "scale"];

/// Why a text is none of the [`CHECKED_WORDS`]; `None` if it is one.
pub(crate) fn word_complaint(name: &str, text: &str) -> Option<String> {
    let error = match name {
        "range" => values::range(text).err(),
        "colormap" => values::colormap(text).err(),
        "scale" => values::scale(text).err(),
        _ => None,
    };
    error.map(|error| error.to_string())
}

/// The routes of pictures, tiles and legends.
pub(crate) fn routes() -> Vec<Route> {
    [picture::routes(), tiles::routes(), tilejson::routes(), legend::routes()].into_iter().flatten().collect()
}
