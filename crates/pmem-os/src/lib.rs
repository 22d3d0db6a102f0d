//! Persistent memory on Linux: regions mapped from files and DAX devices, with locks, fork guards and probes.
//!
//! [`Mapped`] is the direct medium: stores reach the mapped memory immediately, and a commit needs only a fence.
//! The failures that such a commit survives depend on the mapped file or device. They are detected
//! ([`pmem::Persist::durability`]) and reported ([`Mapped::explain`]), never assumed. [`StoreLock`] keeps other
//! processes out, [`ForkGuard`] distinguishes a forked child from the process that opened the store, and
//! [`probe()`] measures the machine.

mod backing;
mod cache_size;
mod collapse;
mod device_dax;
mod durability;
mod error;
mod extents;
mod faults;
mod fork;
mod growth;
mod holder;
mod holes;
mod host_dram;
mod huge;
mod lock;
mod mapped;
mod mapping;
mod medium;
mod memory;
pub mod names;
mod overlay;
mod persistence;
mod probe;
mod ticks;
mod whole_file;
mod write_path;

pub use backing::write_in_place;
pub use cache_size::last_level_cache_bytes;
pub use durability::medium_name;
pub use error::MapError;
pub use extents::has_space;
pub use faults::report_bus_errors;
pub use fork::{Closed, ForkGuard};
pub use host_dram::HostDram;
pub use lock::{LockError, StoreLock};
pub use mapped::{KEPT_BYTES, MapOptions, Mapped};
pub use memory::Memory;
pub use pmem::arch::flush_instruction;
pub use probe::{MachineProbe, dependent_read_ns, persist_by_flush_ns, persist_by_stream_ns, probe};
pub use ticks::ticks;
pub use whole_file::WholeFile;
