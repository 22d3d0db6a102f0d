//! Changes that depend on a key's present value, each atomic for readers and for a crash.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use engine::{CurrentItem, Decision, Error};

use super::Tree;

/// Bytes of a value that an error shows: more than any number has.
const SHOWN_BYTES_MAX: usize = 32;

impl Tree {
    /// Puts the key if it is absent. Returns false if it exists.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// assert!(store.insert_if_absent("owner", "ada")?);
    /// assert!(!store.insert_if_absent("owner", "bob")?);
    /// assert_eq!(store.get("owner")?.as_deref(), Some(&b"ada"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put`]; nothing has changed.
    pub fn insert_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.compare_and_swap(key, None, Some(value.as_ref()))
    }

    /// Sets the key's value to `new` if it is `expected`. Returns false, and changes nothing, if it is not. `None`
    /// stands for an absent key.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("door", "open")?;
    /// assert!(store.compare_and_swap("door", Some(b"open"), Some(b"shut"))?);
    /// assert!(!store.compare_and_swap("door", Some(b"open"), None)?);
    /// assert!(store.compare_and_swap("door", Some(b"shut"), None)?);
    /// assert_eq!(store.get("door")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put`]; nothing has changed.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let mut is_equal = false;
        self.update(key, |value| {
            is_equal = value == expected;
            match new {
                _ if !is_equal => Decision::Keep,
                Some(new) => Decision::Put(new.into()),
                None => Decision::Delete,
            }
        })?;
        Ok(is_equal)
    }

    /// Calls `decide` with the key's value, or `None`, and applies its decision. Returns true if anything changed.
    ///
    /// No lock is held while `decide` runs. If another thread writes the key before the decision is applied, `decide`
    /// is called again, and only its last result counts. It should be quick: no space is reused while it runs.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Decision;
    ///
    /// store.put("log", "one")?;
    /// store.update("log", |value| match value {
    ///     Some(value) if value.len() < 1000 => Decision::Put([value, b" two"].concat().into()),
    ///     Some(_) => Decision::Keep,
    ///     None => Decision::Put(b"two".into()),
    /// })?;
    /// assert_eq!(store.get("log")?.as_deref(), Some(&b"one two"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put`]; nothing has changed.
    pub fn update<'v>(
        &self,
        key: impl AsRef<[u8]>,
        mut decide: impl FnMut(Option<&[u8]>) -> Decision<'v>,
    ) -> Result<bool, Error> {
        self.update_item(key, |held| decide(held.map(|held| held.value)))
    }

    /// Like [`Tree::update`], and passes the key's expiry to `decide`. If `decide` panics, nothing has changed: the
    /// panic continues in the caller once the engine has finished the call.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Decision, Expiry};
    ///
    /// store.put("lease", "ada")?;
    /// let until = Expiry::at_ms(4_000_000_000_000);
    /// store.update_item("lease", |held| match held {
    ///     Some(held) if held.expiry > until => Decision::PutUntil(held.value.to_vec().into(), until),
    ///     _ => Decision::Keep,
    /// })?;
    /// assert_eq!(store.get_item("lease")?.expect("it was just put").expiry, until);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put`]; nothing has changed.
    pub fn update_item<'v>(
        &self,
        key: impl AsRef<[u8]>,
        mut decide: impl FnMut(Option<CurrentItem<'_>>) -> Decision<'v>,
    ) -> Result<bool, Error> {
        let mut panic = None;
        // A panic in the caller's code is caught here, and resumed once the engine has finished the call.
        let mut guarded = |held: Option<CurrentItem<'_>>| match catch_unwind(AssertUnwindSafe(|| decide(held))) {
            Ok(decision) => decision,
            Err(caught) => {
                panic = Some(caught);
                Decision::Keep
            }
        };
        let changed = self.keyspace.change_key(None, key.as_ref(), |engine, key| engine.update(key, &mut guarded));
        panic.map_or(changed, |panic| resume_unwind(panic))
    }

    /// Adds `by` to the key's value, a number in decimal text, and returns the sum. An absent key counts as 0. The
    /// text has to be as strict as for Redis: a sign only if negative, no spaces, no leading zeros.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// assert_eq!(store.increment("visits", 5)?, 5);
    /// assert_eq!(store.increment("visits", -7)?, -2);
    /// assert_eq!(store.get("visits")?.as_deref(), Some(&b"-2"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotANumber`] if the value is anything else; [`Error::Overflow`] if the sum exceeds 64 bits; otherwise
    /// as for [`Tree::put`]. Nothing has changed.
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        let mut sum = Ok(0);
        self.update(key, |value| {
            sum = sum_of(value, by);
            sum.as_ref().map_or(Decision::Keep, |sum| Decision::Put(Cow::Owned(sum.to_string().into_bytes())))
        })?;
        sum
    }
}

fn sum_of(value: Option<&[u8]>, by: i64) -> Result<i64, Error> {
    let number = value.map_or(Ok(0), |value| number_of(value).ok_or_else(|| not_a_number(value)))?;
    number.checked_add(by).ok_or(Error::Overflow { number, by })
}

/// Returns the number if this is its canonical decimal text.
fn number_of(text: &[u8]) -> Option<i64> {
    // Without a plus sign, a leading zero, and a sign of zero.
    let is_canonical = matches!(text, b"0" | [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..]);
    if is_canonical { str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn not_a_number(value: &[u8]) -> Error {
    let shown = value[..value.len().min(SHOWN_BYTES_MAX)].escape_ascii().to_string();
    Error::NotANumber { value: if value.len() > SHOWN_BYTES_MAX { shown + "…" } else { shown } }
}
