//! [`SourceFinder`]: finds the arrays of a response: an array or the arrays of a group, and the arrays that belong to them.
//!
//! To a variable belong the coordinates of its dimensions, which have their names and one dimension (CF 1.12, section 1.3),
//! beside it or in a group above; and what its attributes `coordinates`, `grid_mapping` and `bounds` name, beside it. These
//! are selected along the dimensions that they share with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::group_arrays::{GroupArray, GroupArrays};
use super::named_variables::named_variables;
use super::sources::{ExportSource, ExportSources, OmittedVariable, names_of};
use crate::api::nodes::missing;
use crate::api::selection::SelectionParams;
use crate::array::{Array, ArrayError, CachedLookup, NodeOpener, OpenNode};
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::chunk::{AxisRange, Subset};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{HierarchyError, Node};
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, NodeKind};
use crate::services::extract::NodeTarget;

/// Most arrays of a response.
const MAX_VARIABLES: usize = 1000;
/// Arrays that are opened concurrently.
const CONCURRENCY: usize = 16;
/// Most groups above a variable in which the coordinates of its dimensions are sought.
const MAX_GROUPS_ABOVE: usize = 8;
/// Most names of dimensions, and of variables in attributes, of which it is found out what they are.
const MAX_LOOKUPS: usize = 4000;

/// Finds arrays for a request.
pub(crate) struct SourceFinder<'a> {
    pub(crate) target: &'a NodeTarget,
    pub(crate) rights: &'a Rights,
    /// When the request began.
    pub(crate) began: Instant,
}

/// What is selected of each dimension: of its name, and its length.
type SelectedRanges = HashMap<(String, u64), AxisRange>;

