//! Faults, and the script that says when each is injected. Each injection is counted.

use std::io::Write;

use super::bucket::{Bucket, tag};
use super::wire::{End, Kind, Request, Response, Sent};

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This status, and nothing is done. 301 is the redirect of another region, without a location.
    Status(u16),
    /// 403, as the clocks differ.
    ClockSkew,
    /// 409 to a conditional write: others write the value just now.
    Conflict,
    /// The connection is reset before anything is done, or while the body comes.
    ResetBeforeHead,
    ResetMidBody,
    /// The connection is closed half-way through the body that was promised, or that was not.
    Cut,
    CutWithoutLength,
    /// More bytes come than were promised.
    Longer,
    /// `Content-Range` names another range; or the complete value is sent for a range.
    WrongRange,
    WholeForRange,
    /// A part is sent for the complete value, with the status of a part.
    PartForWhole,
    /// The value is replaced while it is read, and the connection breaks.
    Replaced,
    /// No entity tag.
    NoTag,
    /// 200 with something that is no XML; 200 with an error in XML.
    Garbage,
    ErrorBody,
    /// Nothing comes, at all or after half of the body.
    Hang,
    HangMidBody,
    /// One byte at a time.
    Dribble,
    /// Gzip, put on by a proxy.
    Gzip,
    /// A bit of the body that is uploaded flips on its way.
    Flipped,
    /// It is done once the test says so.
    Wait,
    /// It is done, and the response comes once the test says so.
    DoneThenWait,
    /// It is done, and then the connection is reset, or the answer is a failure.
    DoneThenReset,
    DoneThen(u16),
    /// It is done, and fails once the test says so, as when a proxy has sent it again.
    DoneThenFailLater(u16),
}

/// When a fault is injected.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// At the nth request that fits, counted from 0.
    Nth(usize),
    Always,
    /// At this many of a thousand.
    PerMille(u64),
}

/// A fault, the requests it is for, and when.
#[derive(Clone, Debug)]
pub struct Rule {
    pub kinds: Vec<Kind>,
    /// A part of the key.
    pub key: &'static str,
    pub when: When,
    pub fault: Fault,
}

/// Rules, and how far they have come.
#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<(Rule, usize)>,
    state: u64,
    injected: usize,
}

impl Script {
    pub fn set(&mut self, rules: Vec<Rule>, seed: u64) {
        self.rules = rules.into_iter().map(|rule| (rule, 0)).collect();
        self.state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        self.injected = 0;
    }

    /// How many faults were injected since the rules were set.
    pub fn injected(&self) -> usize {
        self.injected
    }

    /// The fault of this request: the first rule that is due.
    pub fn next(&mut self, kind: Kind, key: &str) -> Option<Fault> {
        let mut chosen = None;
        for (rule, seen) in &mut self.rules {
            if !rule.kinds.contains(&kind) || !key.contains(rule.key) {
                continue;
            }
            let number = *seen;
            *seen += 1;
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let is_now = match rule.when {
                When::Nth(nth) => number == nth,
                When::Always => true,
                When::PerMille(rate) => self.state % 1000 < rate,
            };
            if is_now && chosen.is_none() {
                chosen = Some(rule.fault);
            }
        }
        self.injected += usize::from(chosen.is_some());
        chosen
    }
}

