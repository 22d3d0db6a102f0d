//! Lanes crashed at every step, on both models, with crashes inside recovery and killed processes.

mod crash;
mod lanes;
mod scene;
mod space;
