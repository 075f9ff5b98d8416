//! [`StatsQuery`]: the query parameters of statistics, parsed once.

use axum::http::Uri;
use utoipa::IntoParams;

use crate::api::dimension_list::DimensionList;
use crate::api::query_params::{KnownParams, ParamError, ParseParams, QueryParams, is_of_page, once, pairs};
use crate::api::selection::{ArrayParams, SelectionParams};
use crate::array::Sampling;
use crate::reduce::statistics::Statistic;

/// The most bins of a histogram.
const MAX_BINS: usize = 1 << 16;
/// The most percentiles.
const MAX_PERCENTILES: usize = 64;

/// A requested histogram: the number of bins, and their range if it is given.
type HistogramRequest = (usize, Option<(f64, f64)>);

/// The parameters of statistics.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsParams {
    /// The statistics in the response, such as `min,max`: of `count`, `missing`, `nan`, `min`, `max`, `mean`, `std` and `sum`.
    /// The default is all of these.
    #[param(value_type = Option<String>)]
    ops: Option<Vec<Statistic>>,
    /// Dimensions by name or number, such as `time` or `0,2`: statistics over these, one for each index of the other dimensions.
    /// Each member is then a nested list of the form in `shape`. All chunks are read, or the response is a 413.
    #[param(value_type = Option<String>)]
    pub(crate) over: Option<DimensionList>,
    /// A histogram with this number of bins of equal width, from the smallest to the largest finite value or between given
    /// edges: `64` or `64:0..1`. Its member `outside` counts the values in no bin.
    #[param(value_type = Option<String>)]
    pub(crate) histogram: Option<HistogramRequest>,
    /// Percentiles from 0 to 100, such as `2,98`, interpolated linearly.
    // Each as it was written, and as a number.
    #[param(value_type = Option<String>)]
    percentiles: Option<Vec<(String, f64)>>,
    /// `auto` (default): all chunks, if that is within the limits on decoded chunks and bytes, else a sample. `exact`: all
    /// chunks, or a 413. A number: a sample of about that number of elements. The sample is always of the same chunks.
    #[param(value_type = Option<String>)]
    sample: Option<Sampling>,
    /// `cf` (default): statistics are of the values that the CF attributes `_FillValue`, `missing_value`, `scale_factor`,
    /// `add_offset` and `_Unsigned` describe. `none`: of the stored numbers.
    #[param(value_type = Option<String>)]
    decode: Option<bool>,
    /// The field of a structured type that statistics are of, which such a type needs: `a`, or `a.b` for a field in a field.
    /// Statistics are of its stored numbers: CF attributes of the array are not about one field.
    pub(crate) fields: Option<String>,
}

impl QueryParams for StatsParams {}

impl ParseParams for StatsParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "ops" => once("ops", &mut self.ops, ops(value)?),
            "over" => once("over", &mut self.over, DimensionList::new(value)),
            "histogram" => once("histogram", &mut self.histogram, histogram(value)?),
            "percentiles" => once("percentiles", &mut self.percentiles, percentiles(value)?),
            "sample" => once("sample", &mut self.sample, sampling(value)?),
            "decode" => once("decode", &mut self.decode, decodes(value)?),
            "fields" => once("fields", &mut self.fields, value.to_owned()),
            _ => Ok(false),
        }
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatsQuery {
    pub(crate) selection: SelectionParams,
    pub(crate) array: ArrayParams,
    pub(crate) stats: StatsParams,
}

