//! The tree compared with a map, and crashed at every step.

mod crash;
mod disorder;
mod freed;
mod map;
mod merges;
mod met;
mod persists;
mod scans;
mod stamps;
mod subject;
mod sweep;
mod yields;
