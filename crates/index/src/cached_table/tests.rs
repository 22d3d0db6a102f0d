//! The table by itself; its engines' tests have it beside a store.

pub(crate) use crate::block_hash::tests::Host;

mod behaviour;
mod lines;
mod model;
