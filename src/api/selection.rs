//! [`SelectionParams`] and [`ArrayParams`]: the query parameters of routes that read part of an array.

use std::sync::Arc;

use utoipa::IntoParams;

use super::point_selection::PointSelection;
use super::query_params::{ParamError, ParseParams, QueryParams, once};
use crate::chunk::{AxisPositions, IndexList, Points, Selection, SelectionError, Subset, dimension_called};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::switch::is_on;
use crate::labels::{DimensionQuery, LabelQuery};
use crate::metadata::ArrayMetadata;

/// Prefix of a parameter that selects along a named dimension.
const BY_NAME: &str = "isel.";
/// Prefix of a parameter that selects by label.
const BY_LABEL: &str = "sel.";
/// What `wrap` takes.
const WRAP: &str = "the length of a full turn, a number above 0: `360` for longitudes";

/// The parameters that select elements.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SelectionParams {
    /// Selection by position with an index or a slice for each dimension, as in numpy: `0:10,::2,...,-1`. The default is the
    /// whole array. Alias: `select`.
    #[param(value_type = Option<String>)]
    slice: Option<Selection>,
    /// Selection by dimension name: one parameter with an index or a slice for each named dimension. An example is
    /// `{"isel.time": "0:10", "isel.lat": "5"}` for `isel.time=0:10&isel.lat=5`. Excludes `slice`. For the elements of an array
    /// also a list of them (`1,5,9`, `350:360,0:11`), which keeps the dimension, with its elements in this order.
    #[param(rename = "isel.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    isel: Vec<(String, String)>,
    /// The lists among them.
    #[param(ignore)]
    lists: Vec<(String, Arc<IndexList>)>,
    /// The positions that labels were resolved to.
    #[param(ignore)]
    found: Vec<(String, Arc<AxisPositions>)>,
    /// Points, which a body may have.
    #[param(ignore)]
    points: Option<Box<PointSelection>>,
    /// Selection by label: one parameter for each named dimension, whose labels are in the array of its name beside the array
    /// or above it. A label (`45.25`, `KSEA`, `2020-01-15`), the nearest one (`nearest::45.2`, `nearest(0.3)::45.2`), the one before or
    /// after (`ffill::`, `bfill::`), a range with both ends (`30..60`), a date as a range (`2020-01`), or `latest`. An example is
    /// `{"sel.time": "2020-01", "sel.lat": "nearest::45.2"}`. Excludes `slice`.
    #[param(rename = "sel.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    sel: Vec<(String, DimensionQuery)>,
    /// With `sel.NAME`: numbers that are this far apart are the same label. `360` finds longitudes in either convention.
    #[param(value_type = Option<f64>)]
    wrap: Option<f64>,
}

impl QueryParams for SelectionParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("select", "slice")];
}

impl ParseParams for SelectionParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        if name == "slice" {
            once("slice", &mut self.slice, Selection::parse(value)?)?;
        } else if let Some(dimension) = name.strip_prefix(BY_NAME) {
            match IndexList::parse(value)? {
                Some(list) => self.lists.push((dimension.to_owned(), Arc::new(list))),
                None => self.isel.push((dimension.to_owned(), value.to_owned())),
            }
        } else if let Some(dimension) = name.strip_prefix(BY_LABEL) {
            let query = LabelQuery::parse(dimension, value)?;
            if self.sel.iter().any(|(known, _)| known == dimension) {
                return Err(SelectionError::DimensionTwice { name: dimension.to_owned() }.into());
            }
            self.sel.push((dimension.to_owned(), DimensionQuery::Label(query)));
        } else if name == "wrap" {
            let turn = value.parse().ok().filter(|turn: &f64| turn.is_finite() && *turn > 0.0);
            once("wrap", &mut self.wrap, turn.ok_or_else(|| ParamError::value("wrap", value, WRAP))?)?;
        } else {
            return Ok(false);
        }
        self.check_slice()?;
        Ok(true)
    }
}

/// The positions along each dimension of an array, where not all of them are ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedPositions {
    /// Along the dimensions of points they do not count.
    pub(crate) axes: Vec<AxisPositions>,
    pub(crate) points: Option<Arc<Points>>,
}

impl SelectionParams {
    /// Adds a list of positions along a dimension.
    pub(crate) fn add_list(&mut self, dimension: String, list: IndexList) {
        self.lists.push((dimension, Arc::new(list)));
    }

    /// Adds labels along a dimension.
    pub(crate) fn add_labels(&mut self, dimension: String, query: DimensionQuery) {
        self.sel.push((dimension, query));
    }

    /// Adds points.
    pub(crate) fn add_points(&mut self, points: PointSelection) {
        self.points = Some(Box::new(points));
    }

