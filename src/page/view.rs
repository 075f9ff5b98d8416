//! [`ArrayView`]: which elements of an array a page shows, and how.
//!
//! A URL may select by position or by name, as for elements. Without a selection the view depends on the metadata alone:
//! rows and columns by their names, else the last two dimensions; the middle of dimensions of depth, and the first element
//! of others. What costs too much is shown in part, from its centre.

use super::cost::Cost;
use super::facts::{Drawn, ShownArray};
use super::state::PageState;
use super::window::window;
use crate::array::Array;
use crate::chunk::{AxisRange, Selection, Subset};
use crate::conventions::DimensionRole;

/// Rows and columns of the part of a plane that is shown in place of all of it.
const WINDOW: u64 = 1024;
/// Elements of the part of a line that is shown in place of all of it.
const LONGEST_WINDOW: u64 = 1 << 20;
/// A longer plane is not a picture but lines.
const LONGEST_RATIO: u64 = 50;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A picture: the dimensions of its rows and columns, and of its colours if it has such.
    Plane { rows: usize, columns: usize, colors: Option<usize> },
    /// The elements along a dimension.
    Line(usize),
    /// One element.
    Value,
    /// More dimensions than a picture has, or no elements.
    Table,
}

/// Which elements are shown.
#[derive(Clone, Debug)]
pub(super) struct ArrayView {
    pub(super) subset: Vec<AxisRange>,
    pub(super) shown: Shown,
    /// Whether only the centre of the plane or line is shown, because all of it costs too much.
    pub(super) is_window: bool,
    /// The plane that the line goes through, if it does.
    pub(super) plane: Option<Box<ArrayView>>,
    /// Why the selection in the URL is not used, if so.
    pub(super) complaint: Option<String>,
}

impl ArrayView {
    /// The view that a URL asks for.
    pub(super) fn of(state: &PageState, facts: &ShownArray, array: Option<&Array>) -> Self {
        let named = state.selections();
        let asked = match state.get("slice") {
            Some(slice) => Some(Selection::parse(slice)),
            None if named.is_empty() => None,
            None => {
                let own = |(name, is_own): (&String, &bool)| is_own.then(|| name.clone());
                let names: Vec<_> = facts.names.iter().zip(&facts.is_named).map(own).collect();
                Some(Selection::by_name(&named, &names))
            }
        };
        let resolved = asked.map(|selection| selection.and_then(|selection| selection.resolve(&facts.shape)));
        let axes = axes_of(state, facts);
        let view = match resolved {
            Some(Ok(Subset(subset))) => {
                let shown = shown_of(&subset, facts);
                let view = Self { subset, shown, is_window: false, plane: None, complaint: None };
                match axes {
                    Some(Ok((rows, columns))) => view.with_axes(rows, columns, facts, array),
                    _ => view,
                }
            }
            Some(Err(error)) => {
                return Self { complaint: Some(error.to_string()), ..Self::default_of(facts, array) };
            }
            None => {
                let shown = match axes {
                    Some(Ok((rows, columns))) => plane_along(default_shown(facts), rows, columns),
                    _ => default_shown(facts),
                };
                Self::default_as(shown, facts, array).at_box(state, facts)
            }
        };
        match axes {
            Some(Err(axes)) => Self {
                complaint: Some(format!("`axes={axes}` names no two dimensions of this array")),
                ..view
            },
            _ => view,
        }
    }

    /// The view with other rows and columns. Dimensions that were those are then at their middle.
    fn with_axes(mut self, rows: usize, columns: usize, facts: &ShownArray, array: Option<&Array>) -> Self {
        if matches!(self.shown, Shown::Plane { rows: a, columns: b, .. } if [a, b] == [columns, rows] || [a, b] == [rows, columns])
        {
            self.shown = plane_along(self.shown, rows, columns);
            return self;
        }
        let colors = match self.shown {
            Shown::Plane { colors, .. } => colors.filter(|&dim| dim != rows && dim != columns),
            _ => None,
        };
        for (dim, range) in self.subset.iter_mut().enumerate() {
            if dim == rows || dim == columns {
                *range = if range.keep { *range } else { AxisRange::full(facts.shape[dim]) };
            } else if range.keep && Some(dim) != colors {
                *range = index(if range.count == 0 { 0 } else { range.at(range.count / 2) });
            }
        }
        self.shown = Shown::Plane { rows, columns, colors };
        self.windowed(facts, array)
    }

