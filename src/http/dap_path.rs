//! The paths of DAP: the path of a node with the suffix of a response, such as `/dap/demo/climate.dds`.

use std::borrow::Cow;

use super::path::{PathError, dap_node};
use crate::key::NodePath;

/// A response of DAP2 ("The Data Access Protocol: DAP 2.0", section 7.2) or of DAP4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DapResponse {
    /// The dataset descriptor.
    Dds,
    /// The attributes.
    Das,
    /// The values.
    Dods,
    /// The values as text.
    Ascii,
    /// A description for people, and what is left out.
    Info,
    /// The version of the server.
    Ver,
    /// The metadata of DAP4.
    Dmr,
    /// The values of DAP4.
    Dap,
}

/// The suffixes of paths.
const SUFFIXES: [(&str, DapResponse); 10] = [
    (".dds", DapResponse::Dds),
    (".das", DapResponse::Das),
    (".dods", DapResponse::Dods),
    (".ascii", DapResponse::Ascii),
    (".asc", DapResponse::Ascii),
    (".info", DapResponse::Info),
    (".ver", DapResponse::Ver),
    (".dmr.xml", DapResponse::Dmr),
    (".dmr", DapResponse::Dmr),
    (".dap", DapResponse::Dap),
];

impl DapResponse {
    /// The response that a raw path asks for. Without a suffix it is the description for people.
    pub(crate) fn of_path(raw_path: &str) -> Self {
        SUFFIXES
            .iter()
            .find(|(suffix, _)| raw_path.ends_with(suffix))
            .map_or(Self::Info, |(_, response)| *response)
    }
}

impl DapResponse {
    /// Whether the response is one of DAP4.
    pub(crate) fn is_of_dap4(self) -> bool {
        matches!(self, Self::Dmr | Self::Dap)
    }
}

/// A raw path without the suffix of a response.
fn without_suffix(raw_path: &str) -> &str {
    SUFFIXES.iter().find_map(|(suffix, _)| raw_path.strip_suffix(suffix)).unwrap_or(raw_path)
}

/// The mount name and the node path of a raw path `/dap/{mount}/{path}` with a suffix.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn dap_of(raw_path: &str) -> Result<(Cow<'_, str>, NodePath), PathError> {
    dap_node(without_suffix(raw_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_names_the_response_and_is_no_part_of_the_node() {
        for (raw, mount, path, response) in [
            ("/dap/m.dds", "m", "", DapResponse::Dds),
            ("/dap/m/.das", "m", "", DapResponse::Das),
            ("/dap/m/a/b.dods", "m", "a/b", DapResponse::Dods),
            ("/dap/m/a.zarr.info", "m", "a.zarr", DapResponse::Info),
            ("/dap/m/a.dds.ascii", "m", "a.dds", DapResponse::Ascii),
            ("/dap/m/a", "m", "a", DapResponse::Info),
            ("/dap/m/a.dmr.xml", "m", "a", DapResponse::Dmr),
            ("/dap/m/a/b.dmr", "m", "a/b", DapResponse::Dmr),
            ("/dap/m.dap", "m", "", DapResponse::Dap),
            ("/dap/my.mount/a.ver", "my.mount", "a", DapResponse::Ver),
        ] {
            let (found, node) = dap_of(raw).unwrap();
            assert_eq!((&*found, node.as_str(), DapResponse::of_path(raw)), (mount, path, response), "{raw}");
        }
        assert!(dap_of("/dap/m/../a.dds").is_err());
    }
}
