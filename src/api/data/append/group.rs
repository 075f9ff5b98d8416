//! An append to several arrays of a group: a body in parts, each named by the array's path below the group.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use multer::Multipart;

use super::key::with_digest;
use super::query::AppendQuery;
use super::target::AppendTarget;
use crate::api::data::opening::open;
use crate::api::data::put::{BodyFormat, unparsed};
use crate::api::held::Held;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::write::{Append, AppendKey, GroupAppend, GroupPart};

/// The most arrays of one append.
const MAX_PARTS: usize = 256;
/// Arrays that are opened at a time.
const OPENED_TOGETHER: usize = 8;

/// The boundary between the parts of a body, if it has parts.
pub(super) fn boundary(head: &Parts) -> Option<String> {
    let content_type = head.headers.get(axum::http::header::CONTENT_TYPE)?.to_str().ok()?;
    multer::parse_boundary(content_type).ok()
}

/// A part of a body.
struct BodyPart {
    name: String,
    format: BodyFormat,
    bytes: Bytes,
}

/// The append of a body in parts.
///
/// # Errors
/// The problem of what is wrong with it.
pub(super) async fn parse(
    state: &AppState,
    (target, head, query): (&NodeTarget, &Parts, &AppendQuery),
    (boundary, body): (String, Bytes),
    key: Option<String>,
    permit: &Held,
) -> Result<GroupAppend, Problem> {
    let group = open(head, target, &target.path, &query.array).await?;
    if group.array().is_ok() {
        return Err(invalid(
            "a body in parts is for the arrays of a group: send the elements of one array alone",
        ));
    }
    let mut named: Vec<(NodePath, BodyPart)> = Vec::new();
    // The parts are copied out of the body.
    let mut bytes = (body.len() as u64).saturating_mul(2);
    let of_query = query.clone();
    // The body is in memory, so that nothing is waited for: it is taken apart where it holds up no other request.
    let taken_apart = move || {
        let broken_off = || invalid("the body in parts ends early");
        let parts = parts(boundary, body, &of_query).now_or_never().ok_or_else(broken_off)??;
        let key = key.map(|name| key_of(name, &of_query, &parts));
        Ok::<_, Problem>((parts, key))
    };
    let (parts, key) = state.engine.cpu.run(taken_apart).await??;
    for part in parts {
        let path = NodePath::parse(&format!("{}{}", target.path.prefix().as_str(), part.name));
        let path =
            path.map_err(|_error| refused(&part.name, "is not the path of an array below the group"))?;
        if named.iter().any(|(known, _)| *known == path) {
            return Err(refused(&part.name, "is there twice"));
        }
        named.push((path, part));
    }
    // Boxed, because the compiler does not find out that they can be sent.
    let open_part = |(path, part): (NodePath, BodyPart)| {
        let opened = async move {
            let node = open(head, target, &path, &query.array).await?;
            Ok::<_, Problem>((path, AppendTarget::new(node, query)?, part))
        };
        opened.boxed()
    };
    let opened: Vec<_> = stream::iter(named).map(open_part).buffered(OPENED_TOGETHER).try_collect().await?;
    for (_, array, part) in &opened {
        bytes = bytes.saturating_add(array.parsed_bytes(part.format, part.bytes.len() as u64));
    }
    permit.charge(bytes)?;
    let (query, mut parts) = (query.clone(), Vec::with_capacity(opened.len()));
    for (path, array, part) in opened {
        let (node, query, stored) = (Arc::clone(&array.node), query.clone(), array.clone());
        let parsed = state.engine.cpu.run(move || array.parse(part.format, &query, &part.bytes));
        let append: Append = parsed.await?.map_err(|error| {
            let problem = unparsed(error);
            let detail = format!("`{}`: {}", part.name, problem.message());
            problem.detail(detail)
        })?;
        bytes = bytes.saturating_add(stored.working_bytes(state, append.length()));
        parts.push(GroupPart { path, opened: node, append });
    }
    permit.charge_at_most(bytes)?;
    if parts
        .windows(2)
        .any(|pair| matches!(pair, [one, other] if one.append.length() != other.append.length()))
    {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "shape-mismatch")
            .detail("the parts have different lengths along the dimension: all arrays grow by the same"));
    }
    Ok(GroupAppend { group: target.path.clone(), parts, at: query.at(), key })
}

/// The key of an append, with the digest of its parts. What is between them is another text whenever a client makes the body again.
fn key_of(name: String, query: &AppendQuery, parts: &[BodyPart]) -> AppendKey {
    let of_parts: Vec<_> = parts.iter().map(|part| format!("{:?} {}", part.format, part.name)).collect();
    let meaning = query.meaning(None, 0);
    let parts = of_parts.iter().zip(parts).map(|(meaning, part)| (meaning.as_str(), &*part.bytes));
    with_digest(name, std::iter::once((meaning.as_str(), &[][..])).chain(parts))
}

/// The parts of a body.
async fn parts(boundary: String, body: Bytes, query: &AppendQuery) -> Result<Vec<BodyPart>, Problem> {
    let body = futures::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut multipart = Multipart::new(body, boundary);
    let mut parts = Vec::new();
    let broken = |error: multer::Error| invalid(&format!("the body in parts cannot be read: {error}"));
    while let Some(field) = multipart.next_field().await.map_err(broken)? {
        if parts.len() == MAX_PARTS {
            return Err(invalid(&format!("a body has at most {MAX_PARTS} parts")));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let format = BodyFormat::of(field.headers(), &query.body).map_err(|problem| {
            let detail = format!("`{name}`: {}", problem.message());
            problem.detail(detail)
        })?;
        let bytes = field.bytes().await.map_err(broken)?;
        parts.push(BodyPart { name, format, bytes });
    }
    Ok(parts)
}

fn invalid(text: &str) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(text.to_owned())
}

fn refused(name: &str, text: &str) -> Problem {
    let shown: String = name.chars().take(80).collect();
    invalid(&format!("the part `{shown}` {text}"))
}
