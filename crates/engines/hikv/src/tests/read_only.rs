//! A medium for reading: a store to it fails the test.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use pmem::{
    Acknowledge, Bytes, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Ticket,
};
use pmem_sim::Sim;

pub(super) struct ReadOnly(pub(super) Sim);

// SAFETY: the memory is the inner medium's, which keeps every promise about it; nothing is stored.
unsafe impl Bytes for ReadOnly {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    fn is_writable(&self) -> bool {
        false
    }

    fn store(&self, at: Offset, _: u64, _: Ordering) {
        panic!("a store to {:#x}", at.0)
    }

    fn compare_exchange(&self, at: Offset, _: u64, _: u64) -> Result<u64, u64> {
        panic!("an exchange at {:#x}", at.0)
    }

    unsafe fn write(&self, at: Offset, _: &[u8]) {
        panic!("a write to {:#x}", at.0)
    }

    unsafe fn stream(&self, at: Offset, _: &[&[u8]]) {
        panic!("a write to {:#x}", at.0)
    }
}

impl Persist for ReadOnly {
    fn durability(&self) -> Durability {
        self.0.durability()
    }

    /// Reads flush on a writable medium; here there is nothing to flush.
    fn flush(&self, _: Span) {}

    fn order(&self) {}

    fn commit(&self, _: Level) -> Ticket {
        Ticket(0)
    }

    fn wait(&self, _: Ticket) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Acknowledge for ReadOnly {}

impl Residency for ReadOnly {}

impl Space for ReadOnly {
    fn grow(&self, _: u64) -> Result<(), MediumError> {
        Err(MediumError::ReadOnly)
    }
}

impl Medium for ReadOnly {
    fn name(&self) -> &'static str {
        "read-only"
    }
}
