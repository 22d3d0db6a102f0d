//! What the engine asks of the host's volatile memory.

use pmem::Dram;

/// The host's volatile memory, which the allocator and the tree share.
pub trait Memory: Dram + Clone + 'static {}

impl<D: Dram + Clone + 'static> Memory for D {}
