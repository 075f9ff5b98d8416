//! [`Scene`]: everything that a picture is made from, known before any element is read.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::channels::channels;
use super::layout::{Layout, no_picture};
use super::query::{DEFAULT_SIDE, ImageQuery};
use super::range::{RangeContext, RangeSource};
use super::subject::Subject;
use super::words::{Coloring, PictureSize, RangeWord};
use crate::array::{Array, ArrayError, Plan, ReadLimits};
use crate::chunk::{AxisRange, Subset};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::metadata::{DataType, Endianness};
use crate::reduce::{ALGORITHM, CfValues, Method, Missing, Reducer, Reduction, halved};
use crate::render::Conversion;
use crate::render::raster::{
    Categories, Channel, Color, Colormap, Decoding, MappedStyle, Mapping, Outside, Part, Scale, Style,
};
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

/// How the pixels of a picture are made from numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawing {
    Mapped(Box<Colormap>),
    Gray16,
    Categories(Categories),
    Composite,
}

/// One plane of a picture.
#[derive(Debug)]
pub(crate) struct ScenePlane {
    pub(crate) plan: Plan,
    /// The elements that are drawn, before any halving.
    pub(crate) subset: Subset,
    pub(crate) range: RangeSource,
    /// The channel, if the array has channels.
    pub(crate) channel: Option<u64>,
    pub(crate) color: Color,
}

/// A scene that cannot be planned.
pub(crate) enum Refused {
    /// For a reason that the problem states.
    Problem(Problem),
    /// Because it costs more than a limit; the selection of the first plane.
    Cost(Box<(ArrayError, Arc<Array>, Subset)>),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A picture before any element is read.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) subject: Subject,
    pub(crate) layout: Layout,
    pub(crate) planes: Vec<ScenePlane>,
    pub(crate) halvings: u32,
    /// The halvings. They are part of the plans, unless fields are selected first.
    pub(crate) reduction: Arc<Reduction>,
    pub(crate) decoding: Decoding,
    /// Selects the fields of a struct.
    pub(crate) conversion: Option<Arc<Conversion>>,
    pub(crate) drawing: Drawing,
    pub(crate) scale: Scale,
    /// Whether rows are drawn from the bottom.
    pub(crate) flips_rows: bool,
    /// Versions of other documents and chunks that the picture depends on.
    pub(crate) versions: Vec<Option<Version>>,
    /// Whether nodes beside the array were requested, which decide how it is drawn.
    pub(crate) depends_on_neighbours: bool,
    pub(crate) below: Outside,
    pub(crate) above: Outside,
    pub(crate) missing: Color,
    /// The side of the square that the picture is put on.
    pub(crate) square: Option<u32>,
}

/// How large a picture is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PictureFrame {
    /// Within these sides, and within a number of pixels.
    Within(u64, u64, u64),
    /// Halved this many times, in the upper left corner of a square of this side.
    Square(u32, u32),
}

impl PictureFrame {
    /// The frame that a request wants.
    pub(crate) fn of(query: &ImageQuery, max_pixels: u64) -> Self {
        match query.plane.size {
            None => Self::Within(DEFAULT_SIDE, DEFAULT_SIDE, max_pixels),
            Some(PictureSize::Within(width, height)) => Self::Within(width, height, max_pixels),
            Some(PictureSize::Max) => Self::Within(u64::MAX, u64::MAX, max_pixels),
        }
    }

    /// The frame of each of several pictures side by side, a pixel apart.
    pub(crate) fn part(self, columns: u64, rows: u64) -> Self {
        let (columns, rows) = (columns.max(1), rows.max(1));
        match self {
            Self::Within(width, height, pixels) => Self::Within(
                (width.saturating_add(1) / columns).saturating_sub(1).max(1),
                (height.saturating_add(1) / rows).saturating_sub(1).max(1),
                (pixels / columns.saturating_mul(rows)).max(1),
            ),
            square @ Self::Square(..) => square,
        }
    }

    /// How often a plane is halved.
    fn halvings(self, width: u64, height: u64) -> u32 {
        match self {
            Self::Square(halvings, _) => halvings,
            Self::Within(most_width, most_height, most_pixels) => {
                let fits = |halvings: u32| {
                    let (width, height) = (halved(width, halvings), halved(height, halvings));
                    let is_small = width.checked_mul(height).is_some_and(|pixels| pixels <= most_pixels);
                    width <= most_width && height <= most_height && is_small
                };
                (0..64).find(|&halvings| fits(halvings)).unwrap_or(64)
            }
        }
    }

