//! Rules for the sources: what each module may import and name, and which words are in use.
//!
//! Every file here has one rule, a test that the sources keep it, and a test that it sees a breach.

mod circles;
mod imports;
mod layers;
mod routes;
mod sources;
mod types;
mod words;
