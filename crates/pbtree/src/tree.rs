//! An open tree: its reader, its writers' shared state, its space, and the walks over it.

mod open;

use core::ops::Bound;

use heap::{Heap, Place};
use pmem::{Dram, Medium};
use undo_log::Recovered;

use crate::Error;
use crate::batch::{self, BatchWrite};
use crate::check::{self, Check, Damage, Figures};
use crate::clear;
use crate::locks::WaitPolicy;
use crate::merge::{Merged, Merger};
use crate::nodes::Nodes;
use crate::options::Options;
use crate::read::{Absence, Reader, check_key};
use crate::retire::Retire;
use crate::salvage;
use crate::scan::{Direction, Ended, Page, Scan};
use crate::space::Space;
use crate::sweep;
use crate::value::Value;
use crate::walk::Walks;
use crate::write::{Change, Write, Written};
use crate::writer::{Writer, Writers};

/// A persistent B+tree in a separate region. Threads read and write concurrently.
pub struct Tree<M: Medium, D: Dram, R: Retire<M, D>> {
    reader: Reader<M, D>,
    space: Space<D, R>,
    writers: Writers<D>,
    walks: Walks<D>,
    recovered: Recovered,
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Returns the tree's medium.
    pub fn medium(&self) -> &M {
        self.nodes().medium()
    }

    /// Returns the region's allocator.
    pub fn heap(&self) -> &Heap<D> {
        self.space.heap()
    }

    /// Returns the bytes of DRAM that its locks and the records of its changes have allocated.
    pub fn dram_bytes(&self) -> u64 {
        self.nodes().dram_bytes() + self.reader.unsettled().allocated_bytes()
    }

    /// Returns its options, including its order.
    pub fn options(&self) -> Options {
        Options { order: self.nodes().order(), in_place: self.writers.is_in_place() }
    }

