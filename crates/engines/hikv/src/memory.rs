//! The DRAM of the engine.

use pmem::Dram;

/// The source of DRAM that the allocator and the tree share.
pub trait Memory: Dram + Clone + 'static {}

impl<D: Dram + Clone + 'static> Memory for D {}
