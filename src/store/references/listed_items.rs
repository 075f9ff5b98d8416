//! [`ListedItems`]: what a listing holds in memory, made and dropped on the pool.

use super::ReferenceError;
use crate::cpu::{ComputePool, DropOnPool};
use crate::store::StoreError;
use crate::store::container::ContainerReservation;

/// Making at most this many items takes about as long as a hop to the pool and back.
pub(super) const FEW: usize = 64;

/// Items of a listing, of which there may be a million, with the memory that is reserved for them.
pub(super) struct ListedItems<T: Send + 'static> {
    items: DropOnPool<Vec<T>>,
    pub(super) reserved: ContainerReservation,
    cpu: ComputePool,
}

impl<T: Send + 'static> ListedItems<T> {
    /// The first items of a listing, which are few.
    pub(super) fn new(items: Vec<T>, cpu: &ComputePool, reserved: ContainerReservation) -> Self {
        Self { items: DropOnPool::new(items, cpu), reserved, cpu: cpu.clone() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.items.len()
    }

    /// What `work` makes of the items. It runs where work on a document of this many bytes does ([`ComputePool::run_document`]).
    pub(super) async fn change<U: Send + 'static>(
        self,
        bytes: u64,
        work: impl FnOnce(Vec<T>) -> Result<Vec<U>, ReferenceError> + Send + 'static,
    ) -> Result<ListedItems<U>, StoreError> {
        let Self { items, reserved, cpu } = self;
        let pool = cpu.clone();
        // The work has the reservation, because it goes on when the caller is dropped.
        let work = move || {
            let items = DropOnPool::new(work(items.into_inner())?, &cpu);
            Ok::<_, ReferenceError>(ListedItems { items, reserved, cpu })
        };
        Ok(pool.run_document(bytes, work).await.map_err(ReferenceError::Cpu)??)
    }

    /// The items in their order. Their memory is reserved until the iterator is dropped. What is left then is dropped on the pool, which
    /// begins that before it makes the items of later listings.
    pub(super) fn into_items(self) -> impl Iterator<Item = T> + Send {
        let Self { items, reserved, cpu } = self;
        let mut left = Some(DropOnPool::new(items.into_inner().into_iter(), &cpu));
        std::iter::from_fn(move || {
            let _held = &reserved;
            let next = left.as_mut()?.next();
            if next.is_none() {
                // Nothing is left that takes long to drop.
                drop(left.take().map(DropOnPool::into_inner));
            }
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{ThreadId, current};

    use super::*;
    use crate::cpu::ComputePoolOptions;
    use crate::store::ContainerBudget;

    /// Sends the id of the thread that drops it.
    struct ReportsThread(Sender<ThreadId>);

    impl Drop for ReportsThread {
        fn drop(&mut self) {
            self.0.send(current().id()).unwrap();
        }
    }

    #[tokio::test]
    async fn items_are_changed_and_dropped_on_the_pool_and_their_memory_is_released() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let budget = ContainerBudget::new(10);
        let (sender, dropped) = channel();
        let list = async |bytes: u64| {
            let mut empty = ListedItems::new(Vec::new(), &cpu, budget.empty());
            empty.reserved.resize(10).unwrap();
            let sender = sender.clone();
            let add = move |mut items: Vec<(ThreadId, ReportsThread)>| {
                items.extend((0..3).map(|_| (current().id(), ReportsThread(sender.clone()))));
                Ok(items)
            };
            empty.change(bytes, add).await.unwrap()
        };
        let listed = list(u64::MAX).await;
        assert_eq!(listed.count(), 3);
        let mut items = listed.into_items();
        let (made_by, first) = items.next().unwrap();
        assert!(made_by != current().id() && budget.empty().resize(1).is_err());
        drop(first);
        assert_eq!(dropped.recv().unwrap(), current().id());
        drop(items);
        budget.empty().resize(10).unwrap();
        assert_eq!((dropped.recv().unwrap(), dropped.recv().unwrap()), (made_by, made_by));
        let threads: Vec<ThreadId> = list(1).await.into_items().map(|(made_by, _)| made_by).collect();
        assert_eq!(threads, [current().id(); 3]);
    }

    #[tokio::test]
    async fn an_error_of_the_work_is_that_of_the_listing() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let listed = ListedItems::new(vec![1], &cpu, ContainerBudget::new(0).empty());
        let changed = listed.change(u64::MAX, |_| Err::<Vec<u8>, _>(ReferenceError::TwoNodes)).await;
        assert!(matches!(changed.err(), Some(StoreError::References(ReferenceError::TwoNodes))));
    }
}
