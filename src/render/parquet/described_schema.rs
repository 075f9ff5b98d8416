//! What Arrow's readers take the types of columns from that Parquet has none for: the schema, under the key `ARROW:schema`.

use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType as ArrowType, Field, Schema, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The key in the metadata of a file.
pub(super) const KEY: &str = "ARROW:schema";
/// The beginning of a message (Arrow columnar format, "Encapsulated message format").
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Whether a column with this Arrow type, of times or not, needs the schema to be read as what it is.
pub(super) fn is_needed(stored: &ArrowType, is_time: bool) -> bool {
    matches!(stored, ArrowType::Duration(_)) || is_time && *stored == ArrowType::Int64
}

/// The schema of columns as they are stored.
pub(super) fn text(fields: &[Field]) -> String {
    let stored = |field: &Field| Arc::new(field.clone().with_data_type(stored_type(field.data_type())));
    let schema = Schema::new(fields.iter().map(stored).collect::<Vec<_>>());
    let mut tracker = DictionaryTracker::new(true);
    let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        &schema,
        &mut tracker,
        &IpcWriteOptions::default(),
    );
    let message = encoded.ipc_message;
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    BASE64_STANDARD.encode([&CONTINUATION[..], &length.to_le_bytes(), &message].concat())
}

/// The type that a reader finds in the pages.
fn stored_type(arrow: &ArrowType) -> ArrowType {
    match arrow {
        ArrowType::Float16 => ArrowType::Float32,
        ArrowType::Timestamp(TimeUnit::Second, zone) => {
            ArrowType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        ArrowType::FixedSizeBinary(_) => ArrowType::Binary,
        other => other.clone(),
    }
}
