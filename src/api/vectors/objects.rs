//! The objects of a level: their manifests, attributes, vertices and edges.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, IntoResponses};

use super::filter;
use super::json::endpoints_json;
use super::memory::{charge, settle};
use super::params::{BoxParams, LevelParam, LevelPath, VectorParams};
use super::problem::problem_of;
use crate::admission::Permit;
use crate::api::query_params::{KnownParams, QueryParams};
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::render::{JsonVertices, RenderError};
use crate::vectors::payload::{FragmentNumbers, FragmentSpan, Manifest};
use crate::vectors::{
    Batch, Bbox, Columns, Coord, EdgeTraversal, Link, LinkFamily, ObjectIndex, ObjectValue, Profile,
    QueryMode, ResolutionLevel, Schema, VectorError, VectorObject, VertexAttribute, VertexQuery,
    check_links_supported, object_rows,
};

/// The objects of a level.
pub(crate) const OBJECTS: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/objects", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// One object.
pub(crate) const OBJECT: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The vertices of an object.
pub(crate) const OBJECT_VERTICES: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}/vertices", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The edges of an object.
pub(crate) const OBJECT_EDGES: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}/edges", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The default number of objects on a page.
const PAGE: u64 = 1000;
/// The largest number of objects on a page.
const MAX_PAGE: u64 = 10_000;
/// The largest number of fragments listed for an object, and of its rows that are joined by edges.
const MAX_FRAGMENTS: u64 = 1 << 20;
/// The largest number of fragments of an object that are read one by one.
const MAX_JOINED: u64 = 1 << 14;

/// The query parameters of objects.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct ObjectsParams {
    /// Ids of objects, such as `3,7`. Ids without an object are listed in `missing`
    ids: Option<String>,
    /// A group of objects
    group: Option<u64>,
    /// With a box: `objects` (the default: a part in a touched chunk) or `objects_exact` (a vertex in the box)
    mode: Option<String>,
    /// Objects on a page: 1000 by default, and no more than 10,000 whatever is asked for
    limit: Option<u64>,
    /// The `cursor` of the previous page
    cursor: Option<String>,
}

impl QueryParams for ObjectsParams {}

/// The query parameters of the vertices of an object.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct ObjectVerticesParams {
    /// Attributes, such as `fa,color`
    attributes: Option<String>,
}

impl QueryParams for ObjectVerticesParams {}

/// The path of an object.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct ObjectPath {
    /// Name of a mount
    mount: String,
    /// Path of the store
    path: String,
    /// Number of the level. Without `levels/N`, the finest level
    level: u64,
    /// Id of the object
    id: i64,
}

/// The response where an object does not exist.
#[derive(IntoResponses)]
#[response(status = 404, description = "No such object (`object_not_found`)")]
pub(crate) struct NoSuchObject;

