//! All items, in no order.

use std::ops::ControlFlow;

use engine::Cursor;

use crate::{Error, Store};

impl Store {
    /// Shows every item to `each`, in no order, until it says to stop. Not a snapshot: what is written meanwhile may be
    /// shown or not.
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the walk.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        while !cursor.is_done() && flow.is_continue() {
            cursor = self.engine()?.walk(cursor, &mut |key, value, _| {
                if flow.is_continue() {
                    flow = each(key, value);
                }
            })?;
        }
        Ok(())
    }

    /// Shows the items of the next part of the store, up to some thousand, to `each`, in no order, and says where to go on.
    /// 0 is the beginning, and the end. Such a number stays good while the store grows, and when it is opened again: each
    /// key that is there from the first step to the last is shown exactly once. Any other number is harmless.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let (mut at, mut count) = (0, 0);
    /// loop {
    ///     at = store.walk(at, |_key, _value| count += 1)?;
    ///     if at == 0 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(count, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn walk(&self, from: u64, mut each: impl FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let cursor = if from == 0 { Cursor::Start } else { Cursor::Number(from) };
        match self.engine()?.walk(cursor, &mut |key, value, _| each(key, value))? {
            Cursor::Number(number) => Ok(number),
            _ => Ok(0),
        }
    }
}
