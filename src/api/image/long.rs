//! [`LongPicture`]: a picture with many pixels, which is drawn and written while it is sent.
//!
//! Its pixels and its file are never in memory as a whole. What is drawn from one plane, from its first row to its last and with a
//! range that is known before, is drawn as its elements are read; of any other picture all planes are in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use futures::stream::{self, BoxStream, StreamExt};

use super::reduced::side;
use super::scene::Scene;
use crate::api::data::error::ElementsError;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::chunk::Elements;
use crate::cpu::ComputePool;
use crate::render::RenderError;
use crate::render::raster::{Decoding, PictureFile, Plane, Style, rows_at_once};
use crate::services::state::AppState;

/// A picture that is drawn and written while it is sent.
pub(super) struct LongPicture {
    cpu: ComputePool,
    style: Arc<Style>,
    source: Source,
    file: PictureFile,
    drawing: Duration,
}

/// The planes of elements that are drawn.
type Planes = Vec<(Plane, Decoding)>;

/// Where rows of elements come from.
enum Source {
    Bands(Box<Bands>),
    Planes {
        planes: Planes,
        at_once: usize,
        /// The first row that was not drawn.
        next: usize,
    },
}

/// The rows of a plane that is being read.
struct Bands {
    parts: BoxStream<'static, Result<Elements, ArrayError>>,
    /// What was read and not yet drawn.
    read: Bytes,
    width: usize,
    element_bytes: usize,
    decoding: Decoding,
}

impl LongPicture {
    /// The picture of a plane that is yet to be read.
    ///
    /// # Errors
    /// [`ArrayError::Geometry`], [`RenderError::ElementCount`].
    pub(super) fn of_bands(
        state: &AppState,
        scene: &Scene,
        snapshot: Snapshot,
        ranges: &[(f64, f64)],
        context: &Arc<ReadContext>,
    ) -> Result<Self, ElementsError> {
        let bytes = snapshot.plan().response_bytes();
        let parts = state.engine.reader.elements(snapshot, 0..bytes, context);
        let decoding = scene.decoding.clone();
        let element_bytes = decoding.data_type().element_bytes();
        let width = side(scene.size().0)?;
        let bands = Bands { parts, read: Bytes::new(), width, element_bytes, decoding };
        Self::new(state, scene, ranges, Source::Bands(Box::new(bands)))
    }

    /// The picture of planes in memory.
    ///
    /// # Errors
    /// [`ArrayError::Geometry`], [`RenderError::ElementCount`].
    pub(super) fn of_planes(
        state: &AppState,
        scene: &Scene,
        planes: Planes,
        ranges: &[(f64, f64)],
    ) -> Result<Self, ElementsError> {
        let at_once = rows_at_once(side(scene.size().0)?);
        Self::new(state, scene, ranges, Source::Planes { planes, at_once, next: 0 })
    }

    fn new(
        state: &AppState,
        scene: &Scene,
        ranges: &[(f64, f64)],
        source: Source,
    ) -> Result<Self, ElementsError> {
        let length = |length: u64| u32::try_from(length).map_err(|_too_long| RenderError::ElementCount);
        let (width, height) = scene.size();
        let file = PictureFile::new(length(width)?, length(height)?, scene.is_complete());
        let style = Arc::new(scene.style(ranges).ok_or(RenderError::ElementCount)?);
        Ok(Self { cpu: state.engine.cpu.clone(), style, source, file, drawing: Duration::ZERO })
    }

    /// Whether all elements were read and drawn.
    pub(super) fn is_drawn(&self) -> bool {
        self.file.is_drawn()
    }

    /// How long drawing and writing has taken until now.
    pub(super) fn drawing_time(&self) -> Duration {
        self.drawing
    }

    /// The next piece of the file; `None` at its end.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ElementsError> {
        while !self.file.is_ended() {
            let rows = if self.file.needs_rows() {
                let rows = self.source.rows().await?;
                Some(rows.ok_or(RenderError::ElementCount)?)
            } else {
                None
            };
            let begun = Instant::now();
            let (width, height) = (self.file.width(), self.file.height());
            let mut file = std::mem::replace(&mut self.file, PictureFile::new(width, height, true));
            let style = Arc::clone(&self.style);
            let work = move || {
                if let Some(rows) = rows {
                    file.add(style.draw(&rows).ok_or(RenderError::ElementCount)?)?;
                }
                let piece = file.write()?;
                Ok::<_, RenderError>((file, piece))
            };
            let (file, piece) = self.cpu.spawn_background(work).await.map_err(ArrayError::from)??;
            self.file = file;
            self.drawing += begun.elapsed();
            if self.is_drawn() {
                self.source = Source::Planes { planes: Vec::new(), at_once: 0, next: 0 };
            }
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// The pieces of the file that are left. Dropping the stream ends the work.
    pub(super) fn into_stream(self) -> BoxStream<'static, Result<Bytes, ElementsError>> {
        stream::try_unfold(self, |mut picture| async move {
            Ok(picture.next().await?.map(|piece| (piece, picture)))
        })
        .boxed()
    }
}

impl Source {
    /// The next rows to draw; `None` after the last.
    async fn rows(&mut self) -> Result<Option<Planes>, ElementsError> {
        match self {
            Self::Bands(bands) => bands.rows().await,
            Self::Planes { planes, at_once, next } => {
                let first = *next;
                *next += *at_once;
                let rows = |(plane, decoding): &(Plane, Decoding)| {
                    let rows = plane.rows(first, *at_once);
                    (rows.height() > 0).then(|| (rows, decoding.clone()))
                };
                let rows: Option<Planes> = planes.iter().map(rows).collect();
                Ok(rows.filter(|planes| !planes.is_empty()))
            }
        }
    }
}

impl Bands {
    async fn rows(&mut self) -> Result<Option<Planes>, ElementsError> {
        let row =
            self.width.checked_mul(self.element_bytes).filter(|row| *row > 0).ok_or(ArrayError::Geometry)?;
        let wanted = row.checked_mul(rows_at_once(self.width)).ok_or(ArrayError::Geometry)?;
        if self.read.len() < wanted {
            // Copied, so that a band is not held for its last elements.
            let mut rows = BytesMut::with_capacity(wanted);
            rows.extend_from_slice(&std::mem::take(&mut self.read));
            while rows.len() < wanted
                && let Some(part) = self.parts.try_next().await?
            {
                self.read = part.into_items();
                let missing = self.read.split_to((wanted - rows.len()).min(self.read.len()));
                if rows.is_empty() && missing.len() == wanted {
                    return self.planes(missing, row);
                }
                rows.extend_from_slice(&missing);
            }
            return self.planes(rows.freeze(), row);
        }
        let rows = self.read.split_to(wanted);
        self.planes(rows, row)
    }

    fn planes(&self, rows: Bytes, row: usize) -> Result<Option<Planes>, ElementsError> {
        if rows.is_empty() {
            return Ok(None);
        }
        let height = rows.len() / row;
        let plane =
            Plane::new(rows, self.element_bytes, self.width, height).ok_or(RenderError::ElementCount)?;
        Ok(Some(vec![(plane, self.decoding.clone())]))
    }
}