    /// Checks a selection that is not from a query alone: that every dimension is selected once, and all points alike.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(crate) fn check(&self) -> Result<(), ParamError> {
        self.check_slice()?;
        if let Some(points) = &self.points {
            points.check_counts()?;
        }
        let by_label = self.sel.iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = self.named().chain(self.named_by_points()).chain(by_label).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(&[name, _]) => Err(SelectionError::DimensionTwice { name: name.to_owned() }.into()),
            _ => Ok(()),
        }
    }

    fn check_slice(&self) -> Result<(), ParamError> {
        if self.slice.is_some() && (self.is_named() || self.points.is_some()) {
            return Err(ParamError::SliceAndNames);
        }
        Ok(())
    }

    /// Whether there is a selection.
    pub(crate) fn selects(&self) -> bool {
        self.slice.is_some() || self.is_named() || self.points.is_some()
    }

    /// Whether there is a selection along named dimensions, beside points.
    fn is_named(&self) -> bool {
        !(self.isel.is_empty() && self.lists.is_empty() && self.found.is_empty() && self.sel.is_empty())
    }

    /// Whether there is a selection by label, which has to be resolved first.
    pub(crate) fn has_labels(&self) -> bool {
        !self.sel.is_empty() || self.points.as_ref().is_some_and(|points| !points.sel.is_empty())
    }

    /// Whether labels are selected along the dimension of a name.
    pub(crate) fn is_by_label(&self, name: &str) -> bool {
        let of_points = self.points.iter().flat_map(|points| &points.sel);
        self.sel.iter().chain(of_points).any(|(known, _)| known == name)
    }

    /// The labels that are requested along each dimension of these names and lengths.
    ///
    /// # Errors
    /// [`SelectionError`] if there is no such dimension, or several, or it is selected by position too.
    pub(crate) fn labels(
        &self,
        shape: &[u64],
        names: &[Option<String>],
    ) -> Result<Vec<(&str, u64, &DimensionQuery)>, SelectionError> {
        let of_points = self.points.iter().flat_map(|points| &points.sel);
        let requested = self.sel.iter().chain(of_points).map(|(name, query)| {
            let axis = dimension_called(name, names)?;
            if self.named().any(|known| known == name) {
                return Err(SelectionError::DimensionTwice { name: name.clone() });
            }
            Ok((name.as_str(), shape.get(axis).copied().unwrap_or_default(), query))
        });
        requested.collect()
    }

    /// The turn after which labels repeat themselves.
    pub(crate) fn wrap(&self) -> Option<f64> {
        self.wrap
    }

    /// The same selection with positions in place of labels.
    pub(crate) fn with_positions(
        &self,
        positions: impl IntoIterator<Item = (String, AxisPositions)>,
    ) -> Self {
        let Self { slice, isel, lists, found, points, .. } = self;
        let (slice, isel, lists) = (slice.clone(), isel.clone(), lists.clone());
        let (mut found, mut points) = (found.clone(), points.clone());
        for (name, positions) in positions {
            match &mut points {
                Some(points) if points.sel.iter().any(|(known, _)| *known == name) => {
                    points.resolve(name, positions);
                }
                _ => found.push((name, Arc::new(positions))),
            }
        }
        Self { slice, isel, lists, found, points, ..Self::default() }
    }

    /// Whether the positions along a dimension are no range, so that they are no subset.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed_names().next().is_some() || self.points.is_some()
    }

    /// The items of all lists, and the points times their dimensions.
    pub(crate) fn listed_items(&self) -> usize {
        let lists = self.lists.iter().map(|(_, list)| list.len());
        let found = self.found_lists().map(|(_, positions)| positions.ranges().len());
        let points = self.points.as_ref().map_or(0, |points| points.items());
        lists.chain(found).fold(points, usize::saturating_add)
    }

    /// The selected positions along each dimension of an array, and the points. The work grows with
    /// [`SelectionParams::listed_items`].
    ///
    /// # Errors
    /// [`SelectionError`] if the array has no such dimension or index.
    pub(crate) fn listed(&self, array: &ArrayMetadata) -> Result<ListedPositions, SelectionError> {
        let unnamed = vec![None; array.shape.len()];
        let names = array.dimension_names.as_deref().unwrap_or(&unnamed);
        let axes = self.positions_named(&array.shape, names)?;
        let points = self.points_named(&array.shape, names)?.map(Arc::new);
        Ok(ListedPositions { axes, points })
    }

    /// The points in an array of this shape whose dimensions have these names, if they are selected.
    ///
    /// # Errors
    /// As [`SelectionParams::listed`].
    pub(crate) fn points_named(
        &self,
        shape: &[u64],
        names: &[Option<String>],
    ) -> Result<Option<Points>, SelectionError> {
        self.points.as_ref().map(|points| points.points(shape, names)).transpose()
    }

    /// The selected positions along each dimension of an array of this shape whose dimensions have these names.
    ///
    /// # Errors
    /// As [`SelectionParams::listed`].
    pub(crate) fn positions_named(
        &self,
        shape: &[u64],
        names: &[Option<String>],
    ) -> Result<Vec<AxisPositions>, SelectionError> {
        let subset = self.written_subset(shape, names)?;
        let mut axes: Vec<AxisPositions> = subset.axes().iter().copied().map(AxisPositions::Range).collect();
        let mut taken: Vec<&str> = self.isel.iter().map(|(name, _)| name.as_str()).collect();
        let mut put = |name, positions: &dyn Fn(usize) -> Result<AxisPositions, SelectionError>| {
            let axis = dimension_called(name, names)?;
            if taken.contains(&name) {
                return Err(SelectionError::DimensionTwice { name: name.to_owned() });
            }
            taken.push(name);
            if let Some(slot) = axes.get_mut(axis) {
                *slot = positions(axis)?;
            }
            Ok(())
        };
        for (name, list) in &self.lists {
            put(name.as_str(), &|axis| list.resolve(axis, shape.get(axis).copied().unwrap_or_default()))?;
        }
        for (name, positions) in &self.found {
            put(name.as_str(), &|_| Ok(positions.as_ref().clone()))?;
        }
        Ok(axes)
    }

    /// The names of the dimensions that are selected by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists.iter().map(|(name, _)| name.as_str());
        let found = self.found.iter().map(|(name, _)| name.as_str());
        self.isel.iter().map(|(name, _)| name.as_str()).chain(lists).chain(found)
    }

    /// The names of the dimensions along which points have positions or labels.
    fn named_by_points(&self) -> impl Iterator<Item = &str> {
        self.points.iter().flat_map(|points| points.named())
    }

    /// The names of the dimensions that are selected by lists.
    fn listed_names(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists.iter().map(|(name, _)| name.as_str());
        lists.chain(self.found_lists().map(|(name, _)| name))
    }

    /// The lists of positions that labels were resolved to, with their dimensions.
    fn found_lists(&self) -> impl Iterator<Item = (&str, &AxisPositions)> {
        let found = self.found.iter().map(|(name, positions)| (name.as_str(), positions.as_ref()));
        found.filter(|(_, positions)| matches!(positions, AxisPositions::List(_)))
    }

    /// The selected subset of an array; without a selection, the whole array.
    ///
    /// # Errors
    /// [`SelectionError`] if the array has no such dimension or index.
    pub(crate) fn subset(&self, array: &ArrayMetadata) -> Result<Subset, SelectionError> {
        self.subset_named(&array.shape, array.dimension_names.as_deref().unwrap_or_default())
    }

    /// Whether the selection is by the positions of dimensions, not by their names.
    pub(crate) fn is_positional(&self) -> bool {
        self.slice.is_some()
    }

    /// The selected subset of one of several arrays: a selection along a dimension that it does not have is of the others.
    ///
    /// # Errors
    /// As [`SelectionParams::subset`].
    pub(crate) fn subset_of_variable(&self, array: &ArrayMetadata) -> Result<Subset, SelectionError> {
        let names = array.dimension_names.as_deref().unwrap_or_default();
        let has = |name: &str| names.iter().flatten().any(|known| known == name);
        let Self { slice, lists, points, .. } = self.clone();
        let isel = self.isel.iter().filter(|(name, _)| has(name)).cloned().collect();
        let found = self.found.iter().filter(|(name, _)| has(name)).cloned().collect();
        Self { slice, isel, lists, found, points, ..Self::default() }.subset(array)
    }

    /// The same of an array of this shape whose dimensions have these names; without names, none has one.
    ///
    /// # Errors
    /// As [`SelectionParams::subset`].
    pub(crate) fn subset_named(
        &self,
        shape: &[u64],
        names: &[Option<String>],
    ) -> Result<Subset, SelectionError> {
        if let Some(name) = self.listed_names().chain(self.named_by_points()).next() {
            return Err(SelectionError::NoRange { name: name.to_owned() });
        }
        let mut subset = self.written_subset(shape, names)?;
        for (name, positions) in &self.found {
            let axis = dimension_called(name, names)?;
            if self.isel.iter().any(|(known, _)| known == name) {
                return Err(SelectionError::DimensionTwice { name: name.clone() });
            }
            if let (Some(range), AxisPositions::Range(found)) = (subset.0.get_mut(axis), &**positions) {
                *range = *found;
            }
        }
        Ok(subset)
    }

    /// The subset that `slice` and `isel` select.
    fn written_subset(&self, shape: &[u64], names: &[Option<String>]) -> Result<Subset, SelectionError> {
        let named;
        let selection = match &self.slice {
            Some(selection) => selection,
            None if self.isel.is_empty() => &Selection::default(),
            None if names.is_empty() => {
                named = Selection::by_name(&self.isel, &vec![None; shape.len()])?;
                &named
            }
            None => {
                named = Selection::by_name(&self.isel, names)?;
                &named
            }
        };
        selection.resolve(shape)
    }
}

