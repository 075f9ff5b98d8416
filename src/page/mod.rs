//! The pages that people see in a browser: HTML from values that are read already.
//!
//! Pure templates: nothing here reads a store, knows a route or sends a response. Each value is escaped where it stands,
//! because attributes and names are written by others: they are text, cut in size and depth, and links lead to this server
//! alone. Pages work without scripts; the modules in `assets` make their pictures and lists interactive.

mod array;
mod array_tabs;
pub mod assets;
mod attributes;
mod child_row;
mod controls;
mod cost;
mod downloads;
mod extent;
mod facts;
mod group;
mod group_snippets;
mod home;
mod label_layer;
mod labels;
mod layout;
mod node_page;
mod packing;
mod problem;
mod sign_in;
mod snippets;
mod state;
mod thumbnail;
mod vectors;
mod view;
mod viewed_array;
mod viewer;
mod warning;
mod window;

pub use array::ArrayPage;
pub use child_row::{ChildRow, OpenedArray};
pub use cost::PageLimits;
pub use group::GroupPage;
pub use home::{HomePage, MountCard};
pub use label_layer::LabelLayer;
pub use layout::{Crumb, Site};
pub use node_page::{NodeLinks, Place, PyramidLink, ShownVersion, TreeItem};
pub use problem::ProblemPage;
pub use sign_in::SignInPage;
pub use state::PageState;
pub use thumbnail::pictured;
pub use viewed_array::Coordinate;
pub use warning::PageWarning;
