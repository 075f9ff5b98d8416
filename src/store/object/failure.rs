//! The mapping of the backends' errors to [`StoreError`].
//!
//! Their texts name hosts, buckets and paths, so they are only ever sources. Only "not found" means absence; an option
//! decides whether "forbidden" does too.

use std::error::Error as StdError;
use std::sync::Arc;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::bucket_presence::NoBucket;
use super::public_addresses::PrivateAddress;
use super::refusal;
use crate::store::error::DirectoryMissing;
use crate::store::{StoreError, StoreKind};

/// The HTTP status of a failure, if the backend sent one.
///
/// The type of that error is private to the crate, so this parses the beginning of its text; a test checks it with
/// every status.
pub(super) fn status(error: &Error) -> Option<u16> {
    chain(error).find_map(|cause| {
        let text = cause.to_string();
        if text.starts_with("Server returned error response: ") {
            // S3's "200 OK" with an error in its body means that it is busy.
            return Some(503);
        }
        text.strip_prefix("Server returned non-2xx status code: ")?.get(..3)?.parse().ok()
    })
}

/// Whether no complete response arrived.
pub(super) fn is_transport(error: &Error) -> bool {
    chain(error).any(<dyn StdError>::is::<HttpError>)
}

/// Whether the request was never sent, because there was no connection.
pub(super) fn is_not_sent(error: &Error) -> bool {
    chain(error).any(|cause| {
        cause.downcast_ref::<HttpError>().is_some_and(|http| http.kind() == HttpErrorKind::Connect)
    })
}

/// Whether an error is a failure of the backend: no response, not in time, or a server error. A refusal is none, nor is
/// a failure of this process.
pub(in crate::store) fn is_backend_failure(error: &StoreError) -> bool {
    match error {
        StoreError::Busy(source)
        | StoreError::TimedOut(source)
        | StoreError::OutcomeUnknown(source)
        | StoreError::Backend(source) => source.downcast_ref::<Error>().is_some_and(|error| {
            !is_out_of_descriptors(error)
                && !lacks_bucket(error)
                && refusal::other_region(chain(error)).is_none()
                && status(error).map_or_else(
                    || is_transport(error),
                    |status| status >= 500 || matches!(status, 408 | 429),
                )
        }),
        StoreError::WrongLength => true,
        StoreError::ReadOnly
        | StoreError::NotListable
        | StoreError::NotSupported(_)
        | StoreError::InvalidKey(_)
        | StoreError::KeyClash
        | StoreError::ConditionFailed
        | StoreError::VersionChanged
        | StoreError::RangeNotSatisfiable { .. }
        | StoreError::ValueTooLarge { .. }
        | StoreError::BodyAborted(_)
        | StoreError::BodyTooLarge { .. }
        | StoreError::LengthMismatch { .. }
        | StoreError::PartsTooLarge { .. }
        | StoreError::Derived { .. }
        | StoreError::NotBuilt { .. }
        | StoreError::Link { .. }
        | StoreError::Zip(_)
        | StoreError::References(_)
        | StoreError::NotPublic(_)
        | StoreError::RootInUse(_)
        | StoreError::StorageFull(_)
        | StoreError::NoUploadMemory
        | StoreError::OverBudget(_)
        | StoreError::Contended(_) => false,
    }
}

/// Whether an error is that the backend gave no answer: it failed, was too slow or too busy, or is not asked because it
/// failed before. A refusal is an answer.
#[must_use]
pub fn is_unanswered(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy(_) | StoreError::TimedOut(_)) || is_backend_failure(error)
}

/// Whether the backend denies access (403), which may be to this key alone: one that may not list says so of absent keys.
#[must_use]
pub fn is_denied(error: &StoreError) -> bool {
    let StoreError::Backend(source) = error else { return false };
    source.downcast_ref::<Error>().is_some_and(|error| status(error) == Some(403))
}

/// The cause of a backend's failure in a few words, without hosts, buckets or paths.
#[must_use]
pub fn trouble(error: &StoreError) -> String {
    let own = || error.to_string();
    let (StoreError::Busy(source)
    | StoreError::TimedOut(source)
    | StoreError::OutcomeUnknown(source)
    | StoreError::Backend(source)) = error
    else {
        return own();
    };
    if let Some(error) = source.downcast_ref::<Error>() {
        return remote_trouble(error).unwrap_or_else(own);
    }
    if source.is::<DirectoryMissing>() {
        return source.to_string();
    }
    let mut next: Option<&(dyn StdError + 'static)> = Some(&**source);
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return format!("{}: {}", own(), error.kind());
        }
        next = cause.source();
    }
    own()
}

