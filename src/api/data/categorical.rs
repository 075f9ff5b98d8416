//! Whether the elements of an array are labels of things: CF `flag_values`, or the `image-label` of OME-Zarr, which is an
//! attribute of the group around the array.

use std::sync::Arc;

use serde_json::Value;

use crate::array::{ArrayError, OpenNode};
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::conventions::{list_of_labels, lists_label};
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, Attributes};
use crate::services::extract::NodeTarget;

/// The attribute of label images: at the top of the attributes in OME-Zarr 0.4, in `ome` from 0.5 on.
const IMAGE_LABEL: &str = "image-label";

/// A group whose attributes were read; `None` if there is none that the caller may read.
pub(crate) type Around = (NodePath, Option<Arc<OpenNode>>);

/// Whether an array has labels by its own attributes.
pub(crate) fn has_flags(metadata: &ArrayMetadata) -> bool {
    metadata.attributes.contains_key("flag_values")
}

/// The node around an array; `None` if the array is the root. One that the caller may not read counts as absent.
pub(crate) async fn around(
    rights: &Rights,
    target: &NodeTarget,
    path: &NodePath,
) -> Result<Option<Around>, Problem> {
    let Some(parent) = path.parent() else { return Ok(None) };
    let need = Permission::derived(Scope::Read, KeyScope::Prefix(parent.prefix().clone()));
    if !rights.allows(&target.mount.name, &need) {
        return Ok(Some((parent, None)));
    }
    let node = match target.opener.find(&parent).await {
        Ok(node) => node,
        // What is wrong with the group does not concern the array.
        Err(error) if is_unusable(&error) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Some((parent, node)))
}

/// Whether a group is a label image of OME-Zarr.
pub(crate) async fn is_label_image(node: &OpenNode, cpu: &ComputePool) -> Result<bool, Problem> {
    let Node::Group(group) = &node.node else { return Ok(false) };
    if group.attributes.contains_key(IMAGE_LABEL) {
        return Ok(true);
    }
    let Some(text) = group.attributes.member_text("ome") else { return Ok(false) };
    if !text.contains(IMAGE_LABEL) {
        return Ok(false);
    }
    let (bytes, attributes) = (text.len() as u64, group.attributes.clone());
    Ok(cpu.run_document(bytes, move || has_image_label(&attributes)).await?)
}

/// Whether the group above an image lists it as one of labels; `None` if there is no such group that the caller may read.
pub(crate) async fn is_listed_label(
    rights: &Rights,
    target: &NodeTarget,
    image: &NodePath,
    cpu: &ComputePool,
) -> Result<Option<bool>, Problem> {
    if list_of_labels(image).is_none() {
        return Ok(None);
    }
    let Some((_, Some(list))) = around(rights, target, image).await? else { return Ok(None) };
    let Node::Group(group) = &list.node else { return Ok(None) };
    let (attributes, name) = (group.attributes.clone(), image.name().to_owned());
    let bytes = attributes.text().len() as u64;
    Ok(Some(cpu.run_document(bytes, move || lists_label(&attributes, &name)).await?))
}

fn has_image_label(attributes: &Attributes) -> bool {
    matches!(attributes.get("ome"), Some(Value::Object(ome)) if ome.contains_key(IMAGE_LABEL))
}

fn is_unusable(error: &ArrayError) -> bool {
    matches!(
        error.class(),
        ErrorClass::InvalidMetadata
            | ErrorClass::CorruptData
            | ErrorClass::Unsupported
            | ErrorClass::TooLarge
    )
}
