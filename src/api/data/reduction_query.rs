//! [`ReductionParams`]: the query parameters `downsample`, `fit` and `method`, and the [`Reduction`] that they are for a
//! selection.

use utoipa::IntoParams;

use crate::api::dimension_list::{called, known_names};
use crate::api::query_params::{ParamError, ParseParams, QueryParams, once};
use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::ArrayMetadata;
use crate::reduce::{Method, ReduceError, Reducer, Reduction};
use crate::units::counted;

/// Prefix of a parameter with the factor of a named dimension.
const BY_NAME: &str = "downsample.";

/// The parameters, parsed.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReductionParams {
    /// Downsampling by position: a factor for each dimension of the result, as in `1,8,8`. Each window of that many selected
    /// elements gives one; the last windows of a dimension may be shorter. Limits on decoded chunks count what is read.
    #[param(rename = "downsample", value_type = Option<String>)]
    factors: Option<Vec<u64>>,
    /// Downsampling by dimension name: one parameter with a factor for each named dimension. Excludes `downsample`.
    #[param(rename = "downsample.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    named: Vec<(String, u64)>,
    /// Downsampling to a size, as in `1024,768`: the last two dimensions are halved, both as often as it takes until they have
    /// at most this width and height. Each halving applies `method` to the result of the one before. Excludes `downsample`.
    #[param(value_type = Option<String>)]
    fit: Option<(u64, u64)>,
    /// How the elements of a window become one: `mean`, `mode` (the most frequent), `min`, `max`, `stride` (the first), or
    /// `auto` (default): `mode` of `bool`, of arrays with the CF attribute `flag_values` and of OME-Zarr label images, else
    /// `mean`. All but `stride` skip NaN and the values of the attributes `_FillValue` and `missing_value`.
    #[param(value_type = Option<String>)]
    method: Option<RequestedMethod>,
}

/// The value of `method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedMethod {
    /// It follows from the array.
    Auto,
    /// This one.
    Named(Method),
}

impl RequestedMethod {
    /// The value of the parameter.
    pub(crate) fn parse(value: &str) -> Result<Self, ParamError> {
        let takes = "`auto`, `mean`, `mode`, `min`, `max` or `stride`";
        match (value, Method::from_name(value)) {
            ("auto", _) => Ok(Self::Auto),
            (_, Some(method)) => Ok(Self::Named(method)),
            _ => Err(ParamError::value("method", value, takes)),
        }
    }

    /// The method, if it does not follow from the array.
    pub(crate) fn named(self) -> Option<Method> {
        match self {
            Self::Auto => None,
            Self::Named(method) => Some(method),
        }
    }
}

impl QueryParams for ReductionParams {}

impl ParseParams for ReductionParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "downsample" => once("downsample", &mut self.factors, factors(value)?)?,
            "fit" => once("fit", &mut self.fit, plane(value)?)?,
            "method" => return once("method", &mut self.method, RequestedMethod::parse(value)?),
            name => match name.strip_prefix(BY_NAME) {
                None => return Ok(false),
                Some(dimension) => {
                    let factor = factor(value).ok_or_else(|| ParamError::value(NAMED, value, FACTOR))?;
                    if self.named.iter().any(|(known, _)| known == dimension) {
                        return Err(ParamError::Twice(NAMED));
                    }
                    self.named.push((dimension.to_owned(), factor));
                    true
                }
            },
        };
        let given = [self.factors.is_some(), !self.named.is_empty(), self.fit.is_some()];
        if given.into_iter().filter(|&given| given).count() > 1 {
            return Err(ParamError::Exclusive("`downsample`, `downsample.NAME` and `fit`"));
        }
        Ok(true)
    }
}

/// Why a selection cannot be reduced as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReductionError {
    /// The number of factors is not that of dimensions.
    #[error(
        "`downsample` has {}; the result of the selection has {}", counted(*.given, "factor"), counted(*.rank, "dimension")
    )]
    Rank {
        /// How many factors were given.
        given: usize,
        /// Dimensions of the result.
        rank: usize,
    },
    /// The result has no dimension to reduce.
    #[error("`fit` is for results with at least one dimension; the selection is a single element")]
    NoPlane,
    /// A dimension that an integer index drops has a factor.
    #[error("the dimension {0} has one selected element, and no factor but 1")]
    Dropped(String),
    /// No dimension, or several, have the name.
    #[error(
        "`downsample.{name}`: {}; {}",
        called(*.count, .name),
        known.as_ref().map_or_else(
            || "they have no names: give a factor for each, as in `downsample=2,2`".to_owned(),
            |known| format!("the names are {known}"),
        )
    )]
    Dimension {
        /// The name.
        name: String,
        /// How many dimensions have it.
        count: usize,
        /// The names of the dimensions; `None` if none has one.
        known: Option<String>,
    },
    /// The elements cannot be reduced.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
}

impl Classify for ReductionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Rank { .. } | Self::NoPlane | Self::Dropped(_) | Self::Dimension { .. } => {
                ErrorClass::InvalidRequest
            }
            Self::Reduce(error) => error.class(),
        }
    }
}

