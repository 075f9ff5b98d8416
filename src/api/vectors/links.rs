//! The links of a level.

use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::filter;
use super::json::endpoints_json;
use super::params::{BoxParams, LevelPath, VectorParams};
use crate::api::query_params::{KnownParams, QueryParams};
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::{
    Coord, Link, LinkAttribute, LinkFamily, Profile, ResolutionLevel, TouchedChunks, VectorError,
    check_links_supported, read_doc_links,
};

/// The links of a level.
pub(crate) const LINKS: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/links", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The default number of records on a page.
const PAGE: u64 = 10_000;
/// The largest number of records on a page.
const MAX_PAGE: u64 = 100_000;

/// The query parameters of links.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct LinksParams {
    /// Number of the other level minus that of this one; 0 (the default) for links within it
    delta: Option<i64>,
    /// Records on a page: 10,000 by default, and no more than 100,000 whatever is asked for
    limit: Option<u64>,
    /// The `cursor` of the previous page
    cursor: Option<String>,
}

impl QueryParams for LinksParams {}

/// The links of a level with an endpoint in a touched chunk.
///
/// Each record is a list of endpoints, each a chunk and a row. With `delta`, links to the level with that difference in
/// number: the first endpoint is in this level, the others are in that one.
#[utoipa::path(
    method(get, head),
    path = LINKS.template,
    tag = "vectors",
    operation_id = "get_vectors_links",
    params(
        LevelPath,
        BoxParams,
        LinksParams,
    ),
    responses(
        (status = 200, description = "The links", content_type = "application/json"),
        (status = 409, description = "A chunk is corrupt (`corrupt_chunk`)"),
        (status = 501, description = "Links are not supported in this profile (`unsupported_in_profile`)"),
    )
)]
pub(crate) async fn list_links(level: &ResolutionLevel, params: &VectorParams) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<BoxParams>().and::<LinksParams>())?;
    check_links_supported(level)?;
    let delta = match params.get("delta") {
        None => 0,
        Some(text) => {
            let number = text.strip_prefix('+').unwrap_or(text).trim();
            number
                .parse()
                .map_err(|_no_number| VectorError::bad_param("delta", "an integer, such as `0` or `-1`"))?
        }
    };
    let touched = TouchedChunks::find(
        level,
        &filter::parse_boxes(level, params)?,
        filter::parse_chunk_filter(params)?.as_ref(),
    )
    .await?;
    let mut page = LinkPage {
        links: Vec::new(),
        values: Vec::new(),
        skip: params.number("cursor")?.unwrap_or_default(),
        seen: 0,
        most: usize::try_from(params.number("limit")?.unwrap_or(PAGE).clamp(1, MAX_PAGE))
            .unwrap_or(usize::MAX),
    };
    let is_touched = |chunk: &Coord| touched.chunks.binary_search(chunk).is_ok();
    let mut document = Map::new();
    let mut names = Vec::new();
    if level.store.root.profile == Profile::Doc {
        if delta == 0 {
            let occupied = level.non_empty_chunks().await?.cells;
            let links = read_doc_links(level, &occupied).await?;
            page.add(
                links.into_iter().filter(|link| link.endpoints.iter().any(|(chunk, _)| is_touched(chunk))),
                &[],
            );
        }
    } else if let Some(family) = LinkFamily::open(level, delta).await? {
        document.insert("link_width".to_owned(), json!(family.width));
        document.insert("directed".to_owned(), json!(family.is_directed));
        document
            .insert("num_links".to_owned(), family.attributes.get("num_links").cloned().unwrap_or_default());
        let attributes = LinkAttribute::open_all(level, delta).await?;
        names = attributes.iter().map(|attribute| attribute.name.clone()).collect();
        page.values = vec![Vec::new(); names.len()];
        read_family(level, &family, &attributes, is_touched, &mut page).await?;
    }
    let next = (page.seen > page.skip.saturating_add(page.links.len() as u64))
        .then(|| page.skip.saturating_add(page.links.len() as u64).to_string());
    let attributes: Map<String, Value> =
        names.into_iter().zip(page.values.into_iter().map(Value::Array)).collect();
    document.insert("level".to_owned(), json!(level.name.index));
    document.insert("delta".to_owned(), json!(delta));
    document.insert("links".to_owned(), page.links.iter().map(endpoints_json).collect());
    document.insert("attributes".to_owned(), Value::Object(attributes));
    document.insert("cursor".to_owned(), json!(next));
    Ok(Value::Object(document))
}

/// The records of one page.
struct LinkPage {
    links: Vec<Link>,
    /// The values of each attribute.
    values: Vec<Vec<Value>>,
    skip: u64,
    seen: u64,
    most: usize,
}

impl LinkPage {
    fn is_full(&self) -> bool {
        self.links.len() >= self.most && self.seen > self.skip.saturating_add(self.most as u64)
    }

    fn add(&mut self, links: impl Iterator<Item = Link>, values: &[Vec<Value>]) {
        for (place, link) in links.enumerate() {
            self.seen += 1;
            if self.seen <= self.skip || self.links.len() >= self.most {
                continue;
            }
            self.links.push(link);
            for (column, values) in self.values.iter_mut().zip(values) {
                column.push(values.get(place).cloned().unwrap_or_default());
            }
        }
    }
}

async fn read_family(
    level: &ResolutionLevel,
    family: &LinkFamily,
    attributes: &[LinkAttribute],
    is_touched: impl Fn(&Coord) -> bool,
    page: &mut LinkPage,
) -> Result<(), VectorError> {
    for link_array in &family.link_arrays {
        for cell in link_array.cells.non_empty_cells(&level.store.context).await?.cells {
            // Of a link to another level, only the first endpoint is in this one.
            let own = if family.delta == 0 { link_array.endpoint_chunks(&cell) } else { vec![cell.clone()] };
            if !own.iter().any(&is_touched) {
                continue;
            }
            let links = link_array.read_links(level, &cell).await?;
            let mut values = Vec::with_capacity(attributes.len());
            for attribute in attributes {
                values.push(attribute.values(level, &link_array.name, &cell, links.len()).await?);
            }
            page.add(links.into_iter(), &values);
            if page.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
