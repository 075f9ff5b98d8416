//! Dependent arrays: arrays that the document of another, their primary, declares in its attributes (the Zarr
//! convention "dependent-arrays").
//!
//! A declaration gives each dependent's name and the members in which it differs from the primary; the rest is the
//! primary's ([`Family`]). Their chunks stand below the prefix of the outermost primary, so that only their keys set
//! them apart: whether these clash is not judged here. Declarations come from anywhere: what is borrowed from the
//! primary is not copied for each dependent, and the work on all of them together is bounded.

mod completed;
mod declaration;
mod diagnostic;
mod error;
mod family;
mod rebased;
mod validate;

pub use declaration::{Reading, is_declaration, is_declared, parse_primary};
pub use diagnostic::{Diagnostic, DiagnosticCode};
pub use error::DependentError;
pub use family::{Family, MAX_DEPENDENT_DEPTH, Member};

#[cfg(test)]
mod tests;
