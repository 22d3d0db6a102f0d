//! One thread's hand on the store: operations by record number, each result checked.

use hikv::Error;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::distribution::uniform;
use crate::records::{absent, is_value_of, record_of, stamp, write_key};
use crate::scans::{SCAN_ITEMS_MAX, Scans};
use crate::subject::Subject;

/// Keys in one `multi_get`.
pub(crate) const BATCH_KEYS: usize = 16;

/// What the records look like, and how many are loaded.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) records: u64,
    pub(crate) key_bytes: usize,
    /// Of every key the first bytes, which are the same.
    pub(crate) shared_bytes: usize,
    pub(crate) value_bytes: usize,
}

impl Shape {
    /// Fills `key`, whose first bytes are zero, with the key of `record`.
    pub(crate) fn write_key(&self, record: u64, key: &mut [u8]) {
        write_key(record, &mut key[self.shared_bytes..]);
    }

    /// True if these are a record's.
    pub(crate) fn is_item(&self, key: &[u8], value: &[u8]) -> bool {
        let record = key.get(self.shared_bytes..).and_then(record_of).filter(|_| key.len() == self.key_bytes);
        record.is_some_and(|record| is_value_of(record, value, self.value_bytes))
    }
}

/// Buffers, random numbers and the count of wrong results of one thread.
pub(crate) struct Client<'a, S> {
    subject: &'a S,
    pub(crate) shape: Shape,
    pub(crate) rng: SmallRng,
    /// Results that were not the expected ones.
    pub(crate) errors: u64,
    key: Vec<u8>,
    batch_keys: Vec<u8>,
    value_out: Vec<u8>,
    value_in: Vec<u8>,
    version: u64,
}

impl<'a, S: Subject> Client<'a, S> {
    pub(crate) fn new(subject: &'a S, shape: Shape, seed: u64) -> Client<'a, S> {
        Client {
            subject,
            shape,
            rng: SmallRng::seed_from_u64(seed),
            errors: 0,
            key: vec![0; shape.key_bytes],
            batch_keys: vec![0; BATCH_KEYS * shape.key_bytes],
            value_out: vec![b'v'; shape.value_bytes],
            value_in: Vec::with_capacity(shape.value_bytes),
            version: 0,
        }
    }

    /// Any loaded record, each as likely.
    pub(crate) fn any(&mut self) -> u64 {
        uniform(&mut self.rng, self.shape.records)
    }

    pub(crate) fn get_into(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        let found = self.subject.get_into(&self.key, &mut self.value_in)?;
        self.expect(found && is_value_of(record, &self.value_in, self.shape.value_bytes));
        Ok(())
    }

    pub(crate) fn get_owned(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        let value = self.subject.get_owned(&self.key)?;
        self.expect(value.is_some_and(|value| is_value_of(record, &value, self.shape.value_bytes)));
        Ok(())
    }

    pub(crate) fn get_with(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        let mut copy = std::mem::take(&mut self.value_in);
        let found = self.subject.get_with(&self.key, |value| copy_out(value, &mut copy))?;
        self.expect(found && is_value_of(record, &copy, self.shape.value_bytes));
        self.value_in = copy;
        Ok(())
    }

    pub(crate) fn miss(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(absent(record), &mut self.key);
        let found = self.subject.get_into(&self.key, &mut self.value_in)?;
        self.expect(!found);
        Ok(())
    }

    pub(crate) fn multi_get(&mut self, records: [u64; BATCH_KEYS]) -> Result<(), Error> {
        let Shape { key_bytes, value_bytes, .. } = self.shape;
        for (record, key) in records.iter().zip(self.batch_keys.chunks_exact_mut(key_bytes)) {
            self.shape.write_key(*record, key);
        }
        let keys: [&[u8]; BATCH_KEYS] = std::array::from_fn(|place| &self.batch_keys[place * key_bytes..][..key_bytes]);
        let copy = &mut self.value_in;
        let mut right = 0;
        self.subject.multi_get_with(&keys, |place, value| {
            let Some(value) = value else { return };
            copy_out(value, copy);
            right += u64::from(is_value_of(records[place], copy, value_bytes));
        })?;
        self.errors += (BATCH_KEYS as u64).abs_diff(right);
        Ok(())
    }

    /// Reads 1 to [`SCAN_ITEMS_MAX`] items, as many as likely, from a record on.
    pub(crate) fn scan(&mut self, record: u64, scans: &mut Scans) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        let count = 1 + uniform(&mut self.rng, SCAN_ITEMS_MAX);
        let is_right = scans.copy(self.subject, &self.key, count)?;
        self.expect(is_right);
        Ok(())
    }

    pub(crate) fn put(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        self.version += 1;
        stamp(record, self.version, &mut self.value_out);
        self.subject.put(&self.key, &self.value_out)
    }

    pub(crate) fn delete(&mut self, record: u64) -> Result<(), Error> {
        self.shape.write_key(record, &mut self.key);
        let was_there = self.subject.delete(&self.key)?;
        self.expect(was_there);
        Ok(())
    }

    fn expect(&mut self, right: bool) {
        self.errors += u64::from(!right);
    }
}

fn copy_out(value: &[u8], copy: &mut Vec<u8>) {
    copy.clear();
    copy.extend_from_slice(value);
}
