//! Parses the parameters that select vertices: boxes, modes, columns and pages.

use super::params::{VectorParams, parse_floats};
use crate::vectors::{
    Bbox, Columns, Interval, PageCursor, QueryMode, ResolutionLevel, VectorError, VertexQuery,
};

/// The requested boxes; all of space if there are none.
pub(crate) fn parse_boxes(level: &ResolutionLevel, params: &VectorParams) -> Result<Vec<Bbox>, VectorError> {
    let interval = match params.get("interval") {
        None => Interval::default(),
        Some(name) => Interval::from_name(name)
            .ok_or_else(|| VectorError::bad_param("interval", "`closed` or `half-open`"))?,
    };
    let dims = level.dims;
    let halves = |numbers: Vec<f64>| {
        let (low, high) = numbers.split_at_checked(numbers.len() / 2).unwrap_or_default();
        if numbers.len() != dims * 2 {
            return Err(VectorError::BboxRank { expected: dims * 2, found: numbers.len() });
        }
        Bbox::new(low.to_vec(), high.to_vec(), dims, interval)
    };
    let mut boxes = params.boxes().iter().cloned().map(halves).collect::<Result<Vec<Bbox>, _>>()?;
    let (bbox, min, max) = (params.get("bbox"), params.get("min"), params.get("max"));
    match (bbox, min, max) {
        (Some(bbox), None, None) => boxes.push(halves(parse_floats("bbox", bbox)?)?),
        (None, None, None) if boxes.is_empty() => {
            boxes.push(Bbox { interval, ..Bbox::unbounded(dims) });
        }
        (None, None, None) => {}
        (None, Some(min), Some(max)) => {
            boxes.push(Bbox::new(parse_floats("min", min)?, parse_floats("max", max)?, dims, interval)?);
        }
        _ => {
            return Err(VectorError::bad_param("bbox", "all numbers of a box, or `min` and `max` instead"));
        }
    }
    Ok(boxes)
}

/// The attribute by which chunks are split, and the requested value.
pub(crate) fn parse_chunk_filter(params: &VectorParams) -> Result<Option<(String, String)>, VectorError> {
    let parse = |text: &str| {
        let (name, value) = text.split_once(':')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let takes = || VectorError::bad_param("where", "an attribute and a value, such as `gene:Sst`");
    params.get("where").map(|text| parse(text).ok_or_else(takes)).transpose()
}

/// The vertex query.
pub(crate) fn parse_query(
    level: &ResolutionLevel,
    params: &VectorParams,
) -> Result<VertexQuery, VectorError> {
    let mode = match params.get("mode") {
        None => QueryMode::default(),
        Some(name) => QueryMode::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| {
            VectorError::bad_param("mode", "`vertices`, `chunks`, `objects`, `objects_exact` or `crop`")
        })?,
    };
    let skips_corrupt = match params.get("on_error") {
        None | Some("fail") => false,
        Some("skip") => true,
        Some(_) => return Err(VectorError::bad_param("on_error", "`fail` or `skip`")),
    };
    let cursor = params.get("cursor").map(|text| {
        let cursor = PageCursor::parse(text).filter(|cursor| cursor.chunk.len() == level.vertices.rank());
        cursor.ok_or_else(|| VectorError::bad_param("cursor", "the `cursor` of a previous response"))
    });
    let limit = params.number("limit")?;
    if limit == Some(0) {
        return Err(VectorError::bad_param("limit", "a number of rows of at least 1"));
    }
    Ok(VertexQuery {
        boxes: parse_boxes(level, params)?,
        mode,
        attributes: params.list("attributes"),
        columns: parse_columns(params)?,
        chunk_filter: parse_chunk_filter(params)?,
        skips_corrupt,
        counts_bytes: params.list("include").iter().any(|name| name == "sizes"),
        limit,
        cursor: cursor.transpose()?,
    })
}

fn parse_columns(params: &VectorParams) -> Result<Columns, VectorError> {
    if params.get("columns").is_none() {
        return Ok(Columns::default());
    }
    let mut columns =
        Columns { position: false, chunk: false, row: false, fragment: false, object_id: false };
    for name in params.list("columns") {
        let column = match name.as_str() {
            "position" => &mut columns.position,
            "chunk" => &mut columns.chunk,
            "row" => &mut columns.row,
            "fragment" => &mut columns.fragment,
            "object_id" => &mut columns.object_id,
            _ => {
                return Err(VectorError::bad_param(
                    "columns",
                    "some of `position,chunk,row,fragment,object_id`",
                ));
            }
        };
        *column = true;
    }
    Ok(columns)
}
