//! [`Attempt`]: the result of a step that uses nothing but memory.

/// The result of a step that uses nothing but memory, and neither suspends nor starts I/O.
///
/// The pending value holds all that the step has done so far, so that the asynchronous step that takes it repeats none of
/// it ([the whole rule](super#answers-from-memory-without-suspending)).
pub(super) enum Attempt<T, P> {
    /// Everything that the step needs was in memory.
    Ready(T),
    /// Something is missing; the asynchronous step goes on from here.
    Pending(P),
}
