//! `docs/format` held against the program: every table is compared with the constants and encoders of the code and with
//! the bytes of a store, so that neither can change alone.

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
