//! Measures the speed of a store: workloads on loaded records, with every value checked, and throughput and latency
//! measured separately.
//!
//! A workload runs twice on the same streams of operations. The first pass measures throughput and reads the clock only
//! every few hundred operations, because a clock read keeps one operation from overlapping the next. The second pass
//! times each operation with the time-stamp counter, into a histogram.
//!
//! A store under measurement is a [`Subject`]. `bench-compare` measures other stores with the same trait and the same
//! passes ([`Session`]).

mod bounds;
mod candidate;
mod client;
mod config;
mod distribution;
mod draws;
mod load;
mod pass;
mod pooled;
mod records;
mod report;
mod run;
mod scans;
mod session;
mod shuffle;
mod stream;
mod subject;
pub mod variants;
mod worker;
mod workload;

pub use bounds::{Bound, Bounds};
pub use candidate::Candidate;
pub use config::{Config, RECORDS_MAX, THREADS_MAX};
pub use records::{KEY_BYTES_MIN, Records, VALUE_BYTES_MIN, stamp, write_key};
pub use report::{PoolRow, Row, SampleRow};
pub use run::{Event, run};
pub use session::Session;
pub use subject::{Error, Need, Persists, Subject, refuse_unfit};
pub use workload::{UnknownWorkload, Workload};
