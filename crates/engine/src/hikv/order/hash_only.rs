//! A store without order.

use index::partitioned_hash::{Context, Garbage};
use pmem::{Dram, Medium};

use super::{Order, Written};
use crate::hikv::HiKv;
use crate::hikv::ops::place_of;
use crate::{Error, OrderStats, OrderedEngine, Progress};

/// No order: writers retire what they replace, and that is all.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashOnly;

impl<M: Medium, D: Dram> Order<M, D> for HashOnly {
    type Ticket<'a> = ();

    #[inline(always)]
    fn take(&self, _: usize) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn tell(&self, cx: Context<'_, M, D>, (): (), written: Written<'_>) -> Result<(), Error> {
        if let Some(old) = written.old {
            cx.retire(Garbage::Place(place_of(old)?));
        }
        Ok(())
    }

    fn make_room(&self, _: Context<'_, M, D>, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn suspend(&self, _: Context<'_, M, D>) -> Result<(), Error> {
        Ok(())
    }

    fn resume(&self) {}

    fn step(_: &HiKv<M, D, HashOnly>) -> Result<Progress, Error> {
        Ok(Progress::Idle)
    }

    fn wants_step(&self) -> bool {
        false
    }

    fn operations(_: &HiKv<M, D, HashOnly>) -> Option<&dyn OrderedEngine> {
        None
    }

    fn stats(&self) -> Option<OrderStats> {
        None
    }
}
