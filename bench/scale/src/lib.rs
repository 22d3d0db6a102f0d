//! Systems of many machines that keep their items in hikv stores, on paper: the numbers of `docs/scale.md`.
//!
//! Nothing here runs a store. The model takes figures that other pages have measured ([`measured`]), and assumptions
//! about machines and systems ([`assumed`]). It places every partition of a system on machines ([`systems`]), so that
//! the most loaded machine decides. It derives sizes and recoveries ([`plan`]), and simulates years of failures
//! ([`year`]). All randomness comes from fixed seeds.

pub mod assumed;
pub mod cluster;
pub mod measured;
pub mod page;
pub mod plan;
pub mod systems;
pub mod tables;
pub mod year;
