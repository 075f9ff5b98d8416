//! Dependent arrays: arrays declared in the attributes of another array, their primary (Zarr convention
//! "dependent-arrays").
//!
//! A declaration gives the name of each dependent and the members in which it differs from the primary; it inherits the
//! rest ([`Family`]). All chunks are stored below the prefix of the outermost primary and differ only in their keys; the
//! module `hierarchy` checks whether keys collide. Declarations are untrusted: inherited members are borrowed instead of
//! copied, and the total work for a family is bounded.

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