    /// Whether a level with these sides has as many pixels as the picture wants.
    pub(crate) fn is_filled_by(self, width: u64, height: u64) -> bool {
        match self {
            Self::Within(most_width, most_height, _) => width >= most_width || height >= most_height,
            Self::Square(..) => true,
        }
    }
}

impl Scene {
    /// Plans the picture of a layout.
    ///
    /// # Errors
    /// 400, 413 and 422.
    pub(crate) fn new(
        subject: Subject,
        layout: Layout,
        query: &ImageQuery,
        frame: PictureFrame,
        limits: &ReadLimits,
    ) -> Result<Self, Refused> {
        let metadata = subject.array.metadata();
        let part = query.color.part.unwrap_or_default();
        let attributes = subject.attributes();
        let (conversion, decoding) = decoding(&subject, query, part)?;
        let (rows, columns) = layout.sides();
        let halvings = frame.halvings(columns.count, rows.count);
        let labels = labels(&subject, &attributes, query);
        let channels = channels(&subject, &layout, query, labels.is_some())?;
        let is_label = labels.is_some() || metadata.data_type == DataType::Bool;
        let method = query.color.method().unwrap_or_else(|| Method::auto(decoding.data_type(), is_label));
        let reducer = match &conversion {
            Some(_) => Reducer::new(method, decoding.data_type(), Missing::default()),
            // Without a halving only the method is checked.
            None if halvings == 0 => Reducer::new(method, &metadata.data_type, Missing::default()),
            None => Reducer::of_array(method, metadata),
        };
        let reducer = reducer.map_err(Problem::from)?;
        let sides = [layout.rows, layout.columns];
        let reduction = Arc::new(Reduction::halvings(reducer, metadata.shape.len(), &sides, halvings));
        let drawing = drawing(query, channels.is_some(), labels, subject.ome.is_some())?;
        let scale = query.color.scale.unwrap_or_default();
        // The metadata of an image has ranges of its own, or asks for those of the data.
        let has_omero = subject.ome.as_ref().is_some_and(|ome| !ome.channels.is_empty());
        let is_photograph = layout.is_photograph && channels.is_some() && !has_omero;
        let word = query.color.range.unwrap_or(if is_photograph { RangeWord::Type } else { RangeWord::Auto });
        let words = channels.unwrap_or_else(|| vec![(None, Color::opaque(0xff_ffff), None)]);
        let mut planes = Vec::with_capacity(words.len());
        for (channel, color, given) in words {
            let window = channel
                .or_else(|| layout.channels.map(|_| 0))
                .or_else(|| subject.only_channel(&layout))
                .and_then(|at| subject.ome.as_ref()?.channels.get(usize::try_from(at).ok()?)?.window);
            let context = RangeContext {
                data_type: &metadata.data_type,
                decoding: &decoding,
                attributes: &attributes,
                part,
                window,
            };
            let word = given.map_or(word, |(low, high)| RangeWord::Given(low, high));
            let range = match &drawing {
                Drawing::Categories(_) => RangeSource::Known(0.0, 1.0, "categories"),
                _ => context.source(word, scale),
            };
            check_scale(&range, scale)?;
            let subset = layout.plane(channel);
            let plan = match &conversion {
                Some(_) => Plan::new(&subject.array, subset.clone(), limits),
                None => Plan::reduced(&subject.array, subset.clone(), Arc::clone(&reduction), limits),
            };
            let plan = plan.map_err(|error| {
                Refused::Cost(Box::new((error, Arc::clone(&subject.array), subset.clone())))
            })?;
            planes.push(ScenePlane { plan, subset, range, channel, color });
        }
        let scene = Self {
            subject,
            layout,
            planes,
            halvings,
            reduction,
            decoding,
            conversion,
            drawing,
            scale,
            flips_rows: false,
            versions: Vec::new(),
            depends_on_neighbours: false,
            below: query.color.below.unwrap_or_default(),
            above: query.color.above.unwrap_or_default(),
            missing: query.color.missing.unwrap_or(Color::TRANSPARENT),
            square: match frame {
                PictureFrame::Square(_, side) => Some(side),
                PictureFrame::Within(..) => None,
            },
        };
        match scene.check_total(limits) {
            Ok(()) => Ok(scene),
            Err(error) => {
                let subset = scene.layout.plane(None);
                Err(Refused::Cost(Box::new((error, Arc::clone(&scene.subject.array), subset))))
            }
        }
    }