    /// The line along a dimension, if the view is a plane or a line. The URL may have its dimension as `along`, and the row
    /// and the column of the plane that it goes through as `at`.
    pub(super) fn lined(self, state: &PageState, facts: &ShownArray, array: Option<&Array>) -> Self {
        if self.subset.iter().any(|range| range.count == 0) {
            return self;
        }
        let (plane, own) = match self.shown {
            Shown::Plane { rows, columns, .. } => (Some((rows, columns)), columns),
            Shown::Line(own) => (None, own),
            Shown::Value | Shown::Table => return self,
        };
        let asked = state.get("along").and_then(|text| dimension(text, facts));
        let along = asked.filter(|&dim| facts.shape[dim] > 0).unwrap_or(own);
        let at = state.get("at").and_then(|at| at.split_once(','));
        let at = at.and_then(|(row, column)| Some((row.trim().parse().ok()?, column.trim().parse().ok()?)));
        let at = |dim: usize| match (plane, at) {
            (Some((rows, _)), Some((row, _))) if dim == rows && row < facts.shape[dim] => Some(row),
            (Some((_, columns)), Some((_, column))) if dim == columns && column < facts.shape[dim] => {
                Some(column)
            }
            _ => None,
        };
        let mut subset = self.subset.clone();
        for (dim, range) in subset.iter_mut().enumerate() {
            if dim == along {
                let is_asked = range.keep && !self.is_window;
                *range = if is_asked { *range } else { AxisRange::full(facts.shape[dim]) };
            } else if range.keep {
                let is_color = matches!(self.shown, Shown::Plane { colors, .. } if colors == Some(dim));
                let middle = || if is_color { 0 } else { range.at(range.count / 2) };
                *range = index(at(dim).unwrap_or_else(middle));
            }
        }
        let line = Self {
            subset,
            shown: Shown::Line(along),
            is_window: false,
            complaint: self.complaint.clone(),
            plane: plane.map(|_| Box::new(self)),
        };
        if state.get("slice").is_some() && line.plane.is_none() { line } else { line.windowed(facts, array) }
    }

    /// The centre of the view, if all of it costs too much.
    fn windowed(mut self, facts: &ShownArray, array: Option<&Array>) -> Self {
        let Some(array) = array else { return self };
        let (dims, most) = match self.shown {
            Shown::Plane { rows, columns, .. } => (vec![rows, columns], WINDOW),
            Shown::Line(line) => (vec![line], LONGEST_WINDOW),
            Shown::Value | Shown::Table => return self,
        };
        if !facts.limits.allow_unasked(Cost::of(&self.subset, facts.item_bytes, array)) {
            self.subset = window(&self.subset, &dims, most, facts, array);
            self.is_window = true;
        }
        self
    }

    /// The view, if it is a window that no URL asks for: that of the part of the plane which the URL names, if it does.
    fn at_box(mut self, state: &PageState, facts: &ShownArray) -> Self {
        let numbers =
            |text: &str| text.split(',').map(|one| one.trim().parse().ok()).collect::<Option<Vec<u64>>>();
        let part = state.get("box").and_then(numbers);
        if let (Some(&[x, y, width, height]), Shown::Plane { rows, columns, .. }) =
            (part.as_deref(), self.shown)
            && self.is_window
            && width.min(height) > 0
            && x < facts.shape[columns]
            && y < facts.shape[rows]
        {
            for (dim, start, count) in [(rows, y, height), (columns, x, width)] {
                let count = count.min(facts.shape[dim] - start);
                self.subset[dim] = AxisRange { start, count, step: 1, keep: true };
            }
            self.is_window = false;
        }
        self
    }

    /// The view of an image that a URL asks for: all its channels at once, unless the URL has an index of their dimension.
    pub(super) fn of_image(
        state: &PageState,
        facts: &ShownArray,
        array: Option<&Array>,
        channels: Option<usize>,
    ) -> Self {
        let mut view = Self::of(state, facts, array);
        let Some(channels) = channels.filter(|&dim| dim < view.subset.len()) else { return view };
        let is_asked = state.get("slice").is_some() || !state.selections().is_empty();
        if is_asked && view.complaint.is_none() && !view.subset[channels].keep {
            return view;
        }
        view.subset[channels] = index(0);
        view.shown = shown_of(&view.subset, facts);
        if let Some(Ok((rows, columns))) = axes_of(state, facts) {
            view = view.with_axes(rows, columns, facts, None);
        }
        view.subset[channels] = AxisRange::full(facts.shape[channels]);
        view
    }

