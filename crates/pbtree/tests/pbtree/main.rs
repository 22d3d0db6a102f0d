//! The tree beside a map, and crashed at every step.

mod crash;
mod freed;
mod map;
mod persists;
mod stamps;
mod subject;
