//! JSON in the body of a request: bounded, admitted by its length, parsed off the reactor.
//!
//! Members that are not known are refused by the types that are read into. [`Limited`] keeps lists from growing beyond what
//! a request may ask for, before they are held.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::Request;
use axum::http::header;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::admission::{AdmissionRequest, Priority};
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::problem::Problem;
use crate::services::state::AppState;

/// Most items of a [`Limited`].
pub(crate) const MOST_ITEMS: usize = 1000;
/// Most bytes of a message about JSON: a document may hold names of any length.
const MESSAGE_BYTES: usize = 200;

/// A list of at most [`MOST_ITEMS`].
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

/// Reads a request's body as JSON, for work of a class. It is as long as the configuration lets answers be that are put together whole.
///
/// # Errors
/// 400 for a body that is not understood, 408 for one that is too slow, 413 for one that is too long, 415 for one that
/// is content-encoded, 503 if there is no room for it.
pub(crate) async fn read_json<T>(state: &AppState, class: Priority, request: Request) -> Result<T, Problem>
where
    T: DeserializeOwned + Send + 'static,
{
    let (head, body) = request.into_parts();
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        let problem = Problem::from_status(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(problem.detail("send the document without `Content-Encoding`"));
    }
    let limit = state.options().max_buffered_response_size;
    let too_long = || {
        let detail = format!("the body is longer than {limit} bytes; ask in several requests");
        Problem::from_class(ErrorClass::TooLarge).detail(detail).extension("limit", limit)
    };
    let declared = head.headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > limit) {
        return Err(too_long());
    }
    // The text, and what is made of it.
    let held = declared.unwrap_or(limit).saturating_mul(2);
    let permit = state.admission().acquire(AdmissionRequest::new(class, &head.extensions), held).await?;
    let text = collect(state.options(), declared, limit, None, body, too_long).await?;
    let read = state.cpu().run(move || {
        let _held = permit;
        serde_json::from_slice::<T>(&text).map_err(|error| error.to_string())
    });
    read.await?.map_err(|error| {
        Problem::from_class(ErrorClass::InvalidRequest)
            .detail(format!("the body is not the JSON that is taken here: {}", shortened(&error)))
    })
}

/// The ends of a message: what is wrong stands before what was found, and where it is at the end.
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
    fn lists_are_as_long_as_they_may_be_and_no_longer() {
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
