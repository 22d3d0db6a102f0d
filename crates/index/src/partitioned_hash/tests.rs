//! What the index does, beside a map, on a simulated region.

mod chains;
mod model;
mod rig;
mod slots;
mod splits;
mod walks;
