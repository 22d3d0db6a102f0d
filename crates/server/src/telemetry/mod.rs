//! What the server does, in numbers: counted by the event loops, read by monitoring clients.
//!
//! ```text
//! Pipeline -> Tally -> LoopCounters (each loop its own)  \
//! Store::stats_now, /proc/self/task                        -> Reading -> metrics (Prometheus)
//! SlowLog, Clients                                       /            -> History -> live (JSON, a second each)
//!                                                            Totals  -> INFO, which alone can begin to count anew
//! ```
//!
//! A loop counts a batch of requests in its own stack frame and adds it to its counters once. Only the loop writes them,
//! so an addition is a load and a store, without a locked instruction.
//!
//! A request's latency is the time from when the poller reported its connection to when its reply might be sent: its batch of
//! requests was executed, and is as durable as it must be. What it waited for other connections of the same turn, and for the
//! rest of its pipeline, is part of it. (A command's latency is what its execution alone took, as in Redis.) That costs one reading of the clock a batch, which clients' idle times need in any
//! case, and one for each round of the loop.

mod commands;
mod counters;
mod cpu;
mod errors;
mod figures;
mod health;
mod histogram;
mod history;
mod kind;
pub(crate) mod latency;
mod live;
mod metrics;
pub(crate) mod plain_text;
mod reading;
pub(crate) mod slowlog;
mod totals;
mod unanswered;

pub(crate) use commands::{CommandCounters, CommandTotal};
pub(crate) use counters::{BatchCounts, Counted, Counters};
pub(crate) use errors::ErrorCounts;
pub(crate) use figures::{Figures, write_count};
pub(crate) use health::{Health, Status};
pub(crate) use histogram::Latencies;
pub(crate) use history::History;
pub(crate) use kind::Kind;
pub(crate) use live::live;
pub(crate) use metrics::{CONTENT_TYPE, exposition};
pub(crate) use reading::Reading;
pub(crate) use totals::Baseline;
pub(crate) use unanswered::Unanswered;