    /// The same part of another level of an image.
    pub(super) fn scaled(&self, from: &[u64], to: &[u64]) -> Vec<AxisRange> {
        let scale = |number: u64, from: u64, to: u64| {
            let scaled = u128::from(number) * u128::from(to) / u128::from(from.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let one = |(range, (&from, &to)): (&AxisRange, (&u64, &u64))| {
            let start = scale(range.start, from, to).min(to.saturating_sub(1));
            let count = if range.keep { scale(range.count, from, to).max(1).min(to - start) } else { 1 };
            AxisRange { start, count, step: 1, keep: range.keep }
        };
        self.subset.iter().zip(from.iter().zip(to)).map(one).collect()
    }

    /// The view that a page shows when its URL selects nothing.
    pub(super) fn default_of(facts: &ShownArray, array: Option<&Array>) -> Self {
        Self::default_as(default_shown(facts), facts, array)
    }

    fn default_as(shown: Shown, facts: &ShownArray, array: Option<&Array>) -> Self {
        let kept = |dim: usize| match shown {
            Shown::Plane { rows, columns, colors } => dim == rows || dim == columns || Some(dim) == colors,
            Shown::Line(line) => dim == line,
            Shown::Value => false,
            Shown::Table => true,
        };
        let range = |(dim, &length): (usize, &u64)| {
            if kept(dim) { AxisRange::full(length) } else { index(default_index(&facts.names[dim], length)) }
        };
        let subset: Vec<AxisRange> = facts.shape.iter().enumerate().map(range).collect();
        Self { subset, shown, is_window: false, plane: None, complaint: None }.windowed(facts, array)
    }

    /// The selection as text.
    pub(super) fn slice(&self, shape: &[u64]) -> String {
        let part = |(range, &length): (&AxisRange, &u64)| range_text(range, length);
        self.subset.iter().zip(shape).map(part).collect::<Vec<_>>().join(",")
    }

    /// The selection as text, with another index along one dimension.
    pub(super) fn slice_at(&self, shape: &[u64], dim: usize, place: u64) -> String {
        let mut view = self.clone();
        view.subset[dim] = index(place);
        view.slice(shape)
    }
}

/// One element of a dimension.
fn index(start: u64) -> AxisRange {
    AxisRange { start, count: 1, step: 1, keep: false }
}

fn range_text(range: &AxisRange, length: u64) -> String {
    if !range.keep {
        return range.start.to_string();
    }
    if range.step == 1 && range.start == 0 && range.count == length {
        return ":".to_owned();
    }
    let stop = if range.count == 0 {
        range.start.to_string()
    } else if range.step > 0 {
        (range.at(range.count - 1) + 1).to_string()
    } else {
        let last = range.at(range.count.saturating_sub(1));
        last.checked_sub(1).map(|stop| stop.to_string()).unwrap_or_default()
    };
    let step = if range.step == 1 { String::new() } else { format!(":{}", range.step) };
    format!("{}:{stop}{step}", range.start)
}

/// What a selection shows: by the dimensions that it keeps.
fn shown_of(subset: &[AxisRange], facts: &ShownArray) -> Shown {
    let kept: Vec<usize> = (0..subset.len()).filter(|&dim| subset[dim].keep).collect();
    if facts.drawn == Drawn::Text && !kept.is_empty() {
        return Shown::Table;
    }
    match *kept.as_slice() {
        [] => Shown::Value,
        [line] => Shown::Line(line),
        [a, b] => {
            let (rows, columns) = plane_of(&facts.names, &[a, b]).unwrap_or((a, b));
            Shown::Plane { rows, columns, colors: None }
        }
        [a, b, c] => {
            let is_color =
                |dim: usize| (3..=4).contains(&subset[dim].count) && is_color_name(&facts.names[dim]);
            match [c, a, b].into_iter().find(|&dim| is_color(dim)) {
                Some(colors) => {
                    let rest: Vec<usize> = kept.iter().copied().filter(|&dim| dim != colors).collect();
                    Shown::Plane { rows: rest[0], columns: rest[1], colors: Some(colors) }
                }
                None => Shown::Table,
            }
        }
        _ => Shown::Table,
    }
}

/// The dimensions that the URL names for rows and columns, if it does, or what it has in place of names of two dimensions.
fn axes_of<'a>(state: &'a PageState, facts: &ShownArray) -> Option<Result<(usize, usize), &'a str>> {
    let axes = state.get("axes").filter(|_| facts.drawn != Drawn::Text)?;
    let pair = axes.split_once(',').and_then(|(rows, columns)| {
        Some((dimension(rows.trim(), facts)?, dimension(columns.trim(), facts)?))
    });
    Some(pair.filter(|(rows, columns)| rows != columns).ok_or(axes))
}

