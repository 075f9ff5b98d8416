//! Digests of request bodies: checked before a store sees the end of the body.
//!
//! Supported are `Content-Digest` and `Repr-Digest` (RFC 9530: `sha-256` and `sha-512`; other algorithms are ignored),
//! `Content-MD5` (RFC 1864), and the `x-amz-checksum-*` of the S3 dialect: CRC-32, CRC-32C, CRC-64/NVME, SHA-1 and SHA-256.
//! Those may also come in the trailer of an `aws-chunked` body. Bodies have no other coding, so the digests of the
//! representation and of the content cover the same bytes. Digests of responses are not supported, and trailers of HTTP
//! itself are ignored.

use std::fmt;
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use sha2::{Digest as _, Sha256, Sha512};

use super::problem::Problem;
use crate::cpu::{ComputePool, ComputePoolError};
use crate::error::ErrorClass;

/// Padding may be missing (RFC 8941, section 4.2.7); present padding must be correct.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Number of body pieces that are digested together: few enough that they occupy only a few megabytes.
const PARTS_AT_ONCE: usize = 32;

/// Headers whose value is one digest.
const SINGLE: [(&str, Algorithm); 6] = [
    ("content-md5", Algorithm::Md5),
    ("x-amz-checksum-crc32", Algorithm::Crc32),
    ("x-amz-checksum-crc32c", Algorithm::Crc32c),
    ("x-amz-checksum-crc64nvme", Algorithm::Crc64Nvme),
    ("x-amz-checksum-sha1", Algorithm::Sha1),
    ("x-amz-checksum-sha256", Algorithm::Sha256),
];
/// The header with the SHA-256 of a signed body, in hexadecimal digits.
const CONTENT_SHA256: &str = "x-amz-content-sha256";
/// Headers whose value is a dictionary of digests by algorithm.
const DICTIONARIES: [&str; 2] = ["content-digest", "repr-digest"];

/// A digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Crc32,
    Crc32c,
    Crc64Nvme,
}

