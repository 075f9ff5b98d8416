//! The variables that the attributes of others name.

use std::collections::BTreeSet;

use crate::cpu::{ComputePool, ComputePoolError};
use crate::metadata::{ArrayMetadata, Attributes};

/// Attributes that name other variables.
const NAMING: [&str; 3] = ["coordinates", "grid_mapping", "bounds"];

/// The names of variables in the attributes of some arrays that satisfy a condition; at most one more than `most`.
///
/// An array has few such attributes and each is short, but those of a thousand arrays have millions of names, so they are
/// gathered on the compute pool.
///
/// # Errors
/// [`ComputePoolError::Panicked`].
pub(super) async fn named_variables(
    cpu: &ComputePool,
    arrays: impl Iterator<Item = &ArrayMetadata>,
    is_sought: impl Fn(&str) -> bool + Send + 'static,
    most: usize,
) -> Result<BTreeSet<String>, ComputePoolError> {
    let attributes: Vec<Attributes> = arrays.map(|metadata| metadata.attributes.clone()).collect();
    let length =
        |name| attributes.iter().filter_map(move |all| all.member_text(name)).map(str::len).sum::<usize>();
    let bytes = NAMING.into_iter().map(length).sum::<usize>() as u64;
    let gather = move || {
        let mut names = BTreeSet::new();
        for text in attributes.iter().flat_map(naming_texts) {
            for name in text.split_whitespace().map(|word| word.trim_end_matches(':')) {
                if names.len() > most {
                    return names;
                }
                if is_sought(name) && !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
        }
        names
    };
    cpu.run_or_inline(bytes, gather).await
}

fn naming_texts(attributes: &Attributes) -> impl Iterator<Item = String> {
    NAMING.iter().filter_map(|name| Some(attributes.get_short(name)?.as_str()?.to_owned()))
}
