//! Expiry times of keys.

#[cfg(feature = "std")]
use std::time::{SystemTime, UNIX_EPOCH};

/// The time from which a key is absent, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Expiry(u64);

impl Expiry {
    /// No expiry: the key stays.
    pub const NEVER: Expiry = Expiry(u64::MAX);

    /// Returns the time `ms` milliseconds after the Unix epoch; the greatest number is [`Expiry::NEVER`].
    #[must_use]
    pub const fn at_ms(ms: u64) -> Expiry {
        Expiry(ms)
    }

    /// Converts this time, truncated to full milliseconds. Times before the Unix epoch become the epoch.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn at(time: SystemTime) -> Expiry {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Expiry(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the milliseconds since the Unix epoch.
    #[inline(always)]
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// Returns true for [`Expiry::NEVER`].
    #[inline(always)]
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.0 == Expiry::NEVER.0
    }
}
