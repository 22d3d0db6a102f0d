//! The table without a store; the engines' tests have both.

pub(crate) use crate::block_hash::tests::Host;

mod behaviour;
mod lines;
mod model;