/// As [`trouble`], for a remote backend.
fn remote_trouble(error: &Error) -> Option<String> {
    if let Some(region) = other_region(error) {
        return Some(format!(
            "it is in the region `{region}`: set `options.region`, or AWS_REGION for a URL of the command line"
        ));
    }
    if let Some(status) = status(error) {
        let meaning = match status {
            300..=399 => "it is somewhere else; perhaps in another region",
            401 => "it does not accept the credentials",
            403 => "it refuses access",
            404 => "there is no such bucket, container or path",
            408 | 504 => "it did not answer in time",
            429 | 503 => "it is too busy",
            500.. => "it failed",
            _ => "it refuses the request",
        };
        let said = document(error).and_then(|document| refusal::meaning(&document));
        return Some(match said {
            Some((code, advice)) => format!("{meaning} (status {status}, {code}): {advice}"),
            None => format!("{meaning} (status {status})"),
        });
    }
    if chain(error).any(|cause| cause.to_string().starts_with("Received redirect without LOCATION")) {
        return Some("it is somewhere else, perhaps in another region: set `options.region`".to_owned());
    }
    if lacks_bucket(error) {
        return Some("there is no such bucket or container".to_owned());
    }
    if is_out_of_descriptors(error) {
        return Some("there is no file descriptor left for a connection to it".to_owned());
    }
    let is_io = |kind: std::io::ErrorKind| {
        chain(error).any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == kind))
    };
    let by_kind = |wanted: HttpErrorKind| {
        chain(error).any(|cause| cause.downcast_ref::<HttpError>().is_some_and(|http| http.kind() == wanted))
    };
    // The errors of resolvers and TLS differ only in their texts.
    let says = |word: &str| chain(error).any(|cause| cause.to_string().to_ascii_lowercase().contains(word));
    let reason = if says("dns error") || says("failed to lookup address") {
        "DNS: no such host"
    } else if says("certificate") {
        "TLS: its certificate is not accepted"
    } else if is_io(std::io::ErrorKind::ConnectionRefused) {
        "connection refused"
    } else if by_kind(HttpErrorKind::Timeout) {
        "no answer in time"
    } else if by_kind(HttpErrorKind::Connect) {
        "no connection"
    } else if is_transport(error) {
        "the connection broke off"
    } else {
        return None;
    };
    Some(format!("it cannot be reached: {reason}"))
}

/// Whether an error is a refusal that may be explained by the document that a response to GET has.
pub(super) fn is_unexplained(error: &StoreError) -> bool {
    let StoreError::Backend(source) = error else { return false };
    let refused = source
        .downcast_ref::<Error>()
        .filter(|error| document(error).is_none_or(|document| document.is_empty()));
    refused.and_then(status).is_some_and(|status| matches!(status, 400 | 401 | 403))
}

/// What the backend sent with the status of a failure, as far as the crate passes it on.
fn document(error: &Error) -> Option<String> {
    chain(error).find_map(|cause| {
        let text = cause.to_string();
        Some(text.strip_prefix("Server returned non-2xx status code: ")?.split_once(": ")?.1.to_owned())
    })
}

/// The region in which the backend says that the bucket is.
fn other_region(error: &Error) -> Option<String> {
    let header = refusal::other_region(chain(error)).map(str::to_owned);
    header.or_else(|| refusal::region(&document(error)?).map(str::to_owned))
}

/// Whether the backend said that there is no bucket.
fn lacks_bucket(error: &Error) -> bool {
    chain(error).any(<dyn StdError>::is::<NoBucket>)
}

/// Whether the process has no file descriptor left for a connection: this server is too busy, not the backend.
fn is_out_of_descriptors(error: &Error) -> bool {
    let codes = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|code| Some(code.raw_os_error()));
    let code = |cause: &(dyn StdError + 'static)| cause.downcast_ref::<std::io::Error>()?.raw_os_error();
    chain(error).any(|cause| codes.contains(&code(cause)) && code(cause).is_some())
}

/// The store's error for an error of a backend that has no special meaning to the caller.
pub(super) fn failure(error: Error) -> StoreError {
    if let Some(refused) = chain(&error).find_map(|cause| cause.downcast_ref::<PrivateAddress>()) {
        return StoreError::NotPublic(*refused);
    }
    let timed_out = |kind: HttpErrorKind| kind == HttpErrorKind::Timeout;
    let by_status = status(&error);
    let by_clock = chain(&error)
        .any(|cause| cause.downcast_ref::<HttpError>().is_some_and(|http| timed_out(http.kind())));
    let what = match (&error, by_status) {
        (Error::NotSupported { .. } | Error::NotImplemented { .. }, _) => {
            return StoreError::NotSupported("this operation");
        }
        (_, Some(429 | 503)) => StoreError::Busy,
        _ if is_out_of_descriptors(&error) => StoreError::Busy,
        (_, Some(408 | 504)) => StoreError::TimedOut,
        (_, Some(507)) => StoreError::StorageFull,
        _ if by_clock => StoreError::TimedOut,
        _ => StoreError::Backend,
    };
    what(Arc::new(error))
}

/// The failure of a write without a condition.
pub(super) fn write_failure(error: Error) -> StoreError {
    match status(&error) {
        // S3: another write of this key is in flight, retry. Nothing was decided.
        Some(409) => StoreError::Busy(Arc::new(error)),
        _ => failure(error),
    }
}

fn chain(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(Some(error as &(dyn StdError + 'static)), |cause| (*cause).source())
}

/// The failure of a listing. Web servers without `PROPFIND` refuse it with many statuses: they cannot list.
pub(super) fn list_failure(error: Error, kind: StoreKind) -> StoreError {
    let refused = match status(&error) {
        Some(status) => matches!(status, 501 | 400 | 403 | 405..=407 | 409..=428 | 300..=399),
        None => !is_transport(&error),
    };
    if kind == StoreKind::HTTP && refused { StoreError::NotListable } else { failure(error) }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn running_out_of_descriptors_is_no_failure_of_the_backend() {
        let connect = |code: Errno| {
            let source = HttpError::new(HttpErrorKind::Connect, std::io::Error::from(code));
            failure(Error::Generic { store: "test", source: Box::new(source) })
        };
        for code in [Errno::MFILE, Errno::NFILE] {
            let busy = connect(code);
            assert!(matches!(busy, StoreError::Busy(_)) && !is_backend_failure(&busy), "{busy:?}");
        }
        let refused = connect(Errno::CONNREFUSED);
        assert!(matches!(refused, StoreError::Backend(_)) && is_backend_failure(&refused), "{refused:?}");
        assert_eq!(trouble(&refused), "it cannot be reached: connection refused");
    }
}
