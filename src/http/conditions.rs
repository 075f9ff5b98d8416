//! Conditional requests: `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since` (RFC 9110,
//! section 13), in the order of section 13.2.2.
//!
//! Invalid validators (unquoted tags, garbage) match nothing; they are never an error. `If-Range` is in `range`. Nothing
//! here reads a store.
//!
//! A tag may be that of a content coding of a text (`coding`). For a read it matches the version of the text if the request
//! accepts that coding, so that an encoded response can be revalidated. It never matches with `Range`, which selects bytes
//! of the unencoded text. For a write it always matches the version from which the coding was derived.
//!
//! The typed headers of the crate `headers` are not used: they compare a list of tags with one tag and do not show its
//! members, while the tag of a content coding is compared in parts.

use std::time::SystemTime;

use axum::http::{HeaderMap, HeaderName, header};

use super::coding::{Accepted, split_tag};
use super::validators::{parse_http_date, whole_seconds};
use crate::store::{ValueInfo, Version, WriteCondition};

/// The headers that are conditions.
static CONDITIONS: [HeaderName; 4] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];

/// An entity tag as a client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag {
    weak: bool,
    tag: Vec<u8>,
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tags {
    /// `*`
    Any,
    /// The valid tags; possibly none.
    List(Vec<EntityTag>),
}

/// The result of the conditions of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Respond as if there were no conditions.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// The conditions of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    matches: Option<Tags>,
    none_match: Option<Tags>,
    modified_since: Option<SystemTime>,
    unmodified_since: Option<SystemTime>,
    /// The content codings whose tags match.
    codings: Codings,
}

/// The codings whose tags match the version of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Codings {
    /// None.
    #[default]
    None,
    /// The accepted ones.
    Accepted(Accepted),
    /// All.
    All,
}

impl EntityTag {
    /// Parses a text that consists of one tag.
    pub(crate) fn parse_one(text: &[u8]) -> Option<Self> {
        match Self::take(text.trim_ascii()) {
            Some((tag, b"")) => Some(tag),
            _ => None,
        }
    }

    /// Parses a tag at the start of `text`; returns it and the rest.
    fn take(text: &[u8]) -> Option<(Self, &[u8])> {
        let (weak, text) = text.strip_prefix(b"W/").map_or((false, text), |rest| (true, rest));
        let text = text.strip_prefix(b"\"")?;
        let end = text.iter().position(|&byte| byte == b'"')?;
        let (tag, rest) = text.split_at_checked(end)?;
        Some((Self { weak, tag: tag.to_vec() }, rest.strip_prefix(b"\"")?))
    }

    /// The strong comparison of RFC 9110, section 8.8.3.2, with the unencoded text.
    pub(crate) fn matches_strongly(&self, version: &Version) -> bool {
        self.matches_strongly_in(version, Codings::None)
    }

    /// The strong comparison, with a text or one of its codings.
    fn matches_strongly_in(&self, version: &Version, codings: Codings) -> bool {
        !self.weak && version.is_strong() && self.matches_weakly(version, codings)
    }

    /// The weak comparison.
    fn matches_weakly(&self, version: &Version, codings: Codings) -> bool {
        let is_of = |tag: &[u8]| tag == version.tag().as_bytes();
        is_of(&self.tag)
            || match (codings, split_tag(&self.tag)) {
                (Codings::None, _) | (_, None) => false,
                (Codings::Accepted(accepted), Some((text, coding))) => is_of(text) && accepted.has(coding),
                (Codings::All, Some((text, _))) => is_of(text),
            }
    }
}

impl Tags {
    fn from_headers(headers: &HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut lines = headers.get_all(name).iter().peekable();
        lines.peek()?;
        let mut tags = Vec::new();
        for line in lines {
            let mut text = line.as_bytes().trim_ascii();
            if text == b"*" {
                return Some(Self::Any);
            }
            while !text.is_empty() {
                if let Some((tag, rest)) = EntityTag::take(text) {
                    tags.push(tag);
                    text = rest;
                }
                // Skip to the next comma; a comma inside a tag was consumed with it.
                let comma = text.iter().position(|&byte| byte == b',').unwrap_or(text.len());
                text = text.get(comma.saturating_add(1)..).unwrap_or_default().trim_ascii();
            }
        }
        Some(Self::List(tags))
    }

    fn any(&self, matches: impl Fn(&EntityTag) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(matches),
        }
    }
}

