//! Reads of values by their keys.

use epoch::Pinned;

use super::Identity;
use crate::{Error, Expiry, PackedLookup, ValueBuffer, Witness};

/// Receives the value of a key, its witness and its expiry.
pub type OnFound<'a> = dyn FnMut(Witness, Expiry, &[u8]) + 'a;

/// Reads of values by their keys.
pub trait Reads: Identity {
    /// Calls `found` with the key's value; returns false if the key is absent. The value stays in place until `found`
    /// returns. `found` should be quick: freed space is not reused while it runs.
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error>;

    /// Returns true if [`Reads::lookup`] and [`Reads::lookup_many`] are worth a try before [`Reads::get`].
    fn supports_lookup(&self) -> bool {
        false
    }

    /// Returns the key's value, as [`Reads::get`] finds it, if one optimistic lookup at the key's usual place is
    /// enough. Otherwise returns [`PackedLookup::UNSURE`], without effect. The value is in the engine's memory or in
    /// the caller's `_buffer`.
    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, _key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        PackedLookup::UNSURE
    }

    /// As [`Reads::lookup`] for several keys in order, up to the first whose lookup is unsure; returns the number of
    /// `values` written. The memory accesses of all keys overlap.
    fn lookup_many<'a>(&'a self, _pinned: Pinned<'a>, _keys: &[&[u8]], _values: &mut [Option<&'a [u8]>]) -> usize {
        0
    }

    /// As [`Reads::get`], for a `found` that reads only a part of the value or its length: if reads compare checksums
    /// ([`crate::Verify`]), the checksum of a long value is not compared.
    fn get_part(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.get(key, found)
    }

    /// Calls `found` with each key's number and its value, or `None`, in order. The memory accesses overlap, so this is
    /// several times as fast as calling [`Reads::get`] for each key (HiKV paper, section 6: future work).
    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (i, key) in keys.iter().enumerate() {
            if !self.get(key, &mut |_, _, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }
}