/// The objects of a level: all, those with the given ids, those in a group, or those with a part in a box.
#[utoipa::path(
    method(get, head),
    path = OBJECTS.template,
    tag = "vectors",
    operation_id = "get_vectors_objects",
    params(
        LevelPath,
        BoxParams,
        ObjectsParams,
    ),
    responses(
        (status = 200, description = "The objects", content_type = "application/json"),
        (status = 404, description = "None of the ids exists (`object_not_found`), or no such group (`group_not_found`)"),
        (status = 500, description = "A manifest is corrupt (`corrupt_manifest`)"),
    )
)]
pub(crate) async fn list_objects(
    level: &ResolutionLevel,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<BoxParams>().and::<ObjectsParams>())?;
    let index = ObjectIndex::open(level).await?;
    let page =
        usize::try_from(params.number("limit")?.unwrap_or(PAGE).clamp(1, MAX_PAGE)).unwrap_or(usize::MAX);
    let skip = usize::try_from(params.number("cursor")?.unwrap_or_default()).unwrap_or(usize::MAX);
    let mut document = Map::new();
    document.insert("level".to_owned(), json!(level.name.index));
    let has_box = ["bbox", "min", "max", "where"].iter().any(|name| params.get(name).is_some());
    let mut missing = Vec::new();
    let rows = match (&index, params.get("ids"), params.number("group")?) {
        (None, None, None) => Vec::new(),
        (None, Some(_), _) => return Err(VectorError::ObjectNotFound { ids: parse_ids(params)? }),
        (None, None, Some(group)) => return Err(VectorError::GroupNotFound { group, groups: 0 }),
        (Some(index), Some(_), None) => {
            let requested = parse_ids(params)?;
            let (found, without) = index.find_rows(&requested).await?;
            if found.is_empty() {
                return Err(VectorError::ObjectNotFound { ids: without });
            }
            missing = without;
            found
        }
        (Some(index), None, Some(group)) => {
            let members = index.group_members(group).await?;
            document.insert("group".to_owned(), json!(group));
            document.insert(
                "group_attributes".to_owned(),
                values_json(index.group_attribute_values(group).await?),
            );
            let (found, without) = index.find_rows(&members).await?;
            missing = without;
            found
        }
        (Some(_), Some(_), Some(_)) => {
            return Err(VectorError::bad_param("ids", "no value together with `group`"));
        }
        (Some(index), None, None) => {
            index.ids().await?.into_iter().zip(0..).map(|(id, row)| (row, id)).collect()
        }
    };
    let rows = if has_box { retain_in_boxes(level, params, rows).await? } else { rows };
    let shown: Vec<(u64, i64)> = rows.iter().skip(skip).take(page).copied().collect();
    let next =
        (rows.len() > skip.saturating_add(shown.len())).then(|| skip.saturating_add(shown.len()).to_string());
    let mut objects = Vec::new();
    if let Some(index) = &index {
        for object in index.read_objects(&shown).await? {
            objects.push(object_document(index, &object).await?);
        }
        document.insert("num_objects".to_owned(), json!(index.row_count()));
        document.insert("groups".to_owned(), json!(index.group_count().await?));
    }
    document.insert("count".to_owned(), json!(rows.len()));
    document.insert("objects".to_owned(), Value::Array(objects));
    document.insert("missing".to_owned(), json!(missing));
    document.insert("cursor".to_owned(), json!(next));
    Ok(Value::Object(document))
}

fn parse_ids(params: &VectorParams) -> Result<Vec<i64>, VectorError> {
    let parse = |text: &String| {
        text.parse().map_err(|_no_id| VectorError::bad_param("ids", "comma-separated integers"))
    };
    params.list("ids").iter().map(parse).collect()
}

/// The objects among `rows` that are in the requested boxes.
async fn retain_in_boxes(
    level: &ResolutionLevel,
    params: &VectorParams,
    rows: Vec<(u64, i64)>,
) -> Result<Vec<(u64, i64)>, VectorError> {
    let query = VertexQuery {
        mode: match params.get("mode") {
            None | Some("objects") => QueryMode::Objects,
            Some("objects_exact") => QueryMode::ObjectsExact,
            Some(_) => return Err(VectorError::bad_param("mode", "`objects` or `objects_exact`")),
        },
        boxes: filter::parse_boxes(level, params)?,
        chunk_filter: filter::parse_chunk_filter(params)?,
        ..VertexQuery::new(Bbox::unbounded(level.dims))
    };
    let found = query.run(level).await?.objects.unwrap_or_default();
    let found: BTreeSet<i64> = found.into_iter().map(|object| object.id).collect();
    Ok(rows.into_iter().filter(|(_, id)| found.contains(id)).collect())
}

fn values_json(values: Vec<ObjectValue>) -> Value {
    values.into_iter().map(|value| (value.name, value.value)).collect::<Map<String, Value>>().into()
}

async fn object_document(index: &ObjectIndex, object: &VectorObject) -> Result<Value, VectorError> {
    let fragments = object.manifest.len() as u64;
    if fragments > MAX_FRAGMENTS {
        return Err(VectorError::TooMany { what: "fragments", estimate: fragments, limit: MAX_FRAGMENTS });
    }
    let span = |span: &FragmentSpan| json!({ "chunk": span.chunk, "fragments": span.fragments.iter().collect::<Vec<u32>>() });
    Ok(json!({
        "id": object.id,
        "present": !object.manifest.is_empty(),
        "manifest": object.manifest.spans.iter().map(span).collect::<Value>(),
        "attributes": values_json(index.attribute_values(object.row).await?),
    }))
}

