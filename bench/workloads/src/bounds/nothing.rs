//! The loop without a store, to measure the loop's own time.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::config::Config;
use crate::records::Records;
use crate::session::Session;
use crate::subject::{Error, Need, Subject};
use crate::workload::Workload;

/// About ten thousand iterations of the loop.
const PASS_MAX: Duration = Duration::from_millis(20);

/// Answers immediately, with wrong values: as many bytes are copied and compared as for a right answer.
pub(crate) struct Nothing {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Nothing {
    pub(crate) fn new(records: Records) -> Nothing {
        Nothing { key: vec![0; records.key_bytes], value: vec![0; records.value_bytes] }
    }

    /// Measures an iteration of the workload's loop, in nanoseconds of its thread; `None` for a workload without a
    /// loop.
    pub(crate) fn own_ns(&self, workload: Workload, config: &Config) -> Result<Option<f64>, Error> {
        if workload == Workload::Rebuild {
            return Ok(None);
        }
        let config = Config { plan: None, ..config.clone() };
        Session::new(self, &config, &|| false)?.pace_ns(workload, config.pass.min(PASS_MAX))
    }
}

impl Subject for Nothing {
    fn name(&self) -> String {
        "the loop without a store".into()
    }

    fn offers(&self, _need: Need) -> bool {
        true
    }

    #[inline(always)]
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        black_box(key);
        value.resize(self.value.len(), 0);
        Ok(true)
    }

    #[inline(always)]
    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        read(black_box((key, &self.value)).1);
        Ok(true)
    }

    #[inline(always)]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        black_box((key, value));
        Ok(())
    }

    #[inline(always)]
    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(!black_box(key).is_empty())
    }

    #[inline(always)]
    fn transact(
        &self,
        keys: [&[u8]; 2],
        values: Option<[&[u8]; 2]>,
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        black_box((keys, values));
        (0..2).for_each(|place| found(place, black_box(&self.value)));
        Ok(())
    }

    #[inline(always)]
    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(Some(self.key.clone()))
    }

    fn scan(&self, _from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        while each(&self.key, &self.value).is_continue() {}
        Ok(())
    }
}
