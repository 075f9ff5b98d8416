//! [`DropOnPool`]: a value that is dropped on the pool, because dropping it takes long.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::compute_pool::ComputePool;

/// A large collection that is dropped on the pool, on whatever thread its owner drops it: freeing millions of allocations
/// takes long.
pub struct DropOnPool<T: Default + Send + 'static> {
    value: T,
    cpu: ComputePool,
    /// Whether the value was taken out, so that nothing is left to drop.
    is_taken: bool,
}

impl<T: Default + Send + 'static> DropOnPool<T> {
    /// A value that is dropped on this pool.
    #[must_use]
    pub fn new(value: T, cpu: &ComputePool) -> Self {
        Self { value, cpu: cpu.clone(), is_taken: false }
    }

    /// The value itself, which is dropped where its new owner drops it.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        self.is_taken = true;
        std::mem::take(&mut self.value)
    }
}

impl<T: Default + Send + 'static> Deref for DropOnPool<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default + Send + 'static> DerefMut for DropOnPool<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default + Send + 'static> Drop for DropOnPool<T> {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let value = std::mem::take(&mut self.value);
        self.cpu.pool.push(Box::new(move || drop(value)));
    }
}

impl<T: Default + Send + fmt::Debug + 'static> fmt::Debug for DropOnPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{ThreadId, current};

    use super::*;
    use crate::cpu::ComputePoolOptions;

    /// Sends the id of the thread that drops it.
    #[derive(Default)]
    struct ReportsThread(Option<Sender<ThreadId>>);

    impl Drop for ReportsThread {
        fn drop(&mut self) {
            if let Some(sender) = &self.0 {
                sender.send(current().id()).unwrap();
            }
        }
    }

    #[test]
    fn a_value_is_dropped_on_the_pool_unless_it_is_taken_out() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (sender, dropped) = channel();
        drop(DropOnPool::new(vec![ReportsThread(Some(sender.clone()))], &cpu));
        assert_ne!(dropped.recv().unwrap(), current().id());
        drop(DropOnPool::new(vec![ReportsThread(Some(sender))], &cpu).into_inner());
        assert_eq!(dropped.recv().unwrap(), current().id());
    }
}