/// The dimension of a name or of a number.
fn dimension(text: &str, facts: &ShownArray) -> Option<usize> {
    let by_name = facts.names.iter().position(|name| name == text);
    by_name.or_else(|| text.parse().ok().filter(|&dim: &usize| dim < facts.names.len()))
}

/// A plane with these rows and columns; its colours stay, unless they are one of these.
fn plane_along(shown: Shown, rows: usize, columns: usize) -> Shown {
    let colors = match shown {
        Shown::Plane { colors, .. } => colors.filter(|&dim| dim != rows && dim != columns),
        _ => None,
    };
    Shown::Plane { rows, columns, colors }
}

fn default_shown(facts: &ShownArray) -> Shown {
    let rank = facts.shape.len();
    if rank == 0 {
        return Shown::Value;
    }
    if facts.drawn == Drawn::Text || facts.elements() == 0 {
        return if rank == 1 { Shown::Line(0) } else { last_two(facts) };
    }
    if rank == 1 {
        return Shown::Line(0);
    }
    let last = rank - 1;
    let is_rgb = rank >= 3
        && facts.type_name == "uint8"
        && (3..=4).contains(&facts.shape[last])
        && (!facts.is_named[last] || is_color_name(&facts.names[last]));
    if is_rgb {
        return Shown::Plane { rows: last - 2, columns: last - 1, colors: Some(last) };
    }
    last_two(facts)
}

fn last_two(facts: &ShownArray) -> Shown {
    let rank = facts.shape.len();
    let dims: Vec<usize> = (0..rank).collect();
    let (rows, columns) = plane_of(&facts.names, &dims).unwrap_or((rank - 2, rank - 1));
    let (short, long) = {
        let (a, b) = (facts.shape[rows], facts.shape[columns]);
        (a.min(b), a.max(b))
    };
    // A few very long lines are no picture.
    if short > 0 && short < 16 && long / short > LONGEST_RATIO && long > 4096 {
        return Shown::Line(if facts.shape[rows] > facts.shape[columns] { rows } else { columns });
    }
    Shown::Plane { rows, columns, colors: None }
}

/// The dimensions of rows and columns by their names.
fn plane_of(names: &[String], dims: &[usize]) -> Option<(usize, usize)> {
    let find = |role| dims.iter().rev().copied().find(|&dim| DimensionRole::of(&names[dim]) == Some(role));
    Some((find(DimensionRole::Rows)?, find(DimensionRole::Columns)?))
}

fn is_color_name(name: &str) -> bool {
    DimensionRole::of(name) == Some(DimensionRole::Channels)
}

