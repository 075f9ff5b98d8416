//! Reads from a remote backend, with each response checked against its request.

use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use object_store::{Error, GetOptions, GetRange, GetResult, ObjectMeta};

use bytes::Bytes;

use super::failure::{failure, is_transport, status};
use super::object_backend::ObjectBackend;
use crate::key::StoreKey;
use crate::store::{ByteRange, StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version};

/// The most bytes that are read and discarded to reach a range of a server without range requests.
const MAX_SKIPPED_BYTES: u64 = 1 << 30;

impl ObjectBackend {
    /// The backend's metadata of a key's value.
    pub(super) async fn meta(&self, key: &StoreKey) -> Result<Option<ObjectMeta>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.client().get_opts(&self.path(key)?, options).await {
            Ok(result) => Ok(Some(result.meta)),
            Err(error) => {
                let absent = self.absence_or(error)?;
                if absent.is_none() && self.presence.as_ref().is_some_and(|presence| !presence.was_seen()) {
                    return self.confirm_absence(key).await;
                }
                Ok(absent)
            }
        }
    }

    /// As [`Self::meta`], by a GET of the first byte, whose 404 says whether it is of the key or of the bucket.
    async fn confirm_absence(&self, key: &StoreKey) -> Result<Option<ObjectMeta>, StoreError> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.client().get_opts(&self.path(key)?, options).await {
            // Written meanwhile.
            Ok(result) => Ok(Some(result.meta)),
            Err(error) if status(&error) == Some(416) => Err(StoreError::VersionChanged),
            Err(error) => self.absence_or(error),
        }
    }

    pub(super) async fn read(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match range {
            ByteRange::Whole => self.request(key, range, None, if_match).await,
            ByteRange::Bounded(start, u64::MAX) => {
                self.request(key, range, Some(GetRange::Offset(start)), if_match).await
            }
            ByteRange::Bounded(start, end) if start < end => {
                self.request(key, range, Some(GetRange::Bounded(start..end)), if_match).await
            }
            ByteRange::From(start) => self.request(key, range, Some(GetRange::Offset(start)), if_match).await,
            ByteRange::Suffix(length) if length > 0 && self.kind != StoreKind::AZURE => {
                self.request(key, range, Some(GetRange::Suffix(length)), if_match).await
            }
            ByteRange::Suffix(length) if length > 0 => self.request_suffix(key, length, if_match).await,
            ByteRange::Bounded(..) | ByteRange::Suffix(_) => {
                self.not_satisfiable(key, range, if_match, StoreError::WrongLength).await
            }
        }
    }

    /// The end of a value, for a backend without suffix ranges: first its size, then the range at the same version.
    async fn request_suffix(
        &self,
        key: &StoreKey,
        length: u64,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let Some(meta) = self.meta(key).await? else {
            return Ok(None);
        };
        let info = self.info(&meta);
        check_version(&info, if_match)?;
        let suffix = ByteRange::Suffix(length);
        let Some(range) = suffix.resolve(info.size) else {
            return Err(StoreError::RangeNotSatisfiable { size: info.size });
        };
        let bounded = ByteRange::Bounded(range.start, range.end);
        self.request(key, bounded, Some(GetRange::Bounded(range)), Some(&info.version)).await
    }

    async fn request(
        &self,
        key: &StoreKey,
        range: ByteRange,
        get_range: Option<GetRange>,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let ranged = get_range.is_some();
        let if_match_tag = if_match.and_then(|version| self.tag(version));
        let options = GetOptions { range: get_range, if_match: if_match_tag, ..GetOptions::default() };
        match self.client().get_opts(&self.path(key)?, options).await {
            Ok(result) => self.value(result, range, if_match).await.map(Some),
            Err(Error::Precondition { .. }) => self.changed_or_gone(key).await,
            Err(error) if ranged && status(&error) == Some(416) => {
                self.not_satisfiable(key, range, if_match, StoreError::VersionChanged).await
            }
            Err(error) if ranged && is_odd(&error) && self.kind == StoreKind::HTTP => {
                self.request_and_trim(key, range, if_match).await
            }
            Err(error) if ranged && is_odd(&error) => {
                self.not_satisfiable(key, range, if_match, failure(error)).await
            }
            Err(error) => self.absence_or(error),
        }
    }

    /// Some backends report a missing key as one without the requested version.
    async fn changed_or_gone(&self, key: &StoreKey) -> Result<Option<Value>, StoreError> {
        if self.meta(key).await?.is_some() { Err(StoreError::VersionChanged) } else { Ok(None) }
    }

    /// A range that may lie outside the value, or is empty: the error needs the value's size. If the range lies inside,
    /// the backend's refusal means something else.
    async fn not_satisfiable(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
        otherwise: StoreError,
    ) -> Result<Option<Value>, StoreError> {
        let Some(meta) = self.meta(key).await? else {
            return Ok(None);
        };
        let info = self.info(&meta);
        check_version(&info, if_match)?;
        match range.resolve(info.size) {
            None => Err(StoreError::RangeNotSatisfiable { size: info.size }),
            Some(_) => Err(otherwise),
        }
    }

    /// Reads the value from its beginning and discards all bytes outside the range.
    async fn request_and_trim(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let options =
            GetOptions { if_match: if_match.and_then(|version| self.tag(version)), ..GetOptions::default() };
        let result = match self.client().get_opts(&self.path(key)?, options).await {
            Ok(result) => result,
            Err(Error::Precondition { .. }) => return self.changed_or_gone(key).await,
            Err(error) => return self.absence_or(error),
        };
        let info = self.info(&result.meta);
        check_version(&info, if_match)?;
        let size = info.size;
        let range = range.resolve(size).ok_or(StoreError::RangeNotSatisfiable { size })?;
        if range.start > MAX_SKIPPED_BYTES {
            return Err(StoreError::NotSupported("byte ranges, and the range lies too far inside the value"));
        }
        let stream =
            ExactBody { skip: range.start, left: range.end - range.start, to_the_end: range.end == size };
        let body = ValueBody::Stream(stream.measure(result.into_stream().map_err(failure).boxed()));
        Ok(Some(Value::new(info, range, body)))
    }

    async fn value(
        &self,
        result: GetResult,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Value, StoreError> {
        let info = self.info(&result.meta);
        check_version(&info, if_match)?;
        let Some(range) = range.resolve(info.size) else {
            // Some backends send an empty body for a suffix of an empty value, in place of a refusal.
            let nothing = result.range.is_empty();
            let size = info.size;
            return Err(if nothing {
                StoreError::RangeNotSatisfiable { size }
            } else {
                StoreError::WrongLength
            });
        };
        if result.range != range {
            return Err(StoreError::WrongLength);
        }
        let measured = ExactBody { skip: 0, left: range.end - range.start, to_the_end: true };
        let stream = measured.measure(result.into_stream().map_err(failure).boxed());
        if self.kind != StoreKind::MEMORY {
            return Ok(Value::new(info, range, ValueBody::Stream(stream)));
        }
        // There is one piece, and it is in memory.
        let mut pieces: Vec<Bytes> = stream.try_collect().await?;
        let body = ValueBody::Bytes(pieces.pop().unwrap_or_default());
        Ok(Value::new(info, range, body))
    }
}

