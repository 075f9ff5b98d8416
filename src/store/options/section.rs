//! [`Section`]: options that share one table of the configuration with the options of other sections.
//!
//! A table `[mounts.NAME.options]` holds the keys of several sections: those of all remote backends beside those of one. Serde
//! can flatten structs into one table, but then neither reports the place of an unknown key nor keeps the source of each
//! value. So each section reads and writes its own keys here.

use serde::de::MapAccess;
use serde::ser::SerializeStruct;

/// A struct whose fields are keys of a table.
pub(in crate::store) trait Section {
    /// The keys.
    const KEYS: &'static [&'static str];

    /// Reads the value of a key; `false`, with the value still unread, if the key is of another section.
    ///
    /// # Errors
    /// As the deserializer's.
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, table: &mut M) -> Result<bool, M::Error>;

    /// Writes all keys with their values.
    ///
    /// # Errors
    /// As the serializer's.
    fn write<S: SerializeStruct>(&self, table: &mut S) -> Result<(), S::Error>;
}

/// Implements [`Section`] for a struct with these keys. Fields after `skip` are none; a field in neither list is an error of
/// the compiler.
macro_rules! section {
    ($Section:ident { $($key:ident),+ $(,)? } $(skip { $($skipped:ident),+ })?) => {
        impl $crate::store::options::Section for $Section {
            const KEYS: &'static [&'static str] = &[$(stringify!($key)),+];

            fn read<'de, M: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                table: &mut M,
            ) -> Result<bool, M::Error> {
                let Self { $($key),+ $(, $($skipped: _),+)? } = self;
                match key {
                    $(stringify!($key) => *$key = table.next_value()?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn write<S: serde::ser::SerializeStruct>(&self, table: &mut S) -> Result<(), S::Error> {
                $(table.serialize_field(stringify!($key), &self.$key)?;)+
                Ok(())
            }
        }
    };
}

pub(in crate::store) use section;
