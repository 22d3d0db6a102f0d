//! Keys that expire.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Error, Expiry, OnExpired, OnExpiredItem, Ttl};

use crate::Store;

/// Keys that expire. No operation finds an expired key. Exception: [`Store::len`] counts it until the background frees
/// its space. Times are those of the system's clock, in milliseconds, and never run backwards while the process lives.
/// If the clock was set back before the store is opened again, expired keys whose space was not freed yet exist again.
///
/// A put without expiry removes the expiry; [`Store::update`], [`Store::compare_and_swap`] and [`Store::increment`]
/// keep it.
impl Store {
    /// Like [`Store::put`], for a key that expires after `ttl`.
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
    /// [`Error::ExpiryTooLate`] if the store cannot represent that time; otherwise as for [`Store::put`]. Nothing has
    /// changed.
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<(), Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// Like [`Store::put`], for a key that expires at `time` of the system's clock ([`Clock::at`](crate::Clock::at)).
    ///
    /// # Errors
    /// As for [`Store::put_with_ttl`].
    pub fn put_expiring_at(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<(), Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// Like [`Store::put_from`], for a key that expires after `ttl`, counted from the call and not from the end of
    /// `source`.
    ///
    /// # Errors
    /// As for [`Store::put_from`] and [`Store::put_with_ttl`].
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

    /// Like [`Store::put_from`], for a key that expires at `time`.
    ///
    /// # Errors
    /// As for [`Store::put_from`] and [`Store::put_with_ttl`].
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
    /// As for [`Store::put_with_ttl`].
    pub fn expire_at(&self, key: impl AsRef<[u8]>, time: SystemTime) -> Result<bool, Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// Lets the key expire after `ttl`; see [`Store::expire_at`].
    ///
    /// # Errors
    /// As for [`Store::put_with_ttl`].
    pub fn expire_in(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// Removes the key's expiry. Returns false if the key is absent.
    ///
    /// # Errors
    /// As for [`Store::put`].
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.change(|engine| engine.expire(key.as_ref(), Expiry::NEVER))
    }

    /// Returns the expiry after `ttl`. A time beyond the representable range is an error, because it would mean
    /// 'never'.
    fn after(&self, ttl: Duration) -> Result<Expiry, Error> {
        noted(self.engine()?.clock().after(ttl), ttl)
    }

    /// Like [`Store::after`], for a point in time.
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
    /// As for [`Store::get`].
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Error> {
        self.engine()?.expiry(key.as_ref())
    }

    /// Registers `callback`, which is called with each expired key after its item was removed. Replaces any earlier
    /// callback, which no longer runs when this returns; `None` unregisters it.
    ///
    /// A background thread removes expired items within about a second. A write to the same key may remove an item
    /// earlier, and so may a writer of other expiring keys if the background is behind. [`Store::clear`] causes no
    /// calls.
    ///
    /// The callback runs on the thread that removed the item, which then holds no locks of the store. It may use the
    /// store in any way, including [`Store::clear`] and this function, which in that case does not wait for the
    /// running callback. Keys that expire through the callback's own operations are reported after it returns. A panic
    /// of the callback ends there, and later keys are still reported. It should be quick, because a background thread
    /// that runs it does nothing else. It should not own the store, which could then never close; hold a
    /// [`std::sync::Weak`] to the owner.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Options};
    /// use std::sync::{Arc, mpsc};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// let (gone, keys) = mpsc::channel();
    /// store.on_expired(Some(Arc::new(move |key: &[u8]| _ = gone.send(key.to_vec()))))?;
    /// store.put_with_ttl("session", "ada", Duration::from_secs(60))?;
    /// clock.advance(Duration::from_secs(60));
    /// store.put("session", "bob")?;
    /// assert_eq!(keys.recv()?, b"session");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn on_expired(&self, callback: Option<Arc<OnExpired>>) -> Result<(), Error> {
        self.engine()?.on_expired(callback);
        Ok(())
    }

    /// Like [`Store::on_expired`], for a callback that also receives the key's value and expiry, for example to remove
    /// the key from an index over values. Each value is copied before its item is removed. Replaces any other
    /// callback; [`Store::on_expired`] with `None` unregisters it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Expiry, Options};
    /// use std::sync::{Arc, mpsc};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// let (gone, items) = mpsc::channel();
    /// store.on_expired_item(Arc::new(move |key: &[u8], value: &[u8], _: Expiry| {
    ///     _ = gone.send((key.to_vec(), value.to_vec()));
    /// }))?;
    /// store.put_with_ttl("session", "ada", Duration::from_secs(60))?;
    /// clock.advance(Duration::from_secs(60));
    /// store.put("session", "bob")?;
    /// assert_eq!(items.recv()?, (b"session".to_vec(), b"ada".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn on_expired_item(&self, callback: Arc<OnExpiredItem>) -> Result<(), Error> {
        self.engine()?.on_expired_item(callback);
        Ok(())
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
    /// As for [`Store::get`].
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Ttl>, Error> {
        let engine = self.engine()?;
        Ok(engine.expiry(key.as_ref())?.map(|expiry| engine.clock().left(expiry)))
    }
}

fn noted(expiry: Expiry, time: Duration) -> Result<Expiry, Error> {
    if expiry.is_never() { Err(Error::ExpiryTooLate { seconds: time.as_secs() }) } else { Ok(expiry) }
}
