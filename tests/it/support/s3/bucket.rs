//! One bucket as S3 keeps it: objects, unfinished uploads, and the answer to each request. It never fails by itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::wire::{Kind, Request, Response};

/// The name of the only bucket.
pub const BUCKET: &str = "bucket";

#[derive(Clone, Debug)]
pub struct Object {
    pub bytes: Bytes,
    pub tag: String,
    metadata: Vec<(String, String)>,
    modified: String,
}

/// Objects by their keys.
pub type Objects = BTreeMap<String, Object>;

#[derive(Debug)]
struct Upload {
    key: String,
    parts: BTreeMap<u32, Bytes>,
}

#[derive(Debug)]
pub struct Bucket {
    pub objects: Objects,
    uploads: BTreeMap<String, Upload>,
    count: u64,
    /// Whether the conditions of writes are heeded.
    pub heeds_conditions: bool,
    /// Whether metadata is kept.
    pub keeps_metadata: bool,
    /// Most keys on a page of a listing.
    pub page_keys: usize,
    /// How many uploads carried a checksum.
    pub checksums: usize,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            uploads: BTreeMap::new(),
            count: 0,
            heeds_conditions: true,
            keeps_metadata: true,
            page_keys: 1000,
            checksums: 0,
        }
    }
}

/// The entity tag of some bytes: their MD5 digest, with quotes, as S3 makes it.
pub fn tag(bytes: &[u8]) -> String {
    let digest = <md5::Md5 as md5::Digest>::digest(bytes);
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    format!("\"{hex}\"")
}

impl Bucket {
    /// Uploads in parts that were neither completed nor withdrawn.
    pub fn unfinished(&self) -> usize {
        self.uploads.len()
    }

    /// Answers a request.
    pub fn answer(&mut self, kind: Kind, request: &Request) -> Response {
        match kind {
            Kind::Get | Kind::Head => self.get(request),
            Kind::Put => self.put(request),
            Kind::Delete => self.delete(request),
            Kind::List => self.list(request),
            Kind::Create => {
                self.count += 1;
                let id = format!("upload-{}", self.count);
                let upload = Upload { key: request.key.clone(), parts: BTreeMap::new() };
                self.uploads.insert(id.clone(), upload);
                xml(&format!(
                    "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{}</Key>\
                     <UploadId>{id}</UploadId></InitiateMultipartUploadResult>",
                    escape(&request.key)
                ))
            }
            Kind::Part => self.part(request),
            Kind::Complete => self.complete(request),
            Kind::Abort => match self.uploads.remove(request.query("uploadId")) {
                Some(_) => Response::new(204),
                None => Response::error(404, "NoSuchUpload"),
            },
        }
    }

