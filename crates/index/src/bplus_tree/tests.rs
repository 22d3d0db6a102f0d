//! Compares the tree with a map.

mod churn;
mod errors;
mod found;
mod interference;
mod keys;
mod model;
mod rig;
mod stress;
mod version_model;
