//! A writer: the holder of a lane, which changes one leaf at a time.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::{HeapError, Place, Reservation};
use pmem::{Dram, DramBox, Level, Medium, Offset, Ticket};
use undo_log::{Lane, Lanes};

use crate::Error;
use crate::canary;
use crate::key;
use crate::node::Meta;
use crate::nodes::{Nodes, Reached};
use crate::options::Options;
use crate::pack;
use crate::read::Reader;
use crate::retire::Retire;
use crate::space::Space;
use crate::split;
use crate::stamps::Stamps;
use crate::value::{NewValue, Value};

/// The state that all writers of a tree share.
pub(crate) struct Writers<D: Dram> {
    lanes: DramBox<Lanes, D>,
    stamps: DramBox<Stamps, D>,
    /// The approximate number of keys deleted since the last attempt to merge.
    vacated: AtomicU64,
    in_place: bool,
}

impl<D: Dram> Writers<D> {
    /// Creates the state. `in_place` is true if values may overwrite others.
    pub(crate) fn new(lanes: DramBox<Lanes, D>, in_place: bool, dram: D) -> Result<Writers<D>, HeapError> {
        Ok(Writers { lanes, stamps: Stamps::new(dram)?, vacated: AtomicU64::new(0), in_place })
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Counts deleted keys.
    pub(crate) fn vacate(&self, count: u64) {
        self.vacated.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the number of deleted keys and resets it.
    pub(crate) fn take_vacated(&self) -> u64 {
        self.vacated.swap(0, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn vacated_count(&self) -> u64 {
        self.vacated.load(Ordering::Relaxed)
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Takes all lanes in ascending order, and calls `work` with the first. No writer runs meanwhile.
    pub(crate) fn exclude<'t, T>(&'t self, work: impl FnOnce(Lane<'t>) -> Result<T, Error>) -> Result<T, Error> {
        let mut lanes = [const { None }; undo_log::layout::LANE_COUNT_MAX];
        (0..self.lanes.count()).for_each(|lane| lanes[lane] = Some(self.lanes.take_exactly(lane)));
        work(lanes[0].take().expect("a tree has a lane"))
    }
}

/// The holder of a lane.
pub(crate) struct Writer<'t, M: Medium, D: Dram, R> {
    reader: &'t Reader<M, D>,
    space: &'t Space<D, R>,
    shared: &'t Writers<D>,
    agent: usize,
    lane: Lane<'t>,
}

impl<'t, M: Medium, D: Dram, R: Retire<M, D>> Writer<'t, M, D, R> {
    /// Returns the writer that holds `lane`. Writers with different `agent`s do not contend for the allocator.
    #[inline]
    pub(crate) fn new(
        reader: &'t Reader<M, D>,
        space: &'t Space<D, R>,
        shared: &'t Writers<D>,
        agent: usize,
        lane: Lane<'t>,
    ) -> Writer<'t, M, D, R> {
        Writer { reader, space, shared, agent, lane }
    }

    #[inline(always)]
    pub(crate) fn reader(&self) -> &'t Reader<M, D> {
        self.reader
    }

    #[inline(always)]
    pub(crate) fn nodes(&self) -> &'t Nodes<M, D> {
        self.reader.nodes()
    }

    #[inline(always)]
    pub(crate) fn medium(&self) -> &'t M {
        self.reader.nodes().medium()
    }