    /// Rejects a picture whose planes together cost more than one read may.
    fn check_total(&self, limits: &ReadLimits) -> Result<(), ArrayError> {
        let total = |cost: fn(&Plan) -> u64| {
            self.planes.iter().fold(0_u128, |sum, plane| sum.saturating_add(cost(&plane.plan).into()))
        };
        for (what, requested, limit) in [
            ("decoded bytes", total(Plan::decoded_bytes), limits.max_decoded_size),
            ("decoded chunks", total(Plan::chunks), limits.max_chunks),
        ] {
            if requested > limit.into() {
                return Err(ArrayError::TooLarge { what, requested, limit });
            }
        }
        Ok(())
    }

    /// The drawn elements in the grammar of `slice`.
    pub(crate) fn slice(&self) -> String {
        let all = self.layout.channels.filter(|_| self.planes.len() > 1);
        let length = all.and_then(|axis| self.subject.array.metadata().shape.get(axis).copied());
        match (length, self.planes.first()) {
            (None, Some(plane)) => plane.subset.to_string(),
            _ => self.layout.slice(length),
        }
    }

    /// Columns and rows of the picture.
    pub(crate) fn size(&self) -> (u64, u64) {
        let (rows, columns) = self.layout.sides();
        (halved(columns.count, self.halvings), halved(rows.count, self.halvings))
    }

    /// What the pixels depend on besides the stored bytes, as text for the entity tag.
    pub(crate) fn words(&self) -> String {
        let ranges: Vec<_> =
            self.planes.iter().map(|plane| (&plane.range, plane.channel, plane.color)).collect();
        let subsets: Vec<_> = self.planes.iter().map(|plane| &plane.subset).collect();
        let fields = self.conversion.as_ref().map(|conversion| format!("{conversion:?}"));
        // A digest takes less time than 256 colours in words.
        let drawing = match &self.drawing {
            Drawing::Mapped(colormap) => {
                let colors: Vec<u8> = colormap.colors().iter().flat_map(|color| color.0).collect();
                digest_tag(&Sha256::digest(&colors))
            }
            other => format!("{other:?}"),
        };
        let (rows, columns) = (self.layout.rows, self.layout.columns);
        let plane = (ranges, subsets, fields, rows, columns, &self.decoding);
        let reduction = (ALGORITHM, self.reduction.reducer().method(), self.halvings);
        let colors = (drawing, self.scale, self.below, self.above, self.missing);
        format!("{:?}", (plane, reduction, colors, self.flips_rows, self.square))
    }

    /// The style of the picture with these ranges of its planes; `None` if they do not fit the scale.
    pub(crate) fn style(&self, ranges: &[(f64, f64)]) -> Option<Style> {
        let mapping = |range: &(f64, f64)| Mapping::new(range.0, range.1, self.scale);
        Some(match &self.drawing {
            Drawing::Categories(categories) => Style::Categories(categories.clone(), self.missing),
            Drawing::Gray16 => Style::Gray16(mapping(ranges.first()?)?),
            Drawing::Mapped(colormap) => Style::Mapped(Box::new(MappedStyle {
                mapping: mapping(ranges.first()?)?,
                colormap: (**colormap).clone(),
                below: self.below,
                above: self.above,
                missing: self.missing,
            })),
            Drawing::Composite => {
                let channel = |(plane, range): (&ScenePlane, &(f64, f64))| {
                    Some(Channel { mapping: mapping(range)?, color: plane.color })
                };
                let channels: Option<Vec<Channel>> = self.planes.iter().zip(ranges).map(channel).collect();
                Style::Composite(channels?, self.missing)
            }
        })
    }
}

/// The part of the plane in `box`.
///
/// # Errors
/// 400 if it is outside the plane, or if the selection cuts the plane too.
pub(crate) fn boxed(layout: Layout, query: &ImageQuery, shape: &[u64]) -> Result<Layout, Problem> {
    let Some([x, y, width, height]) = query.plane.part_of_plane else { return Ok(layout) };
    let bad = |detail: String| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    let (rows, columns) = layout.sides();
    let (row_count, column_count) = (shape[layout.rows], shape[layout.columns]);
    if rows != AxisRange::full(row_count) || columns != AxisRange::full(column_count) {
        return Err(bad(
            "`box` is a part of all rows and columns; the selection cannot cut them as well".to_owned()
        ));
    }
    if x >= column_count || y >= row_count {
        return Err(bad(format!(
            "`box` begins outside the plane, which has {column_count} columns and {row_count} rows"
        )));
    }
    let range = |start: u64, count: u64, length: u64| AxisRange {
        start,
        count: count.min(length - start),
        step: 1,
        keep: true,
    };
    Ok(layout.with_sides(range(y, height, row_count), range(x, width, column_count)))
}

