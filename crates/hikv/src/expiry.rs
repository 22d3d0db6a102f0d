//! Keys that expire.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Error, Expiry, OnExpired, OnExpiredItem, Ttl};

use crate::Store;

/// A key that has expired is absent from everything that reads or writes it, at once; only [`Store::len`] counts it until
/// its room is taken back, which happens in the background. The clock is the system's, in milliseconds, and never runs
/// backwards while the process lives: but if it was set back when the store is opened again, keys that expired and were not
/// taken back yet are there again.
///
/// A put without expiry clears it; [`Store::update`], [`Store::compare_and_swap`] and [`Store::increment`] keep it.
impl Store {
    /// As [`Store::put`], of a key that expires after `ttl`.
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
    /// See [`Error`]; nothing has changed.
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<(), Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// As [`Store::put`], of a key that expires when the system's clock tells `time` ([`Clock::at`](crate::Clock::at)).
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed.
    pub fn put_expiring_at(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<(), Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.put_until(key.as_ref(), value.as_ref(), expiry))
    }

    /// As [`Store::put_from`] and [`Store::put_with_ttl`] together. The time is counted from the call, not from the end of the source.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed, whatever was read.
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

    /// As [`Store::put_from`] and [`Store::put_expiring_at`] together.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed, whatever was read.
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

    /// Lets the key expire at `time`; false if it is not there. A time that has passed deletes it. The value is copied
    /// within the region, and needs as much room again for that moment.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed.
    pub fn expire_at(&self, key: impl AsRef<[u8]>, time: SystemTime) -> Result<bool, Error> {
        let expiry = self.at_time(time)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// As [`Store::expire_at`], after `ttl`.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed.
    pub fn expire_in(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        let expiry = self.after(ttl)?;
        self.change(|engine| engine.expire(key.as_ref(), expiry))
    }

    /// Lets the key stay, whenever it was to expire; false if it is not there.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed.
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.change(|engine| engine.expire(key.as_ref(), Expiry::NEVER))
    }

    /// A time that ends beyond all counting would let the key stay.
    fn after(&self, ttl: Duration) -> Result<Expiry, Error> {
        noted(self.engine()?.clock().after(ttl), ttl)
    }

    /// As [`Store::after`], of a moment.
    fn at_time(&self, time: SystemTime) -> Result<Expiry, Error> {
        noted(self.engine()?.clock().at(time), time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// When the key expires, [`Expiry::NEVER`] if it does not; `None` if it is not there.
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
    /// See [`Error`].
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Error> {
        self.engine()?.expiry(key.as_ref())
    }

    /// From now on `callback` is told of each key that has expired, when its item is taken away: by a background thread, within a
    /// second or so, by a write to the key that comes before, or by a writer of other keys that expire, where the background is behind. [`Store::clear`] tells of nothing. `callback` takes the place of
    /// any other, which does not run any more when this returns; `None` ends it.
    ///
    /// It runs on the thread that took the item away, when that has done so and holds nothing of the store: it may read, write,
    /// scan and clear as any caller may, and call this, which then does not wait for it to end. Of keys that expire by what the
    /// callback does it is told after returning. If it panics the panic ends there, and later keys are told of. While it runs on
    /// the background's thread that does nothing else: it should be quick. It should not hold the store, which would never be
    /// closed; a [`std::sync::Weak`] to something that does is well.
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

    /// As [`Store::on_expired`], for a callback that also gets the value that the key had, and when it expired: to take the key out of an index
    /// over values, for example. Each value is copied before its item is taken away. Replaces any other callback; [`Store::on_expired`] with
    /// `None` ends this one as well.
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

    /// What is left of the key's life; `None` if it is not there.
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
    /// See [`Error`].
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Ttl>, Error> {
        let engine = self.engine()?;
        Ok(engine.expiry(key.as_ref())?.map(|expiry| engine.clock().left(expiry)))
    }
}

fn noted(expiry: Expiry, time: Duration) -> Result<Expiry, Error> {
    if expiry.is_never() { Err(Error::ExpiryTooLate { seconds: time.as_secs() }) } else { Ok(expiry) }
}
