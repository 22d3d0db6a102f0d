//! The tables beside a map, crashed at every step, and what they persist.

mod crash;
mod persists;
mod subject;