    pub(crate) fn shared(&self) -> &'t Writers<D> {
        self.shared
    }

    pub(crate) fn lane(&mut self) -> &mut Lane<'t> {
        &mut self.lane
    }

    pub(crate) fn let_go(&self, place: Place) {
        self.space.let_go(self.medium(), place);
    }

    /// Gives the lane a log for this many bytes of ranges.
    pub(crate) fn fit_log(&mut self, ranges_bytes: u64) -> Result<(), Error> {
        Ok(self.lane.fit_log(self.reader.nodes().medium(), self.space.heap(), ranges_bytes)?)
    }

    /// Ensures that the leaf of `key` has space, unless other threads fill it again immediately.
    pub(crate) fn make_space(&mut self, key: &[u8]) -> Result<(), Error> {
        split::make_space(self.reader.nodes(), self.space, &mut self.lane, self.agent, key)
    }

    /// Packs a leaf if that is worthwhile; the leaf then has space.
    pub(crate) fn pack<'a>(&mut self, leaf: Reached<'a, M>) -> Result<Option<Reached<'a, M>>, Error> {
        let (medium, space) = (self.medium(), self.space);
        pack::pack(&mut self.lane, leaf, |place| space.let_go(medium, place))
    }

    /// Writes a key into a new chunk and flushes it.
    pub(crate) fn write_key(&self, key: &[u8]) -> Result<Reservation<'t, D>, Error> {
        key::write(self.medium(), self.space.heap(), self.agent, key)
    }

    /// Writes a value of a key with this checksum into a new chunk and flushes it.
    pub(crate) fn write_value(&self, checksum: u32, value: &NewValue<'_>) -> Result<Reservation<'t, D>, Error> {
        let stamp = self.shared.stamps.next(self.medium(), self.lane.index())?;
        value.write(self.medium(), self.space.heap(), self.agent, (stamp, self.reader.owner(checksum)))
    }

    /// Stores another value word, or 0, and releases the old value. The new value has been ordered.
    pub(crate) fn set_value(
        &mut self,
        checksum: u32,
        leaf: Reached<'_, M>,
        i: usize,
        word: u64,
        old: Option<Place>,
    ) -> Ticket {
        let medium = self.medium();
        if word == 0 {
            self.shared.vacate(1);
        }
        if medium.breaks(canary::FREE_BEFORE_UNLINK) {
            old.into_iter().for_each(|old| self.let_go(old));
        }
        let at = leaf.node.value_at(i);
        self.lane.intend(medium, at);
        medium.store(at, word, Ordering::Release);
        let held = Some(leaf.held).filter(|_| !medium.breaks(canary::UNLOCKED_BEFORE_COMMIT));
        if word != 0 || !medium.breaks(canary::DELETE_NOT_FLUSHED) {
            medium.flush(at.span(8));
        }
        let ticket = medium.commit(Level::default());
        held.iter().for_each(|held| self.reader.unsettled().committed(held, checksum, ticket));
        if !medium.breaks(canary::FREE_BEFORE_UNLINK) {
            old.into_iter().for_each(|old| self.let_go(old));
        }
        ticket
    }

    /// Inserts a pair, whose chunks are flushed, at `i` of a leaf that has space.
    pub(crate) fn insert(&mut self, checksum: u32, leaf: Reached<'_, M>, i: usize, pair: (u64, u64)) -> Ticket {
        let (medium, node, Meta { level, count }) = (self.medium(), leaf.node, leaf.meta);
        let ticket = if i == count {
            self.append(&leaf, pair)
        } else {
            // SAFETY: the leaf is locked exclusively.
            unsafe { self.lane.log(medium, &[node.meta_span(), node.pairs(i, count)]) };
            node.insert_pair(i, count, pair);
            node.set_meta(Meta { level, count: count + 1 });
            medium.flush(node.pairs(i, count + 1));
            medium.flush(node.meta_span());
            self.lane.finish(medium)
        };
        self.reader.unsettled().committed(&leaf.held, checksum, ticket);
        ticket
    }

    /// Adds a pair behind a leaf's last.
    ///
    /// # Steps
    /// Chunks and pair flushed, order: *a crash leaves bytes behind the last pair.* Meta, flush, commit: *with or
    /// without the pair.*
    fn append(&mut self, &Reached { node, meta, .. }: &Reached<'_, M>, pair: (u64, u64)) -> Ticket {
        let (medium, Meta { level, count }) = (self.medium(), meta);
        node.set_pair(count, pair);
        medium.flush(node.pairs(count, count + 1));
        medium.order_unless(canary::COUNT_BEFORE_PAIR);
        self.lane.intend(medium, node.at);
        node.set_meta(Meta { level, count: count + 1 });
        medium.flush(node.meta_span());
        medium.commit(Level::default())
    }

    /// Returns true if `new` may be written over `old`.
    pub(crate) fn fits_over(&self, new: &NewValue<'_>, old: &Value<'_>) -> bool {
        self.may_fit_over(new) && new.chunk_bytes() == old.chunk_bytes() && new.expiry.is_some() == old.expiry.is_some()
    }

    /// Returns true if `new` may be written over some value.
    #[inline]
    pub(crate) fn may_fit_over(&self, new: &NewValue<'_>) -> bool {
        self.shared.in_place && new.chunk_bytes() <= Options::IN_PLACE_BYTES_MAX
    }

    /// Writes a value over another one of its length, at `at`.
    pub(crate) fn write_over(
        &mut self,
        checksum: u32,
        leaf: Reached<'_, M>,
        new: &NewValue<'_>,
        at: Offset,
    ) -> Result<Ticket, Error> {
        let medium = self.medium();
        let stamp = self.shared.stamps.next(medium, self.lane.index())?;
        let chunk = at.span(new.chunk_bytes().next_multiple_of(8));
        let ranges = if medium.breaks(canary::IN_PLACE_NOT_LOGGED) { &[][..] } else { &[chunk] };
        // SAFETY: the leaf is locked exclusively, and no thread reads or writes its values without its lock.
        unsafe {
            self.lane.log(medium, ranges);
            new.write_over(medium, at, (stamp, self.reader.owner(checksum)));
        }
        let ticket = self.lane.finish(medium);
        self.reader.unsettled().committed(&leaf.held, checksum, ticket);
        Ok(ticket)
    }
}
