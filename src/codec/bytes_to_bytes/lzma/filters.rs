//! [`Filters`]: a chain of LZMA filters, in the form of Python's `lzma` module.
//!
//! A filter is an object with an `id`. LZMA1 and LZMA2 have a `preset` and may override its dictionary and its `lc`, `lp` and
//! `pb`; delta has a `dist`. The options of the encoder's match finder (`mode`, `nice_len`, `mf`, `depth`) are those of the
//! preset. The filters for machine code are not supported.

use liblzma::stream::{Error, LzmaOptions};
use serde_json::Value;

use crate::codec::CodecError;
use crate::codec::support::config::CodecConfig;

const LZMA1: u64 = 0x4000_0000_0000_0001;
const LZMA2: u64 = 0x21;
const DELTA: u64 = 3;
/// Most filters of a chain.
const MAX_FILTERS: usize = 4;

const DEFAULT_PRESET: u32 = 6;
/// A flag of a preset beside its level.
const EXTREME: u32 = 1 << 31;
/// The dictionaries of the levels, as powers of two.
const DICTIONARY_BITS: [u32; 10] = [18, 20, 21, 22, 22, 23, 23, 24, 25, 26];
const MIN_DICTIONARY_BYTES: u32 = 1 << 12;

/// The filters in encoding order: deltas, then LZMA.
#[derive(Debug)]
pub(super) struct Filters {
    /// Distance in bytes, less one.
    deltas: Vec<u8>,
    lzma: Lzma,
}

#[derive(Clone, Copy, Debug)]
struct Lzma {
    version: Version,
    preset: u32,
    dictionary_bytes: u32,
    literal_context_bits: Option<u32>,
    literal_position_bits: Option<u32>,
    position_bits: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Filters {
    /// The `filters` of a configuration, if it has any.
    pub(super) fn from_config(config: &CodecConfig) -> Result<Option<Self>, CodecError> {
        let list = match config.member("filters") {
            None => return Ok(None),
            Some(Value::Array(list)) => list.as_slice(),
            Some(_) => return Err(config.invalid("`filters` must be a list")),
        };
        let Some((last, before)) = list.split_last() else { return Ok(None) };
        if list.len() > MAX_FILTERS {
            return Err(config.invalid(format!("there are more than {MAX_FILTERS} `filters`")));
        }
        let deltas = before.iter().map(|filter| delta(config, filter)).collect::<Result<_, _>>()?;
        let version = match id(config, last)? {
            LZMA1 => Version::One,
            LZMA2 => Version::Two,
            _ => return Err(config.invalid("the last of `filters` must be LZMA1 or LZMA2")),
        };
        Ok(Some(Self { deltas, lzma: Lzma::parse(config, version, last)? }))
    }

    /// LZMA1 alone, with the `preset` of the configuration.
    pub(super) fn lzma1(config: &CodecConfig) -> Result<Self, CodecError> {
        Ok(Self { deltas: Vec::new(), lzma: Lzma::with_preset(config, Version::One)? })
    }

    /// LZMA2 alone, with the `preset` of the configuration.
    pub(super) fn lzma2(config: &CodecConfig) -> Result<Self, CodecError> {
        Ok(Self { deltas: Vec::new(), lzma: Lzma::with_preset(config, Version::Two)? })
    }

    pub(super) fn end_in_lzma1(&self) -> bool {
        self.lzma.version == Version::One
    }

    pub(super) fn are_lzma1_alone(&self) -> bool {
        self.deltas.is_empty() && self.end_in_lzma1()
    }

    /// Bytes of the dictionary that decoding needs.
    pub(super) fn dictionary_bytes(&self) -> u64 {
        u64::from(self.lzma.dictionary_bytes)
    }

    /// The library's form of the filters: to encode `bytes` bytes, or to decode if that is `None`.
    pub(super) fn chain(&self, bytes: Option<usize>) -> Result<liblzma::stream::Filters, Error> {
        let mut chain = liblzma::stream::Filters::new();
        for &distance in &self.deltas {
            chain.delta_properties(&[distance])?;
        }
        let options = self.lzma_options(bytes)?;
        match self.lzma.version {
            Version::One => chain.lzma1(&options),
            Version::Two => chain.lzma2(&options),
        };
        Ok(chain)
    }

    /// The options of LZMA itself. An encoder needs ten times the memory of its dictionary, so the dictionary is not made
    /// larger than the data.
    pub(super) fn lzma_options(&self, bytes: Option<usize>) -> Result<LzmaOptions, Error> {
        let lzma = &self.lzma;
        let useful = bytes.and_then(|bytes| u32::try_from(bytes.checked_next_power_of_two()?).ok());
        let useful = useful.unwrap_or(u32::MAX).max(MIN_DICTIONARY_BYTES);
        let mut options = LzmaOptions::new_preset(lzma.preset)?;
        options.dict_size(lzma.dictionary_bytes.min(useful));
        lzma.literal_context_bits.map(|bits| options.literal_context_bits(bits));
        lzma.literal_position_bits.map(|bits| options.literal_position_bits(bits));
        lzma.position_bits.map(|bits| options.position_bits(bits));
        Ok(options)
    }
}

impl Lzma {
    fn with_preset(config: &CodecConfig, version: Version) -> Result<Self, CodecError> {
        Self::from_preset(config, version, config.member("preset"))
    }

