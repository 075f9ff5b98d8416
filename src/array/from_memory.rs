//! [`FromMemory`]: the result of a step that uses memory alone.

/// The result of a step that uses nothing but memory, and neither suspends nor starts I/O.
///
/// The pending value holds what the step has found so far; the asynchronous step takes it and goes on from there
/// ([the whole rule](super#answers-from-memory-without-suspending)).
pub(super) enum FromMemory<T, P> {
    /// Everything that the step needs was in memory.
    Ready(T),
    /// Something is missing; the asynchronous step goes on from here.
    Pending(P),
}
