//! The workloads by name.

use std::fmt;
use std::str::FromStr;

/// What the calling threads do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// YCSB A: half reads, half updates, skewed.
    A,
    /// YCSB B: 95 % reads, 5 % updates, skewed.
    B,
    /// YCSB C: reads, skewed.
    C,
    /// YCSB D: 95 % reads of the latest keys, 5 % inserts.
    D,
    /// YCSB F: half reads, half reads each followed by an update of the same key, skewed.
    F,
}

impl Workload {
    /// Each of them, in the order of the enum.
    pub const ALL: [Workload; 13] = {
        use Workload::*;
        [Get, GetOwned, GetWith, Miss, MultiGet, Insert, Update, Delete, A, B, C, D, F]
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
            Workload::A => "a",
            Workload::B => "b",
            Workload::C => "c",
            Workload::D => "d",
            Workload::F => "f",
        }
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
