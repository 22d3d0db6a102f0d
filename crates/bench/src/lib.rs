//! How fast a store is: workloads over loaded records, every value checked, throughput and latency measured apart.
//!
//! A workload runs twice on the same streams of operations. The first pass measures throughput and reads the clock
//! only every few hundred operations, since a clock read keeps one operation from overlapping the next. The second
//! pass times each operation by the time-stamp counter, into a histogram.

mod client;
mod distribution;
mod pass;
mod pooled;
mod records;
mod report;
mod run;
mod scans;
mod shuffle;
mod streams;
mod subject;
pub mod variants;
mod workload;

pub use records::{KEY_BYTES_MIN, VALUE_BYTES_MIN, is_value_of, stamp, write_key};
pub use report::{PoolRow, Row, SampleRow};
pub use run::{Config, Event, RECORDS_MAX, THREADS_MAX, run};
pub use subject::{Candidate, Persists, Subject};
pub use workload::{UnknownWorkload, Workload};