impl Algorithm {
    /// The algorithm with a name of the RFC 9530 registry; `None` for an unsupported one.
    fn of(name: &str) -> Option<Self> {
        match name {
            "sha-256" => Some(Self::Sha256),
            "sha-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    fn digest_bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn begin(self) -> Running {
        match self {
            Self::Md5 => Running::Md5(md5::Md5::default()),
            Self::Sha256 => Running::Sha256(Sha256::default()),
            Self::Sha512 => Running::Sha512(Sha512::default()),
            Self::Sha1 => Running::Sha1(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            Self::Crc32 => Running::Crc32(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
            Self::Crc32c => Running::Crc32c(0),
            Self::Crc64Nvme => Running::Crc64Nvme(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)),
        }
    }
}

/// The running digest of the bytes received so far.
#[derive(Clone)]
enum Running {
    Md5(md5::Md5),
    Sha1(Context),
    Sha256(Sha256),
    Sha512(Sha512),
    Crc32(crc_fast::Digest),
    Crc32c(u32),
    Crc64Nvme(crc_fast::Digest),
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl Running {
    fn add(&mut self, part: &[u8]) {
        match self {
            Self::Md5(digest) => md5::Digest::update(digest, part),
            Self::Sha1(digest) => digest.update(part),
            Self::Sha256(digest) => digest.update(part),
            Self::Sha512(digest) => digest.update(part),
            Self::Crc32(sum) | Self::Crc64Nvme(sum) => sum.update(part),
            Self::Crc32c(sum) => *sum = crate::codec::crc32c_append(*sum, part),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Md5(digest) => md5::Digest::finalize(digest).to_vec(),
            Self::Sha1(digest) => digest.finish().as_ref().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
            Self::Sha512(digest) => digest.finalize().to_vec(),
            // The last four bytes: the sum itself has 32 bits.
            Self::Crc32(sum) => sum.finalize().to_be_bytes().into_iter().skip(4).collect(),
            Self::Crc32c(sum) => sum.to_be_bytes().to_vec(),
            Self::Crc64Nvme(sum) => sum.finalize().to_be_bytes().to_vec(),
        }
    }
}

/// A digest from a header.
#[derive(Clone, Debug)]
struct Expected {
    header: &'static str,
    algorithm: Algorithm,
    /// `None` if it comes in the trailer.
    digest: Option<Vec<u8>>,
}

/// The fields of the trailer of a body, once it has come. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trailer(Arc<OnceLock<Vec<(String, String)>>>);

impl Trailer {
    /// Sets the fields: their names in lower case, and their values.
    pub(crate) fn set(&self, fields: Vec<(String, String)>) {
        // A body has one trailer.
        let _ = self.0.set(fields);
    }

    /// The value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let fields = self.0.get()?;
        fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// The expected digests of a body, and the running ones. Empty if the request has no digest.
#[derive(Clone, Debug, Default)]
struct Digests {
    expected: Vec<Expected>,
    /// One entry for each algorithm, even if several headers use it.
    running: Vec<(Algorithm, Running)>,
}

/// An invalid digest header, or a body that does not match its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DigestError {
    /// The header is invalid.
    Malformed(&'static str),
    /// The body has another digest.
    Mismatch(&'static str),
}

impl From<DigestError> for Problem {
    fn from(error: DigestError) -> Self {
        match error {
            DigestError::Malformed(header) => Problem::from_class(ErrorClass::InvalidRequest)
                .detail(format!("`{header}` is not a valid digest; nothing was written")),
            DigestError::Mismatch(header) => {
                let code =
                    if header == CONTENT_SHA256 { "content-sha256-mismatch" } else { "digest-mismatch" };
                Problem::new(StatusCode::BAD_REQUEST, code)
                    .detail(format!("the body does not match the digest in `{header}`; nothing was written"))
            }
        }
    }
}

impl Digests {
    /// The digests in the request headers.
    ///
    /// # Errors
    /// [`DigestError::Malformed`]: ignoring the header would let the client believe that its bytes were checked.
    fn from_headers(headers: &HeaderMap) -> Result<Self, DigestError> {
        let mut digests = Self::default();
        for (header, algorithm) in SINGLE {
            for value in headers.get_all(header) {
                let digest = decode(value.as_bytes(), algorithm).ok_or(DigestError::Malformed(header))?;
                digests.expect(Expected { header, algorithm, digest: Some(digest) });
            }
        }
        for header in DICTIONARIES {
            for value in headers.get_all(header) {
                for member in value.as_bytes().split(|byte| *byte == b',') {
                    let (name, text) = member_of(member).ok_or(DigestError::Malformed(header))?;
                    let Some(algorithm) = Algorithm::of(name) else { continue };
                    let digest = decode(text, algorithm).ok_or(DigestError::Malformed(header))?;
                    digests.expect(Expected { header, algorithm, digest: Some(digest) });
                }
            }
        }
        Ok(digests)
    }

    fn expect(&mut self, expected: Expected) {
        if self.running.iter().all(|(algorithm, _)| *algorithm != expected.algorithm) {
            self.running.push((expected.algorithm, expected.algorithm.begin()));
        }
        self.expected.push(expected);
    }

    fn add(&mut self, part: &[u8]) {
        for (_, running) in &mut self.running {
            running.add(part);
        }
    }

    /// Takes the digests that come in the trailer from there.
    fn resolve(&mut self, trailer: &Trailer) -> Result<(), DigestError> {
        for expected in self.expected.iter_mut().filter(|expected| expected.digest.is_none()) {
            let text = trailer.value(expected.header);
            let digest = text.and_then(|text| decode(text.as_bytes(), expected.algorithm));
            expected.digest = Some(digest.ok_or(DigestError::Malformed(expected.header))?);
        }
        Ok(())
    }

    /// Compares the digests of the whole body with the expected ones.
    fn check(self) -> Result<(), DigestError> {
        for (algorithm, running) in self.running {
            let found = running.finish();
            let mut wrong = self.expected.iter().filter(|expected| expected.algorithm == algorithm);
            if let Some(wrong) = wrong.find(|expected| expected.digest.as_ref() != Some(&found)) {
                return Err(DigestError::Mismatch(wrong.header));
            }
        }
        Ok(())
    }
}

/// A digest check that runs on the compute pool.
#[derive(Debug)]
pub(crate) struct Checking {
    digests: Digests,
    cpu: ComputePool,
    /// Received pieces that are not yet digested.
    waiting: Vec<Bytes>,
    trailer: Trailer,
}

impl Checking {
    /// A check of the digests in the request headers.
    ///
    /// # Errors
    /// [`DigestError::Malformed`].
    pub(crate) fn from_headers(headers: &HeaderMap, cpu: &ComputePool) -> Result<Self, DigestError> {
        let digests = Digests::from_headers(headers)?;
        Ok(Self { digests, cpu: cpu.clone(), waiting: Vec::new(), trailer: Trailer::default() })
    }

    /// Adds the digest of a signed body: a SHA-256 in hexadecimal digits.
    ///
    /// # Errors
    /// [`DigestError::Malformed`].
    pub(crate) fn expect_sha256(&mut self, hex: &str) -> Result<(), DigestError> {
        let digits = hex.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let digest: Option<Vec<u8>> = digits.0.iter().map(byte).collect();
        let is_hex = hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let digest = digest.filter(|_| is_hex).ok_or(DigestError::Malformed(CONTENT_SHA256))?;
        let (header, algorithm) = (CONTENT_SHA256, Algorithm::Sha256);
        self.digests.expect(Expected { header, algorithm, digest: Some(digest) });
        Ok(())
    }

    /// Adds the digests that a trailer will have, of the fields with these names. Other names are ignored.
    pub(crate) fn expect_trailer<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Trailer {
        for name in names {
            let named = |(header, _): &&(&str, Algorithm)| header.eq_ignore_ascii_case(name);
            if let Some(&(header, algorithm)) = SINGLE.iter().find(named) {
                self.digests.expect(Expected { header, algorithm, digest: None });
            }
        }
        self.trailer.clone()
    }

    /// Takes note of the next bytes of the body. A connection hands them out in short pieces, of which some are
    /// gathered for one piece of work on the pool: the reactor does none of it, and a body of which nothing is said
    /// makes none.
    pub(crate) async fn add(&mut self, part: &Bytes) -> Result<(), ComputePoolError> {
        if self.digests.expected.is_empty() {
            return Ok(());
        }
        self.waiting.push(part.clone());
        if self.waiting.len() < PARTS_AT_ONCE { Ok(()) } else { self.digest().await }
    }

    /// Compares the digests of the whole body with the expected ones.
    pub(crate) async fn check(&mut self) -> Result<Result<(), DigestError>, ComputePoolError> {
        if self.digests.expected.is_empty() {
            return Ok(Ok(()));
        }
        self.digest().await?;
        let mut digests = std::mem::take(&mut self.digests);
        Ok(digests.resolve(&self.trailer).and_then(|()| digests.check()))
    }

    async fn digest(&mut self) -> Result<(), ComputePoolError> {
        let (mut digests, parts) = (std::mem::take(&mut self.digests), std::mem::take(&mut self.waiting));
        let added = self.cpu.run(move || {
            for part in parts {
                digests.add(&part);
            }
            digests
        });
        self.digests = added.await?;
        Ok(())
    }
}

/// `name=:base64:`, a member of a dictionary whose values are byte sequences (RFC 8941, section 3.2).
fn member_of(member: &[u8]) -> Option<(&str, &[u8])> {
    let member = std::str::from_utf8(member).ok()?.trim_matches([' ', '\t']);
    let (name, value) = member.split_once('=')?;
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'*');
    let goes_on = bytes.all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.' | b'*')
    });
    let text = value.strip_prefix(':')?.strip_suffix(':')?;
    (begins && goes_on).then_some((name, text.as_bytes()))
}

fn decode(text: &[u8], algorithm: Algorithm) -> Option<Vec<u8>> {
    let digest = BASE64.decode(text.trim_ascii()).ok()?;
    (digest.len() == algorithm.digest_bytes()).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let name = |name| HeaderName::from_static(name);
        pairs.iter().map(|(header, value)| (name(header), HeaderValue::from_str(value).unwrap())).collect()
    }

    async fn checked(pairs: &[(&'static str, &str)], parts: &[&'static [u8]]) -> Result<(), DigestError> {
        let cpu = ComputePool::new(crate::cpu::ComputePoolOptions { threads: 1 }).unwrap();
        let mut checking = Checking::from_headers(&headers(pairs), &cpu)?;
        for part in parts {
            checking.add(&Bytes::from_static(part)).await.unwrap();
        }
        checking.check().await.unwrap()
    }

    const SHA_256: &str = "qUiQTy8PR5uPgZdpSzAYSw0u0cHNKh7A+4XSmaGSpEc=";

    #[tokio::test]
    async fn a_digest_is_checked_whatever_the_pieces_of_the_body() {
        let sha_512 = "unixsum=:AAAA:,\tsha-512=:2zl0qX8kB7fK4a5jfAAwaHoRkTJ01XhJJVjjnBbAF96E6s3Ixi/jTuThK0sUKIF/\
                       Cbaidgw/imZM6ulNJDSlkw==:";
        let sha_256 = format!("sha-256=:{SHA_256}:");
        let without_padding = format!("sha-256=:{}:", SHA_256.trim_end_matches('='));
        for (header, value) in [
            ("content-md5", "b1kCrCNwJL3QwXbLkwY9xA=="),
            ("content-digest", &sha_256),
            ("content-digest", &without_padding),
            ("content-digest", sha_512),
            ("repr-digest", &sha_256),
            ("x-amz-checksum-sha256", SHA_256),
            ("x-amz-checksum-crc32", "rwg7LQ=="),
            ("x-amz-checksum-crc32c", "8P9ykg=="),
            ("x-amz-checksum-sha1", "IlljY7PeQLBvmB+4XYIxLowO1RE="),
            ("x-amz-checksum-crc64nvme", "D3gOhIHSoh8="),
        ] {
            for parts in
                [&[&b"hello world\n"[..]][..], &[b"hello ", b"", b"world\n"], &[b"hello world", b"\n"]]
            {
                assert_eq!(checked(&[(header, value)], parts).await, Ok(()), "{header}: {value}");
            }
            for parts in [&[&b"hello World\n"[..]][..], &[b"hello world"], &[b"hello world\n", b"\n"], &[]] {
                let found = checked(&[(header, value)], parts).await;
                assert_eq!(found, Err(DigestError::Mismatch(header)), "{header}: {value}");
            }
        }
    }

    #[tokio::test]
    async fn every_byte_of_a_long_body_counts() {
        let parts: Vec<&'static [u8]> = vec![b"0123456789"; PARTS_AT_ONCE * 3 + 1];
        let sum = crate::codec::crc32c_append(0, &parts.concat());
        let sum = base64::prelude::BASE64_STANDARD.encode(sum.to_be_bytes());
        assert_eq!(checked(&[("x-amz-checksum-crc32c", &sum)], &parts).await, Ok(()));
        for at in [0, PARTS_AT_ONCE - 1, PARTS_AT_ONCE, PARTS_AT_ONCE * 3] {
            let mut other = parts.clone();
            other[at] = b"0123456780";
            assert!(checked(&[("x-amz-checksum-crc32c", &sum)], &other).await.is_err(), "{at}");
        }
    }

    #[tokio::test]
    async fn every_supported_digest_must_match() {
        let (right, wrong) = (format!("sha-256=:{SHA_256}:"), format!("sha-256=:{}:", "A".repeat(43)));
        let both = format!("{right}, {wrong}");
        for pairs in [
            &[("content-digest", &*both)][..],
            &[("content-digest", &*right), ("content-digest", &wrong)],
            &[("content-md5", "b1kCrCNwJL3QwXbLkwY9xA=="), ("content-digest", &wrong)],
        ] {
            let found = checked(pairs, &[b"hello world\n"]).await;
            assert_eq!(found, Err(DigestError::Mismatch("content-digest")), "{pairs:?}");
        }
        let unknown = [("content-digest", "md5=:AAAA:, blake3=:AAAA:"), ("x-amz-checksum-xxhash3", "?")];
        assert_eq!(checked(&unknown, &[b"anything"]).await, Ok(()), "unsupported algorithms are ignored");
    }

    #[test]
    fn invalid_digest_headers_are_rejected() {
        let sized = |bytes: usize| base64::prelude::BASE64_STANDARD.encode(vec![0; bytes]);
        for (header, value) in [
            ("content-md5", String::new()),
            ("content-md5", "*".to_owned()),
            ("content-md5", sized(15)),
            ("content-md5", sized(32)),
            ("x-amz-checksum-crc32c", sized(5)),
            ("x-amz-checksum-crc32c", format!("{}-3", sized(4))),
            ("x-amz-checksum-sha256", format!(":{}:", sized(32))),
            ("content-digest", String::new()),
            ("content-digest", "sha-256".to_owned()),
            ("content-digest", "sha-256=".to_owned()),
            ("content-digest", "sha-256=:".to_owned()),
            ("content-digest", sized(32)),
            ("content-digest", format!("sha-256={}", sized(32))),
            ("content-digest", format!("sha-256=:{}", sized(32))),
            ("content-digest", format!("sha-256=:{}:", sized(31))),
            ("content-digest", format!("sha-256=:{}:;", sized(32))),
            ("content-digest", format!("sha-256=:{}:,", sized(32))),
            ("content-digest", format!("SHA-256=:{}:", sized(32))),
            ("content-digest", format!("=:{}:", sized(32))),
            ("repr-digest", format!("sha-512=:{}:", sized(32))),
        ] {
            let found = Digests::from_headers(&headers(&[(header, &value)])).map(|_| ());
            assert_eq!(found, Err(DigestError::Malformed(header)), "{header}: {value}");
        }
    }
}
