//! [`AxisReductionParams`]: the query parameters `reduce.NAME`, and the [`AxisReduction`] that they are for a selection.

use utoipa::IntoParams;

use crate::api::dimension_list::{DimensionError, DimensionList};
use crate::api::query_params::{ParamError, ParseParams, QueryParams};
use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::ArrayMetadata;
use crate::reduce::statistics::Statistic;
use crate::reduce::{AxisReduction, CfError, CfValues};

/// Prefix of a parameter that reduces a dimension.
const BY_NAME: &str = "reduce.";
/// The documented name.
const NAMED: &str = "reduce.NAME";

/// The parameters, parsed.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AxisReductionParams {
    /// A statistic over a dimension, or over several (`reduce.lat,lon`), by name or number: `count`, `missing`, `nan`, `min`,
    /// `max`, `mean`, `std` or `sum`. The result does not have these dimensions. NaN and the values of the attributes
    /// `_FillValue` and `missing_value` are skipped. An example is `{"reduce.time": "mean"}` for `reduce.time=mean`. Excludes
    /// `downsample` and `fit`; all dimensions of a request have the same statistic.
    #[param(rename = "reduce.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    reduced: Vec<(DimensionList, Statistic)>,
}

impl QueryParams for AxisReductionParams {}

impl ParseParams for AxisReductionParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        let Some(dimensions) = name.strip_prefix(BY_NAME) else { return Ok(false) };
        let takes = "`count`, `missing`, `nan`, `min`, `max`, `mean`, `std` or `sum`";
        let statistic = Statistic::from_name(value).ok_or_else(|| ParamError::value(NAMED, value, takes))?;
        let dimensions = DimensionList::new(dimensions);
        if self.reduced.iter().any(|(known, _)| *known == dimensions) {
            return Err(ParamError::Twice(NAMED));
        }
        if self.reduced.iter().any(|(_, known)| *known != statistic) {
            return Err(ParamError::Exclusive("several statistics"));
        }
        self.reduced.push((dimensions, statistic));
        Ok(true)
    }
}

/// Why dimensions cannot be reduced as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AxisReductionError {
    /// The array has no such dimensions.
    #[error("`{NAMED}`: {0}")]
    Dimensions(#[from] DimensionError),
    /// The elements have no statistics.
    #[error(transparent)]
    Values(#[from] CfError),
    /// There is nothing to compute the statistic of.
    #[error("there is no `{0}` of no elements: the selection is empty along a reduced dimension")]
    Empty(&'static str),
}

impl Classify for AxisReductionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Dimensions(error) => error.class(),
            Self::Values(error) => error.class(),
            Self::Empty(_) => ErrorClass::InvalidRequest,
        }
    }
}

impl AxisReductionParams {
    /// Whether dimensions are to be reduced.
    pub(crate) fn reduces(&self) -> bool {
        !self.reduced.is_empty()
    }

    /// The reduction of a selection of an array; `None` if none is requested.
    pub(crate) fn of_array(
        &self,
        metadata: &ArrayMetadata,
        subset: &Subset,
    ) -> Result<Option<AxisReduction>, AxisReductionError> {
        let Some(&(_, statistic)) = self.reduced.first() else { return Ok(None) };
        let mut is_reduced = vec![false; metadata.shape.len()];
        for (dimensions, _) in &self.reduced {
            dimensions.mark(metadata, subset, &mut is_reduced)?;
        }
        let values = CfValues::present(metadata)?;
        let is_empty = |(axis, &is_reduced): (&crate::chunk::AxisRange, &bool)| is_reduced && axis.count == 0;
        if statistic.needs_values() && subset.axes().iter().zip(&is_reduced).any(is_empty) {
            return Err(AxisReductionError::Empty(statistic.name()));
        }
        Ok(Some(AxisReduction::new(statistic, &metadata.data_type, values, is_reduced)))
    }
}
