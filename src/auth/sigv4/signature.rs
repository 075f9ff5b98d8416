//! [`AwsSignature`]: the signature of a request, and what it signs.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use ring::hmac;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::canonical::canonical_request;
use super::chunks::ChunkSigner;
use crate::auth::options::{from_hex, to_hex};
use crate::auth::timestamp::Timestamp;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::s3_query::{Query, S3QueryError};

/// The one algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The end of every credential scope.
const TERMINATOR: &str = "aws4_request";
/// The hash of a payload that is not signed.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// The header with the hash of the payload.
const CONTENT_SHA256: &str = "x-amz-content-sha256";
/// How far the clock of a client may be off, in seconds.
const SKEW: u64 = 15 * 60;
/// The longest validity of a presigned URL, in seconds.
const LONGEST: u64 = 7 * 24 * 3600;

/// Why a signature is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::auth) enum AwsError {
    /// Another algorithm.
    Algorithm,
    /// It cannot be parsed; what is wrong.
    Malformed(&'static str),
    /// A header that must be signed is not; its name, or what it begins with.
    Unsigned(&'static str),
    /// The request has no `x-amz-content-sha256`.
    NoPayloadHash,
    /// No key has this identifier, or it has expired.
    UnknownKey,
    /// The signature is that of another key or request.
    Mismatch,
    /// The clock of the client is off.
    Skewed,
    /// A presigned URL is not valid any more.
    Expired,
}

impl From<AwsError> for Problem {
    fn from(error: AwsError) -> Self {
        let forbidden = |code| Self::new(StatusCode::FORBIDDEN, code);
        match error {
            AwsError::Algorithm => Self::from_class(ErrorClass::InvalidRequest)
                .detail("requests are signed by `AWS4-HMAC-SHA256` here, and by nothing else"),
            AwsError::Malformed(what) => {
                Self::new(StatusCode::BAD_REQUEST, "malformed-authorization").detail(what)
            }
            AwsError::Unsigned(what) => {
                forbidden("unsigned-headers").detail(format!("`{what}` must be among the signed headers"))
            }
            AwsError::NoPayloadHash => Self::from_class(ErrorClass::InvalidRequest)
                .detail("a signed request has `x-amz-content-sha256`; `UNSIGNED-PAYLOAD` will do"),
            AwsError::UnknownKey => forbidden("unknown-access-key").detail(
                "no key of this server has this access key id: `access.s3_keys` of the configuration has them, and \
                 `zarrd token --s3 NAME` makes one",
            ),
            AwsError::Mismatch => forbidden("signature-mismatch").detail(
                "the signature is not that of this request by this key: check the secret access key, and that no proxy changes \
                 the host, the path or a signed header",
            ),
            AwsError::Skewed => forbidden("request-time-skewed")
                .detail("the time of the request is more than 15 minutes from that of the server"),
            AwsError::Expired => forbidden("forbidden").detail("the presigned URL has expired"),
        }
    }
}

/// A signature, not yet checked.
#[derive(Clone, Debug)]
pub(in crate::auth) struct AwsSignature {
    /// The identifier of the key that signed, as the client says.
    pub(in crate::auth) access_key_id: String,
    signature: [u8; 32],
    /// Date, region and service.
    scope: [String; 3],
    /// The time of signing, as it was written, and in seconds since 1970.
    time: (String, u64),
    /// How long a presigned URL is valid, in seconds.
    valid_for: Option<u64>,
    /// SHA-256 of the canonical request.
    digest: [u8; 32],
}

/// The parts of a signature, as texts.
struct Texts<'a> {
    credential: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
    time: &'a str,
    valid_for: Option<u64>,
    payload: &'a str,
    left_out: Option<&'a str>,
}