    fn from_preset(
        config: &CodecConfig,
        version: Version,
        preset: Option<&Value>,
    ) -> Result<Self, CodecError> {
        let preset = number(config, "preset", preset)?.unwrap_or(DEFAULT_PRESET);
        let level = usize::try_from(preset & !EXTREME).ok().and_then(|level| DICTIONARY_BITS.get(level));
        let Some(bits) = level else {
            return Err(config.invalid("`preset` must be between 0 and 9"));
        };
        Ok(Self {
            version,
            preset,
            dictionary_bytes: 1 << bits,
            literal_context_bits: None,
            literal_position_bits: None,
            position_bits: None,
        })
    }

    fn parse(config: &CodecConfig, version: Version, filter: &Value) -> Result<Self, CodecError> {
        let member = |key| number(config, key, filter.get(key).filter(|value| !value.is_null()));
        let mut lzma =
            Self::from_preset(config, version, filter.get("preset").filter(|value| !value.is_null()))?;
        if let Some(bytes) = member("dict_size")? {
            lzma.dictionary_bytes = bytes.max(MIN_DICTIONARY_BYTES);
        }
        lzma.literal_context_bits = member("lc")?;
        lzma.literal_position_bits = member("lp")?;
        lzma.position_bits = member("pb")?;
        // The presets have `lc` 3, `lp` 0 and `pb` 2.
        let literal =
            lzma.literal_context_bits.unwrap_or(3).checked_add(lzma.literal_position_bits.unwrap_or(0));
        if literal.is_some_and(|bits| bits <= 4) && lzma.position_bits.unwrap_or(2) <= 4 {
            Ok(lzma)
        } else {
            Err(config.invalid("`lc` and `lp` together, and `pb`, may be 4 at most"))
        }
    }
}

/// The distance of a delta filter, less one. Only delta filters may precede LZMA.
fn delta(config: &CodecConfig, filter: &Value) -> Result<u8, CodecError> {
    match id(config, filter)? {
        DELTA => {}
        LZMA1 | LZMA2 => return Err(config.invalid("LZMA must be the last of `filters`")),
        other => return Err(config.unsupported(&format!("filter {other}"))),
    }
    let distance = number(config, "dist", filter.get("dist").filter(|value| !value.is_null()))?.unwrap_or(1);
    let less = distance.checked_sub(1).and_then(|less| u8::try_from(less).ok());
    less.ok_or_else(|| config.invalid("`dist` must be between 1 and 256"))
}

fn id(config: &CodecConfig, filter: &Value) -> Result<u64, CodecError> {
    let id = filter.get("id").and_then(Value::as_u64);
    id.ok_or_else(|| config.invalid("one of `filters` has no `id`"))
}

fn number(config: &CodecConfig, key: &str, value: Option<&Value>) -> Result<Option<u32>, CodecError> {
    let Some(value) = value else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| config.invalid(format!("`{key}` must be a whole number")))
}
