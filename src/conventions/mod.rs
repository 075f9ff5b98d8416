//! Conventions: what attributes and dimension names say about nodes beyond the Zarr specification, and the summary of a node.
//!
//! OME-Zarr 0.4, 0.5 and 0.6rc; the Zarr conventions `multiscales`, `spatial:` and `proj:`; CF and the attribute convention
//! for data discovery (ACDD); Zarr Vector Format. Attributes are untrusted: a value of another type than its convention's
//! counts as absent, texts are cut, and lists are bounded. Everything here is a function of documents that were read
//! already, and of the ends of coordinates where these were read; it reads no chunk. What documents a summary needs is in [`Needed`], and who reads them is the business of
//! callers.

mod axis;
mod cf;
mod crs_unit;
mod declared_crs;
mod facts;
mod geo;
mod grouped;
mod kind;
mod layout;
mod level;
mod level_of;
mod needed;
mod northing;
mod of_array;
mod of_dataset;
mod ome;
mod plane;
mod range;
mod rules;
mod summary;
mod values;
mod view;
mod warning;
mod wkt;
mod zvf;

pub use axis::SummaryAxis;
pub use cf::{coordinate_axis, is_geographic, named_coordinates, text_attribute};
pub use crs_unit::CrsUnit;
pub use declared_crs::{DeclaredCrs, Ellipsoid, epsg_code_of_projjson};
pub use facts::{ArrayFacts, Neighbour, Neighbours, NodeFacts, is_number};
pub use geo::CrsSummary;
pub use grouped::summarize_group;
pub use kind::NodeSummaryKind;
pub use level::SummaryLevel;
pub use level_of::{DeclaredLevel, declared_level, groups_above, has_categories};
pub use needed::{MAX_DATASET_ARRAYS, Needed};
pub use northing::{is_northing, may_be_northing};
pub use of_array::summarize_array;
pub use of_dataset::summarize_dataset;
pub use ome::{ChannelSummary, OmeImage, OmeNode, PlateSummary};
pub use plane::{DefaultPlane, DimensionRole, Dimensions};
pub use range::{RangeUnits, StatedRange, default_range, stated_range};
pub use summary::NodeSummary;
pub use view::DefaultView;
pub use warning::{LayoutWarning, WayOut};
pub use wkt::{epsg_code_of_wkt, unit_of_wkt};
pub use zvf::is_vector_store;

#[cfg(test)]
mod tests;