/// The elements of the requested fields, and the numbers that they stand for.
fn decoding(
    subject: &Subject,
    query: &ImageQuery,
    part: Part,
) -> Result<(Option<Arc<Conversion>>, Decoding), Problem> {
    let metadata = subject.array.metadata();
    let conversion = match &query.color.fields {
        None => None,
        Some(fields) => {
            let conversion = Conversion::fields(&metadata.data_type, fields, Endianness::Little)?;
            if !conversion.inner_shape().is_empty() {
                return Err(no_picture(format!("the field `{fields}` has several numbers in each element")));
            }
            Some(Arc::new(conversion))
        }
    };
    let data_type = conversion.as_ref().map_or(&metadata.data_type, |conversion| conversion.data_type());
    let decoding = if query.color.is_stored() || conversion.is_some() {
        Decoding::stored(data_type, part)
    } else {
        Decoding::cf(data_type, part, CfValues::of_metadata(metadata)?)
    };
    let decoding = decoding.ok_or_else(|| {
        let name = data_type.name();
        let advice = match data_type {
            DataType::Struct(_) => "; choose one of its fields with `fields`",
            _ => "; `/v1/data` has its elements",
        };
        no_picture(format!("elements of type {name} are not numbers{advice}"))
    })?;
    Ok((conversion, decoding))
}

/// The colours of labels, if the elements are labels and the request does not say otherwise.
fn labels(subject: &Subject, attributes: &Map<String, Value>, query: &ImageQuery) -> Option<Categories> {
    let of_image = subject.ome.as_ref().filter(|ome| ome.is_labels).map(|ome| {
        let color = |&(label, color): &(i64, [u8; 4])| (i128::from(label), Color(color));
        ome.label_colors.iter().map(color).collect()
    });
    let of_flags = || {
        let values = attributes.get("flag_values")?.as_array()?;
        let colors = attributes.get("flag_colors").and_then(Value::as_str).unwrap_or_default();
        let mut colors = colors.split_whitespace().map(Color::parse);
        let pair = |value: &Value| {
            let color = colors.next();
            Some((flag_value(value)?, color??))
        };
        Some(values.iter().take(1 << 16).filter_map(pair).collect::<Vec<_>>())
    };
    let known = of_image.or_else(of_flags);
    match (query.color.coloring(), known) {
        (Some(Coloring::Categories), known) => Some(Categories::new(known.unwrap_or_default())),
        (None, Some(known)) if query.color.channels().is_none() => Some(Categories::new(known)),
        _ => None,
    }
}

/// A value of `flag_values`: an integer, which may be written as a float without a fraction.
#[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^63 are cast")]
pub(super) fn flag_value(value: &Value) -> Option<i128> {
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 2_f64.powi(63));
    let integer = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    integer.or_else(|| whole().map(|number| number as i128))
}

fn drawing(
    query: &ImageQuery,
    is_composite: bool,
    labels: Option<Categories>,
    is_image: bool,
) -> Result<Drawing, Problem> {
    let named = |name: &str| Colormap::named(name).map(|map| Drawing::Mapped(Box::new(map)));
    let drawing = match (query.color.coloring(), labels) {
        _ if is_composite => Some(Drawing::Composite),
        (_, Some(labels)) => Some(Drawing::Categories(labels)),
        (Some(Coloring::None), _) if query.color.has_16_bits() => Some(Drawing::Gray16),
        (Some(Coloring::None), _) => named("gray"),
        (Some(Coloring::Named(_) | Coloring::Stops(_)), _) => {
            query.color.colormap().map(|map| Drawing::Mapped(Box::new(map)))
        }
        (Some(Coloring::Categories) | None, None) => named(if is_image { "gray" } else { "viridis" }),
    };
    drawing.ok_or_else(|| Problem::from_class(ErrorClass::Internal))
}

/// Rejects a requested range that has no logarithm.
fn check_scale(range: &RangeSource, scale: Scale) -> Result<(), Problem> {
    match range {
        RangeSource::Known(low, _, _) if scale == Scale::Log && *low <= 0.0 => {
            Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("`scale=log` needs a range that begins above 0, such as `range=0.01,100`"))
        }
        _ => Ok(()),
    }
}