/// The object with this id.
async fn find_object(level: &ResolutionLevel, id: &str) -> Result<(ObjectIndex, VectorObject), VectorError> {
    let number: i64 = id.parse().map_err(|_no_id| VectorError::bad_param("id", "an integer"))?;
    let not_found = || VectorError::ObjectNotFound { ids: vec![number] };
    let index = ObjectIndex::open(level).await?.ok_or_else(not_found)?;
    let (found, _) = index.find_rows(&[number]).await?;
    let object = index.read_objects(&found).await?.pop().ok_or_else(not_found)?;
    Ok((index, object))
}

/// One object: its fragments and its attributes.
#[utoipa::path(
    method(get, head),
    path = OBJECT.template,
    tag = "vectors",
    operation_id = "get_vectors_object",
    params(ObjectPath, LevelParam),
    responses(
        (status = 200, description = "The object", content_type = "application/json"),
        NoSuchObject,
        (status = 500, description = "Its manifest is corrupt (`corrupt_manifest`)"),
    )
)]
pub(crate) async fn get_object(
    level: &ResolutionLevel,
    id: &str,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<LevelParam>())?;
    let (index, object) = find_object(level, id).await?;
    object_document(&index, &object).await
}

/// The vertices of one object, in the order of the object.
#[utoipa::path(
    method(get, head),
    path = OBJECT_VERTICES.template,
    tag = "vectors",
    operation_id = "get_vectors_object_vertices",
    params(
        ObjectPath,
        LevelParam,
        ObjectVerticesParams,
    ),
    responses(
        (status = 200, description = "The vertices", content_type = "application/json"),
        NoSuchObject,
        (status = 409, description = "A chunk is corrupt (`corrupt_chunk`)"),
    )
)]
pub(crate) async fn get_object_vertices(
    level: &ResolutionLevel,
    id: &str,
    params: &VectorParams,
    most_bytes: u64,
    permit: &mut Permit,
) -> Result<Bytes, Problem> {
    let ObjectRows { id, schema, rows, batches } =
        read_object_rows(level, id, params, most_bytes).await.map_err(problem_of)?;
    let (cpu, read) = (&level.store.context.cpu, rows.saturating_mul(schema.row_bytes()));
    charge(permit, read)?;
    let invalid =
        |error: RenderError| problem_of(VectorError::invalid_metadata("array_attrs", error.to_string()));
    let mut writer = JsonVertices::new(schema);
    for batch in batches {
        let bytes = batch.positions.len() as u64;
        let written = cpu.run_or_inline(bytes, move || writer.write(&batch).map(|()| writer));
        writer = written.await?.map_err(invalid)?;
        // The rows, what is written of them, and the whole that is made of it.
        charge(permit, read.saturating_add(writer.bytes().saturating_mul(2)))?;
    }
    let rest = Map::from_iter([("id".to_owned(), json!(id)), ("rows".to_owned(), json!(rows))]);
    settle(permit, writer.finish(rest))
}

/// The rows of an object in memory.
struct ObjectRows {
    id: i64,
    schema: Arc<Schema>,
    rows: u64,
    batches: Vec<Batch>,
}

