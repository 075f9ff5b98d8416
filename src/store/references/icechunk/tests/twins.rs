//! Nodes with one path, which Icechunk commits where two sessions overwrite a node and one is rebased.

use futures::TryStreamExt;

use super::files::{array, group, id, snapshot};
use super::served::Served;
use crate::key::StorePrefix;
use crate::store::references::ReferenceError;
use crate::store::tests::key;
use crate::store::{ByteRange, Store, StoreError};

#[tokio::test]
async fn of_two_nodes_at_one_path_neither_is_served_and_all_others_are() {
    let served = Served::new();
    let nodes = vec![group("/"), array("/twin"), group("/twin"), array("/other"), array("/twin/below")];
    served.put(&format!("snapshots/{}", id(1)), snapshot(1, None, nodes)).await;
    served.put_ref("branch.main", 1).await;
    let store = served.store();
    for path in ["zarr.json", "other/zarr.json", "twin/below/zarr.json"] {
        assert!(store.head(&key(path)).await.unwrap().is_some(), "{path}");
        assert!(store.get(&key(path), ByteRange::Whole, None).await.unwrap().is_some(), "{path}");
    }
    for path in ["twin/zarr.json", "twin/c", "twin/c/0", "twin/c/0/1"] {
        let refused = store.get(&key(path), ByteRange::Whole, None).await.unwrap_err();
        assert!(matches!(refused, StoreError::References(ReferenceError::TwoNodes)), "{path}: {refused}");
        let refused = store.head(&key(path)).await.unwrap_err();
        assert!(matches!(refused, StoreError::References(ReferenceError::TwoNodes)), "{path}: {refused}");
    }
    assert!(store.head(&key("twin/other")).await.unwrap().is_none());
    let all: Vec<String> = store
        .list_prefix(&StorePrefix::root(), None)
        .map_ok(|entry| entry.key.to_string())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(all, ["other/zarr.json", "twin/below/zarr.json", "twin/zarr.json", "zarr.json"]);
}
