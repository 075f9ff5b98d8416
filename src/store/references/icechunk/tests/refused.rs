//! Files that are refused, and right later.

use std::time::Duration;

use super::files::{id, snapshot};
use super::served::Served;

#[tokio::test]
async fn a_file_that_was_refused_is_read_again_after_a_while_and_after_a_purge() {
    let served = Served::new();
    let file = format!("snapshots/{}", id(1));
    served.put(&file, "cut").await;
    let slow = served.source().with_refused_for(Duration::from_hours(1));
    let quick = served.source().with_refused_for(Duration::ZERO);
    for source in [&slow, &quick] {
        let refused = source.held.snapshot(id(1)).await.unwrap_err();
        assert!(refused.to_string().contains("does not begin"), "{refused}");
    }
    served.take_requests();
    assert!(slow.held.snapshot(id(1)).await.is_err());
    assert_eq!(served.take_requests(), Vec::<String>::new(), "a refused file is not read for each request");

    served.put(&file, snapshot(1, None, Vec::new())).await;
    assert!(slow.held.snapshot(id(1)).await.is_err());
    assert!(quick.held.snapshot(id(1)).await.unwrap().is_some());
    slow.held.purge();
    assert!(slow.held.snapshot(id(1)).await.unwrap().is_some());
    served.take_requests();
    for source in [&slow, &quick] {
        assert!(source.held.snapshot(id(1)).await.unwrap().is_some());
    }
    assert_eq!(served.take_requests(), Vec::<String>::new(), "what is right is read once");
}
