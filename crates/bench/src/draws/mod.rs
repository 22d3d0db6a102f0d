//! Which operations a thread of a workload does, on which records: drawn ahead of time, without the store.

mod consuming;
mod steady;
mod ycsb;

use hikv::pool::Kind;
use rand::rngs::SmallRng;

use crate::seat::Seat;
use crate::workload::Workload;

use self::consuming::{Delete, Insert};
use self::steady::{Scan, Steady};
use self::ycsb::{Mix, Ycsb};

/// What is done to a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// Reads it into a buffer.
    GetInto,
    /// Reads it into memory of its own.
    GetOwned,
    /// Reads it in place.
    GetWith,
    /// Reads it, which is not there.
    Miss,
    /// Reads it with the next fifteen.
    MultiGet,
    /// Replaces its value.
    Update,
    /// Adds it.
    Insert,
    /// Removes it.
    Delete,
    /// Reads so many items from it on.
    Scan(u64),
    /// Reads it, then replaces its value.
    ReadThenUpdate,
}

impl Act {
    /// What it is for a pool of threads.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Act::GetInto | Act::GetOwned | Act::GetWith | Act::Miss | Act::MultiGet => Kind::Get,
            Act::Update | Act::Insert | Act::Delete | Act::ReadThenUpdate => Kind::Write,
            Act::Scan(_) => Kind::Scan,
        }
    }
}

/// An operation to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) act: Act,
    pub(crate) record: u64,
}

/// A thread's operations, one after the other.
pub(crate) trait Draws: Send {
    /// The next one; `None` when none is left.
    fn draw(&mut self, rng: &mut SmallRng) -> Option<Draw>;

    /// Makes room for another pass, where a pass uses records up. True if it begins anew, so that what was drawn and not done is drawn
    /// again: a stream that removed records has put them back.
    fn rewind(&mut self) -> bool {
        false
    }
}

/// What a thread does of `workload`; `None` if that is not made of operations.
pub(crate) fn draws_of(workload: Workload, seat: &Seat) -> Option<Box<dyn Draws>> {
    let steady = |act| Some(Box::new(Steady::new(act, seat)) as Box<dyn Draws>);
    let ycsb = |mix| Some(Box::new(Ycsb::new(mix, seat)) as Box<dyn Draws>);
    match workload {
        Workload::Get => steady(Act::GetInto),
        Workload::GetOwned => steady(Act::GetOwned),
        Workload::GetWith => steady(Act::GetWith),
        Workload::Miss => steady(Act::Miss),
        Workload::MultiGet => steady(Act::MultiGet),
        Workload::Update | Workload::UpdateOrdered => steady(Act::Update),
        Workload::Insert | Workload::InsertOrdered => Some(Box::new(Insert::new(seat))),
        Workload::Delete | Workload::DeleteOrdered => Some(Box::new(Delete::new(seat))),
        Workload::Scan => Some(Box::new(Scan::new(seat))),
        Workload::YcsbA => ycsb(Mix::A),
        Workload::YcsbB => ycsb(Mix::B),
        Workload::YcsbC => ycsb(Mix::C),
        Workload::YcsbD => ycsb(Mix::D),
        Workload::YcsbE => ycsb(Mix::E),
        Workload::YcsbF => ycsb(Mix::F),
        Workload::Rebuild => None,
    }
}
