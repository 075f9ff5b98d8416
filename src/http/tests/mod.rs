//! Tests of the whole router over a store in memory.
