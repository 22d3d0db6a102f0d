//! A thread's operations on the store, by record and key, with each result checked.

use crate::records::{Records, is_value_of, stamp};
use crate::scans::Scans;
use crate::subject::{Error, Subject};

/// Keys in one `multi_get`.
pub(crate) const GROUP_KEYS: usize = 16;

/// One thread's buffers and its count of wrong results.
pub(crate) struct Client<'a, S> {
    subject: &'a S,
    records: Records,
    /// Wrong results.
    pub(crate) errors: u64,
    /// Values put, each with a different stamp.
    pub(crate) put_count: u64,
    value_out: Vec<u8>,
    second_value_out: Vec<u8>,
    value_in: Vec<u8>,
}

impl<'a, S: Subject> Client<'a, S> {
    pub(crate) fn new(subject: &'a S, records: Records) -> Client<'a, S> {
        let (value_out, value_in) = (vec![b'v'; records.value_bytes], Vec::with_capacity(records.value_bytes));
        Client { subject, records, errors: 0, put_count: 0, second_value_out: value_out.clone(), value_out, value_in }
    }

    pub(crate) fn get_into(&mut self, record: u64, key: &[u8]) -> Result<(), Error> {
        let found = self.subject.get_into(key, &mut self.value_in)?;
        self.expect(found && is_value_of(record, &self.value_in, self.records.value_bytes));
        Ok(())
    }

    pub(crate) fn get_owned(&mut self, record: u64, key: &[u8]) -> Result<(), Error> {
        let value = self.subject.get_owned(key)?;
        self.expect(value.is_some_and(|value| is_value_of(record, &value, self.records.value_bytes)));
        Ok(())
    }

    pub(crate) fn get_with(&mut self, record: u64, key: &[u8]) -> Result<(), Error> {
        let copy = &mut self.value_in;
        let found = self.subject.get_with(key, |value| copy_out(value, copy))?;
        self.expect(found && is_value_of(record, &self.value_in, self.records.value_bytes));
        Ok(())
    }

    pub(crate) fn miss(&mut self, key: &[u8]) -> Result<(), Error> {
        let found = self.subject.get_into(key, &mut self.value_in)?;
        self.expect(!found);
        Ok(())
    }

    /// Reads several keys; `record_of` returns the record of the key at a place.
    pub(crate) fn multi_get(&mut self, keys: &[&[u8]], record_of: impl Fn(usize) -> u64) -> Result<(), Error> {
        let (copy, value_bytes) = (&mut self.value_in, self.records.value_bytes);
        let mut right = 0;
        self.subject.multi_get_with(keys, |place, value| {
            let Some(value) = value else { return };
            copy_out(value, copy);
            right += u64::from(is_value_of(record_of(place), copy, value_bytes));
        })?;
        self.errors += (keys.len() as u64).abs_diff(right);
        Ok(())
    }

    /// Reads `count` items in order, beginning at a key.
    pub(crate) fn scan(&mut self, key: &[u8], count: u64, scans: &mut Scans) -> Result<(), Error> {
        let is_right = scans.copy(self.subject, key, count)?;
        self.expect(is_right);
        Ok(())
    }

    pub(crate) fn put(&mut self, record: u64, key: &[u8]) -> Result<(), Error> {
        self.put_count += 1;
        stamp(record, self.put_count, &mut self.value_out);
        self.subject.put(key, &self.value_out)
    }

    /// Runs a transaction that reads two records, and replaces both values if it `puts`.
    pub(crate) fn transact(&mut self, records: [u64; 2], keys: [&[u8]; 2], puts: bool) -> Result<(), Error> {
        let (value_bytes, mut right) = (self.records.value_bytes, [false; 2]);
        let found = |place: usize, value: &[u8]| right[place] = is_value_of(records[place], value, value_bytes);
        let values = [&mut self.value_out, &mut self.second_value_out];
        for (record, value) in records.into_iter().zip(values).filter(|_| puts) {
            self.put_count += 1;
            stamp(record, self.put_count, value);
        }
        let values: [&[u8]; 2] = [&self.value_out, &self.second_value_out];
        self.subject.transact(keys, puts.then_some(values), found)?;
        right.into_iter().for_each(|right| self.expect(right));
        Ok(())
    }

    /// Does the operations of such a transaction one by one.
    pub(crate) fn transact_parts(&mut self, records: [u64; 2], keys: [&[u8]; 2]) -> Result<(), Error> {
        let items = || records.into_iter().zip(keys);
        for (record, key) in items() {
            let value = self.subject.get_owned(key)?;
            self.expect(value.is_some_and(|value| is_value_of(record, &value, self.records.value_bytes)));
        }
        items().try_for_each(|(record, key)| self.put(record, key))
    }

    /// Takes the first item in order, and returns its record; `None` if there is none.
    pub(crate) fn take_first(&mut self) -> Result<Option<u64>, Error> {
        let record = self.subject.take_first()?.and_then(|key| self.records.record_of(&key));
        self.expect(record.is_some());
        Ok(record)
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        let was_there = self.subject.delete(key)?;
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
