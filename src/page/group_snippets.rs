//! Lines that open a group with common programs.

use maud::{Markup, html};

use super::layout::Site;
use super::node_page::Place;
use super::snippets::{INSTALL_XARRAY, INSTALL_ZARR, Snippet, quoted, signature_note};
use super::state::split;

/// What a group is to programs that open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupUse {
    /// Arrays with coordinates.
    Dataset,
    /// Groups that have datasets, perhaps.
    Tree,
    /// An image of OME-Zarr.
    Image,
    /// An image of OME-Zarr whose elements are labels of another image.
    LabelImage,
    /// Something else.
    Group,
}

/// The lines.
pub(super) fn snippets(what: GroupUse, site: &Site, place: &Place) -> Markup {
    // These programs put names after the URL, where a signature would be in their way.
    let store = format!("{}{}", site.origin, split(&place.links.store).0);
    let store = store.trim_end_matches('/');
    let quoted = quoted(store);
    let snippet = |title, note, text| Snippet { title, note: Some(note), text };
    let zarr = || {
        snippet(
            "Python · zarr",
            INSTALL_ZARR,
            format!("import zarr\n\ngroup = zarr.open_group({quoted}, mode=\"r\")"),
        )
    };
    let all = match what {
        GroupUse::Dataset => vec![
            snippet(
                "Python · xarray",
                INSTALL_XARRAY,
                format!("import xarray\n\ndataset = xarray.open_zarr({quoted})"),
            ),
            zarr(),
        ],
        GroupUse::Tree => vec![
            snippet(
                "Python · xarray",
                "If the groups in it are datasets. pip install xarray zarr \"fsspec[http]\" aiohttp",
                format!("import xarray\n\ntree = xarray.open_datatree({quoted}, engine=\"zarr\")"),
            ),
            zarr(),
        ],
        GroupUse::Image | GroupUse::LabelImage => vec![
            snippet(
                "napari",
                "pip install \"napari[all]\" napari-ome-zarr",
                format!("napari --plugin napari-ome-zarr '{store}'"),
            ),
            snippet(
                "Python · ome-zarr",
                "pip install ome-zarr",
                format!(
                    "from ome_zarr.io import parse_url\nfrom ome_zarr.reader import Reader\n\n\
                     {}\nlevels = image.data",
                    // Of labels, the image that they are of comes first, and they come last.
                    if what == GroupUse::LabelImage {
                        format!("*_, image = Reader(parse_url({quoted}))()")
                    } else {
                        format!("image = next(iter(Reader(parse_url({quoted}))()))")
                    }
                ),
            ),
            snippet("Neuroglancer", "As the source of a layer.", format!("zarr://{store}/")),
            zarr(),
        ],
        GroupUse::Group => vec![zarr()],
    };
    html! {
        section.use-it aria-label="Use it" {
            h2 { "Use it" }
            (signature_note(&place.links.store))
            @for snippet in &all { (snippet.article()) }
        }
    }
}
