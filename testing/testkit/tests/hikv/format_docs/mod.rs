//! Compares every table of `docs/format` with the constants and encoders of the code and with the bytes of a store, so
//! that the pages and the code can only change together.

mod batch;
mod dump;
mod fields;
mod image;
mod ink;
mod item;
mod journal;
mod pages;
mod pmekv;
mod region;
mod rewo_hash;
mod segment;
mod store;
