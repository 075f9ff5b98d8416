//! [`ReductionQuery`]: the query parameters `downsample`, `fit` and `method`, and the [`Reduction`] that they are for a
//! selection.

use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::ArrayMetadata;
use crate::reduce::{Method, Missing, ReduceError, Reducer, Reduction};

/// Prefix of a parameter with the factor of a named dimension.
const BY_NAME: &str = "downsample.";

/// The parameters, parsed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReductionQuery {
    factors: Option<Vec<u64>>,
    /// Dimension names, each with its factor.
    named: Vec<(String, u64)>,
    /// Width and height.
    fit: Option<(u64, u64)>,
    method: Option<RequestedMethod>,
}

/// The value of `method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedMethod {
    Auto,
    Named(Method),
}

/// Why the parameters are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReductionError {
    /// A parameter has an invalid value.
    #[error("`{name}={value}` is not understood; it takes {takes}")]
    Value {
        /// The parameter.
        name: String,
        /// The invalid value, shortened.
        value: String,
        /// The valid values.
        takes: &'static str,
    },
    /// A parameter occurs twice.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// Several parameters say how large windows are.
    #[error("`downsample`, `downsample.NAME` and `fit` cannot be mixed: use one of them")]
    Several,
    /// The number of factors is not that of dimensions.
    #[error("`downsample` has {given} factors; the result of the selection has {rank} dimensions")]
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
        "`downsample.{name}`: {count} dimensions of the array are called `{name}`; the names are {known}"
    )]
    Dimension {
        /// The name.
        name: String,
        /// How many dimensions have it.
        count: usize,
        /// The names of the dimensions.
        known: String,
    },
    /// The elements cannot be reduced.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
}

impl Classify for ReductionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Value { .. }
            | Self::Twice(_)
            | Self::Several
            | Self::Rank { .. }
            | Self::NoPlane
            | Self::Dropped(_)
            | Self::Dimension { .. } => ErrorClass::InvalidRequest,
            Self::Reduce(error) => error.class(),
        }
    }
}

/// A requested reduction: the method is known, and the factors follow from the selection.
#[derive(Clone, Debug)]
pub(crate) struct RequestedReduction {
    query: ReductionQuery,
    reducer: Reducer,
    names: Vec<Option<String>>,
}

impl ReductionQuery {
    /// Takes a parameter; false if it is not one of these.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<bool, ReductionError> {
        match name {
            "downsample" => once(name, &mut self.factors, factors(value)?)?,
            "fit" => once(name, &mut self.fit, plane(value)?)?,
            "method" => once(name, &mut self.method, method(value)?)?,
            name => match name.strip_prefix(BY_NAME) {
                None => return Ok(false),
                Some(dimension) => {
                    let factor = factor(value).ok_or_else(|| not_understood(name, value, FACTOR))?;
                    if self.named.iter().any(|(known, _)| known == dimension) {
                        return Err(ReductionError::Twice(name.chars().take(40).collect()));
                    }
                    self.named.push((dimension.to_owned(), factor));
                }
            },
        }
        Ok(true)
    }

    /// Rejects parameters that contradict each other.
    pub(crate) fn check(&self) -> Result<(), ReductionError> {
        let given = [self.factors.is_some(), !self.named.is_empty(), self.fit.is_some()];
        if given.into_iter().filter(|&given| given).count() > 1 {
            Err(ReductionError::Several)
        } else {
            Ok(())
        }
    }

    /// Whether elements are to be reduced. `method` alone has no effect, as pictures of the same URL take it too.
    pub(crate) fn reduces(&self) -> bool {
        self.factors.is_some() || !self.named.is_empty() || self.fit.is_some()
    }

    /// Whether the method follows from the array.
    pub(crate) fn is_auto(&self) -> bool {
        self.named_method().is_none()
    }

    fn named_method(&self) -> Option<Method> {
        match self.method {
            Some(RequestedMethod::Named(method)) => Some(method),
            Some(RequestedMethod::Auto) | None => None,
        }
    }

    /// The reduction of the elements of an array; `is_categorical` is whether these are labels of things, not quantities.
    pub(crate) fn of_array(
        &self,
        metadata: &ArrayMetadata,
        is_categorical: bool,
    ) -> Result<RequestedReduction, ReductionError> {
        let data_type = &metadata.data_type;
        let method = self.named_method().unwrap_or_else(|| Method::auto(data_type, is_categorical));
        method.check(data_type)?;
        let missing = match method {
            Method::Stride => Missing::default(),
            _ => Missing::from_attributes(&metadata.attributes, data_type)?,
        };
        let unnamed = || vec![None; metadata.shape.len()];
        let names = metadata.dimension_names.clone().unwrap_or_else(unnamed);
        Ok(RequestedReduction {
            query: self.clone(),
            reducer: Reducer::new(method, data_type, missing)?,
            names,
        })
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
                let known: Vec<&str> =
                    names.iter().map(|name| name.as_deref().unwrap_or("(unnamed)")).collect();
                let name = name.chars().take(40).collect();
                return Err(ReductionError::Dimension { name, count, known: known.join(", ") });
            }
        }
    }
    Ok(factors)
}

const FACTOR: &str = "a whole number from 1 on";

fn factors(value: &str) -> Result<Vec<u64>, ReductionError> {
    let list = value.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim);
    let factors: Option<Vec<u64>> = list.filter(|part| !part.is_empty()).map(factor).collect();
    factors.ok_or_else(|| {
        not_understood(
            "downsample",
            value,
            "a factor from 1 on for each dimension of the result, such as `1,8,8`",
        )
    })
}

fn factor(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&factor| factor > 0)
}

fn plane(value: &str) -> Result<(u64, u64), ReductionError> {
    let mut lengths = value.split(',').map(|part| factor(part.trim()));
    match (lengths.next(), lengths.next(), lengths.next()) {
        (Some(Some(width)), Some(Some(height)), None) => Ok((width, height)),
        (Some(Some(side)), None, None) => Ok((side, side)),
        _ => Err(not_understood("fit", value, "a width and a height from 1 on, such as `1024,1024`")),
    }
}

fn method(value: &str) -> Result<RequestedMethod, ReductionError> {
    if value == "auto" {
        return Ok(RequestedMethod::Auto);
    }
    Method::from_name(value)
        .map(RequestedMethod::Named)
        .ok_or_else(|| not_understood("method", value, "`auto`, `mean`, `mode`, `min`, `max` or `stride`"))
}

fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), ReductionError> {
    if place.replace(value).is_some() { Err(ReductionError::Twice(name.to_owned())) } else { Ok(()) }
}

fn not_understood(name: &str, value: &str, takes: &'static str) -> ReductionError {
    let short = |text: &str| text.chars().take(40).collect();
    ReductionError::Value { name: short(name), value: short(value), takes }
}