    /// Returns the changes that opening has undone.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    fn nodes(&self) -> &Nodes<M, D> {
        self.reader.nodes()
    }

    /// Calls `show` with a key's value and returns the result; `None` if the key is absent. `show` runs under the
    /// leaf's lock, so it should only copy. The value is durable when this returns.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`]; [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.medium().held(|| self.reader.get(key, WaitPolicy::Wait, Absence::Assumed, show))
    }

    /// Gets as [`Tree::get`] does, but returns an error if damage to the leaf makes the key seem absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_verified<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.medium().held(|| self.reader.get(key, WaitPolicy::Wait, Absence::Verified, show))
    }

    /// Gets as [`Tree::get`] does, for callers that may not wait for a lock.
    ///
    /// # Errors
    /// As for [`Tree::get`]; [`Error::WouldWait`].
    pub fn try_get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.medium().held(|| self.reader.get(key, WaitPolicy::Try, Absence::Assumed, show))
    }

    /// Passes the keys of one leaf to `page`, starting at `from`; there may be none. Returns false if that was the
    /// last leaf. The items are durable when this returns.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn scan(&self, from: Bound<&[u8]>, direction: Direction, page: &mut impl Page) -> Result<bool, Error> {
        Ok(self.scanning(direction).page(from, usize::MAX, page)? != Ended::AtEnd)
    }

    /// Begins a scan of several pages.
    pub fn scanning(&self, direction: Direction) -> Scan<'_, M, D> {
        Scan::new(&self.reader, direction)
    }

    /// Changes a key if `allowed` returns true for its present value. `allowed` may be called more than once, and
    /// runs under the leaf's lock. Threads with different `agent`s do not contend for lanes and allocator. The
    /// change, or the value that `allowed` saw, is durable when this returns.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::Heap`] if there is no space; [`Error::Damaged`].
    pub fn write(
        &self,
        agent: usize,
        key: &[u8],
        change: Change<'_>,
        allowed: &mut dyn FnMut(Option<&Value<'_>>) -> bool,
    ) -> Result<Written, Error> {
        check_key(key)?;
        let lane = self.writers.lanes().take(agent);
        let writer = Writer::new(&self.reader, &self.space, &self.writers, agent, lane);
        self.medium().held(|| Write::new(writer, key, change).run(allowed))
    }

    /// Changes several keys in one step. The keys are in ascending order and distinct, and no element of `writes` was
    /// used before. Before anything changes, `holds` is called with the number and the present value of each key in
    /// `asked`. If it returns false, nothing is changed, and that number is returned.
    ///
    /// # Errors
    /// As for [`Tree::write`].
    ///
    /// # Panics
    /// If the keys are not in order.
    pub fn batch(
        &self,
        agent: usize,
        asked: &[&[u8]],
        holds: &mut dyn FnMut(usize, Option<&Value<'_>>) -> bool,
        writes: &mut [BatchWrite<'_>],
    ) -> Result<Option<usize>, Error> {
        self.medium().held(|| batch::run(&self.reader, &self.space, &self.writers, agent, asked, holds, writes))
    }

    /// Merges two children of one node of `level` (1 and above): of the node that covers the key `from`, or of the
    /// first one. `ends_at` is called with the start of the next part; its last call counts.
    ///
    /// # Errors
    /// [`Error::Heap`] if there is no space for a node, or the medium fails; [`Error::Damaged`].
    pub fn merge(
        &self,
        agent: usize,
        level: u8,
        from: Option<&[u8]>,
        ends_at: &mut dyn FnMut(&[u8]),
    ) -> Result<Merged, Error> {
        let alone = self.heap().is_swept().then(|| self.walks.exclude(WaitPolicy::Try));
        let Some(Ok(_alone)) = alone else { return Ok(Merged::NotNow) };
        let merger = Merger::new(self.nodes(), &self.space, self.writers.lanes(), agent);
        self.medium().held(|| merger.merge(level, from, ends_at))
    }

    /// Returns the approximate number of keys deleted since the last call, plus the pairs that a sweep found missing
    /// in sparse nodes, and resets it.
    pub fn take_vacated(&self) -> u64 {
        self.writers.take_vacated()
    }

    /// Returns the same number without resetting it.
    #[inline]
    pub fn vacated_count(&self) -> u64 {
        self.writers.vacated_count()
    }

    /// Walks the whole tree and frees everything that it does not reach. All free space is known when this returns,
    /// even if another thread's sweep has found it.
    ///
    /// # Errors
    /// [`Error::Damaged`], with nothing freed; [`Error::Heap`] if the medium fails.
    pub fn sweep(&self) -> Result<(), Error> {
        sweep::sweep(self.nodes(), &self.walks, self.heap(), &self.writers)
    }

    /// Removes every key, whatever is damaged. Finishes the sweep first, which must not run over a tree that is being
    /// released.
    ///
    /// # Errors
    /// [`Error::Heap`] if there is no space for a node, or the medium fails.
    pub fn clear(&self, agent: usize) -> Result<(), Error> {
        let swept = clear::skip_damaged(self.sweep())?;
        // Before any lane is taken, as for merges.
        let alone = swept.is_none().then(|| self.walks.exclude(WaitPolicy::Wait)).transpose()?;
        let unsettled = self.reader.unsettled();
        let ticket =
            self.writers.exclude(|lane| clear::replace_root(self.nodes(), &self.space, unsettled, agent, lane))?;
        drop(alone);
        unsettled.acknowledge(self.medium(), ticket)?;
        self.sweep()
    }

    /// Calls `each` with every place that the tree occupies, except the lanes' logs.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a word or a node is damaged.
    pub fn each_named(&self, each: &mut dyn FnMut(Place)) -> Result<(), Error> {
        let nodes = self.nodes();
        self.walks.each_node_upwards(nodes, |node| nodes.places(node).try_for_each(|place| place.map(&mut *each)))
    }

    /// Calls `each` with every key whose value is intact. Skips damaged places and reports each to `left`. The store
    /// is only read.
    ///
    /// # Errors
    /// Those of `left`.
    pub fn each_intact(
        &self,
        each: &mut dyn FnMut(&[u8], &Value<'_>),
        left: &mut dyn FnMut(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        salvage::each_intact(&self.reader, each, left)
    }

    /// Reads the whole tree and reports its damage: keys out of order or outside their separators, chunks whose
    /// checksum does not fit, words that refer to no valid place or to a free one. Other threads may read and write
    /// at the same time.
    ///
    /// # Errors
    /// [`Error::Heap`] if the medium fails.
    pub fn check(&self, on_damage: &mut dyn FnMut(Damage)) -> Result<Figures, Error> {
        self.check_while(on_damage, &mut || true)
    }

    /// Checks as [`Tree::check`] does while `goes_on` returns true; it is called after every node.
    ///
    /// # Errors
    /// As for [`Tree::check`]; [`Error::Stopped`] once `goes_on` returns false.
    pub fn check_while(
        &self,
        on_damage: &mut dyn FnMut(Damage),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Figures, Error> {
        let (heap, lanes) = (self.heap(), self.writers.lanes());
        let logs_bytes: u64 = (0..lanes.count()).map(|lane| heap.table().place_bytes(lanes.log(lane))).sum();
        Check::new(&self.reader, heap, self.space.spare_bytes() + logs_bytes, on_damage).run(&self.walks, goes_on)
    }

    /// Counts nodes and pairs without reading keys and values; [`Figures::used_bytes`] stays 0.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn figures(&self) -> Result<Figures, Error> {
        check::figures(self.nodes(), &self.walks)
    }
}