impl SourceFinder<'_> {
    /// An array over a selection, with what belongs to it.
    ///
    /// # Errors
    /// Failures of the store; documents or codecs of what belongs to it that cannot be used.
    pub(crate) async fn of_array(
        &self,
        node: Arc<OpenNode>,
        subset: Subset,
    ) -> Result<ExportSources, Problem> {
        let array = Arc::clone(node.array()?);
        let path = array.path().clone();
        let name =
            if path.name().is_empty() { self.target.mount.name.clone() } else { path.name().to_owned() };
        let chosen = vec![source(name, node, array, subset)];
        let beside = path.parent();
        let mut found = ExportSources::default();
        self.add_all(&mut found, chosen, beside.as_ref()).await?;
        Ok(found)
    }

    /// The arrays of a group over a selection: those of some names, else all; and what belongs to them.
    ///
    /// # Errors
    /// 400 if the selection does not fit, or if names are needed; 404 for a name that no array has. Documents or codecs that cannot
    /// be used, if variables are named; else they are left out.
    pub(crate) async fn of_group(
        &self,
        node: Arc<OpenNode>,
        names: Option<&[String]>,
        selection: &SelectionParams,
    ) -> Result<ExportSources, Problem> {
        let path = &self.target.path;
        self.of_group_at(path, node, names, selection).await
    }

    /// The arrays of a group anywhere in the mount, as [`Self::of_group`].
    ///
    /// # Errors
    /// As [`Self::of_group`].
    pub(crate) async fn of_group_at(
        &self,
        path: &NodePath,
        node: Arc<OpenNode>,
        names: Option<&[String]>,
        selection: &SelectionParams,
    ) -> Result<ExportSources, Problem> {
        let arrays = self.open_group(path, node, names).await?;
        self.select(arrays, selection).await
    }

    /// The arrays of a group, before a selection is made: those of some names, else all.
    ///
    /// # Errors
    /// As [`Self::of_group`], but for the selection.
    pub(crate) async fn open_group(
        &self,
        path: &NodePath,
        node: Arc<OpenNode>,
        names: Option<&[String]>,
    ) -> Result<GroupArrays, Problem> {
        let group = Some(Arc::clone(&node));
        let mut found = ExportSources { group, omits_unusable: names.is_none(), ..ExportSources::default() };
        let arrays = match names {
            Some(names) => self.named(path, names).await?,
            None => self.all(path, &node, &mut found).await?,
        };
        Ok(GroupArrays { path: path.clone(), arrays, found })
    }

    /// The arrays of a group over a selection, and what belongs to them.
    ///
    /// # Errors
    /// 400 if the selection does not fit; documents or codecs that cannot be used, if variables are named.
    pub(crate) async fn select(
        &self,
        group: GroupArrays,
        selection: &SelectionParams,
    ) -> Result<ExportSources, Problem> {
        if selection.is_positional() {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "`slice` selects by position, which is of one array; select along the dimensions of a group with `isel.NAME` or \
                 `sel.NAME`",
            ));
        }
        group.check_names(selection)?;
        let GroupArrays { path, arrays, mut found } = group;
        let mut chosen = Vec::with_capacity(arrays.len());
        for (name, node, array) in arrays {
            let subset = selection.subset_of_variable(array.metadata())?;
            chosen.push(source(name, node, array, subset));
        }
        self.add_all(&mut found, chosen, Some(&path)).await?;
        Ok(found)
    }

    /// The array that a node is, with all of its elements.
    ///
    /// # Errors
    /// Codecs that cannot be used.
    pub(crate) fn itself(&self, node: Arc<OpenNode>) -> Result<ExportSource, Problem> {
        let array = Arc::clone(node.array()?);
        let name = match array.path().name() {
            "" => self.target.mount.name.clone(),
            name => name.to_owned(),
        };
        let subset = Subset::full(&array.metadata().shape);
        Ok(source(name, node, array, subset))
    }

    /// The arrays of a group with all of their elements: those of some names, else all but those that belong to others.
    ///
    /// # Errors
    /// As [`Self::of_group`].
    pub(crate) async fn arrays_of_group(
        &self,
        node: Arc<OpenNode>,
        names: Option<&[String]>,
    ) -> Result<ExportSources, Problem> {
        let path = &self.target.path;
        let mut found = ExportSources { group: Some(Arc::clone(&node)), ..ExportSources::default() };
        let opened = match names {
            Some(names) => self.named(path, names).await?,
            None => self.all(path, &node, &mut found).await?,
        };
        let named = if names.is_some() {
            BTreeSet::new()
        } else {
            let known: BTreeSet<String> = opened.iter().map(|(name, ..)| name.clone()).collect();
            let metadata = opened.iter().map(|(.., array)| array.metadata());
            let is_known = move |name: &str| known.contains(name);
            let cpu = self.target.opener.hierarchy().cpu();
            named_variables(cpu, metadata, is_known, MAX_VARIABLES).await.map_err(ArrayError::from)?
        };
        let chosen = opened.into_iter().filter(|(name, ..)| !named.contains(name));
        let all = |array: &Array| Subset::full(&array.metadata().shape);
        found.sources =
            chosen.map(|(name, node, array)| source(name, node, Arc::clone(&array), all(&array))).collect();
        Ok(found)
    }

    /// The group that an array is in; `None` if none is stored, or if the caller may not read it.
    ///
    /// # Errors
    /// Failures of the store; a document that cannot be used.
    pub(crate) async fn group_of(&self, array: &OpenNode) -> Result<Option<Arc<OpenNode>>, Problem> {
        let Some(path) = array.array()?.path().parent() else { return Ok(None) };
        let found = self.node(&path).await?.transpose()?;
        Ok(found.filter(|node| matches!(node.node, Node::Group(_))))
    }

    /// The arrays of these names.
    async fn named(&self, group: &NodePath, names: &[String]) -> Result<Vec<GroupArray>, Problem> {
        let mut opened: Vec<GroupArray> = Vec::with_capacity(names.len());
        for name in names {
            if opened.iter().any(|(known, ..)| known == name) {
                continue;
            }
            let path = group.child(name).ok();
            let found = match path {
                Some(path) => self.array(&path).await?,
                None => None,
            };
            let Some(found) = found else { return Err(self.no_array(group, name).await) };
            let (node, array) = found?;
            opened.push((name.clone(), node, array));
        }
        Ok(opened)
    }

    /// The problem of a group that has no array of a name, with the one that is like it.
    async fn no_array(&self, group: &NodePath, name: &str) -> Problem {
        let start = format!("`vars`: there is no array `{name}` in the group");
        let Ok(path) = group.child(name) else {
            return Problem::from_class(ErrorClass::NotFound).detail(start);
        };
        let missing = ArrayError::from(HierarchyError::NoSuchNode { path: path.clone() });
        let problem = Box::pin(missing::problem_of(missing, self.rights, self.target, &path)).await;
        match problem.extensions().get("did_you_mean").and_then(|meant| NodePath::parse(meant.as_str()?).ok())
        {
            Some(meant) => {
                let detail = format!("{start}; did you mean `{}`?", meant.name());
                problem.detail(detail)
            }
            None => problem.detail(start),
        }
    }

    /// All arrays directly below a group. Those whose document or codecs cannot be used are left out.
    async fn all(
        &self,
        group: &NodePath,
        node: &OpenNode,
        found: &mut ExportSources,
    ) -> Result<Vec<GroupArray>, Problem> {
        let need = Permission::derived(Scope::List, KeyScope::Prefix(group.prefix().clone()));
        let invalid = |detail: &'static str| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
        if !self.rights.allows(&self.target.mount.name, &need) {
            return Err(invalid(
                "name the variables with `vars`: the credential does not include listing the group",
            ));
        }
        let Node::Group(metadata) = &node.node else { return Err(Problem::from_class(ErrorClass::NotFound)) };
        let hierarchy = self.target.opener.hierarchy();
        let below = hierarchy.children(group, metadata, MAX_VARIABLES).await?;
        let Some(children) = below.children else {
            return Err(invalid("name the variables with `vars`: the backend of this mount cannot list"));
        };
        if below.truncated {
            return Err(invalid("name the variables with `vars`: the group has more than 1000 nodes"));
        }
        let (mut names, mut groups) = (Vec::new(), Vec::new());
        for child in children {
            match child.kind {
                Some(NodeKind::Group) => groups.push(child.name),
                // What has an invalid document is opened too, to say why it is left out.
                Some(NodeKind::Array) | None => names.push(child.name),
            }
        }
        found.groups = groups;
        let arrays = self.arrays_in(group, names).await?;
        let mut opened = Vec::with_capacity(arrays.len());
        for (name, array) in arrays {
            match array {
                Some(Ok((node, array))) => opened.push((name, node, array)),
                Some(Err(error)) => {
                    found.omitted.push(OmittedVariable { name, reason: error.to_string() });
                }
                None => {}
            }
        }
        Ok(opened)
    }

    /// What is found at these names in a group, in their order.
    async fn arrays_in(
        &self,
        group: &NodePath,
        names: Vec<String>,
    ) -> Result<Vec<(String, Option<FoundArray>)>, Problem> {
        let opened = stream::iter(names).map(|name| async move {
            let found = match group.child(&name) {
                Ok(path) => self.array(&path).await?,
                Err(_) => None,
            };
            Ok::<_, Problem>((name, found))
        });
        opened.buffered(CONCURRENCY).try_collect().await
    }

    /// The names of other variables in the attributes of sources, without those in `known`; at most one more than
    /// [`MAX_LOOKUPS`].
    async fn named_by(
        &self,
        sources: impl Iterator<Item = &ExportSource>,
        known: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Problem> {
        let known = known.clone();
        let metadata = sources.map(|source| &**source.metadata());
        let is_new = move |name: &str| !known.contains(name);
        let cpu = self.target.opener.hierarchy().cpu();
        Ok(named_variables(cpu, metadata, is_new, MAX_LOOKUPS).await.map_err(ArrayError::from)?)
    }

    /// Adds arrays and what belongs to them.
    async fn add_all(
        &self,
        found: &mut ExportSources,
        chosen: Vec<ExportSource>,
        group: Option<&NodePath>,
    ) -> Result<(), Problem> {
        let ranges = selected_ranges(&chosen);
        let mut coordinates: BTreeMap<String, ExportSource> = BTreeMap::new();
        let mut others: Vec<ExportSource> = Vec::new();
        let mut order: Vec<String> = Vec::new();
        let mut seen: HashSet<String> = chosen.iter().map(|source| source.name.clone()).collect();
        let mut dimensions: Vec<(String, u64)> = Vec::new();
        for source in &chosen {
            if source.is_coordinate {
                order.push(source.name.clone());
            }
            for (name, &length) in source.dimension_names.iter().zip(&source.metadata().shape) {
                let Some(name) = name.as_ref().filter(|name| !seen.contains(*name)) else { continue };
                seen.insert(name.clone());
                order.push(name.clone());
                dimensions.push((name.clone(), length));
            }
        }
        if let Some(group) = group {
            check_lookups(dimensions.len())?;
            let ranges = &ranges;
            let sought = stream::iter(dimensions).map(|(name, length)| async move {
                let coordinate = self.coordinate(group, &name, length, ranges).await?;
                Ok::<_, Problem>((name, coordinate))
            });
            let sought: Vec<_> = sought.buffered(CONCURRENCY).try_collect().await?;
            for (name, coordinate) in sought {
                match coordinate {
                    Some(Ok(coordinate)) => drop(coordinates.insert(name, coordinate)),
                    Some(Err(error)) => found.omit(&name, error)?,
                    None => {}
                }
            }
            let mut known: BTreeSet<String> = chosen.iter().map(|source| source.name.clone()).collect();
            known.extend(coordinates.keys().cloned());
            // What belongs to an array may name more, such as the bounds of a coordinate.
            for round in 0..2 {
                let new = match round {
                    0 => self.named_by(chosen.iter().chain(coordinates.values()), &known).await?,
                    _ => self.named_by(others.iter(), &known).await?,
                };
                check_lookups(new.len())?;
                known.extend(new.iter().cloned());
                for (name, array) in self.arrays_in(group, new.into_iter().collect()).await? {
                    match array {
                        Some(Ok((node, array))) => {
                            let subset = shared_subset(array.metadata(), ranges);
                            others.push(source(name, node, array, subset));
                        }
                        Some(Err(error)) => found.omit(&name, error)?,
                        None => {}
                    }
                }
            }
        }
        let mut variables = Vec::with_capacity(chosen.len());
        for source in chosen {
            if source.is_coordinate {
                coordinates.insert(source.name.clone(), source);
            } else {
                variables.push(source);
            }
        }
        let mut sources: Vec<ExportSource> =
            order.iter().filter_map(|name| coordinates.remove(name)).collect();
        sources.append(&mut others);
        sources.append(&mut variables);
        if sources.len() > MAX_VARIABLES {
            let detail = "there are more than 1000 variables; name some with `vars`";
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
        }
        found.sources = sources;
        Ok(())
    }

    /// The coordinate of a dimension, in a group or above it, and whether it can be read. One that cannot hides those above it.
    async fn coordinate(
        &self,
        group: &NodePath,
        name: &str,
        length: u64,
        ranges: &SelectedRanges,
    ) -> Result<Option<Result<ExportSource, ArrayError>>, Problem> {
        let mut group = Some(group.clone());
        for _ in 0..MAX_GROUPS_ABOVE {
            let Some(current) = group.take() else { break };
            let Ok(path) = current.child(name) else { break };
            if let Some(opened) = self.array(&path).await? {
                let (node, array) = match opened {
                    Ok(opened) => opened,
                    Err(error) => return Ok(Some(Err(error))),
                };
                let metadata = array.metadata();
                let names = names_of(metadata);
                let is_along =
                    matches!(names.as_slice(), [known] if known.as_deref().is_none_or(|known| known == name));
                if !is_along || metadata.shape != [length] {
                    return Ok(None);
                }
                let range = ranges.get(&(name.to_owned(), length)).copied();
                let subset = Subset(vec![range.unwrap_or(AxisRange::full(length))]);
                let dimension_names = vec![Some(name.to_owned())];
                let name = name.to_owned();
                let is_coordinate = true;
                return Ok(Some(Ok(ExportSource {
                    name,
                    node,
                    array,
                    subset,
                    dimension_names,
                    is_coordinate,
                    decoded: None,
                })));
            }
            group = current.parent();
        }
        Ok(None)
    }

    /// The array at a path, and whether it can be read; `None` if there is none, or if the caller may not read it.
    async fn array(&self, path: &NodePath) -> Result<Option<FoundArray>, Problem> {
        let found = match self.node(path).await? {
            Some(Ok(node)) if matches!(node.node, Node::Group(_)) => return Ok(None),
            Some(found) => found,
            None => return Ok(None),
        };
        Ok(Some(found.and_then(|node| {
            let array = node.array().cloned()?;
            Ok((node, array))
        })))
    }

    /// The node at a path, and whether its document can be read; `None` if there is none, or if the caller may not read it.
    async fn node(&self, path: &NodePath) -> Result<Option<Result<Arc<OpenNode>, ArrayError>>, Problem> {
        let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
        if !self.rights.allows(&self.target.mount.name, &need) {
            return Ok(None);
        }
        let opener: &NodeOpener = &self.target.opener;
        match opener.find_cached(path, self.began).await {
            Ok(CachedLookup::Node(node)) => Ok(Some(Ok(node))),
            Ok(CachedLookup::Absent(_)) => Ok(None),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(None),
            // The store has answered: what it has is the matter of this node, and not of those beside it.
            Err(ArrayError::Hierarchy(error)) if error.is_of_stored_node() => Ok(Some(Err(error.into()))),
            Err(error) => Err(error.into()),
        }
    }
}