/// Whether a successful response does not fit the range: the server does not support ranges, which are optional in
/// HTTP, or the value has no such range.
fn is_odd(error: &Error) -> bool {
    let by_kind = matches!(error, Error::NotSupported { .. } | Error::Generic { .. });
    by_kind && status(error).is_none() && !is_transport(error)
}

fn check_version(info: &ValueInfo, if_match: Option<&Version>) -> Result<(), StoreError> {
    match if_match {
        Some(version) if *version != info.version => Err(StoreError::VersionChanged),
        _ => Ok(()),
    }
}

/// Which bytes of a body are passed on: after `skip` bytes, `left` bytes; with `to_the_end`, the body must end there.
struct ExactBody {
    skip: u64,
    left: u64,
    to_the_end: bool,
}

impl ExactBody {
    /// These bytes of a body, or an error if it has fewer, or more.
    fn measure(self, body: BoxStream<'static, Result<Bytes, StoreError>>) -> ValueStream {
        try_unfold((self, body), |(mut wanted, mut body)| async move {
            loop {
                if wanted.left == 0 && !wanted.to_the_end {
                    return Ok(None);
                }
                let Some(mut piece) = body.try_next().await? else {
                    return if wanted.left == 0 { Ok(None) } else { Err(StoreError::WrongLength) };
                };
                let skipped = wanted.skip.min(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                wanted.skip -= skipped;
                drop(piece.split_to(usize::try_from(skipped).unwrap_or(piece.len())));
                let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                if length > wanted.left {
                    if wanted.to_the_end {
                        return Err(StoreError::WrongLength);
                    }
                    piece.truncate(usize::try_from(wanted.left).unwrap_or(piece.len()));
                }
                wanted.left = wanted.left.saturating_sub(length);
                if !piece.is_empty() {
                    return Ok(Some((piece, (wanted, body))));
                }
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn measured(skip: u64, left: u64, to_the_end: bool) -> Result<Vec<u8>, StoreError> {
        let pieces = ["abc", "", "defg", "h"].map(|piece| Ok(Bytes::from(piece)));
        let body = futures::stream::iter(pieces).boxed();
        let pieces: Vec<Bytes> = ExactBody { skip, left, to_the_end }.measure(body).try_collect().await?;
        Ok(pieces.concat())
    }

    #[tokio::test]
    async fn a_body_is_trimmed_to_the_range_and_never_shorter_or_longer() {
        assert_eq!(measured(0, 8, true).await.unwrap(), b"abcdefgh");
        assert_eq!(measured(2, 3, false).await.unwrap(), b"cde");
        assert_eq!(measured(3, 4, false).await.unwrap(), b"defg");
        assert_eq!(measured(5, 3, true).await.unwrap(), b"fgh");
        for (skip, left, to_the_end) in
            [(0, 9, true), (0, 7, true), (8, 1, true), (4, 9, false), (9, 1, false)]
        {
            assert!(matches!(measured(skip, left, to_the_end).await, Err(StoreError::WrongLength)));
        }
    }
}
