//! The operations of a workload's thread and their records, drawn ahead of time without the store.

mod consuming;
mod steady;
mod ycsb;

use hikv::pool::Kind;
use rand::rngs::SmallRng;

use crate::worker::Worker;
use crate::workload::Workload;

use self::consuming::{Delete, Insert, TakeFirst};
use self::steady::{Scan, Steady};
use self::ycsb::{Mix, Ycsb};

/// An operation on a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// Reads the record into a buffer.
    GetInto,
    /// Reads the record into memory of its own.
    GetOwned,
    /// Reads the record in place.
    GetWith,
    /// Reads a record that does not exist.
    Miss,
    /// Reads the record with the next fifteen.
    MultiGet,
    /// Replaces the record's value.
    Update,
    /// Adds the record.
    Insert,
    /// Removes the record.
    Delete,
    /// Reads this many items, beginning at the record.
    Scan(u64),
    /// Reads the record, then replaces its value.
    ReadThenUpdate,
    /// Reads the record and the next one in a transaction, and replaces both values.
    Transact,
    /// Does the same, but without a transaction.
    TransactParts,
    /// Reads the record and the next one in a transaction.
    TransactRead,
    /// Removes the first record in order in a transaction.
    TakeFirst,
}

impl Act {
    /// Returns the operation's kind in the statistics of a thread pool.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Act::GetInto | Act::GetOwned | Act::GetWith | Act::Miss | Act::MultiGet | Act::TransactRead => Kind::Get,
            Act::Update | Act::Insert | Act::Delete | Act::ReadThenUpdate => Kind::Write,
            Act::Transact | Act::TransactParts | Act::TakeFirst => Kind::Write,
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

/// A thread's operations in sequence.
pub(crate) trait Draws: Send {
    /// Returns the next operation; `None` when none is left.
    fn draw(&mut self, rng: &mut SmallRng) -> Option<Draw>;

    /// Prepares another pass, if a pass uses records up. Returns true if the sequence starts again, so that operations
    /// that were drawn and not done are drawn again: a stream that removed records has put them back.
    fn rewind(&mut self) -> bool {
        false
    }
}

/// Returns a thread's operations of `workload`; `None` if the workload is not made of operations.
pub(crate) fn draws_of(workload: Workload, worker: &Worker) -> Option<Box<dyn Draws>> {
    let steady = |act| Some(Box::new(Steady::new(act, worker)) as Box<dyn Draws>);
    let ycsb = |mix| Some(Box::new(Ycsb::new(mix, worker)) as Box<dyn Draws>);
    match workload {
        Workload::Get => steady(Act::GetInto),
        Workload::GetOwned => steady(Act::GetOwned),
        Workload::GetWith => steady(Act::GetWith),
        Workload::Miss => steady(Act::Miss),
        Workload::MultiGet => steady(Act::MultiGet),
        Workload::Update | Workload::UpdateOrdered => steady(Act::Update),
        Workload::Insert | Workload::InsertOrdered => Some(Box::new(Insert::new(worker))),
        Workload::Delete | Workload::DeleteOrdered => Some(Box::new(Delete::new(worker))),
        Workload::Scan => Some(Box::new(Scan::new(worker))),
        Workload::YcsbA => ycsb(Mix::A),
        Workload::YcsbB => ycsb(Mix::B),
        Workload::YcsbC => ycsb(Mix::C),
        Workload::YcsbD => ycsb(Mix::D),
        Workload::YcsbE => ycsb(Mix::E),
        Workload::YcsbF => ycsb(Mix::F),
        Workload::Transact => steady(Act::Transact),
        Workload::TransactParts => steady(Act::TransactParts),
        Workload::TransactRead => steady(Act::TransactRead),
        Workload::TransactFirst => Some(Box::new(TakeFirst::new(worker))),
        Workload::Rebuild => None,
    }
}
