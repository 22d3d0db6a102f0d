//! The table without a store; the engines' tests have both.

mod behaviour;
mod lines;
mod model;
