//! The workloads by name.

use std::fmt;
use std::str::FromStr;

use crate::subject::Need;

/// The operations of the calling threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workload {
    /// Reads existing keys into a buffer that is reused.
    Get,
    /// Reads existing keys into memory of their own.
    GetOwned,
    /// Reads existing keys in place, and copies the value out.
    GetWith,
    /// Reads absent keys.
    Miss,
    /// Reads existing keys 16 at a time; operations are keys, latencies are of a complete batch.
    MultiGet,
    /// Adds new keys.
    Insert,
    /// Replaces the values of existing keys.
    Update,
    /// Removes existing keys, each once.
    Delete,
    /// Builds the ordered index once; operations are keys, each latency is the complete time.
    Rebuild,
    /// Reads 1 to 100 items in order, beginning at an existing key; operations are scans.
    Scan,
    /// Like [`Workload::Insert`], with order kept.
    InsertOrdered,
    /// Like [`Workload::Update`], with order kept.
    UpdateOrdered,
    /// Like [`Workload::Delete`], with order kept.
    DeleteOrdered,
    /// YCSB A: 50 % reads, 50 % updates, skewed.
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates, skewed.
    YcsbB,
    /// YCSB C: reads, skewed.
    YcsbC,
    /// YCSB D: 95 % reads of the latest keys, 5 % inserts.
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 items beginning at skewed keys, 5 % inserts.
    YcsbE,
    /// YCSB F: 50 % reads, 50 % reads each followed by an update of the same key, skewed.
    YcsbF,
    /// Transactions that read two keys and replace both values.
    Transact,
    /// The operations of [`Workload::Transact`], each by itself: two reads and two updates, counted as one operation.
    TransactParts,
    /// Transactions that read two keys.
    TransactRead,
    /// Transactions that remove the first item in order, as a consumer of a queue does.
    TransactFirst,
}

impl Workload {
    /// All workloads, in the order of the enum.
    pub const ALL: [Workload; 23] = {
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
            Transact,
            TransactParts,
            TransactRead,
            TransactFirst,
        ]
    };

    /// Returns the name on the command line and in reports.
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
            Workload::Transact => "transact",
            Workload::TransactParts => "transact-parts",
            Workload::TransactRead => "transact-read",
            Workload::TransactFirst => "transact-first",
        }
    }

    /// Returns true for workloads that need a store with order.
    pub fn is_ordered(self) -> bool {
        use Workload::*;
        matches!(self, Rebuild | Scan | InsertOrdered | UpdateOrdered | DeleteOrdered | YcsbE | TransactFirst)
    }

    /// Returns the operations that a store must offer for the workload.
    #[must_use]
    pub fn needs(self) -> &'static [Need] {
        use Workload::*;
        match self {
            Get | GetOwned | GetWith | Miss | MultiGet | YcsbA | YcsbB | YcsbC | YcsbF | TransactParts => &[Need::Gets],
            Insert | Delete => &[Need::Deletes],
            Update => &[],
            Rebuild | Scan => &[Need::Order, Need::Scans],
            InsertOrdered | DeleteOrdered => &[Need::Order, Need::Deletes],
            UpdateOrdered => &[Need::Order],
            YcsbD => &[Need::Gets, Need::Deletes],
            YcsbE => &[Need::Order, Need::Scans, Need::Deletes],
            Transact | TransactRead => &[Need::Transactions],
            TransactFirst => &[Need::Order, Need::Transactions],
        }
    }

    /// Returns the workload whose bound applies to this one, if there is one.
    pub(crate) fn bounded_as(self) -> Option<Workload> {
        use Workload::*;
        match self {
            Get | GetOwned | GetWith => Some(Get),
            Miss | MultiGet | Scan | Insert | Update | Delete => Some(self),
            InsertOrdered => Some(Insert),
            UpdateOrdered => Some(Update),
            DeleteOrdered => Some(Delete),
            Rebuild | YcsbA | YcsbB | YcsbC | YcsbD | YcsbE | YcsbF => None,
            Transact | TransactParts | TransactRead | TransactFirst => None,
        }
    }

    /// Returns true if the workload can be measured on the store on which `other` was measured. A workload that needs
    /// no order is measured without it, and an existing ordered index is not built again.
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

/// A name that no workload has.
#[derive(Debug)]
pub struct UnknownWorkload {
    name: String,
}

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown workload '{}'; choose from {}", self.name, Workload::ALL.map(Workload::name).join(", "))
    }
}

impl std::error::Error for UnknownWorkload {}
