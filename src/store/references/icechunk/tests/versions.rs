//! Versions that come, go, and are asked for in vain.

use std::sync::Arc;
use std::time::Duration;

use super::files::{id, repository, snapshot};
use super::served::{Mood, Served};
use crate::error::{Classify, ErrorClass};
use crate::store::references::ReferenceError;
use crate::store::references::icechunk::ref_files::MAX_HISTORY;
use crate::store::{ObjectId, PinnedVersion, StoreError};

fn branch(name: &str) -> PinnedVersion {
    PinnedVersion::Branch(name.into())
}

fn tag(name: &str) -> PinnedVersion {
    PinnedVersion::Tag(name.into())
}

fn at(number: u32) -> PinnedVersion {
    PinnedVersion::Snapshot(id(number))
}

/// The number of the longest history, and one that is longer.
fn numbers() -> (u32, u32) {
    let most = u32::try_from(MAX_HISTORY).unwrap();
    (most, most + 40)
}

fn is_no_repository(outcome: &Result<Option<ObjectId>, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::References(ReferenceError::NoRepository(_))))
}

/// A repository of version 1: a long history on `main`, and a branch and a tag that lead to others.
async fn long() -> Arc<Served> {
    let (_, length) = numbers();
    let served = Served::new();
    served.put_line(0..length).await;
    served.put_line(100_000..100_003).await;
    served.put_ref("branch.main", length - 1).await;
    served.put_ref("branch.aaa", 100_002).await;
    served.put_ref("tag.v1", 100_001).await;
    served
}

#[tokio::test]
async fn what_a_branch_leads_to_is_there_however_long_the_history_of_another_is() {
    let (_, length) = numbers();
    let served = long().await;
    let source = served.source();
    assert_eq!(source.resolve(&branch("aaa")).await.unwrap(), Some(id(100_002)));
    served.take_requests();
    assert_eq!(source.resolve(&at(100_002)).await.unwrap(), Some(id(100_002)), "of the branch");
    assert_eq!(served.take_requests(), Vec::<String>::new(), "it was found a moment ago");
    // Without that, the heads of all branches are read before the parents of any.
    let source = served.source();
    assert_eq!(source.resolve(&at(100_002)).await.unwrap(), Some(id(100_002)), "of no request before");
    assert_eq!(source.resolve(&at(100_000)).await.unwrap(), Some(id(100_000)), "two commits before");
    assert_eq!(source.resolve(&at(length - 5)).await.unwrap(), Some(id(length - 5)));
    // What is beyond the limit is not absent: that is not known.
    let refused = source.resolve(&at(1)).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::ReferencesRefused);
    assert!(refused.to_string().contains("name a branch or a tag"), "{refused}");
    assert_eq!(source.resolve(&at(77_777)).await.unwrap(), None, "there is no such file");
}

#[tokio::test]
async fn a_snapshot_that_is_not_there_costs_each_request_one_lookup() {
    let served = Served::new();
    served.put_line(0..30).await;
    // One that no branch leads to.
    served.put_line(500..501).await;
    served.put_ref("branch.main", 29).await;
    let source = served.source();
    assert_eq!(source.resolve(&at(999)).await.unwrap(), None);
    let first = served.take_requests();
    assert!(
        first.len() < 12 && !first.iter().any(|request| request.starts_with("GET snapshots/")),
        "{first:?}"
    );
    for _ in 0..3 {
        assert_eq!(source.resolve(&at(998)).await.unwrap(), None);
        let again = served.take_requests();
        let of_snapshots = again.iter().filter(|request| request.contains("snapshots/")).count();
        assert!(
            of_snapshots == 1 && !again.iter().any(|request| request.contains("branch.main")),
            "{again:?}"
        );
    }
    let lost = at(500);
    // A file that is there is searched for in the history, once for all who ask at one time.
    let (one, two) = tokio::join!(source.resolve(&lost), source.resolve(&lost));
    assert_eq!((one.unwrap(), two.unwrap()), (None, None));
    let of_files =
        |requests: &[String]| requests.iter().filter(|request| request.starts_with("GET snap")).count();
    assert_eq!(of_files(&served.take_requests()), 30, "each file once");
    for _ in 0..3 {
        assert_eq!(source.resolve(&at(500)).await.unwrap(), None);
        assert_eq!(of_files(&served.take_requests()), 0, "what a snapshot was made from never changes");
    }
    // The list of all versions does not read them again either.
    let history = source.history().await.unwrap();
    assert_eq!((history.snapshots.len(), history.branches.len()), (30, 1));
    assert_eq!(of_files(&served.take_requests()), 0);
    assert!(history.snapshots.iter().any(|info| &*info.message == "commit 7" && info.parent == Some(id(6))));
}