impl StatsQuery {
    /// Parses the query of a URL.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(crate) fn from_uri(uri: &Uri) -> Result<Self, ParamError> {
        let mut query = Self::default();
        for (name, value) in &pairs(uri)? {
            let Self { selection, array, stats } = &mut query;
            let is_known =
                selection.take(name, value)? || array.take(name, value)? || stats.take(name, value)?;
            if !is_known && !is_of_page(name) {
                let known = KnownParams::default();
                let known = known.and::<SelectionParams>().and::<StatsParams>().and::<ArrayParams>();
                return Err(ParamError::unknown(name, &known));
            }
        }
        if query.stats.over.is_some() && !matches!(query.sampling(), Sampling::Auto | Sampling::Exact) {
            return Err(ParamError::Exclusive("`over` and a sample"));
        }
        Ok(query)
    }

    /// The requested statistics.
    pub(crate) fn ops(&self) -> &[Statistic] {
        self.stats.ops.as_deref().unwrap_or(&Statistic::ALL)
    }

    /// Each requested percentile as it was written, and as a number.
    pub(crate) fn percentiles(&self) -> &[(String, f64)] {
        self.stats.percentiles.as_deref().unwrap_or_default()
    }

    /// Which chunks are read. A sample has no elements of most groups.
    pub(crate) fn sampling(&self) -> Sampling {
        let default = if self.stats.over.is_some() { Sampling::Exact } else { Sampling::Auto };
        match self.stats.sample {
            None | Some(Sampling::Auto) => default,
            Some(sampling) => sampling,
        }
    }

    /// Whether values are decoded by the CF attributes.
    pub(crate) fn decodes(&self) -> bool {
        self.stats.decode.unwrap_or(true)
    }

    /// What of the response's bytes follows from the query beside the selection, for its version.
    pub(crate) fn identity(&self) -> String {
        let (ops, percentiles, decodes) = (self.ops(), self.percentiles(), self.decodes());
        let StatsParams { over, histogram, fields, .. } = &self.stats;
        let field = fields.as_ref().map(|field| format!(" {field:?}")).unwrap_or_default();
        format!("{ops:?} {over:?} {histogram:?} {percentiles:?} {decodes}{field}")
    }
}

fn ops(value: &str) -> Result<Vec<Statistic>, ParamError> {
    let takes = "names with commas between, of: count, missing, nan, min, max, mean, std, sum";
    let asked: Option<Vec<Statistic>> =
        value.split(',').map(|name| Statistic::from_name(name.trim())).collect();
    let asked = asked.ok_or_else(|| ParamError::value("ops", value, takes))?;
    Ok(Statistic::ALL.into_iter().filter(|statistic| asked.contains(statistic)).collect())
}

fn histogram(value: &str) -> Result<(usize, Option<(f64, f64)>), ParamError> {
    let parsed = || {
        let (bins, range) = value.split_once(':').map_or((value, None), |(bins, range)| (bins, Some(range)));
        let bins: usize = bins.parse().ok().filter(|bins| (1..=MAX_BINS).contains(bins))?;
        let Some(range) = range else { return Some((bins, None)) };
        let (low, high) = range.split_once("..")?;
        let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
        (low < high && (high - low).is_finite()).then_some((bins, Some((low, high))))
    };
    let takes = "a number of bins from 1 to 65536, and optionally a range: `64` or `64:0..1`";
    parsed().ok_or_else(|| ParamError::value("histogram", value, takes))
}

fn percentiles(value: &str) -> Result<Vec<(String, f64)>, ParamError> {
    let one = |text: &str| {
        let percent: f64 = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
        Some((text.to_owned(), percent))
    };
    let parsed: Option<Vec<_>> = value.split(',').map(|text| one(text.trim())).collect();
    parsed.filter(|percentiles| percentiles.len() <= MAX_PERCENTILES).ok_or_else(|| {
        ParamError::value("percentiles", value, "at most 64 numbers from 0 to 100, such as `2,98`")
    })
}

fn sampling(value: &str) -> Result<Sampling, ParamError> {
    match value {
        "auto" => Ok(Sampling::Auto),
        "exact" => Ok(Sampling::Exact),
        number => number
            .parse()
            .ok()
            .filter(|&elements| elements > 0)
            .map(Sampling::Elements)
            .ok_or_else(|| ParamError::value("sample", value, "`auto`, `exact` or a number of elements")),
    }
}

fn decodes(value: &str) -> Result<bool, ParamError> {
    match value {
        "cf" => Ok(true),
        "none" => Ok(false),
        _ => Err(ParamError::value("decode", value, "`cf` or `none`")),
    }
}
