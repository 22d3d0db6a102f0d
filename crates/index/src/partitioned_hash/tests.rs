//! What the index does, beside a map, on a simulated region.

mod chains;
mod durable;
mod interleavings;
mod model;
mod modelled;
mod rig;
mod slots;
mod splits;
mod walks;