/// A requested reduction: the method is known, and the factors follow from the selection.
#[derive(Clone, Debug)]
pub(crate) struct RequestedReduction {
    query: ReductionParams,
    reducer: Reducer,
    names: Vec<Option<String>>,
}

impl ReductionParams {
    /// Whether elements are to be reduced. `method` alone has no effect, as pictures of the same URL take it too.
    pub(crate) fn reduces(&self) -> bool {
        self.factors.is_some() || !self.named.is_empty() || self.fit.is_some()
    }

    /// Whether the method follows from the array.
    pub(crate) fn is_auto(&self) -> bool {
        self.named_method().is_none()
    }

    fn named_method(&self) -> Option<Method> {
        self.method.and_then(RequestedMethod::named)
    }

    /// The reduction of the elements of an array; `is_categorical` is whether these are labels of things, not quantities.
    pub(crate) fn of_array(
        &self,
        metadata: &ArrayMetadata,
        is_categorical: bool,
    ) -> Result<RequestedReduction, ReductionError> {
        let data_type = &metadata.data_type;
        let method = self.named_method().unwrap_or_else(|| Method::auto(data_type, is_categorical));
        let unnamed = || vec![None; metadata.shape.len()];
        let names = metadata.dimension_names.clone().unwrap_or_else(unnamed);
        Ok(RequestedReduction { query: self.clone(), reducer: Reducer::of_array(method, metadata)?, names })
    }
}

impl RequestedReduction {
    /// The reduction of a selection.
    pub(crate) fn of(&self, subset: &Subset) -> Result<Reduction, ReductionError> {
        let reducer = self.reducer.clone();
        if let Some((width, height)) = self.query.fit {
            if !subset.axes().iter().any(|axis| axis.keep) {
                return Err(ReductionError::NoPlane);
            }
            return Ok(Reduction::fit(reducer, subset, width, height));
        }
        let factors = match &self.query.factors {
            Some(factors) => by_position(factors, subset)?,
            None => by_name(&self.query.named, &self.names, subset)?,
        };
        Ok(Reduction::direct(reducer, factors))
    }
}

/// Factors for the dimensions of the array, from those for the dimensions of the result, or of the array.
fn by_position(given: &[u64], subset: &Subset) -> Result<Vec<u64>, ReductionError> {
    let axes = subset.axes();
    let rank = axes.iter().filter(|axis| axis.keep).count();
    if given.len() == rank {
        let mut given = given.iter().copied();
        return Ok(axes.iter().map(|axis| if axis.keep { given.next().unwrap_or(1) } else { 1 }).collect());
    }
    if given.len() != axes.len() {
        return Err(ReductionError::Rank { given: given.len(), rank });
    }
    match axes.iter().zip(given).position(|(axis, &factor)| !axis.keep && factor != 1) {
        Some(dimension) => Err(ReductionError::Dropped(dimension.to_string())),
        None => Ok(given.to_vec()),
    }
}

/// Factors for the dimensions of the array, from those of some names.
fn by_name(
    given: &[(String, u64)],
    names: &[Option<String>],
    subset: &Subset,
) -> Result<Vec<u64>, ReductionError> {
    let mut factors = vec![1; subset.axes().len()];
    for (name, factor) in given {
        let mut slots = names.iter().zip(factors.iter_mut().zip(subset.axes()));
        let mut slots: Vec<_> = slots.by_ref().filter(|(known, _)| known.as_ref() == Some(name)).collect();
        let count = slots.len();
        match &mut slots[..] {
            [(_, (_, axis))] if !axis.keep && *factor != 1 => {
                return Err(ReductionError::Dropped(format!("`{name}`")));
            }
            [(_, (slot, _))] => **slot = *factor,
            _ => {
                let name = name.chars().take(40).collect();
                return Err(ReductionError::Dimension { name, count, known: known_names(names) });
            }
        }
    }
    Ok(factors)
}

/// The documented name of a factor by dimension name.
const NAMED: &str = "downsample.NAME";
const FACTOR: &str = "a whole number from 1 on";

fn factors(value: &str) -> Result<Vec<u64>, ParamError> {
    let list = value.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim);
    let factors: Option<Vec<u64>> = list.filter(|part| !part.is_empty()).map(factor).collect();
    factors.ok_or_else(|| {
        ParamError::value(
            "downsample",
            value,
            "a factor from 1 on for each dimension of the result, such as `1,8,8`",
        )
    })
}

fn factor(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&factor| factor > 0)
}

fn plane(value: &str) -> Result<(u64, u64), ParamError> {
    let mut lengths = value.split(',').map(|part| factor(part.trim()));
    match (lengths.next(), lengths.next(), lengths.next()) {
        (Some(Some(width)), Some(Some(height)), None) => Ok((width, height)),
        (Some(Some(side)), None, None) => Ok((side, side)),
        _ => Err(ParamError::value("fit", value, "a width and a height from 1 on, such as `1024,1024`")),
    }
}
