//! Changes of one word or of no node at all: update, delete, update in place, and an insert at a leaf's end.

use core::sync::atomic::Ordering;

use heap::Place;
use pmem::{Dram, Level, Medium, Offset, Ticket};

use crate::canary;
use crate::descent::Reached;
use crate::node::Meta;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::{NewValue, Value};
use crate::write::Changing;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Orders flushed chunks before the word that will refer to them.
    pub(crate) fn order_chunks(&self) {
        self.medium.order_unless(canary::ITEM_NOT_ORDERED);
    }

    /// Stores another value word, or 0, and releases the old value. The new value has been ordered.
    pub(crate) fn set_value(
        &self,
        (lane, checksum): Changing<'_, '_>,
        leaf: Reached<'_, M>,
        i: usize,
        word: u64,
        old: Option<Place>,
    ) -> Ticket {
        if word == 0 {
            self.count_vacated(1);
        }
        if self.medium.breaks(canary::FREE_BEFORE_UNLINK) {
            old.into_iter().for_each(|old| self.let_go(old));
        }
        let at = leaf.node.value_at(i);
        lane.intend(&self.medium, at);
        self.medium.store(at, word, Ordering::Release);
        let held = Some(leaf.held).filter(|_| !self.medium.breaks(canary::UNLOCKED_BEFORE_COMMIT));
        if word != 0 || !self.medium.breaks(canary::DELETE_NOT_FLUSHED) {
            self.medium.flush(at.span(8));
        }
        let ticket = self.medium.commit(Level::default());
        held.iter().for_each(|held| self.committed(held, checksum, ticket));
        if !self.medium.breaks(canary::FREE_BEFORE_UNLINK) {
            old.into_iter().for_each(|old| self.let_go(old));
        }
        ticket
    }

    /// Adds a pair behind a leaf's last. The caller has checked that there is space.
    ///
    /// # Steps
    /// Chunks and pair flushed, order: *a crash leaves bytes behind the last pair.* Meta, flush, commit: *with or
    /// without the pair.*
    pub(crate) fn append(&self, (lane, checksum): Changing<'_, '_>, leaf: Reached<'_, M>, pair: (u64, u64)) -> Ticket {
        let Meta { level, count } = leaf.meta;
        let meta = Meta { level, count: count + 1 };
        leaf.node.set_pair(count, pair);
        self.medium.flush(leaf.node.pairs(count, count + 1));
        self.medium.order_unless(canary::COUNT_BEFORE_PAIR);
        lane.intend(&self.medium, leaf.node.at);
        leaf.node.set_meta(meta);
        self.medium.flush(leaf.node.meta_span());
        let ticket = self.medium.commit(Level::default());
        self.committed(&leaf.held, checksum, ticket);
        ticket
    }

    /// Returns true if `new` may be written over `old`.
    pub(crate) fn fits_over(&self, new: &NewValue<'_>, old: &Value<'_>) -> bool {
        self.may_fit_over(new) && new.chunk_bytes() == old.chunk_bytes() && new.expiry.is_some() == old.expiry.is_some()
    }

    /// Returns true if `new` may be written over some value.
    pub(crate) fn may_fit_over(&self, new: &NewValue<'_>) -> bool {
        self.options.in_place && new.chunk_bytes() <= crate::Options::IN_PLACE_BYTES_MAX
    }

    /// Writes a value over another one of its length.
    pub(crate) fn write_over(
        &self,
        (lane, checksum): Changing<'_, '_>,
        leaf: Reached<'_, M>,
        new: &NewValue<'_>,
        (at, stamp): (Offset, u64),
    ) -> Ticket {
        let chunk = at.span(new.chunk_bytes().next_multiple_of(8));
        let ranges = if self.medium.breaks(canary::IN_PLACE_NOT_LOGGED) { &[][..] } else { &[chunk] };
        // SAFETY: the leaf is locked exclusively, and no thread reads or writes its values without its lock.
        unsafe {
            lane.log(&self.medium, ranges);
            new.write_over(&self.medium, at, (stamp, self.owner(checksum)));
        }
        let ticket = lane.finish(&self.medium);
        self.committed(&leaf.held, checksum, ticket);
        ticket
    }
}