#[tokio::test]
async fn where_nothing_can_be_listed_what_a_branch_leads_to_is_read() {
    let served = Served::new();
    served.put_line(0..3).await;
    served.put_ref("branch.main", 2).await;
    served.set_mood(Mood::Unlistable);
    let source = served.source();
    assert_eq!(source.resolve(&branch("main")).await.unwrap(), Some(id(2)));
    assert_eq!(source.resolve(&at(2)).await.unwrap(), Some(id(2)), "requests are pinned to it");
    let refused = source.resolve(&at(1)).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::ReferencesRefused, "it is not known whether it is listed");
    assert!(refused.to_string().contains("cannot list"), "{refused}");
    assert_eq!(source.resolve(&at(999)).await.unwrap(), None);
    assert_eq!(source.resolve(&branch("none")).await.unwrap(), None);
}

#[tokio::test]
async fn a_repository_that_is_not_there_is_a_failure_for_every_version() {
    let versions = [branch("main"), branch("dev"), tag("v1"), at(1)];
    for mood in [Mood::Answers, Mood::Unlistable] {
        let served = Served::new();
        served.set_mood(mood);
        let source = served.source();
        for version in &versions {
            let outcome = source.resolve(version).await;
            assert!(is_no_repository(&outcome), "{version} {outcome:?}");
            assert_eq!(outcome.unwrap_err().class(), ErrorClass::BackendFailed);
        }
        // One that vanishes after it was read.
        for is_old in [true, false] {
            let served = Served::new();
            served.put_line(0..10).await;
            if is_old {
                served.put_ref("branch.main", 1).await;
                served.put_ref("tag.v1", 1).await;
            } else {
                served.put("repo", repository(1, &[("v1", 1)])).await;
            }
            served.set_mood(mood);
            let source = served.source().with_fixed_for(Duration::ZERO);
            for version in [&versions[0], &versions[2]] {
                assert_eq!(source.resolve(version).await.unwrap(), Some(id(1)), "{version}");
            }
            if is_old {
                served.erase("refs/branch.main/ref.json").await;
                served.erase("refs/tag.v1/ref.json").await;
            } else {
                served.erase("repo").await;
            }
            for version in [&versions[0], &versions[2], &versions[2], &versions[1]] {
                let outcome = source.resolve(version).await;
                assert!(is_no_repository(&outcome), "{version} {is_old} {outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_deleted_tag_is_gone_once_the_repository_is_asked_again() {
    for is_old in [true, false] {
        let served = Served::new();
        served.put_line(0..10).await;
        if is_old {
            served.put_ref("branch.main", 5).await;
            served.put_ref("tag.v1", 3).await;
        } else {
            served.put("repo", repository(5, &[("v1", 3)])).await;
        }
        // A minute, which does not pass here, and none.
        let (lasting, eager) = (served.source(), served.source().with_fixed_for(Duration::ZERO));
        for source in [&lasting, &eager] {
            assert_eq!(source.resolve(&tag("v1")).await.unwrap(), Some(id(3)));
            assert_eq!(source.resolve(&at(3)).await.unwrap(), Some(id(3)));
        }
        served.take_requests();
        assert_eq!(lasting.resolve(&tag("v1")).await.unwrap(), Some(id(3)));
        assert_eq!(served.take_requests(), Vec::<String>::new(), "no request within a minute");
        // A backend that fails or hangs says nothing of a deletion, and waits only once.
        for mood in [Mood::Fails, Mood::Hangs] {
            let source = served.source().with_fixed_for(Duration::ZERO);
            assert_eq!(source.resolve(&tag("v1")).await.unwrap(), Some(id(3)));
            served.set_mood(mood);
            for _ in 0..2 {
                assert_eq!(source.resolve(&tag("v1")).await.unwrap(), Some(id(3)), "{mood:?}");
                served.take_requests();
            }
            assert_eq!(source.resolve(&tag("v1")).await.unwrap(), Some(id(3)));
            assert_eq!(served.take_requests(), Vec::<String>::new(), "not asked again at once");
            served.set_mood(Mood::Answers);
        }
        if is_old {
            served.put("refs/tag.v1/ref.json.deleted", "").await;
        } else {
            served.put("repo", repository(5, &[])).await;
        }
        assert_eq!(eager.resolve(&tag("v1")).await.unwrap(), None, "{is_old}");
        assert_eq!(eager.resolve(&at(3)).await.unwrap(), Some(id(3)), "`main` leads to it");
    }
}

#[tokio::test]
async fn a_snapshot_whose_file_was_deleted_is_gone_once_the_repository_is_asked_again() {
    let served = Served::new();
    served.put_line(0..4).await;
    served.put_ref("branch.main", 3).await;
    let source = served.source().with_fixed_for(Duration::ZERO);
    for number in [0, 1, 2] {
        assert_eq!(source.resolve(&at(number)).await.unwrap(), Some(id(number)));
        assert!(source.snapshot(&at(number)).await.unwrap().is_some());
    }
    // Icechunk writes the oldest snapshot that it keeps again, without its parent, and deletes the others.
    served.put(&format!("snapshots/{}", id(2)), snapshot(2, None, Vec::new())).await;
    served.erase(&format!("snapshots/{}", id(0))).await;
    served.erase(&format!("snapshots/{}", id(1))).await;
    // Also once it is not known any more what they were.
    for gone in [0, 1, 0, 1] {
        assert_eq!(source.resolve(&at(gone)).await.unwrap(), None, "{gone}");
    }
    assert_eq!(source.resolve(&at(2)).await.unwrap(), Some(id(2)));
}

#[tokio::test]
async fn a_history_that_does_not_fit_is_refused_each_time_and_never_taken_for_one_without_the_snapshot() {
    let served = Served::new();
    served.put_line(0..40).await;
    served.put_ref("branch.main", 39).await;
    let source = served.source_within(2 << 10);
    for _ in 0..3 {
        let refused = source.resolve(&at(0)).await.unwrap_err();
        assert!(matches!(refused, StoreError::References(ReferenceError::OverBudget { .. })), "{refused}");
    }
    assert_eq!(served.source().resolve(&at(0)).await.unwrap(), Some(id(0)));
}

#[tokio::test]
async fn expired_snapshots_are_not_listed_once_the_parents_are_read_again() {
    for (is_read_again, is_purged) in [(true, false), (false, true), (false, false)] {
        let served = Served::new();
        served.put_line(0..4).await;
        served.put_ref("branch.main", 3).await;
        let parents_for = if is_read_again { Duration::ZERO } else { Duration::from_hours(1) };
        let source = served.source().with_parents_for(parents_for);
        // They are read by each other's requests, and kept for those of values.
        assert_eq!(source.history().await.unwrap().snapshots.len(), 4);
        assert!(source.snapshot(&at(2)).await.unwrap().is_some());
        served.put(&format!("snapshots/{}", id(2)), snapshot(2, None, Vec::new())).await;
        served.erase(&format!("snapshots/{}", id(0))).await;
        served.erase(&format!("snapshots/{}", id(1))).await;
        if is_purged {
            source.purge();
        }
        let listed = source.history().await.unwrap().snapshots;
        assert_eq!(listed.len(), if is_read_again || is_purged { 2 } else { 4 });
        // Those that are asked for the first time, whether they are listed or not.
        for gone in [0, 1] {
            assert_eq!(source.resolve(&at(gone)).await.unwrap(), None, "{gone}");
        }
        assert_eq!(source.resolve(&at(2)).await.unwrap(), Some(id(2)));
    }
}

#[tokio::test]
async fn a_branch_whose_snapshot_has_no_file_is_broken_and_what_expired_is_absent() {
    let served = Served::new();
    served.put(&format!("snapshots/{}", id(2)), snapshot(2, Some(1), Vec::new())).await;
    served.put_ref("branch.main", 2).await;
    served.put_ref("branch.torn", 7).await;
    let source = served.source();
    assert_eq!(source.resolve(&at(1)).await.unwrap(), None, "its file is gone");
    for version in [branch("torn"), at(7)] {
        let broken = source.snapshot(&version).await.unwrap_err();
        assert_eq!(broken.class(), ErrorClass::ReferenceBroken, "{version}");
    }
}
