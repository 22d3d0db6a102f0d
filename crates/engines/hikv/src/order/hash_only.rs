//! A store without order.

use index::Position;
use pmem::{Backoff, Dram, Medium};

use super::{Order, Written};
use crate::HiKv;
use crate::snapshots::Disposal;
use engine::{Error, OrderStats, OrderedEngine, Progress, Wanted};

/// No order: writers retire what they replace, and that is all.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashOnly;

impl<M: Medium, D: Dram> Order<M, D> for HashOnly {
    type Ticket<'a> = ();

    #[inline(always)]
    fn take(&self, _: usize) -> Option<()> {
        Some(())
    }

    fn has_room(&self, _: usize) -> bool {
        true
    }

    fn queue_of(&self, _: usize) -> usize {
        0
    }

    #[inline(always)]
    fn tell(&self, disposal: Disposal<'_, M, D>, (): (), written: Written<'_>) {
        disposal.retire(written.old);
    }

    fn tell_all(&self, disposal: Disposal<'_, M, D>, _: usize, (): (), all: &[Written<'_>]) {
        all.iter().for_each(|written| disposal.retire(written.old));
    }

    fn make_room(_: &HiKv<M, D, HashOnly>, _: usize, _: &mut Backoff) -> Result<(), Error> {
        Ok(())
    }

    fn suspend(&self, _: Disposal<'_, M, D>) {}

    fn resume(&self) {}

    fn settle(_: &HiKv<M, D, HashOnly>) -> Result<bool, Error> {
        Ok(true)
    }

    fn key_count(&self) -> Option<u64> {
        None
    }

    fn each_sorted(_: &HiKv<M, D, HashOnly>, _: &mut dyn FnMut(Position)) -> Result<u64, Error> {
        Ok(0)
    }

    fn step(_: &HiKv<M, D, HashOnly>) -> Result<Progress, Error> {
        Ok(Progress::Idle)
    }

    fn wanted(&self) -> Wanted {
        Wanted::Nobody
    }

    fn operations(_: &HiKv<M, D, HashOnly>) -> Option<&dyn OrderedEngine> {
        None
    }

    fn stats(&self) -> Option<OrderStats> {
        None
    }
}
