//! [`Section`]: options that share one table of the configuration with the options of other sections.
//!
//! A table `[mounts.NAME.options]` has the keys of several sections: those of all remote backends beside those of one.
//! Serde can flatten structs out of one table, but then it reports neither the place of an unknown key nor the source
//! of each value. So the table is read key by key, and each section reads its own.

use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};

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

/// Implements `Deserialize` for a struct of sections: reads one table, each key into the section that it belongs to.
macro_rules! sections {
    ($Table:ident { $($field:ident: $Section:ty),+ $(,)? }) => {
        impl $Table {
            /// The keys of all sections.
            fn keys() -> &'static [&'static str] {
                static KEYS: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
                    [$(<$Section as $crate::store::options::Section>::KEYS),+].concat()
                });
                &KEYS
            }
        }

        impl<'de> serde::Deserialize<'de> for $Table {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TableVisitor;

                impl<'de> serde::de::Visitor<'de> for TableVisitor {
                    type Value = $Table;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("struct ", stringify!($Table)))
                    }

                    fn visit_map<M: serde::de::MapAccess<'de>>(self, mut table: M) -> Result<$Table, M::Error> {
                        use $crate::store::options::Section as _;
                        let mut options = $Table::default();
                        let mut keys = $crate::store::options::TableKeys::new($Table::keys());
                        while let Some(key) = keys.next(&mut table)? {
                            // Every key is of one section.
                            let _ = $(options.$field.read(key, &mut table)?)||+;
                        }
                        Ok(options)
                    }
                }

                deserializer.deserialize_struct(stringify!($Table), $Table::keys(), TableVisitor)
            }
        }
    };
}
pub(in crate::store) use sections;

/// The keys of a table as they are read: known ones, each once.
pub(in crate::store) struct TableKeys {
    known: &'static [&'static str],
    seen: Vec<&'static str>,
}

impl TableKeys {
    pub(in crate::store) fn new(known: &'static [&'static str]) -> Self {
        Self { known, seen: Vec::new() }
    }

    /// Reads the next key.
    ///
    /// # Errors
    /// As the deserializer's; for an unknown key and for one that is given twice.
    pub(in crate::store) fn next<'de, M: MapAccess<'de>>(
        &mut self,
        table: &mut M,
    ) -> Result<Option<&'static str>, M::Error> {
        let Some(key) = table.next_key_seed(KnownKey(self.known))? else { return Ok(None) };
        if self.seen.contains(&key) {
            return Err(M::Error::duplicate_field(key));
        }
        self.seen.push(key);
        Ok(Some(key))
    }
}

/// Reads a key. An unknown one is refused here, while the deserializer still knows its place.
struct KnownKey(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an option")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<&'static str, E> {
        let known = self.0.iter().find(|key| **key == text);
        known.copied().ok_or_else(|| E::unknown_field(text, self.0))
    }
}

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