impl Conditions {
    /// Parses the four headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        // Most requests have none of them, and few headers at all: to compare each name takes less time than four lookups.
        if !headers.keys().any(|name| CONDITIONS.contains(name)) {
            return Self::default();
        }
        let date = |name| headers.get(name).and_then(parse_http_date);
        let mut conditions = Self {
            matches: Tags::from_headers(headers, &header::IF_MATCH),
            none_match: Tags::from_headers(headers, &header::IF_NONE_MATCH),
            modified_since: date(header::IF_MODIFIED_SINCE),
            unmodified_since: date(header::IF_UNMODIFIED_SINCE),
            codings: Codings::None,
        };
        if conditions.matches.is_some() || conditions.none_match.is_some() {
            conditions.codings = Codings::Accepted(Accepted::from_headers(headers));
        }
        conditions
    }

    /// Whether the request has no conditions.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same conditions for a write.
    fn of_write(&self) -> Self {
        Self { codings: Codings::All, ..self.clone() }
    }

    /// Whether there is a list of tags in `If-Match`, which are of one version of what is written.
    pub(crate) fn has_match_list(&self) -> bool {
        matches!(self.matches, Some(Tags::List(_)))
    }

    /// Whether there is a condition other than `If-Match`.
    pub(crate) fn has_others_than_match(&self) -> bool {
        self.none_match.is_some() || self.modified_since.is_some() || self.unmodified_since.is_some()
    }

    /// Whether `If-Match` lets a write proceed over what exists, where `is_current` compares one of its strong tags, without
    /// the name of a coding, with what is stored.
    pub(crate) fn matches_for_write(&self, is_current: impl Fn(&[u8]) -> bool) -> bool {
        let tag_of =
            |tag: &EntityTag| split_tag(&tag.tag).map_or_else(|| tag.tag.clone(), |(text, _)| text.to_vec());
        self.matches.as_ref().is_none_or(|tags| tags.any(|tag| !tag.weak && is_current(&tag_of(tag))))
    }

    /// The version, if the one condition is `If-Match` with one strong tag: a store can check that itself.
    pub(crate) fn sole_match(&self) -> Option<Version> {
        let Self { matches: Some(Tags::List(tags)), .. } = self else { return None };
        let [EntityTag { weak: false, tag }] = tags.as_slice() else { return None };
        let alone = Self { matches: self.matches.clone(), codings: self.codings, ..Self::default() } == *self;
        // A store cannot compare the tag of a coding.
        let alone = alone && split_tag(tag).is_none();
        let version = Version::strong(str::from_utf8(tag).ok()?);
        // `Version` replaces characters that it cannot represent; this server never issued such a tag.
        (alone && version.tag().as_bytes() == tag).then_some(version)
    }

    /// Evaluates the conditions for a read of an existing value of this version.
    pub(crate) fn for_read(&self, version: &Version, modified: Option<SystemTime>) -> Verdict {
        if !self.may_touch(version, modified) {
            return Verdict::Failed;
        }
        let unmodified = match (&self.none_match, self.modified_since, modified) {
            (Some(tags), _, _) => tags.any(|tag| tag.matches_weakly(version, self.codings)),
            (None, Some(since), Some(modified)) => whole_seconds(modified) <= since,
            (None, _, _) => false,
        };
        if unmodified { Verdict::NotModified } else { Verdict::Proceed }
    }

    /// Steps 1 and 2 of section 13.2.2: `If-Match`, or in its absence `If-Unmodified-Since`.
    fn may_touch(&self, version: &Version, modified: Option<SystemTime>) -> bool {
        match (&self.matches, self.unmodified_since, modified) {
            (Some(tags), _, _) => tags.any(|tag| tag.matches_strongly_in(version, self.codings)),
            (None, Some(since), Some(modified)) => whole_seconds(modified) <= since,
            (None, _, _) => true,
        }
    }

    /// The condition that a store can check by itself during a write; `None` if the current value must be read first.
    pub(crate) fn for_write_unseen(&self) -> Option<WriteCondition> {
        if self.matches.is_none() && self.unmodified_since.is_none() {
            match &self.none_match {
                None => return Some(WriteCondition::Always),
                Some(Tags::Any) => return Some(WriteCondition::IfAbsent),
                Some(Tags::List(_)) => {}
            }
        }
        self.sole_match().map(WriteCondition::IfVersion)
    }

    /// The condition that must hold at the time of the write, given the current value; `None` if a condition fails already.
    pub(crate) fn for_write(&self, current: Option<&ValueInfo>) -> Option<WriteCondition> {
        let Some(ValueInfo { version, modified, .. }) = current else {
            return match (&self.matches, &self.none_match, self.unmodified_since) {
                (Some(_), _, _) => None,
                (None, None, None) => Some(WriteCondition::Always),
                (None, _, _) => Some(WriteCondition::IfAbsent),
            };
        };
        let clashes = self
            .none_match
            .as_ref()
            .is_some_and(|tags| tags.any(|tag| tag.matches_weakly(version, Codings::All)));
        if clashes || !self.of_write().may_touch(version, *modified) {
            return None;
        }
        let unconditional =
            self.matches.is_none() && self.none_match.is_none() && self.unmodified_since.is_none();
        Some(if unconditional { WriteCondition::Always } else { WriteCondition::IfVersion(version.clone()) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::HeaderValue;

    use super::*;

    /// The epoch plus `seconds` and half a second, which a header cannot represent.
    fn time(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 500)
    }

    const OLD: &str = "Thu, 01 Jan 1970 00:00:10 GMT";
    const SAME: &str = "Thu, 01 Jan 1970 00:00:20 GMT";

    fn conditions(lines: &[(HeaderName, &'static str)]) -> Conditions {
        let lines = lines.iter().filter(|(_, text)| !text.is_empty());
        Conditions::from_headers(
            &lines.map(|(name, text)| (name.clone(), HeaderValue::from_static(text))).collect(),
        )
    }

    #[test]
    fn reads_follow_the_order_of_rfc_9110_in_all_81_combinations() {
        // For each header: absent, holds, does not hold. The value: tag "v1", written at second 20.
        let choices = |holds, fails| ["", holds, fails];
        for if_match in choices("\"v1\"", "\"v2\"") {
            for since in choices(SAME, OLD) {
                for if_none_match in choices("\"v2\"", "\"v1\"") {
                    for modified in choices(OLD, SAME) {
                        let conditions = conditions(&[
                            (header::IF_MATCH, if_match),
                            (header::IF_UNMODIFIED_SINCE, since),
                            (header::IF_NONE_MATCH, if_none_match),
                            (header::IF_MODIFIED_SINCE, modified),
                        ]);
                        let expected = if if_match == "\"v2\"" || (if_match.is_empty() && since == OLD) {
                            Verdict::Failed
                        } else if if_none_match == "\"v1\"" || (if_none_match.is_empty() && modified == SAME)
                        {
                            Verdict::NotModified
                        } else {
                            Verdict::Proceed
                        };
                        let verdict = conditions.for_read(&Version::strong("v1"), Some(time(20)));
                        assert_eq!(verdict, expected, "{if_match} {since} {if_none_match} {modified}");
                    }
                }
            }
        }
    }

    #[test]
    fn if_match_compares_strongly_and_if_none_match_weakly() {
        let (strong, weak) = (Version::strong("v"), Version::weak("v"));
        for (name, text, version, expected) in [
            (header::IF_MATCH, "W/\"v\"", &strong, Verdict::Failed),
            (header::IF_MATCH, "\"v\"", &weak, Verdict::Failed),
            (header::IF_MATCH, "*", &weak, Verdict::Proceed),
            (header::IF_NONE_MATCH, "W/\"v\"", &strong, Verdict::NotModified),
            (header::IF_NONE_MATCH, "\"v\"", &weak, Verdict::NotModified),
            (header::IF_NONE_MATCH, "*", &weak, Verdict::NotModified),
            (header::IF_NONE_MATCH, "\"a\" , \"b,c\",W/\"v\"", &strong, Verdict::NotModified),
            (header::IF_MATCH, "junk, \"v\"", &strong, Verdict::Proceed),
        ] {
            assert_eq!(
                conditions(&[(name.clone(), text)]).for_read(version, None),
                expected,
                "{name} {text}"
            );
        }
    }

    #[test]
    fn garbage_matches_nothing_and_bad_dates_are_ignored() {
        let version = Version::strong("v");
        for text in ["v", "\"v", "v\"", ",,,", "W/", "W/v", "'v'", "w/\"v\""] {
            let none_match = conditions(&[(header::IF_NONE_MATCH, text)]);
            assert_eq!(none_match.for_read(&version, None), Verdict::Proceed, "{text}");
            let matched = conditions(&[(header::IF_MATCH, text)]);
            assert_eq!(matched.for_read(&version, None), Verdict::Failed, "{text}");
        }
        for name in [header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE] {
            let dated = conditions(&[(name, "yesterday")]);
            assert!(dated.is_empty());
        }
        let dated = conditions(&[(header::IF_UNMODIFIED_SINCE, OLD), (header::IF_MODIFIED_SINCE, SAME)]);
        assert_eq!(dated.for_read(&version, None), Verdict::Proceed);
    }

    #[test]
    fn the_conditions_of_a_write_follow_from_the_current_value() {
        let info = |tag: &str| ValueInfo { size: 1, version: Version::strong(tag), modified: Some(time(20)) };
        let now = info("v1");
        let same = || Some(WriteCondition::IfVersion(Version::strong("v1")));
        for (name, text, there, absent) in [
            (header::IF_MATCH, "", Some(WriteCondition::Always), Some(WriteCondition::Always)),
            (header::IF_MATCH, "*", same(), None),
            (header::IF_MATCH, "\"v1\"", same(), None),
            (header::IF_MATCH, "\"v2\"", None, None),
            (header::IF_MATCH, "W/\"v1\"", None, None),
            (header::IF_MATCH, "v1", None, None),
            (header::IF_NONE_MATCH, "*", None, Some(WriteCondition::IfAbsent)),
            (header::IF_NONE_MATCH, "\"v1\"", None, Some(WriteCondition::IfAbsent)),
            (header::IF_NONE_MATCH, "\"v2\"", same(), Some(WriteCondition::IfAbsent)),
            (header::IF_UNMODIFIED_SINCE, SAME, same(), Some(WriteCondition::IfAbsent)),
            (header::IF_UNMODIFIED_SINCE, OLD, None, Some(WriteCondition::IfAbsent)),
            (header::IF_MODIFIED_SINCE, SAME, Some(WriteCondition::Always), Some(WriteCondition::Always)),
        ] {
            let conditions = conditions(&[(name.clone(), text)]);
            assert_eq!(conditions.for_write(Some(&now)), there, "{name} {text}, there");
            assert_eq!(conditions.for_write(None), absent, "{name} {text}, absent");
        }
    }

    #[test]
    fn the_tag_of_a_coding_matches_if_the_coding_is_accepted_and_for_writes() {
        const GZIP: (HeaderName, &str) = (header::ACCEPT_ENCODING, "gzip");
        const ZSTD: (HeaderName, &str) = (header::ACCEPT_ENCODING, "zstd");
        const RANGE: (HeaderName, &str) = (header::RANGE, "bytes=0-1");
        let (version, info) = (
            Version::strong("v"),
            ValueInfo { size: 1, version: Version::strong("v"), modified: Some(time(20)) },
        );
        for (more, holds) in [(&[GZIP][..], true), (&[ZSTD], false), (&[], false), (&[GZIP, RANGE], false)] {
            let asked = |name: HeaderName| conditions(&[more, &[(name, "\"v;gzip\"")]].concat());
            let (matches, none_match) = (asked(header::IF_MATCH), asked(header::IF_NONE_MATCH));
            let expected = if holds { Verdict::Proceed } else { Verdict::Failed };
            assert_eq!(matches.for_read(&version, None), expected, "{more:?}");
            let expected = if holds { Verdict::NotModified } else { Verdict::Proceed };
            assert_eq!(none_match.for_read(&version, None), expected, "{more:?}");
            assert!(matches.sole_match().is_none() && matches.for_write_unseen().is_none());
            let held = WriteCondition::IfVersion(Version::strong("v"));
            assert_eq!(matches.for_write(Some(&info)), Some(held), "{more:?}");
            assert_eq!(none_match.for_write(Some(&info)), None, "{more:?}");
            let other = ValueInfo { version: Version::strong("w"), ..info.clone() };
            assert_eq!(matches.for_write(Some(&other)), None, "{more:?}");
        }
        // A tag of a backend that has the form of the tag of a coding.
        let own = Version::strong("v;gzip");
        assert_eq!(conditions(&[(header::IF_MATCH, "\"v;gzip\"")]).for_read(&own, None), Verdict::Proceed);
    }

    #[test]
    fn only_conditions_that_a_store_checks_are_written_without_a_read() {
        for (name, text, unseen) in [
            (header::IF_MATCH, "", Some(WriteCondition::Always)),
            (header::IF_NONE_MATCH, "*", Some(WriteCondition::IfAbsent)),
            (header::IF_MATCH, "\"v1\"", Some(WriteCondition::IfVersion(Version::strong("v1")))),
            (header::IF_MATCH, "*", None),
            (header::IF_MATCH, "\"v1\", \"v2\"", None),
            (header::IF_MATCH, "W/\"v1\"", None),
            (header::IF_MATCH, "\"a b\"", None),
            (header::IF_NONE_MATCH, "\"v1\"", None),
            (header::IF_UNMODIFIED_SINCE, SAME, None),
        ] {
            assert_eq!(conditions(&[(name.clone(), text)]).for_write_unseen(), unseen, "{name} {text}");
        }
    }
}
