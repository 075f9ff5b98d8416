//! [`Named`]: a JSON object with a member for each of some dimensions.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The most members. No array has more dimensions.
const MOST_MEMBERS: usize = 64;

/// The members of an object in their order, each of which occurs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Named<T> {
    /// The members of an object from one on, whose key is known.
    ///
    /// # Errors
    /// One that occurs twice, more than an array has dimensions, and values of another type.
    pub(super) fn collect<A: MapAccess<'de>>(
        first: Option<String>,
        mut members: A,
    ) -> Result<Self, A::Error> {
        let mut found: Vec<(String, T)> = Vec::new();
        let mut next = first;
        while let Some(name) = next {
            if found.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format_args!("`{name}` is given twice")));
            }
            if found.len() == MOST_MEMBERS {
                return Err(A::Error::custom(format_args!("more than {MOST_MEMBERS} dimensions")));
            }
            let value = value_of(&name, &mut members)?;
            found.push((name, value));
            next = members.next_key()?;
        }
        Ok(Self(found))
    }
}

/// The value of the member with this name. An error has the name, since the value alone does not show where it is.
///
/// # Errors
/// A value of another type.
pub(super) fn value_of<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    name: &str,
    members: &mut A,
) -> Result<T, A::Error> {
    members.next_value().map_err(|error| A::Error::custom(format_args!("`{name}`: {error}")))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a member for each dimension")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Named<T>, A::Error> {
                let first = members.next_key()?;
                Named::collect(first, members)
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}