/// The index of a dimension that is neither rows nor columns.
fn default_index(name: &str, length: u64) -> u64 {
    if DimensionRole::of(name) == Some(DimensionRole::Heights) { length / 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::DataType;
    use crate::page::cost::PageLimits;
    use crate::reduce::CfValues;

    fn facts(type_name: &str, shape: &[u64], names: &[&str]) -> ShownArray {
        ShownArray {
            shape: shape.to_vec(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            is_named: vec![true; names.len()],
            data_type: DataType::UInt8,
            type_name: type_name.to_owned(),
            values: CfValues::stored(&DataType::UInt8),
            drawn: Drawn::Numbers,
            item_bytes: 1,
            zarr_format: 3,
            chunk_shape: None,
            decoded_shape: None,
            grid_shape: Vec::new(),
            is_sharded: false,
            fill: String::new(),
            limits: PageLimits { bytes: u64::MAX, chunks: u64::MAX },
            unreadable: None,
        }
    }

    fn slice(facts: &ShownArray, query: &[(&str, &str)]) -> (String, Shown) {
        let pairs = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let view = ArrayView::of(&PageState::new(pairs), facts, None);
        (view.slice(&facts.shape), view.shown)
    }

    #[test]
    fn the_default_view_follows_from_names_and_lengths() {
        let plane = |rows, columns| Shown::Plane { rows, columns, colors: None };
        for (type_name, shape, names, expected, shown) in [
            ("f4", &[4, 5, 6][..], &["time", "lat", "lon"][..], "0,:,:", plane(1, 2)),
            ("f4", &[6, 5, 4], &["x", "y", "t"], ":,:,0", plane(1, 0)),
            ("u2", &[2, 9, 8, 8], &["c", "z", "y", "x"], "0,4,:,:", plane(2, 3)),
            ("f4", &[7], &["t"], ":", Shown::Line(0)),
            ("f4", &[], &[], "", Shown::Value),
            (
                "uint8",
                &[9, 8, 3],
                &["y", "x", "c"],
                ":,:,:",
                Shown::Plane { rows: 0, columns: 1, colors: Some(2) },
            ),
            ("f4", &[1_000_000, 3], &["n", "k"], ":,0", Shown::Line(0)),
        ] {
            assert_eq!(
                slice(&facts(type_name, shape, names), &[]),
                (expected.to_owned(), shown),
                "{names:?}"
            );
        }
    }

    #[test]
    fn the_channels_of_an_image_are_shown_at_once_unless_the_url_has_one() {
        let facts = facts("uint8", &[3, 8, 9, 10], &["c", "z", "y", "x"]);
        let plane = Shown::Plane { rows: 2, columns: 3, colors: None };
        for (query, slice) in [
            (&[][..], ":,4,:,:"),
            (&[("isel.z", "2")], ":,2,:,:"),
            (&[("slice", ":,1,2:4,:")], ":,1,2:4,:"),
            (&[("slice", "1,1,:,:")], "1,1,:,:"),
            (&[("slice", "nothing")], ":,4,:,:"),
        ] {
            let pairs = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let view = ArrayView::of_image(&PageState::new(pairs), &facts, None, Some(0));
            assert_eq!((view.slice(&facts.shape).as_str(), view.shown), (slice, plane), "{query:?}");
        }
        let pairs = vec![("slice".to_owned(), ":,5,4:8,:".to_owned())];
        let view = ArrayView::of_image(&PageState::new(pairs), &facts, None, Some(0));
        let half = [3, 4, 5, 5];
        let view = ArrayView { subset: view.scaled(&facts.shape, &half), ..view };
        assert_eq!(view.slice(&half), ":,2,2:4,:");
    }

    #[test]
    fn a_line_goes_through_the_element_that_the_url_names_along_any_dimension() {
        let facts = facts("f4", &[4, 5, 6], &["time", "lat", "lon"]);
        for (query, slice, along) in [
            (&[][..], "0,2,:", 2),
            (&[("at", "1,4")], "0,1,:", 2),
            (&[("at", "1,4"), ("along", "lat")], "0,:,4", 1),
            (&[("at", "1,4"), ("along", "time")], ":,1,4", 0),
            (&[("slice", "3,0:2,1:5")], "3,1,1:5", 2),
            (&[("slice", "3,1,1:5"), ("along", "time")], ":,1,3", 0),
            (&[("at", "9,9"), ("along", "nothing")], "0,2,:", 2),
        ] {
            let pairs = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let state = PageState::new(pairs);
            let view = ArrayView::of(&state, &facts, None).lined(&state, &facts, None);
            assert_eq!(
                (view.slice(&facts.shape).as_str(), view.shown),
                (slice, Shown::Line(along)),
                "{query:?}"
            );
        }
    }

    #[test]
    fn a_url_selects_by_position_or_by_name() {
        let facts = facts("f4", &[4, 5, 6], &["time", "lat", "lon"]);
        let plane = Shown::Plane { rows: 1, columns: 2, colors: None };
        assert_eq!(slice(&facts, &[("slice", "3,...")]), ("3,:,:".to_owned(), plane));
        assert_eq!(slice(&facts, &[("isel.time", "-1")]), ("3,:,:".to_owned(), plane));
        assert_eq!(slice(&facts, &[("slice", ":,1,2")]), (":,1,2".to_owned(), Shown::Line(0)));
        assert_eq!(slice(&facts, &[("slice", "0,1:4:2,::-1")]).0, "0,1:4:2,5::-1");
        assert_eq!(slice(&facts, &[("slice", "0,3:3:-2,2:2")]).0, "0,3:3:-2,2:2");
        let swapped = Shown::Plane { rows: 2, columns: 1, colors: None };
        assert_eq!(slice(&facts, &[("axes", "lon,lat")]).1, swapped);
        // Other axes than those of the selection: what was rows or columns is at its middle.
        let cut = Shown::Plane { rows: 0, columns: 2, colors: None };
        assert_eq!(slice(&facts, &[("axes", "time,lon")]), (":,0,:".to_owned(), cut));
        assert_eq!(slice(&facts, &[("axes", "0,2"), ("slice", "3,:,:")]), (":,2,:".to_owned(), cut));
        // What cannot be used is reported, and the default is shown.
        let pairs = vec![("slice".to_owned(), "9".to_owned())];
        let view = ArrayView::of(&PageState::new(pairs), &facts, None);
        assert!(view.complaint.is_some() && view.slice(&facts.shape) == "0,:,:");
    }
}
