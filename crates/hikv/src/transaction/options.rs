//! Options of a transaction.

/// The attempts of a transaction: [`Store::transact_with`](crate::Store::transact_with).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::{Error, Transact};
///
/// // For a body that waits for another thread: it never shuts out other writers.
/// let patient = Transact::new().exclusive(false).attempts(100);
/// match store.transact_with(patient, |tx| tx.put("state", "done")) {
///     Err(Error::Contended { attempts }) => println!("other threads were faster {attempts} times"),
///     written => written?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Transact {
    pub(super) attempt_count_max: Option<u32>,
    pub(super) may_be_exclusive: bool,
    pub(super) is_exclusive_first: bool,
}

impl Default for Transact {
    fn default() -> Transact {
        Transact::new()
    }
}

impl Transact {
    /// Returns the options of [`Store::transact`](crate::Store::transact): any number of attempts, exclusive ones after
    /// eight conflicts or 20 ms, or after one conflict if the body has read more than 1,000 items of ranges.
    pub fn new() -> Transact {
        Transact { attempt_count_max: None, may_be_exclusive: true, is_exclusive_first: false }
    }

    /// Limits the attempts. After the last one, the transaction fails with
    /// [`Error::Contended`](crate::Error::Contended).
    pub fn attempts(mut self, count_max: u32) -> Transact {
        self.attempt_count_max = Some(count_max);
        self
    }

    /// Sets whether attempts become exclusive. An exclusive attempt always ends, but all other writers wait while its
    /// body runs. So its body must not wait for another thread's write.
    pub fn exclusive(mut self, may_be_exclusive: bool) -> Transact {
        self.may_be_exclusive = may_be_exclusive;
        self
    }

    /// Makes the first attempt exclusive, for a long body that would lose against many short writes.
    pub fn exclusive_first(mut self) -> Transact {
        self.is_exclusive_first = true;
        self
    }
}
