//! The engine with order and a clock.

mod expiry;
mod order;
