//! The table by itself; its engines' tests have it beside a store.

mod behaviour;
mod lines;
mod model;
