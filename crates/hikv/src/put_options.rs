//! Expiry, condition and durability of one put, named as batches name them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Clock, Error, Expiry, Version};
use pmem::Durability;

/// The time at which a key expires. Each function that takes one also takes a [`Duration`] from now, a [`SystemTime`]
/// ([`Clock::at`]) or an [`Expiry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Expires {
    /// The key does not expire.
    #[default]
    Never,
    /// After this time, counted from the write.
    After(Duration),
    /// When the system's clock shows this time.
    AtTime(SystemTime),
    /// At this time of the store's clock, as [`Tree::get_item`](crate::Tree::get_item) returns it.
    At(Expiry),
}

impl From<Duration> for Expires {
    fn from(time: Duration) -> Expires {
        Expires::After(time)
    }
}

impl From<SystemTime> for Expires {
    fn from(time: SystemTime) -> Expires {
        Expires::AtTime(time)
    }
}

impl From<Expiry> for Expires {
    fn from(expiry: Expiry) -> Expires {
        Expires::At(expiry)
    }
}

impl Expires {
    /// Returns the expiry by the store's clock. A time beyond the representable range is an error, because it would
    /// mean 'never'.
    pub(crate) fn by(self, clock: &Clock) -> Result<Expiry, Error> {
        let (expiry, time) = match self {
            Expires::Never => return Ok(Expiry::NEVER),
            Expires::At(expiry) => return Ok(expiry),
            Expires::After(time) => (clock.after(time), time),
            Expires::AtTime(time) => (clock.at(time), time.duration_since(UNIX_EPOCH).unwrap_or_default()),
        };
        if expiry.is_never() { Err(Error::ExpiryTooLate { seconds: time.as_secs() }) } else { Ok(expiry) }
    }
}

/// Expiry, condition and durability of a put ([`Tree::put_with`](crate::Tree::put_with)). Without any of them, it is a
/// plain put.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::{Error, PutOptions};
/// use std::time::Duration;
///
/// let lease = PutOptions::new().expect_absent().ttl(Duration::from_secs(60));
/// store.put_with("lease", "ada", lease)?;
/// assert!(matches!(store.put_with("lease", "bob", lease), Err(Error::ConditionFailed { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct PutOptions {
    pub(crate) expires: Expires,
    pub(crate) expected: Option<Expected>,
    pub(crate) durability: Option<Durability>,
}

/// The state of a key that a write requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Absent,
    Version(Version),
}

impl Expected {
    /// Returns the version, `None` if the key must be absent.
    pub(crate) fn version(self) -> Option<Version> {
        match self {
            Expected::Absent => None,
            Expected::Version(version) => Some(version),
        }
    }
}

impl PutOptions {
    /// Returns the options of a plain put.
    pub fn new() -> PutOptions {
        PutOptions::default()
    }

    /// Lets the key expire after `ttl`, counted from the write.
    pub fn ttl(self, ttl: Duration) -> PutOptions {
        self.expires(ttl)
    }

    /// Lets the key expire after a duration, or at a time.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::PutOptions;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let midnight = SystemTime::now() + Duration::from_secs(3600);
    /// store.put_with("menu", "soup", PutOptions::new().expires(midnight))?;
    /// // Another key that expires at the same moment:
    /// let expiry = store.get_item("menu")?.expect("it was just put").expiry;
    /// store.put_with("price", "5", PutOptions::new().expires(expiry))?;
    /// assert_eq!(store.get_item("price")?.expect("it was just put").expiry, expiry);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires(self, expires: impl Into<Expires>) -> PutOptions {
        PutOptions { expires: expires.into(), ..self }
    }

    /// Puts the key only if it is absent; otherwise the put fails with [`Error::ConditionFailed`].
    pub fn expect_absent(self) -> PutOptions {
        PutOptions { expected: Some(Expected::Absent), ..self }
    }

    /// Puts the key only if it still has this version ([`Tree::get_item`](crate::Tree::get_item)); otherwise
    /// the put fails with [`Error::ConditionFailed`]. See
    /// [`WriteBatch::expect_version`](crate::WriteBatch::expect_version).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Error, PutOptions};
    ///
    /// store.put("door", "open")?;
    /// let seen = store.get_item("door")?.expect("it was just put").version;
    /// store.put_with("door", "shut", PutOptions::new().expect_version(seen))?;
    /// let again = store.put_with("door", "locked", PutOptions::new().expect_version(seen));
    /// assert!(matches!(again, Err(Error::ConditionFailed { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_version(self, version: Version) -> PutOptions {
        PutOptions { expected: Some(Expected::Version(version)), ..self }
    }

    /// Makes the put durable at this level instead of the store's
    /// ([`Store::with_durability`](crate::Store::with_durability)).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// use hikv::{Durability, PutOptions, Store};
    ///
    /// let store = Store::open(dir.path())?; // on a disk: a journal
    /// store.put_with("clicks", "1", PutOptions::new().durability(Durability::Buffered))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn durability(self, level: Durability) -> PutOptions {
        PutOptions { durability: Some(level), ..self }
    }
}
