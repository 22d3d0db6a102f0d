//! Engines with what stands beside the hash index: order, and a clock.

mod expiry;
mod order;
