//! [`NodeSummaryKind`]: what a node is.

/// What a node is, according to its conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSummaryKind {
    /// An OME image: the group of its levels.
    OmeImage,
    /// An OME label image, or the group of the label images of an image.
    OmeLabels,
    /// An OME plate.
    OmePlate,
    /// A well of an OME plate.
    OmeWell,
    /// A group of OME images.
    OmeCollection,
    /// An OME scene.
    OmeScene,
    /// A georeferenced array, or a group of such.
    Geo,
    /// A group of variables and coordinates.
    CfDataset,
    /// A store in Zarr Vector Format.
    Zvf,
    /// Any other node.
    Plain,
}

impl NodeSummaryKind {
    /// Its word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OmeImage => "ome-image",
            Self::OmeLabels => "ome-labels",
            Self::OmePlate => "ome-plate",
            Self::OmeWell => "ome-well",
            Self::OmeCollection => "ome-collection",
            Self::OmeScene => "ome-scene",
            Self::Geo => "geo",
            Self::CfDataset => "cf-dataset",
            Self::Zvf => "zvf",
            Self::Plain => "plain",
        }
    }
}
