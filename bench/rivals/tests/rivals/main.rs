//! The tables compared with a map, crashed at every step, and the fences of their operations.

mod crash;
mod persists;
mod subject;
mod trees;
