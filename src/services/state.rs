//! [`AppState`]: the parts that requests are answered with.
//!
//! A handler takes the part that it needs, as `State<Arc<Mounts>>`, or the fields of the whole. Clones are cheap: they
//! share one `Arc`. The state is built once and checked while it is built.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use super::access_control::AccessControl;
use super::engine::ArrayEngine;
use super::lifecycle::Lifecycle;
use super::mount::Mount;
use super::mounts::Mounts;
use super::pinned::Pins;
use super::readiness::Readiness;
use super::response_caches::ResponseCaches;
use super::scans::Scans;
use super::traffic::Traffic;
use super::uploads::Uploads;
use crate::auth::Access;
use crate::http::options::{HttpOptions, HttpOptionsError};
use crate::metrics::Counts;
use crate::views::pyramid::PyramidBuilder;
use crate::views::rechunk::RechunkBudget;

/// The state that all handlers share.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Services>);

/// The parts of the state. Those before `mounts` stay when the mounts change.
#[derive(Debug)]
pub struct Services {
    /// The options of HTTP.
    pub options: Arc<HttpOptions>,
    /// What reads and decodes arrays.
    pub engine: Arc<ArrayEngine>,
    /// The limits on requests in flight and on their rates.
    pub traffic: Arc<Traffic>,
    /// Draining, memory pressure and memory bounds of the process.
    pub lifecycle: Arc<Lifecycle>,
    /// The metrics.
    pub(crate) counts: Arc<Counts>,
    /// The unfinished uploads in parts.
    pub(crate) uploads: Arc<Uploads>,
    /// The memory of all rechunkers.
    rechunk_budget: RechunkBudget,
    /// What builds chunks of levels in the background.
    pyramid_builder: PyramidBuilder,
    /// The mounts.
    pub mounts: Arc<Mounts>,
    /// Whether the backends of the mounts respond.
    pub readiness: Arc<Readiness>,
    /// Who may do what.
    pub access: Arc<AccessControl>,
    /// The responses that are sent again.
    pub(crate) responses: Arc<ResponseCaches>,
    /// The mounts with versions, at the snapshots that requests see.
    pub(crate) pins: Pins,
    /// Requests that step through arrays.
    pub(crate) scans: Arc<Scans>,
}

impl AppState {
    /// The state of a server with these mounts. Every caller may do what they offer.
    ///
    /// # Errors
    /// [`HttpOptionsError`] if options or mounts cannot be served.
    pub fn new(
        mounts: impl IntoIterator<Item = Mount>,
        engine: ArrayEngine,
        options: HttpOptions,
    ) -> Result<Self, HttpOptionsError> {
        options.check()?;
        let counts = Counts::new();
        let engine = ArrayEngine { reader: engine.reader.with_observer(counts.reads()), ..engine };
        let rechunk_budget = RechunkBudget::new(engine.cpu.threads());
        let pyramid_builder = PyramidBuilder::default();
        let mounts = Arc::new(Mounts::new(mounts, &engine, (&rechunk_budget, &pyramid_builder))?);
        counts.know_mounts(mounts.iter().map(|mount| mount.name.as_str()));
        let options = Arc::new(options);
        Ok(Self(Arc::new(Services {
            traffic: Arc::new(Traffic::new(&options)),
            lifecycle: Arc::default(),
            counts: Arc::new(counts),
            uploads: Arc::default(),
            rechunk_budget,
            pyramid_builder,
            readiness: Arc::new(Readiness::new(Arc::clone(&mounts), options.readiness_wait())),
            access: Arc::new(AccessControl::open(Arc::clone(&mounts), Arc::clone(&options))),
            responses: Arc::new(ResponseCaches::new(engine.answers_bytes)),
            pins: Pins::default(),
            scans: Arc::default(),
            mounts,
            engine: Arc::new(engine),
            options,
        })))
    }

    /// The state of the same server with other mounts and other access rules; without rules, with those in effect. Requests in
    /// flight end with the mounts that they began with. Fetched keys of issuers are kept.
    ///
    /// # Errors
    /// [`HttpOptionsError`] if the mounts cannot be served; nothing has changed then.
    pub fn with_mounts(
        &self,
        mounts: impl IntoIterator<Item = Mount>,
        rules: Option<Access>,
    ) -> Result<Self, HttpOptionsError> {
        let Services { options, engine, traffic, lifecycle, counts, uploads, access, .. } = &**self;
        let (rechunk_budget, pyramid_builder) = (&self.rechunk_budget, &self.pyramid_builder);
        let mounts = Arc::new(Mounts::new(mounts, engine, (rechunk_budget, pyramid_builder))?);
        counts.know_mounts(mounts.iter().map(|mount| mount.name.as_str()));
        Ok(Self(Arc::new(Services {
            options: Arc::clone(options),
            engine: Arc::clone(engine),
            traffic: Arc::clone(traffic),
            lifecycle: Arc::clone(lifecycle),
            counts: Arc::clone(counts),
            uploads: Arc::clone(uploads),
            rechunk_budget: rechunk_budget.clone(),
            pyramid_builder: pyramid_builder.clone(),
            readiness: Arc::new(Readiness::new(Arc::clone(&mounts), options.readiness_wait())),
            access: Arc::new(access.with_mounts(Arc::clone(&mounts), rules)),
            // Responses of other mounts must not be found under the same URLs.
            responses: Arc::new(ResponseCaches::new(engine.answers_bytes)),
            pins: Pins::default(),
            scans: Arc::clone(&self.scans),
            mounts,
        })))
    }
}

impl Deref for AppState {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}

/// Lets handlers take parts of the state.
macro_rules! parts {
    ($($field:ident: $part:ty),+ $(,)?) => {
        $(impl FromRef<AppState> for Arc<$part> {
            fn from_ref(state: &AppState) -> Self {
                Self::clone(&state.$field)
            }
        })+
    };
}

parts! {
    options: HttpOptions,
    engine: ArrayEngine,
    traffic: Traffic,
    lifecycle: Lifecycle,
    counts: Counts,
    mounts: Mounts,
    readiness: Readiness,
    access: AccessControl,
    responses: ResponseCaches,
}
