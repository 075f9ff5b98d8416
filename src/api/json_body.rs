//! JSON request bodies: limited in length, admitted by their length, parsed off the reactor.
//!
//! The target types reject unknown members. [`Limited`] rejects a list with too many items while it is parsed, before the
//! items are in memory.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::Request;
use axum::http::header;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::admission::{AdmissionRequest, Permit, Priority};
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::problem::Problem;
use crate::services::state::AppState;

/// Maximum number of items of a [`Limited`].
pub(crate) const MOST_ITEMS: usize = 1000;
/// Maximum length in bytes of a message about JSON, since a document may contain names of any length.
const MESSAGE_BYTES: usize = 200;

/// A list of at most [`MOST_ITEMS`] items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limited<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Limited<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Limited<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MOST_ITEMS} items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Limited<T>, A::Error> {
                let mut few = Vec::new();
                while let Some(item) = items.next_element()? {
                    if few.len() == MOST_ITEMS {
                        return Err(A::Error::invalid_length(MOST_ITEMS + 1, &self));
                    }
                    few.push(item);
                }
                Ok(Limited(few))
            }
        }
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// Bytes of memory that a value of a text takes as a [`serde_json::Value`], with its place in a list that grows by doubling, and as
/// a line of a document that is nested as deep as the parser allows.
pub(crate) const VALUE_BYTES: u64 = 640;

/// Bytes that an item of a list takes while a selection is parsed, in a list that grows by doubling.
pub(crate) const PARSED_BYTES: u64 = 128;

/// Reads a request body as JSON of which no more is kept than its text has, for work of a priority class.
/// `http.max_buffered_response_size` limits its length.
///
/// # Errors
/// 400 for invalid JSON, 408 for a body that arrives too slowly, 413 for one over the limit, 415 for one with a
/// `Content-Encoding`, 503 if the memory budget is exhausted.
pub(crate) async fn read_json<T>(state: &AppState, class: Priority, request: Request) -> Result<T, Problem>
where
    T: DeserializeOwned + Send + 'static,
{
    read_values(state, (class, 0), request).await.map(|(value, _held)| value)
}

/// Reads a request body as JSON, each value of which may take this many bytes of memory, however short it is in the text. The memory
/// is charged before it is used, and belongs to the permit.
///
/// # Errors
/// As [`read_json`]; 413 if the budget can never have as much.
pub(crate) async fn read_values<T>(
    state: &AppState,
    (class, value_bytes): (Priority, u64),
    request: Request,
) -> Result<(T, Permit), Problem>
where
    T: DeserializeOwned + Send + 'static,
{
    let (head, body) = request.into_parts();
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        let problem = Problem::from_status(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(problem.detail("send the document without `Content-Encoding`"));
    }
    let limit = state.options.max_buffered_response_size;
    let too_long = || {
        let detail = format!("the body is longer than {limit} bytes; ask in several requests");
        Problem::from_class(ErrorClass::TooLarge).detail(detail).extension("limit", limit)
    };
    let declared = head.headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > limit) {
        return Err(too_long());
    }
    // The text and the parsed value are in memory together.
    let held = declared.unwrap_or(limit).saturating_mul(2);
    let mut permit =
        state.traffic.admission.acquire(AdmissionRequest::new(class, &head.extensions), held).await?;
    let text = collect(&state.options, declared, limit, None, body, too_long).await?;
    let read = state.engine.cpu.run(move || {
        let invalid = |error: &str| {
            Problem::from_class(ErrorClass::InvalidRequest)
                .detail(format!("the body is not the JSON that is taken here: {}", shortened(error)))
        };
        // Serde would take a list for the members of an object in the order of their declaration.
        if text.trim_ascii_start().starts_with(b"[") {
            return Err(invalid("it is a list, and must be an object"));
        }
        let values = values_in(&text).saturating_mul(value_bytes);
        permit.resize((text.len() as u64).saturating_mul(2).saturating_add(values))?;
        let value = serde_json::from_slice::<T>(&text).map_err(|error| invalid(&error.to_string()))?;
        Ok((value, permit))
    });
    read.await?
}

/// At least as many as the values and the lists and objects of a text of JSON: each begins behind one of these characters.
fn values_in(text: &[u8]) -> u64 {
    text.iter().filter(|byte| matches!(byte, b'[' | b'{' | b',')).count() as u64
}

/// Shortens a message in the middle: the error is at its start and the position in the document at its end.
fn shortened(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES {
        return message.to_owned();
    }
    let head: String = message.chars().take(MESSAGE_BYTES / 2).collect();
    let mut tail: Vec<char> = message.chars().rev().take(MESSAGE_BYTES / 4).collect();
    tail.reverse();
    head + "…" + &tail.into_iter().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_over_the_limit_is_rejected() {
        let of = |items: usize| serde_json::from_value::<Limited<u8>>(vec![1; items].into());
        assert_eq!(of(MOST_ITEMS).unwrap().0.len(), MOST_ITEMS);
        let error = of(MOST_ITEMS + 1).unwrap_err().to_string();
        assert!(error.contains("at most 1000"), "{error}");
    }

    #[test]
    fn messages_stay_short_and_keep_both_ends() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&format!("unknown field `{}` at line 3", "é".repeat(5000)));
        assert!(long.starts_with("unknown field `é") && long.ends_with("at line 3"), "{long}");
        assert!(long.chars().count() <= MESSAGE_BYTES, "{long}");
    }
}
