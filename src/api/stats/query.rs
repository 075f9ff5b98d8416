//! [`StatsQuery`]: the query parameters of statistics, parsed once.

use crate::api::data::query::{DataQuery, QueryError};
use crate::array::Sampling;
use crate::error::{Classify, ErrorClass};

/// The names of statistics, in the order of the response.
pub(crate) const OPS: [&str; 8] = ["count", "missing", "nan", "min", "max", "mean", "std", "sum"];

/// The parameters of the selection, which are those of elements.
const SELECTION: [&str; 5] = ["slice", "select", "expected_shape", "strict", "allow_collision"];

/// The most bins of a histogram.
const MAX_BINS: usize = 1 << 16;
/// The most percentiles.
const MAX_PERCENTILES: usize = 64;

/// A parsed query.
#[derive(Clone, Debug)]
pub(crate) struct StatsQuery {
    pub(crate) selection: DataQuery,
    /// The requested statistics, each one of [`OPS`].
    pub(crate) ops: Vec<&'static str>,
    /// The number of bins, and their range if it is given.
    pub(crate) histogram: Option<(usize, Option<(f64, f64)>)>,
    /// Each percentile as it was written, and as a number.
    pub(crate) percentiles: Vec<(String, f64)>,
    pub(crate) sampling: Sampling,
    /// Whether values are decoded by the CF attributes.
    pub(crate) decodes: bool,
}

/// Why a query of statistics is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StatsQueryError {
    /// The parameter is unknown.
    #[error(
        "`{0}` is not a parameter here; there is: slice (or select), isel.NAME, ops, histogram, percentiles, sample, decode, \
         expected_shape, strict, allow_collision"
    )]
    Unknown(String),
    /// A parameter occurs twice.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// A parameter has an invalid value.
    #[error("`{name}={value}` is not understood; it takes {takes}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The invalid value, shortened.
        value: String,
        /// The valid values.
        takes: &'static str,
    },
    /// The selection is invalid.
    #[error(transparent)]
    Selection(#[from] QueryError),
}

impl Classify for StatsQueryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unknown(_) | Self::Twice(_) | Self::Value { .. } => ErrorClass::InvalidRequest,
            Self::Selection(error) => error.class(),
        }
    }
}

impl StatsQuery {
    /// Parses the decoded pairs of a query.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, StatsQueryError> {
        let mut selection = Vec::new();
        let mut query = Self {
            selection: DataQuery::default(),
            ops: OPS.to_vec(),
            histogram: None,
            percentiles: Vec::new(),
            sampling: Sampling::Auto,
            decodes: true,
        };
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in pairs {
            let is_selection = SELECTION.contains(&name.as_str()) || name.starts_with("isel.");
            if !is_selection && seen.contains(&name.as_str()) {
                return Err(StatsQueryError::Twice(short(name)));
            }
            seen.push(name);
            match name.as_str() {
                "ops" => query.ops = ops(value)?,
                "histogram" => query.histogram = Some(histogram(value)?),
                "percentiles" => query.percentiles = percentiles(value)?,
                "sample" => query.sampling = sampling(value)?,
                "decode" => query.decodes = decodes(value)?,
                _ if is_selection => selection.push((name.clone(), value.clone())),
                _ => return Err(StatsQueryError::Unknown(short(name))),
            }
        }
        query.selection = DataQuery::parse(&selection)?;
        Ok(query)
    }

    /// What of the response's bytes follows from the query beside the selection, for its version.
    pub(crate) fn identity(&self) -> String {
        let Self { ops, histogram, percentiles, decodes, .. } = self;
        format!("{ops:?} {histogram:?} {percentiles:?} {decodes}")
    }
}

fn ops(value: &str) -> Result<Vec<&'static str>, StatsQueryError> {
    let takes = "names with commas between, of: count, missing, nan, min, max, mean, std, sum";
    let asked: Vec<&str> = value.split(',').map(str::trim).collect();
    if asked.iter().any(|name| !OPS.contains(name)) {
        return Err(not_understood("ops", value, takes));
    }
    Ok(OPS.into_iter().filter(|name| asked.contains(name)).collect())
}

fn histogram(value: &str) -> Result<(usize, Option<(f64, f64)>), StatsQueryError> {
    let parsed = || {
        let (bins, range) = value.split_once(':').map_or((value, None), |(bins, range)| (bins, Some(range)));
        let bins: usize = bins.parse().ok().filter(|bins| (1..=MAX_BINS).contains(bins))?;
        let Some(range) = range else { return Some((bins, None)) };
        let (low, high) = range.split_once("..")?;
        let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
        (low < high && (high - low).is_finite()).then_some((bins, Some((low, high))))
    };
    let takes = "a number of bins from 1 to 65536, and optionally a range: `64` or `64:0..1`";
    parsed().ok_or_else(|| not_understood("histogram", value, takes))
}

fn percentiles(value: &str) -> Result<Vec<(String, f64)>, StatsQueryError> {
    let one = |text: &str| {
        let percent: f64 = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
        Some((text.to_owned(), percent))
    };
    let parsed: Option<Vec<_>> = value.split(',').map(|text| one(text.trim())).collect();
    parsed.filter(|percentiles| percentiles.len() <= MAX_PERCENTILES).ok_or_else(|| {
        not_understood("percentiles", value, "at most 64 numbers from 0 to 100, such as `2,98`")
    })
}

fn sampling(value: &str) -> Result<Sampling, StatsQueryError> {
    match value {
        "auto" => Ok(Sampling::Auto),
        "exact" => Ok(Sampling::Exact),
        number => number
            .parse()
            .ok()
            .filter(|&elements| elements > 0)
            .map(Sampling::Elements)
            .ok_or_else(|| not_understood("sample", value, "`auto`, `exact` or a number of elements")),
    }
}

fn decodes(value: &str) -> Result<bool, StatsQueryError> {
    match value {
        "cf" => Ok(true),
        "none" => Ok(false),
        _ => Err(not_understood("decode", value, "`cf` or `none`")),
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn not_understood(name: &'static str, value: &str, takes: &'static str) -> StatsQueryError {
    StatsQueryError::Value { name, value: short(value), takes }
}