impl AwsSignature {
    /// The signature in the `Authorization` of a request; `None` if that is of another scheme.
    ///
    /// # Errors
    /// [`AwsError`] for one that cannot be checked.
    pub(in crate::auth) fn in_header(request: &Request) -> Result<Option<Self>, AwsError> {
        let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
        let Some(text) = values.next().and_then(|value| value.to_str().ok()) else { return Ok(None) };
        if !text.starts_with("AWS") {
            return Ok(None);
        }
        if values.next().is_some() {
            return Err(AwsError::Malformed("there is more than one `Authorization`"));
        }
        let fields = text.strip_prefix(ALGORITHM).and_then(|rest| rest.strip_prefix(' '));
        let fields = fields.ok_or(AwsError::Algorithm)?;
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        for field in fields.split(',') {
            let (name, value) =
                field.trim().split_once('=').ok_or(AwsError::Malformed("a field has no value"))?;
            let place = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => {
                    return Err(AwsError::Malformed(
                        "the fields are Credential, SignedHeaders and Signature",
                    ));
                }
            };
            if place.replace(value).is_some() {
                return Err(AwsError::Malformed("a field is given twice"));
            }
        }
        let missing = AwsError::Malformed("the fields are Credential, SignedHeaders and Signature");
        let text_of = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let texts = Texts {
            credential: credential.ok_or(missing)?,
            signed_headers: signed_headers.ok_or(missing)?,
            signature: signature.ok_or(missing)?,
            time: text_of("x-amz-date").ok_or(AwsError::Malformed("the header `x-amz-date` is missing"))?,
            valid_for: None,
            payload: text_of(CONTENT_SHA256).ok_or(AwsError::NoPayloadHash)?,
            left_out: None,
        };
        Self::parse(request, &texts).map(Some)
    }

    /// The signature in the query of a presigned URL; `None` if there is none.
    ///
    /// # Errors
    /// [`AwsError`] for one that cannot be checked.
    pub(in crate::auth) fn in_query(request: &Request) -> Result<Option<Self>, AwsError> {
        // Most queries have none.
        if !request.uri().query().is_some_and(|query| query.contains("X-Amz-")) {
            return Ok(None);
        }
        let bad = |_: S3QueryError| AwsError::Malformed("the query of the presigned URL cannot be parsed");
        let query = Query::decode(request.uri()).map_err(bad)?;
        if !query.has("X-Amz-Signature") && !query.has("X-Amz-Algorithm") {
            return Ok(None);
        }
        let missing = AwsError::Malformed(
            "a presigned URL has X-Amz-Algorithm, X-Amz-Credential, X-Amz-Date, X-Amz-Expires, X-Amz-SignedHeaders and \
             X-Amz-Signature",
        );
        let value = |name| query.value(name).map_err(bad)?.ok_or(missing);
        if value("X-Amz-Algorithm")? != ALGORITHM {
            return Err(AwsError::Algorithm);
        }
        let valid_for = value("X-Amz-Expires")?.parse().ok().filter(|seconds| *seconds <= LONGEST);
        let payload = request.headers().get(CONTENT_SHA256).and_then(|value| value.to_str().ok());
        let payload = query.value("X-Amz-Content-Sha256").map_err(bad)?.or(payload);
        let texts = Texts {
            credential: value("X-Amz-Credential")?,
            signed_headers: value("X-Amz-SignedHeaders")?,
            signature: value("X-Amz-Signature")?,
            time: value("X-Amz-Date")?,
            valid_for: Some(
                valid_for.ok_or(AwsError::Malformed("`X-Amz-Expires` is at most 604800 seconds"))?,
            ),
            payload: payload.unwrap_or(UNSIGNED),
            left_out: Some("X-Amz-Signature"),
        };
        Self::parse(request, &texts).map(Some)
    }

    fn parse(request: &Request, texts: &Texts<'_>) -> Result<Self, AwsError> {
        let malformed = AwsError::Malformed("a credential is KEY/DATE/REGION/s3/aws4_request");
        let parts: Vec<&str> = texts.credential.split('/').collect();
        let [key, date, region, service, TERMINATOR] = parts.as_slice() else { return Err(malformed) };
        let seconds =
            seconds(texts.time).ok_or(AwsError::Malformed("the time is not like 20130524T000000Z"))?;
        if *service != "s3" || !texts.time.starts_with(date) || date.len() != 8 {
            return Err(malformed);
        }
        let signature = from_hex(texts.signature.as_bytes());
        let signature = signature.ok_or(AwsError::Malformed("the signature is not 64 hexadecimal digits"))?;
        check_signed(request, texts.signed_headers)?;
        let canonical = canonical_request(request, texts.signed_headers, texts.payload, texts.left_out);
        let canonical = canonical.ok_or(AwsError::Malformed("a signed header is missing"))?;
        Ok(Self {
            access_key_id: (*key).to_owned(),
            signature,
            scope: [date, region, service].map(|part| (*part).to_owned()),
            time: (texts.time.to_owned(), seconds),
            valid_for: texts.valid_for,
            digest: Sha256::digest(&canonical).into(),
        })
    }

    /// Checks the signature with the secret of its key, at a time in seconds since 1970. Returns what checks the chunks of
    /// the body.
    ///
    /// # Errors
    /// [`AwsError::Mismatch`], [`AwsError::Skewed`], [`AwsError::Expired`].
    pub(in crate::auth) fn verify(&self, secret: &str, now: u64) -> Result<ChunkSigner, AwsError> {
        let [date, region, service] = &self.scope;
        let scope = format!("{date}/{region}/{service}/{TERMINATOR}");
        let (time, signed_at) = &self.time;
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", to_hex(&self.digest));
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{secret}").as_bytes());
        for part in [date, region, service, TERMINATOR] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        let expected = hmac::sign(&key, text.as_bytes());
        if !bool::from(expected.as_ref().ct_eq(&self.signature)) {
            return Err(AwsError::Mismatch);
        }
        match self.valid_for {
            _ if *signed_at > now.saturating_add(SKEW) => Err(AwsError::Skewed),
            None if now > signed_at.saturating_add(SKEW) => Err(AwsError::Skewed),
            Some(seconds) if now > signed_at.saturating_add(seconds) => Err(AwsError::Expired),
            _ => Ok(ChunkSigner::new(key, time, &scope, to_hex(&self.signature))),
        }
    }
}

/// Checks that everything is signed that changes what a request means to S3.
fn check_signed(request: &Request, signed_headers: &str) -> Result<(), AwsError> {
    let is_signed = |name: &str| signed_headers.split(';').any(|signed| signed == name);
    if !is_signed("host") {
        return Err(AwsError::Unsigned("host"));
    }
    // The hash of the payload is part of the canonical request in any case.
    let mut names = request.headers().keys().map(HeaderName::as_str);
    let is_unsigned = |name: &str| name.starts_with("x-amz-") && name != CONTENT_SHA256 && !is_signed(name);
    if names.any(is_unsigned) { Err(AwsError::Unsigned("x-amz-*")) } else { Ok(()) }
}

/// Seconds since 1970 of a time such as `20130524T000000Z`.
fn seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
    let is_form = |text: &str, digits: usize| text.len() == digits && text.is_ascii();
    if !is_form(date, 8) || !is_form(time, 6) {
        return None;
    }
    let (year, month, day) = (part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?);
    let (hour, minute, second) = (part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?);
    let timestamp = Timestamp::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))?;
    Some(timestamp.seconds())
}
