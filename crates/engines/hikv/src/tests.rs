//! HiKV on a simulated region: the costs, the behaviour at the limits, and what is said about damage.

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
