//! Tests of references: documents, places, and what a key leads to.

mod documents;
mod limits;
mod places;
mod reads;
