//! Slot tables that are broken in ways for which protocols have no canary.

use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use pmem::{Bytes, Level, Offset, Persist};
use pmem_sim::Sim;
use testkit::{Contents, Direction, Failure, Operations, Space, Subject, Visit};

use crate::slot_table::SlotTable;

/// The bug of a broken variant.
pub(crate) trait Twist: Send + Sync + 'static {
    /// Runs before recovery.
    fn before_open(_medium: &Sim) {}

    /// Changes the table's account of its space.
    fn account(space: Space) -> Space {
        space
    }

    /// Returns the items that a scan shows, given all items in order; `None` for no order.
    fn scan(_items: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        None
    }

    /// Changes a reader's answer.
    fn answer(value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        value
    }
}

/// A slot table with a bug.
pub(crate) struct Variant<T>(SlotTable, PhantomData<T>);

/// Recovery removes the root for a moment: a crash there loses the store, although a recovery that ends is right.
pub(crate) struct RootTakenAway;

impl Twist for RootTakenAway {
    fn before_open(medium: &Sim) {
        let root = medium.load(Offset(0), Ordering::Acquire);
        for word in [0, root] {
            medium.store(Offset(0), word, Ordering::Release);
            medium.flush(Offset(0).span(8));
            let ticket = medium.commit(Level::Strongest);
            medium.wait(ticket).expect("a simulated wait succeeds");
        }
    }
}

/// Recovery counts one byte that no item needs.
pub(crate) struct Leaky;

impl Twist for Leaky {
    fn account(space: Space) -> Space {
        Space { live_bytes: space.live_bytes + 1, ..space }
    }
}

/// Readers get a byte that no put wrote.
pub(crate) struct Embroidering;

impl Twist for Embroidering {
    fn answer(value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        value.map(|value| [&value[..], b"!"].concat())
    }
}

/// Recovery panics on a formatted store.
pub(crate) struct Panicking;

impl Twist for Panicking {
    fn before_open(medium: &Sim) {
        assert_eq!(medium.load(Offset(0), Ordering::Acquire), 0, "this variant opens no store");
    }
}

/// Scans show everything, as they should.
pub(crate) struct InOrder;

impl Twist for InOrder {
    fn scan(items: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        Some(items)
    }
}

/// Scans end before the last item.
pub(crate) struct EndsEarly;

impl Twist for EndsEarly {
    fn scan(mut items: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        items.pop();
        Some(items)
    }
}

/// Scans show the last item twice.
pub(crate) struct Repeats;

impl Twist for Repeats {
    fn scan(mut items: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        items.extend(items.last().cloned());
        Some(items)
    }
}

impl<T: Twist> Operations for Variant<T> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.0.get(key).map(T::answer)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.0.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.0.delete(key)
    }

    fn clear(&self) -> Result<(), Failure> {
        self.0.clear()
    }

    fn scan(&self, _: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let mut contents = Contents::new();
        self.0.for_each(&mut |key, value| _ = contents.insert(key.to_vec(), value.to_vec()))?;
        let mut items: Vec<_> = contents.into_iter().collect();
        if direction == Direction::Backward {
            items.reverse();
        }
        let shown = T::scan(items);
        let is_ordered = shown.is_some();
        let _ended: ControlFlow<()> = shown.into_iter().flatten().try_for_each(|(key, value)| each(&key, &value));
        Ok(is_ordered)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.0.len()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.0.for_each(each)
    }
}

impl<T: Twist> Subject for Variant<T> {
    type Medium = Sim;

    fn format(medium: Sim) -> Result<Variant<T>, Failure> {
        Ok(Variant(SlotTable::format(medium)?, PhantomData))
    }

    fn open(medium: Sim) -> Result<Variant<T>, Failure> {
        T::before_open(&medium);
        Ok(Variant(SlotTable::open(medium)?, PhantomData))
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        self.0.space(contents).map(T::account)
    }
}
