//! Freed memory that the allocator still holds.

// Links the allocator, also where it is not the global one.
use mimalloc as _;

#[expect(unsafe_code, reason = "the allocator is a C library")]
unsafe extern "C" {
    /// Frees what is free on this thread, and with `force` returns all free memory to the system.
    fn mi_collect(force: bool);
}

/// Returns it to the system, which takes time in proportion.
#[expect(clippy::disallowed_methods, reason = "the compute pool may be busy with what takes the memory")]
pub(super) async fn return_all() {
    // Nothing depends on its result.
    let _ = tokio::task::spawn_blocking(collect).await;
}

#[expect(unsafe_code, reason = "the allocator is a C library")]
fn collect() {
    // SAFETY: it may be called at any time on any thread, and takes no pointer.
    unsafe { mi_collect(true) }
}
