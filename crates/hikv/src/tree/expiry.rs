//! Keys that expire.

use std::io::Read;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Error, Expiry, Ttl};

use super::Tree;

/// Keys that expire. No operation finds an expired key. Exception: [`Tree::len`] counts it until the background frees
/// its space. Times are those of the system's clock, in milliseconds, and never run backwards while the process lives.
/// If the clock was set back before the store is opened again, expired keys whose space was not freed yet exist again.
///
/// A put without expiry removes the expiry; [`Tree::update`], [`Tree::compare_and_swap`] and [`Tree::increment`]
/// keep it.
impl Tree {
    /// Like [`Tree::put`], for a key that expires after `ttl`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Options};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// store.put_with_ttl("session", "ada", Duration::from_secs(60))?;
    /// assert!(store.contains("session")?);
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(store.get("session")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ExpiryTooLate`] if the store cannot represent that time; otherwise as for [`Tree::put`]. Nothing has
    /// changed.
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<(), Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// Like [`Tree::put`], for a key that expires at `time` of the system's clock ([`Clock::at`](crate::Clock::at)).
    ///
    /// # Errors
    /// As for [`Tree::put_with_ttl`].
    pub fn put_expiring_at(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<(), Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// Like [`Tree::put_from`], for a key that expires after `ttl`, counted from the call and not from the end of
    /// `source`.
    ///
    /// # Errors
    /// As for [`Tree::put_from`] and [`Tree::put_with_ttl`].
    pub fn put_from_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        len_bytes: u64,
        mut source: impl Read,
        ttl: Duration,
    ) -> Result<(), Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.put_from_until(key.as_ref(), len_bytes, &mut source, expiry))
    }

    /// Like [`Tree::put_from`], for a key that expires at `time`.
    ///
    /// # Errors
    /// As for [`Tree::put_from`] and [`Tree::put_with_ttl`].
    pub fn put_from_expiring_at(
        &self,
        key: impl AsRef<[u8]>,
        len_bytes: u64,
        mut source: impl Read,
        time: SystemTime,
    ) -> Result<(), Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.put_from_until(key.as_ref(), len_bytes, &mut source, expiry))
    }

    /// Lets the key expire at `time`. Returns false if it is absent. A time in the past deletes the key. The value is
    /// copied within the region, so its space is needed twice for a moment.
    ///
    /// # Errors
    /// As for [`Tree::put_with_ttl`].
    pub fn expire_at(&self, key: impl AsRef<[u8]>, time: SystemTime) -> Result<bool, Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// Lets the key expire after `ttl`; see [`Tree::expire_at`].
    ///
    /// # Errors
    /// As for [`Tree::put_with_ttl`].
    pub fn expire_in(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// Removes the key's expiry. Returns false if the key is absent.
    ///
    /// # Errors
    /// As for [`Tree::put`].
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.change(|engine| engine.expire(key.as_ref(), Expiry::NEVER))
    }

    /// Returns the expiry after `ttl`. A time beyond the representable range is an error, because it would mean
    /// 'never'.
    fn after(&self, ttl: Duration) -> Result<Expiry, Error> {
        noted(self.engine()?.clock().after(ttl), ttl)
    }

    /// Like [`Tree::after`], for a point in time.
    fn at_time(&self, time: SystemTime) -> Result<Expiry, Error> {
        noted(self.engine()?.clock().at(time), time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Returns the key's expiry, [`Expiry::NEVER`] if it has none, or `None` if the key is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Expiry;
    ///
    /// assert_eq!(store.expires_at("key")?, None);
    /// store.put("key", "value")?;
    /// assert_eq!(store.expires_at("key")?, Some(Expiry::NEVER));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Error> {
        self.engine()?.expiry(key.as_ref())
    }

    /// Returns the key's remaining time to live, or `None` if the key is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Ttl;
    /// use std::time::Duration;
    ///
    /// assert_eq!(store.ttl("key")?, None);
    /// store.put("key", "value")?;
    /// assert_eq!(store.ttl("key")?, Some(Ttl::Unlimited));
    /// store.expire_in("key", Duration::from_secs(60))?;
    /// assert!(matches!(store.ttl("key")?, Some(Ttl::Left(left)) if left > Duration::from_secs(50)));
    /// store.persist("key")?;
    /// assert_eq!(store.ttl("key")?, Some(Ttl::Unlimited));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Ttl>, Error> {
        let engine = self.engine()?;
        Ok(engine.expiry(key.as_ref())?.map(|expiry| engine.clock().left(expiry)))
    }
}

fn noted(expiry: Expiry, time: Duration) -> Result<Expiry, Error> {
    if expiry.is_never() { Err(Error::ExpiryTooLate { seconds: time.as_secs() }) } else { Ok(expiry) }
}
