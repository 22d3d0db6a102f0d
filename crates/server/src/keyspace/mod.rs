//! What is stored: items, databases, and what is told of them.

pub(crate) mod databases;
pub(crate) mod items;
pub(crate) mod memory;
pub(crate) mod saves;
