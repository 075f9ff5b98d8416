//! [`Section`]: options that share one table of the configuration with the options of other sections.
//!
//! A table `[mounts.NAME.options]` has the keys of several sections: those of all remote backends beside those of one.
//! Serde can flatten structs out of one table, but then it reports neither the place of an unknown key nor the source
//! of each value. So the table is read key by key, and each section reads its own.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};

/// A struct whose fields are keys of a table.
pub(in crate::store) trait Section {
    /// The keys.
    const KEYS: &'static [&'static str];

    /// Reads the value of a key; `false`, with the value still unread, if the key is of another section.
    ///
    /// # Errors
    /// As the deserializer's.
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, table: &mut M) -> Result<bool, M::Error>;
}

/// Implements [`Section`] for a struct that serde deserializes, with all the keys that are not skipped.
macro_rules! section {
    ($Section:ident { $($key:ident),+ $(,)? }) => {
        impl $crate::store::options::Section for $Section {
            const KEYS: &'static [&'static str] = &[$(stringify!($key)),+];

            fn read<'de, M: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                table: &mut M,
            ) -> Result<bool, M::Error> {
                match key {
                    $(stringify!($key) => {
                        self.$key = $crate::store::options::read_entry::<Self, M>(key, table)?.$key;
                    })+
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

pub(in crate::store) use section;

/// A section with the value of one key from the table, and defaults for all others.
///
/// # Errors
/// As the deserializer's.
pub(in crate::store) fn read_entry<'de, S: Deserialize<'de>, M: MapAccess<'de>>(
    key: &str,
    table: &mut M,
) -> Result<S, M::Error> {
    S::deserialize(Entry { key: Some(key), table })
}

/// One entry of a table, as a table.
struct Entry<'a, M> {
    key: Option<&'a str>,
    table: &'a mut M,
}

impl<'de, M: MapAccess<'de>> Deserializer<'de> for Entry<'_, M> {
    type Error = M::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, M::Error> {
        visitor.visit_map(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Entry<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        let Some(key) = self.key.take() else { return Ok(None) };
        let key: StrDeserializer<'_, M::Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.table.next_value_seed(seed)
    }
}
