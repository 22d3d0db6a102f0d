//! A hash index without an ordered one: the difference is the cost of order.

use std::ops::ControlFlow;

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Need};

/// Workloads that keep order run without it if they need only writes. There are no scans.
#[derive(Debug, Default)]
pub struct HashOnly;

impl Way for HashOnly {
    fn name(&self) -> &'static str {
        "hash-only"
    }

    fn offers(&self, _store: &Candidate, need: Need) -> bool {
        need != Need::Scans
    }

    fn around_write<R>(
        &self,
        _store: &Candidate,
        _key: &[u8],
        _what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        write()
    }

    fn put_in_order(&self, _store: &Candidate) -> Result<(), Error> {
        Ok(())
    }

    fn scan(
        &self,
        _store: &Candidate,
        _from: &[u8],
        _each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        Err(hikv::Error::NoOrder.into())
    }
}