/// Reads the rows of an object, if their text has about `most_bytes` at most.
async fn read_object_rows(
    level: &ResolutionLevel,
    id: &str,
    params: &VectorParams,
    most_bytes: u64,
) -> Result<ObjectRows, VectorError> {
    params.check(&KnownParams::default().and::<LevelParam>().and::<ObjectVerticesParams>())?;
    let (_, object) = find_object(level, id).await?;
    let mut attributes = Vec::new();
    for name in params.list("attributes") {
        attributes.push(Arc::new(VertexAttribute::open(level, &name).await?));
    }
    let schema = Arc::new(Schema {
        columns: Columns::default(),
        kind: level.coordinate_type.clone(),
        axes: level.store.root.axes(),
        chunk_rank: level.vertices.rank(),
        attributes: attributes.iter().map(|attribute| attribute.column()).collect(),
        notes: Vec::new(),
    });
    let limit = most_bytes / schema.row_bytes().saturating_mul(4).max(1);
    let batches = object_rows(level, &object, &attributes, limit).await?;
    let rows: u64 = batches.iter().map(|batch| batch.rows.len() as u64).sum();
    if rows > limit {
        return Err(VectorError::TooMany { what: "rows", estimate: rows, limit });
    }
    Ok(ObjectRows { id: object.id, schema, rows, batches })
}

/// The edges of one object: pairs of endpoints, each a chunk and a row.
///
/// Where the store joins vertices by their order, these are the pairs of consecutive rows in a fragment; and, in any
/// case, all link records whose endpoints belong to the object.
#[utoipa::path(
    method(get, head),
    path = OBJECT_EDGES.template,
    tag = "vectors",
    operation_id = "get_vectors_object_edges",
    params(ObjectPath, LevelParam),
    responses(
        (status = 200, description = "The edges", content_type = "application/json"),
        NoSuchObject,
        (status = 501, description = "Links are not supported in this profile (`unsupported_in_profile`)"),
    )
)]
pub(crate) async fn get_object_edges(
    level: &ResolutionLevel,
    id: &str,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<LevelParam>())?;
    check_links_supported(level)?;
    let (_, object) = find_object(level, id).await?;
    if level.store.root.profile == Profile::Doc {
        let edges = EdgeTraversal::from_object(level, &object).await?.edges;
        return Ok(json!({ "id": object.id, "edges": edges.iter().map(endpoints_json).collect::<Value>() }));
    }
    let is_explicit = level
        .store
        .root
        .store_metadata()
        .get("links_convention")
        .is_some_and(|convention| convention == "explicit");
    let batches = object_rows(level, &object, &[], MAX_FRAGMENTS).await?;
    let mut rows: BTreeSet<(Coord, i64)> = BTreeSet::new();
    let mut edges = Vec::new();
    for batch in &batches {
        rows.extend(batch.rows.iter().map(|&row| (batch.chunk.clone(), i64::from(row))));
    }
    let chunks: BTreeSet<Coord> = batches.iter().map(|batch| batch.chunk.clone()).collect();
    if !is_explicit {
        edges.extend(sequential_edges(level, &object).await?);
    }
    if let Some(family) = LinkFamily::open(level, 0).await? {
        for link_array in &family.link_arrays {
            for chunk in &chunks {
                edges.extend(link_array.read_links(level, chunk).await?);
            }
        }
    }
    edges.retain(|link| link.endpoints.iter().all(|endpoint| rows.contains(endpoint)));
    Ok(json!({ "id": object.id, "edges": edges.iter().map(endpoints_json).collect::<Value>() }))
}

/// Edges between consecutive rows of each fragment of an object.
async fn sequential_edges(level: &ResolutionLevel, object: &VectorObject) -> Result<Vec<Link>, VectorError> {
    let mut edges = Vec::new();
    let fragments = object.manifest.len() as u64;
    if fragments > MAX_JOINED {
        return Err(VectorError::TooMany { what: "fragments", estimate: fragments, limit: MAX_JOINED });
    }
    for (chunk, fragment) in object.manifest.fragments() {
        let span = FragmentSpan { chunk: chunk.to_vec(), fragments: FragmentNumbers::List(vec![fragment]) };
        let one = VectorObject { manifest: Manifest { spans: vec![span] }, ..object.clone() };
        for batch in object_rows(level, &one, &[], MAX_FRAGMENTS).await? {
            let endpoint = |row: u32| (batch.chunk.clone(), i64::from(row));
            let pairs = batch.rows.windows(2).filter_map(|pair| match pair {
                &[one, other] => Some(Link { endpoints: vec![endpoint(one), endpoint(other)] }),
                _ => None,
            });
            edges.extend(pairs);
        }
    }
    Ok(edges)
}
