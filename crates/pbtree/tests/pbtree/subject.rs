//! The tree on a crash medium.

use std::ops::{Bound, ControlFlow};

use heap::{HeapError, Parameters};
use pbtree::{Change, Direction as Way, Error, FreeImmediately, Merged, NewValue, Options, Page, Tree, Value};
use pmem::{Medium, MediumError};
use pmem_sim::{Sim, SimDram};
use testkit::{Contents, Direction, Failure, Operations, Space, Subject, Visit};

/// Nodes of seven pairs, so that few keys split them.
pub(crate) const ORDER: usize = 7;
const LANE_COUNT: u32 = 2;

/// The store that is crashed; `IN_PLACE` selects whether values overwrite others.
pub(crate) struct Crashed<const IN_PLACE: bool = false>(pub(crate) Tree<Sim, SimDram, FreeImmediately>);

/// A leaf's keys, copied.
#[derive(Default)]
pub(crate) struct Copied {
    pub(crate) items: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) fence: Vec<u8>,
}

impl Page for Copied {
    fn item(&mut self, key: &[u8], value: &Value<'_>) {
        self.items.push((key.to_vec(), value.bytes.to_vec()));
    }

    fn ends_at(&mut self, fence: &[u8]) {
        fence.clone_into(&mut self.fence);
    }
}

pub(crate) fn parameters() -> Parameters {
    Parameters { uuid: [3; 16], hash_seed: 3, partition_count: LANE_COUNT, region_bytes: 1 << 20 }
}

pub(crate) fn failure(error: Error) -> Failure {
    match error {
        Error::Heap(error) => heap_failure(error),
        other => Failure::Other(other.to_string()),
    }
}

fn heap_failure(error: HeapError) -> Failure {
    match error {
        HeapError::Unformatted => Failure::Unfinished,
        HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => Failure::Full,
        other => Failure::Other(other.to_string()),
    }
}

pub(crate) fn put(value: &[u8]) -> Change<'_> {
    Change::Put(NewValue { bytes: value, expiry: None })
}

/// Merges everything that can be merged, from the leaves up. After parents were merged, their children may be
/// mergeable, so it starts again.
pub(crate) fn merge_all<M: Medium>(tree: &Tree<M, SimDram, FreeImmediately>) -> Result<(), Error> {
    let (mut level, mut from, mut is_last) = (1, None, true);
    loop {
        let mut behind = None;
        match tree.merge(0, level, from.as_deref(), &mut |key| behind = Some(key.to_vec()))? {
            Merged::Fewer => is_last &= level == 1,
            Merged::Nothing { has_more: true, .. } => from = behind,
            Merged::Nothing { has_more: false, .. } => (level, from) = (level + 1, None),
            Merged::Beyond if !is_last => (level, from, is_last) = (1, None, true),
            Merged::Beyond | Merged::NotNow => return Ok(()),
        }
    }
}

const fn options(in_place: bool) -> Options {
    Options { order: ORDER, in_place }
}

impl<const IN_PLACE: bool> Crashed<IN_PLACE> {
    fn write(&self, key: &[u8], change: Change<'_>) -> Result<bool, Failure> {
        self.0.write(0, key, change, &mut |_| true).map(|written| written.was_there).map_err(failure)
    }
}

impl<const IN_PLACE: bool> Operations for Crashed<IN_PLACE> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.0.get(key, |value| value.bytes.to_vec()).map_err(failure)
    }

    fn try_get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        match self.0.try_get(key, |value| value.bytes.to_vec()) {
            Err(Error::WouldWait) => Ok(None),
            found => found.map(Some).map_err(failure),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.write(key, put(value)).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.write(key, Change::Delete)
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let mut is_equal = |held: Option<&Value<'_>>| held.map(|held| held.bytes) == expected;
        let change = new.map_or(Change::Delete, put);
        self.0.write(0, key, change, &mut is_equal).map(|written| written.is_done).map_err(failure)
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let way = if direction == Direction::Forward { Way::Forward } else { Way::Backward };
        let mut bound = from.map(<[u8]>::to_vec);
        loop {
            let mut page = Copied::default();
            let has_more = self.0.scan(bound.as_ref().map(|key| &key[..]), way, &mut page).map_err(failure)?;
            let shown = page.items.iter().try_for_each(|(key, value)| each(key, value));
            if shown == ControlFlow::Break(()) || !has_more {
                return Ok(true);
            }
            bound = if way == Way::Forward { Bound::Included(page.fence) } else { Bound::Excluded(page.fence) };
        }
    }

    fn clear(&self) -> Result<(), Failure> {
        self.0.clear(0).map_err(failure)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.0.figures().map(|figures| figures.key_count).map_err(failure)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut show = |key: &[u8], value: &[u8]| {
            each(key, value);
            ControlFlow::Continue(())
        };
        self.scan(Bound::Unbounded, Direction::Forward, &mut show).map(drop)
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let mut damage = Vec::new();
        let report = &mut |found: pbtree::Damage| damage.push(format!("{:#x}: {}", found.offset, found.what));
        self.0.check(report).map_err(failure)?;
        Ok(damage)
    }
}

impl<const IN_PLACE: bool> Subject for Crashed<IN_PLACE> {
    type Medium = Sim;

    fn format(medium: Sim) -> Result<Self, Failure> {
        engine::relax_by_threads();
        Tree::format(medium, &parameters(), options(IN_PLACE), SimDram, FreeImmediately)
            .map(Crashed)
            .map_err(heap_failure)
    }

    fn open(medium: Sim) -> Result<Self, Failure> {
        Tree::open(medium, options(IN_PLACE), SimDram, FreeImmediately).map(Crashed).map_err(heap_failure)
    }

    fn open_to_read(medium: Sim) -> Option<Result<Self, Failure>> {
        Some(Self::open(medium))
    }

    fn settle(&self) -> Result<(), Failure> {
        self.0.sweep().and_then(|()| merge_all(&self.0)).map_err(failure)
    }

    /// The places that the walk over the tree reaches are exactly those in use.
    fn space(&self, _contents: &Contents) -> Option<Space> {
        let needed_bytes = self.0.check(&mut |_| {}).ok()?.used_bytes;
        Some(Space { live_bytes: self.0.heap().stats().live_bytes, needed_bytes })
    }
}
