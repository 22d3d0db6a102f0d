//! HiKV on a simulated region: costs, behaviour at the limits, and reports of damage.

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
