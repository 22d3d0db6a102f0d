//! What the second writer's key may hold, as the oracle knows it.

use std::collections::BTreeSet;

use crate::rival::is_rival;
use crate::script::Key;
use crate::subject::Contents;
use crate::violation::Problem;

/// A value, or none.
type Value = Option<Vec<u8>>;

/// What it may hold: what was acknowledged last, what is in flight, and nothing while the store is being cleared.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Rivals {
    legal: BTreeSet<Value>,
    /// While the store is being cleared: what the key may hold if it is not.
    uncleared: Option<BTreeSet<Value>>,
    /// Whether it was written since that began.
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

    /// Takes the second writer's key out of `contents`: it holds what they say.
    pub(crate) fn of(contents: &mut Contents) -> Rivals {
        Rivals::holding(contents.extract_if(.., |key, _| is_rival(key)).next().map(|(_, value)| value))
    }

    /// Objects to a value that the key may not hold.
    pub(crate) fn judge(&self, key: &[u8], value: &Value) -> Result<(), Problem> {
        if self.legal.contains(value) {
            return Ok(());
        }
        Err(Problem::Contents(format!("{} of the second writer is not what was acknowledged", Key(key))))
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

    /// The medium is full, and no value comes twice: `value` was not written.
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

    /// The operation in flight has ended, and if it cleared the store, it did or not.
    pub(crate) fn end_clear(&mut self, is_cleared: bool) {
        match self.uncleared.take() {
            Some(uncleared) if !is_cleared => self.legal = uncleared,
            Some(_) if !self.is_written => self.legal = BTreeSet::from([None]),
            _ => {}
        }
    }

    /// Whether a look at the key tells more than is known.
    pub(crate) fn is_open(&self) -> bool {
        self.legal.len() > 1
    }

    /// Nobody writes the key, and it holds this.
    pub(crate) fn found(&mut self, key: &[u8], value: Value) -> Result<(), Problem> {
        self.judge(key, &value)?;
        *self = Rivals::holding(value);
        Ok(())
    }
}