/// The response to a request, with its fault.
pub fn answer(bucket: &mut Bucket, kind: Kind, request: &Request, fault: Option<Fault>) -> Sent {
    let is_head = kind == Kind::Head;
    let Some(fault) = fault else { return whole(&bucket.answer(kind, request), is_head) };
    let nothing = |end| Sent { bytes: Vec::new(), piece_bytes: 1, end };
    match fault {
        Fault::Status(301) => {
            return whole(
                &Response::error(301, "PermanentRedirect").header("x-amz-bucket-region", "eu-1"),
                is_head,
            );
        }
        Fault::Status(status) => return whole(&Response::error(status, "InternalError"), is_head),
        Fault::ClockSkew => return whole(&Response::error(403, "RequestTimeTooSkewed"), is_head),
        Fault::Conflict => return whole(&Response::error(409, "ConditionalRequestConflict"), is_head),
        Fault::ResetBeforeHead => return nothing(End::Reset),
        Fault::Hang => return nothing(End::Hang),
        _ => {}
    }
    let before = bucket.objects.get(&request.key).map(|object| object.bytes.clone());
    let response = match fault {
        Fault::WholeForRange => {
            let plain = Request::of(request, |name| name != "range");
            bucket.answer(kind, &plain)
        }
        Fault::PartForWhole => {
            let mut part = Request::of(request, |_| true);
            part.headers.push(("range".to_owned(), "bytes=0-9".to_owned()));
            bucket.answer(kind, &part)
        }
        Fault::Flipped => {
            let mut flipped = Request::of(request, |_| true);
            let mut body = flipped.body.to_vec();
            let middle = body.len() / 2;
            // A response without a body has no bit to flip.
            body.get_mut(middle).into_iter().for_each(|byte| *byte ^= 4);
            flipped.body = body.into();
            bucket.answer(kind, &flipped)
        }
        _ => bucket.answer(kind, request),
    };
    match fault {
        Fault::DoneThenReset => nothing(End::Reset),
        Fault::DoneThen(status) => whole(&Response::error(status, "InternalError"), is_head),
        Fault::ResetMidBody => half(&response, is_head, true, End::Reset),
        Fault::Cut => half(&response, is_head, true, End::Close),
        Fault::CutWithoutLength => half(&response, is_head, false, End::Close),
        Fault::HangMidBody => half(&response, is_head, true, End::Hang),
        Fault::Replaced => {
            if let Some(bytes) = before {
                let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
                bucket.insert(&request.key, other.into(), Vec::new());
            }
            half(&response, is_head, true, End::Reset)
        }
        Fault::Longer => {
            let mut sent = whole(&response, is_head);
            sent.bytes.extend_from_slice(b"and so on");
            Sent { end: End::Close, ..sent }
        }
        Fault::WrongRange => {
            let range = response.headers.iter().find(|(name, _)| name == "content-range");
            let shifted = range.map(|(_, range)| shifted(range));
            whole(
                &shifted.map_or(response.clone(), |range| response.header("content-range", &range)),
                is_head,
            )
        }
        Fault::NoTag => {
            let mut response = response;
            response.headers.retain(|(name, _)| name != "etag");
            whole(&response, is_head)
        }
        Fault::Garbage => whole(&Response::new(200).body("<html><p>please log in".into()), is_head),
        Fault::ErrorBody => {
            let error = Response { status: 200, ..Response::error(500, "InternalError") };
            whole(&error.header("etag", &tag(b"error")), is_head)
        }
        Fault::Flipped | Fault::WholeForRange | Fault::PartForWhole => whole(&response, is_head),
        Fault::Dribble => Sent { piece_bytes: 1, ..whole(&response, is_head) },
        Fault::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&response.body).unwrap();
            let body = encoder.finish().unwrap();
            whole(&response.header("content-encoding", "gzip").body(body.into()), is_head)
        }
        _ => unreachable!("{fault:?} has been answered"),
    }
}

fn whole(response: &Response, is_head: bool) -> Sent {
    let mut bytes = response.head(Some(response.body.len()));
    if !is_head {
        bytes.extend_from_slice(&response.body);
    }
    Sent { piece_bytes: bytes.len().max(1), bytes, end: End::Keep }
}

/// Half of the body; where there is none, half of the head.
fn half(response: &Response, is_head: bool, with_length: bool, end: End) -> Sent {
    let length = response.body.len();
    let mut bytes = response.head(with_length.then_some(length));
    if is_head || length == 0 {
        let half = bytes.len() / 2;
        bytes.truncate(half);
    } else {
        bytes.extend_from_slice(&response.body[..length / 2]);
    }
    Sent { piece_bytes: bytes.len().max(1), bytes, end }
}

/// `bytes 2-4/10` as `bytes 3-5/10`.
fn shifted(range: &str) -> String {
    let numbers = range.strip_prefix("bytes ").unwrap();
    let (range, size) = numbers.split_once('/').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let plus = |text: &str| text.parse::<u64>().unwrap() + 1;
    format!("bytes {}-{}/{size}", plus(first), plus(last))
}
