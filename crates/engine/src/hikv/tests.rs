//! HiKV on a simulated region: what it costs, what it does at its limits, and what it says about damage.

mod compaction;
mod conditional;
mod damage;
mod full;
mod limits;
mod multi_put;
mod persists;
mod rig;