/// The parameters about the array that is read.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArrayParams {
    /// Shape that the array must have, such as `10,20`. With another shape the response is a 409.
    #[param(value_type = Option<String>)]
    expected_shape: Option<Vec<u64>>,
    /// Of a dependent array: whether its declaration is read strictly. The parameter needs no value; `false` and `0` switch
    /// it off.
    #[param(value_type = Option<String>)]
    strict: Option<bool>,
    /// Of a dependent array: whether to read chunks that another array also claims, instead of responding with 409. The
    /// parameter needs no value; `false` and `0` switch it off.
    #[param(value_type = Option<String>)]
    allow_collision: Option<bool>,
}

/// The parameter that selects fields.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FieldsParams {
    /// Fields of a struct data type, such as `a,p.x`. A single field gives its elements, several give a struct with these
    /// fields in this order. The default is all fields.
    pub(crate) fields: Option<String>,
}

impl QueryParams for FieldsParams {}

impl ParseParams for FieldsParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        if name == "fields" { once("fields", &mut self.fields, value.to_owned()) } else { Ok(false) }
    }
}

/// The parameter that selects variables of a group.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct VariablesParams {
    /// Names of arrays in a group, such as `t2m,msl`; the default is all of them. For `format=nc` and tables of a group.
    #[param(value_type = Option<String>)]
    pub(crate) vars: Option<Vec<String>>,
    /// `1`: a long table in CSV (default), JSON, Arrow or Parquet, with a row for each element, a column for each dimension with its labels,
    /// and one for each variable. A dimension without a coordinate has its positions. Variables of a group must have the same dimensions. The
    /// parameter needs no value; `false` and `0` switch it off.
    #[param(value_type = Option<String>)]
    pub(crate) coords: Option<bool>,
}

