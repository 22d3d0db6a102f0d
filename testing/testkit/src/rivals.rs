//! The oracle's record of the values that the second writer's key may hold.

use std::collections::BTreeSet;

use crate::rival::is_rival;
use crate::script::Key;
use crate::subject::Contents;
use crate::violation::Problem;

/// A value, or `None` for an absent key.
type Value = Option<Vec<u8>>;

/// The legal values of the second writer's key: the last acknowledged one, the one in flight, and absent while the
/// store is being cleared.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Rivals {
    legal: BTreeSet<Value>,
    /// While the store is being cleared: the legal values if the clear does not take effect.
    uncleared: Option<BTreeSet<Value>>,
    /// True if the key was written since the clear began.
    is_written: bool,
}

impl Default for Rivals {
    fn default() -> Rivals {
        Rivals::holding(None)
    }
}

impl Rivals {
    fn holding(value: Value) -> Rivals {
        Rivals { legal: BTreeSet::from([value]), uncleared: None, is_written: false }
    }

    /// Takes the second writer's key out of `contents`; its value there is the legal one.
    pub(crate) fn of(contents: &mut Contents) -> Rivals {
        Rivals::holding(contents.extract_if(.., |key, _| is_rival(key)).next().map(|(_, value)| value))
    }

    /// Checks the value of the key.
    pub(crate) fn judge(&self, key: &[u8], value: &Value) -> Result<(), Problem> {
        if self.legal.contains(value) {
            return Ok(());
        }
        Err(Problem::Contents(format!("{} of the second writer does not hold its acknowledged value", Key(key))))
    }

    pub(crate) fn begin(&mut self, value: &Value) {
        self.each(|legal| _ = legal.insert(value.clone()));
        self.is_written = true;
    }

    pub(crate) fn acknowledge(&mut self, value: &Value) {
        self.each(|legal| *legal = BTreeSet::from([value.clone()]));
        if self.uncleared.is_some() {
            self.legal.insert(None);
        }
    }

    /// Records that `value` was not written because the medium is full. No value is written twice.
    pub(crate) fn refuse(&mut self, value: &Value) {
        if value.is_some() {
            self.each(|legal| _ = legal.remove(value));
        }
    }

    fn each(&mut self, change: impl Fn(&mut BTreeSet<Value>)) {
        change(&mut self.legal);
        self.uncleared.iter_mut().for_each(change);
    }

    pub(crate) fn begin_clear(&mut self) {
        self.uncleared = Some(self.legal.clone());
        self.legal.insert(None);
        self.is_written = false;
    }

    /// Ends the operation in flight, which cleared the store or did not.
    pub(crate) fn end_clear(&mut self, is_cleared: bool) {
        match self.uncleared.take() {
            Some(uncleared) if !is_cleared => self.legal = uncleared,
            Some(_) if !self.is_written => self.legal = BTreeSet::from([None]),
            _ => {}
        }
    }

    /// Returns true if the key may hold more than one value.
    pub(crate) fn is_open(&self) -> bool {
        self.legal.len() > 1
    }

    /// Records that the key was found to hold `value` while no write was in progress.
    pub(crate) fn found(&mut self, key: &[u8], value: Value) -> Result<(), Problem> {
        self.judge(key, &value)?;
        *self = Rivals::holding(value);
        Ok(())
    }
}