/// An array that was found, if its document and its codecs can be used.
type FoundArray = Result<(Arc<OpenNode>, Arc<Array>), ArrayError>;

fn source(name: String, node: Arc<OpenNode>, array: Arc<Array>, subset: Subset) -> ExportSource {
    let dimension_names = names_of(array.metadata());
    let is_coordinate = matches!(dimension_names.as_slice(), [Some(dimension)] if *dimension == name);
    ExportSource { name, node, array, subset, dimension_names, is_coordinate, decoded: None }
}

/// What is selected of the dimensions of some arrays.
fn selected_ranges(sources: &[ExportSource]) -> SelectedRanges {
    let mut ranges = SelectedRanges::new();
    for source in sources {
        let lengths = source.metadata().shape.iter().zip(source.subset.axes());
        for (name, (&length, &range)) in source.dimension_names.iter().zip(lengths) {
            if let Some(name) = name {
                ranges.entry((name.clone(), length)).or_insert(range);
            }
        }
    }
    ranges
}

/// The elements of an array along the dimensions that it shares with others; of other dimensions, all.
fn shared_subset(metadata: &ArrayMetadata, ranges: &SelectedRanges) -> Subset {
    let names = names_of(metadata);
    let range = |(name, &length): (Option<String>, &u64)| {
        let shared = name.and_then(|name| ranges.get(&(name, length)).copied());
        shared.unwrap_or(AxisRange::full(length))
    };
    Subset(names.into_iter().zip(&metadata.shape).map(range).collect())
}

/// Checks how many names are sought in a group for one request.
fn check_lookups(names: usize) -> Result<(), Problem> {
    if names <= MAX_LOOKUPS {
        return Ok(());
    }
    Err(Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
        "the variables name too many dimensions and other variables: at most {MAX_LOOKUPS} are sought; name some variables with \
         `vars`"
    )))
}