impl VariablesParams {
    /// Whether the response is a table.
    pub(crate) fn are_tabular(&self) -> bool {
        self.coords.unwrap_or_default()
    }
}

impl QueryParams for VariablesParams {}

impl ParseParams for VariablesParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        let names =
            || value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match name {
            "vars" => once("vars", &mut self.vars, names()),
            "coords" => once("coords", &mut self.coords, is_on(value)),
            _ => Ok(false),
        }
    }
}

impl QueryParams for ArrayParams {}

impl ParseParams for ArrayParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "expected_shape" => once("expected_shape", &mut self.expected_shape, parse_shape(value)?),
            "strict" => once("strict", &mut self.strict, is_on(value)),
            "allow_collision" => once("allow_collision", &mut self.allow_collision, is_on(value)),
            _ => Ok(false),
        }
    }
}

impl ArrayParams {
    /// Whether declarations of dependent arrays are read strictly.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict.unwrap_or_default()
    }

    /// Whether chunks are read that another array also claims.
    pub(crate) fn allows_collision(&self) -> bool {
        self.allow_collision.unwrap_or_default()
    }

    /// Rejects the request if the array does not have the shape in `expected_shape`.
    ///
    /// # Errors
    /// 409.
    pub(crate) fn check_shape(&self, shape: &[u64]) -> Result<(), Problem> {
        match &self.expected_shape {
            Some(expected) if expected != shape => Err(Problem::from_class(ErrorClass::Conflict)
                .detail(format!("the array has the shape {shape:?} now; `expected_shape` is {expected:?}"))
                .extension("shape", shape.to_vec())),
            _ => Ok(()),
        }
    }
}

fn parse_shape(value: &str) -> Result<Vec<u64>, ParamError> {
    let lengths = value.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim);
    let lengths: Option<Vec<u64>> =
        lengths.filter(|length| !length.is_empty()).map(|length| length.parse().ok()).collect();
    lengths.ok_or_else(|| {
        ParamError::value("expected_shape", value, "lengths with commas between, such as `10,20`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_a_list_of_lengths_in_any_brackets() {
        assert_eq!(parse_shape("[3, 4]"), Ok(vec![3, 4]));
        assert_eq!(parse_shape("(3,4,)"), Ok(vec![3, 4]));
        assert_eq!(parse_shape(""), Ok(vec![]));
        assert!(parse_shape("1,x").is_err());
    }
}