    /// Stores bytes, as another client would.
    pub fn insert(&mut self, key: &str, bytes: Bytes, metadata: Vec<(String, String)>) -> String {
        // A second apart, and none the same: no version is identified by its time alone.
        self.count += 1;
        let modified = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.count));
        let tag = tag(&bytes);
        self.objects.insert(key.to_owned(), Object { tag: tag.clone(), bytes, metadata, modified });
        tag
    }

    fn get(&self, request: &Request) -> Response {
        let Some(object) = self.objects.get(&request.key) else { return Response::error(404, "NoSuchKey") };
        if request.header("if-match").is_some_and(|wanted| wanted != object.tag) {
            return Response::error(412, "PreconditionFailed");
        }
        let mut response = Response::new(200)
            .header("etag", &object.tag)
            .header("last-modified", &object.modified)
            .header("accept-ranges", "bytes");
        for (name, value) in &object.metadata {
            response = response.header(name, value);
        }
        let size = object.bytes.len();
        let Some(range) = request.header("range").and_then(|range| range.strip_prefix("bytes=")) else {
            return response.body(object.bytes.clone());
        };
        let (first, last) = range.split_once('-').unwrap();
        let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(start), Ok(last)) => (start, size.min(last + 1)),
            (Ok(start), Err(_)) => (start, size),
            (Err(_), Ok(length)) => (size.saturating_sub(length), size),
            (Err(_), Err(_)) => panic!("{range}"),
        };
        if start >= end {
            return Response::error(416, "InvalidRange").header("content-range", &format!("bytes */{size}"));
        }
        response.status = 206;
        let content_range = format!("bytes {start}-{}/{size}", end - 1);
        response.header("content-range", &content_range).body(object.bytes.slice(start..end))
    }

    /// The reason why a write is refused.
    fn refusal(&self, request: &Request) -> Option<Response> {
        if !self.heeds_conditions {
            return None;
        }
        let current = self.objects.get(&request.key).map(|object| object.tag.as_str());
        if request.header("if-none-match") == Some("*") && current.is_some() {
            return Some(Response::error(412, "PreconditionFailed"));
        }
        match (request.header("if-match"), current) {
            (Some(_), None) => Some(Response::error(404, "NoSuchKey")),
            (Some(wanted), Some(tag)) if wanted != tag => Some(Response::error(412, "PreconditionFailed")),
            _ => None,
        }
    }

    fn put(&mut self, request: &Request) -> Response {
        if let Some(refusal) = self.check_body(request).or_else(|| self.refusal(request)) {
            return refusal;
        }
        let metadata = request.headers.iter().filter(|(name, _)| name.starts_with("x-amz-meta-")).cloned();
        let metadata = if self.keeps_metadata { metadata.collect() } else { Vec::new() };
        let tag = self.insert(&request.key, request.body.clone(), metadata);
        Response::new(200).header("etag", &tag)
    }

    /// The fault of an uploaded body.
    fn check_body(&mut self, request: &Request) -> Option<Response> {
        let sent = request.header("x-amz-checksum-sha256")?;
        self.checksums += 1;
        let found = BASE64_STANDARD.encode(Sha256::digest(&request.body));
        (found != sent).then(|| Response::error(400, "BadDigest"))
    }

    fn delete(&mut self, request: &Request) -> Response {
        if let Some(refusal) = self.refusal(request) {
            return refusal;
        }
        self.objects.remove(&request.key);
        Response::new(204)
    }

    fn part(&mut self, request: &Request) -> Response {
        if let Some(refusal) = self.check_body(request) {
            return refusal;
        }
        let number = request.query("partNumber").parse().unwrap();
        match self.uploads.get_mut(request.query("uploadId")) {
            Some(upload) if upload.key == request.key => {
                upload.parts.insert(number, request.body.clone());
                Response::new(200).header("etag", &tag(&request.body))
            }
            _ => Response::error(404, "NoSuchUpload"),
        }
    }

    fn complete(&mut self, request: &Request) -> Response {
        let Some(upload) = self.uploads.remove(request.query("uploadId")) else {
            return Response::error(404, "NoSuchUpload");
        };
        let bytes = upload.parts.into_values().collect::<Vec<_>>().concat();
        let tag = self.insert(&upload.key, bytes.into(), Vec::new());
        xml(&format!(
            "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
            escape(&tag)
        ))
    }

    fn list(&self, request: &Request) -> Response {
        let (prefix, delimiter) = (request.query("prefix"), request.query("delimiter"));
        let after = [request.query("continuation-token"), request.query("start-after")];
        let after = after.iter().max().copied().unwrap_or_default();
        let most = request.query("max-keys").parse().unwrap_or(self.page_keys).min(self.page_keys);
        let (mut entries, mut count, mut last, mut common) = (String::new(), 0, String::new(), String::new());
        let mut is_truncated = false;
        for (key, object) in &self.objects {
            let Some(rest) = key.strip_prefix(prefix) else { continue };
            // A token names a key, or a prefix that has been listed with all its keys.
            if key.as_str() <= after || (after.ends_with('/') && key.starts_with(after)) {
                continue;
            }
            let folded = match rest.find(delimiter) {
                Some(at) if !delimiter.is_empty() => Some(format!("{prefix}{}", &rest[..=at])),
                _ => None,
            };
            if folded.as_ref().is_some_and(|folded| *folded == common) {
                continue;
            }
            if count == most {
                is_truncated = true;
                break;
            }
            count += 1;
            if let Some(folded) = folded {
                write!(entries, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(&folded))
                    .unwrap();
                last.clone_from(&folded);
                common = folded;
                continue;
            }
            let modified = httpdate::parse_http_date(&object.modified).unwrap();
            write!(
                entries,
                "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                escape(key),
                iso(modified),
                escape(&object.tag),
                object.bytes.len()
            )
            .unwrap();
            last.clone_from(key);
        }
        let next = if is_truncated {
            format!("<NextContinuationToken>{}</NextContinuationToken>", escape(&last))
        } else {
            String::new()
        };
        xml(&format!(
            "<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>{is_truncated}</IsTruncated>{entries}{next}\
             </ListBucketResult>"
        ))
    }
}

fn xml(body: &str) -> Response {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}");
    Response::new(200).header("content-type", "application/xml").body(text.into())
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A time of November 2023 as listings write it; all times of this bucket are.
fn iso(time: SystemTime) -> String {
    let text = httpdate::fmt_http_date(time);
    let mut words = text.split(' ').skip(1);
    let (day, _, year, clock) = (words.next(), words.next(), words.next(), words.next());
    format!("{}-11-{}T{}.000Z", year.unwrap(), day.unwrap(), clock.unwrap())
}
