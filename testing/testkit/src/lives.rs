//! The oracle's clock, and its record of when keys expire.

use std::collections::BTreeMap;

use crate::script::Op;
use crate::subject::Contents;

/// Returns the value of an expiring key as a test reads it: the value followed by its expiry time, so that a wrong
/// expiry time is a wrong value.
#[must_use]
pub fn expiring(value: &[u8], at_ms: u64) -> Vec<u8> {
    [value, &at_ms.to_le_bytes()].concat()
}

/// The time, and the expiry times of keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    now_ms: u64,
    expiries: BTreeMap<Vec<u8>, u64>,
}

impl Lives {
    /// Applies the part of the atomic operation `op` that depends on time.
    pub(crate) fn apply(&mut self, op: &Op, contents: &mut Contents) {
        match op {
            Op::PutExpiring(key, value, at_ms) => self.put(contents, key, value, Some(*at_ms)),
            Op::BatchExpiring(changes) => {
                for (key, new) in changes {
                    match new {
                        Some((value, at_ms)) => self.put(contents, key, value, *at_ms),
                        None => {
                            self.expiries.remove(key);
                            contents.remove(key);
                        }
                    }
                }
            }
            Op::Expire(key, at_ms) => {
                let Some(value) = contents.get(key) else { return };
                let stamp_bytes = if self.expiries.contains_key(key) { size_of::<u64>() } else { 0 };
                let value = value[..value.len() - stamp_bytes].to_vec();
                self.put(contents, key, &value, *at_ms);
            }
            Op::At(now_ms) => {
                self.now_ms = *now_ms;
                let expired = self.expiries.extract_if(.., |_, at_ms| *at_ms <= *now_ms);
                expired.for_each(|(key, _)| _ = contents.remove(&key));
            }
            Op::Clear | Op::Format => self.expiries.clear(),
            _ => op.keys().for_each(|key| _ = self.expiries.remove(key)),
        }
    }

    fn put(&mut self, contents: &mut Contents, key: &[u8], value: &[u8], at_ms: Option<u64>) {
        self.expiries.remove(key);
        match at_ms {
            None => _ = contents.insert(key.to_vec(), value.to_vec()),
            Some(at_ms) if at_ms <= self.now_ms => _ = contents.remove(key),
            Some(at_ms) => {
                contents.insert(key.to_vec(), expiring(value, at_ms));
                self.expiries.insert(key.to_vec(), at_ms);
            }
        }
    }
}
