//! HiKV on a simulated region: what it costs, what it does at its limits, and what it says about damage.

mod batch;
mod compaction;
mod conditional;
mod conditions;
mod damage;
mod expiry;
mod full;
mod limits;
mod multi_put;
mod persists;
mod read_only;
mod rig;
mod salvage;
