//! [`SummaryAxis`]: a dimension of an array or an image.

/// A dimension of an array or an image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryAxis {
    /// Its name, unless it has none.
    pub name: Option<String>,
    /// What it is: `space`, `time`, `channel`, or another word of its author.
    pub kind: Option<String>,
    /// The unit of its coordinates.
    pub unit: Option<String>,
    /// Elements along it; of the first level of an image.
    pub size: Option<u64>,
    /// The distance of neighbouring elements, in `unit`.
    pub scale: Option<f64>,
    /// Its first and last coordinate, in `unit`.
    pub ends: Option<(f64, f64)>,
}
