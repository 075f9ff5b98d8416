//! [`CachePolicy`]: how old the validation of a cached value may be.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How old the validation of a value may be for a response to rely on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// No older than the request: a response has everything that was written before its request.
    #[default]
    Always,
    /// No older than this.
    Ttl(Duration),
    /// Of any age: stored values never change, though new ones may appear.
    Immutable,
    /// No validation is enough: every response is built from what is read for it. For files that are written through
    /// memory maps, which may not change their times.
    Uncached,
}

/// A text that is no cache policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not `always`, `immutable`, `uncached` or `ttl:` and a time such as `500ms`, `60s`, `5m` or `1h`; `always` and `ttl:` may have `, stale:` and a time after them"
)]
pub struct CachePolicyError(String);

impl FromStr for CachePolicy {
    type Err = CachePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "always" => Ok(Self::Always),
            "immutable" => Ok(Self::Immutable),
            "uncached" => Ok(Self::Uncached),
            _ => text
                .strip_prefix("ttl:")
                .and_then(parse_duration)
                .map(Self::Ttl)
                .ok_or_else(|| CachePolicyError(text.to_owned())),
        }
    }
}

/// A whole number and its unit.
fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Ttl(age) => write!(f, "ttl:{}ms", age.as_millis()),
            Self::Immutable => f.write_str("immutable"),
            Self::Uncached => f.write_str("uncached"),
        }
    }
}

/// How old what a mount responds with may be: while its backend responds, and while it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// While the backend responds.
    pub policy: CachePolicy,
    /// How much older it may be while the backend fails or is slow; `None` to report the failure instead.
    pub stale: Option<Duration>,
}

/// A text that is no freshness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshnessError {
    /// It has no valid policy.
    #[error(transparent)]
    Policy(#[from] CachePolicyError),
    /// Its second part is not valid.
    #[error("`{0}` is not `stale:` and a time such as `60s`, `5m` or `1h`")]
    Stale(String),
}

impl FromStr for Freshness {
    type Err = FreshnessError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((policy, stale)) = text.split_once(',') else {
            return Ok(Self { policy: text.parse()?, stale: None });
        };
        let stale = stale.trim();
        let age = stale.strip_prefix("stale:").and_then(parse_duration);
        let age = age.ok_or_else(|| FreshnessError::Stale(stale.to_owned()))?;
        Ok(Self { policy: policy.trim().parse()?, stale: Some(age) })
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.policy.fmt(f)?;
        self.stale.map_or(Ok(()), |stale| write!(f, ", stale:{}ms", stale.as_millis()))
    }
}

impl Serialize for Freshness {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Freshness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freshness_is_parsed_as_it_is_displayed() {
        let minute = CachePolicy::Ttl(Duration::from_mins(1));
        for (text, policy, stale) in [
            ("always", CachePolicy::Always, None),
            ("ttl:60s, stale:1h", minute, Some(Duration::from_hours(1))),
            ("ttl:60s,stale:500ms", minute, Some(Duration::from_millis(500))),
            ("always, stale:5m", CachePolicy::Always, Some(Duration::from_mins(5))),
        ] {
            let freshness = Freshness { policy, stale };
            assert_eq!(text.parse(), Ok(freshness), "{text}");
            assert_eq!(freshness.to_string().parse(), Ok(freshness));
        }
        for text in
            ["stale:1h", "ttl:60s,", "ttl:60s, stale", "ttl:60s, 1h", "ttl:60s, stale:1h, stale:2h", ""]
        {
            assert!(text.parse::<Freshness>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_policy_is_parsed_as_it_is_displayed() {
        for (text, policy) in [
            ("always", CachePolicy::Always),
            ("immutable", CachePolicy::Immutable),
            ("uncached", CachePolicy::Uncached),
            ("ttl:0s", CachePolicy::Ttl(Duration::ZERO)),
            ("ttl:1500ms", CachePolicy::Ttl(Duration::from_millis(1500))),
            ("ttl:60s", CachePolicy::Ttl(Duration::from_mins(1))),
            ("ttl:5m", CachePolicy::Ttl(Duration::from_mins(5))),
            ("ttl:24h", CachePolicy::Ttl(Duration::from_hours(24))),
        ] {
            assert_eq!(text.parse(), Ok(policy));
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for text in [
            "",
            "never",
            "ttl",
            "ttl:",
            "ttl:5",
            "ttl:s",
            "ttl:-1s",
            "ttl:1.5s",
            "ttl:9d",
            "ttl:99999999999999999h",
            "Always",
        ] {
            assert_eq!(text.parse::<CachePolicy>(), Err(CachePolicyError(text.to_owned())));
        }
    }
}
