//! The workloads by name.

use std::fmt;
use std::str::FromStr;

use crate::subject::Need;

/// What the calling threads do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workload {
    /// Reads present keys into a buffer that is used again.
    Get,
    /// Reads present keys into memory of their own.
    GetOwned,
    /// Reads present keys in place, and copies the value out.
    GetWith,
    /// Reads absent keys.
    Miss,
    /// Reads present keys 16 at a time; operations are keys, latencies are of a whole batch.
    MultiGet,
    /// Adds new keys.
    Insert,
    /// Replaces the values of present keys.
    Update,
    /// Removes present keys, each once.
    Delete,
    /// Builds the order, once; operations are keys, each latency is the whole time.
    Rebuild,
    /// Reads 1 to 100 items in order, from a present key on; operations are scans.
    Scan,
    /// As [`Workload::Insert`], with order kept.
    InsertOrdered,
    /// As [`Workload::Update`], with order kept.
    UpdateOrdered,
    /// As [`Workload::Delete`], with order kept.
    DeleteOrdered,
    /// YCSB A: half reads, half updates, skewed.
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates, skewed.
    YcsbB,
    /// YCSB C: reads, skewed.
    YcsbC,
    /// YCSB D: 95 % reads of the latest keys, 5 % inserts.
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 items from skewed keys on, 5 % inserts.
    YcsbE,
    /// YCSB F: half reads, half reads each followed by an update of the same key, skewed.
    YcsbF,
}

impl Workload {
    /// Each of them, in the order of the enum.
    pub const ALL: [Workload; 19] = {
        use Workload::*;
        [
            Get,
            GetOwned,
            GetWith,
            Miss,
            MultiGet,
            Insert,
            Update,
            Delete,
            Rebuild,
            Scan,
            InsertOrdered,
            UpdateOrdered,
            DeleteOrdered,
            YcsbA,
            YcsbB,
            YcsbC,
            YcsbD,
            YcsbE,
            YcsbF,
        ]
    };

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Get => "get",
            Workload::GetOwned => "get_owned",
            Workload::GetWith => "get_with",
            Workload::Miss => "miss",
            Workload::MultiGet => "multiget",
            Workload::Insert => "insert",
            Workload::Update => "update",
            Workload::Delete => "delete",
            Workload::Rebuild => "rebuild",
            Workload::Scan => "scan",
            Workload::InsertOrdered => "insert-ordered",
            Workload::UpdateOrdered => "update-ordered",
            Workload::DeleteOrdered => "delete-ordered",
            Workload::YcsbA => "ycsb-a",
            Workload::YcsbB => "ycsb-b",
            Workload::YcsbC => "ycsb-c",
            Workload::YcsbD => "ycsb-d",
            Workload::YcsbE => "ycsb-e",
            Workload::YcsbF => "ycsb-f",
        }
    }

    /// True for those that need a store with order.
    pub fn is_ordered(self) -> bool {
        use Workload::*;
        matches!(self, Rebuild | Scan | InsertOrdered | UpdateOrdered | DeleteOrdered | YcsbE)
    }

    /// What a store has to offer for it.
    #[must_use]
    pub fn needs(self) -> &'static [Need] {
        use Workload::*;
        match self {
            Get | GetOwned | GetWith | Miss | MultiGet | YcsbA | YcsbB | YcsbC | YcsbF => &[Need::Gets],
            Insert | Delete => &[Need::Deletes],
            Update => &[],
            Rebuild | Scan => &[Need::Order, Need::Scans],
            InsertOrdered | DeleteOrdered => &[Need::Order, Need::Deletes],
            UpdateOrdered => &[Need::Order],
            YcsbD => &[Need::Gets, Need::Deletes],
            YcsbE => &[Need::Order, Need::Scans, Need::Deletes],
        }
    }

    /// The one whose least time the machine's bounds tell, where they do.
    pub(crate) fn bounded_as(self) -> Option<Workload> {
        use Workload::*;
        match self {
            Get | GetOwned | GetWith => Some(Get),
            Miss | MultiGet | Scan | Insert | Update | Delete => Some(self),
            InsertOrdered => Some(Insert),
            UpdateOrdered => Some(Update),
            DeleteOrdered => Some(Delete),
            Rebuild | YcsbA | YcsbB | YcsbC | YcsbD | YcsbE | YcsbF => None,
        }
    }

    /// True if it can be measured on the store that `other` was measured on. A workload that needs no order is measured
    /// without, and an order that is there is not built again.
    pub fn can_follow(self, other: Workload) -> bool {
        self.is_ordered() == other.is_ordered() && self != Workload::Rebuild
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Workload, UnknownWorkload> {
        let named = Workload::ALL.into_iter().find(|workload| workload.name() == name);
        named.ok_or_else(|| UnknownWorkload { name: name.to_owned() })
    }
}

/// A name that is none of a workload.
#[derive(Debug)]
pub struct UnknownWorkload {
    name: String,
}

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no workload '{}'; there are {}", self.name, Workload::ALL.map(Workload::name).join(", "))
    }
}

impl std::error::Error for UnknownWorkload {}
