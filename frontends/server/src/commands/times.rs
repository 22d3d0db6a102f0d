//! Expiry times, as clients give and get them.

use hikv::{Clock, Expiry};

use crate::errors::Refusal;
use crate::keyspace::items::Items;

/// The unit of an expiry option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// Milliseconds instead of seconds.
    pub(super) is_ms: bool,
    /// Relative to now instead of the Unix epoch.
    pub(super) is_relative: bool,
}

pub(super) const SECONDS: Unit = Unit { is_ms: false, is_relative: true };
pub(super) const MILLISECONDS: Unit = Unit { is_ms: true, is_relative: true };
pub(super) const UNIX_SECONDS: Unit = Unit { is_ms: false, is_relative: false };
pub(super) const UNIX_MILLISECONDS: Unit = Unit { is_ms: true, is_relative: false };

/// Returns the unit of an option of SET and GETEX.
pub(super) fn unit_of(option: &[u8]) -> Option<Unit> {
    match option.to_ascii_lowercase().as_slice() {
        b"ex" => Some(SECONDS),
        b"px" => Some(MILLISECONDS),
        b"exat" => Some(UNIX_SECONDS),
        b"pxat" => Some(UNIX_MILLISECONDS),
        _ => None,
    }
}

/// The option without a time, which differs between `SET` and `GETEX`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeepOption {
    /// `KEEPTTL`
    Kept,
    /// `PERSIST`
    Persist,
}

/// The expiry options of `SET` and `GETEX`. As in Redis, the same option may be repeated, and the last one counts; two
/// different ones are a syntax error.
#[derive(Default)]
pub(super) struct Until<'a> {
    keep_option: Option<KeepOption>,
    moment: Option<(&'a [u8], Unit)>,
}

impl<'a> Until<'a> {
    /// Parses the option `name`, with its value from `rest`; `keep_option` is this command's option without a time.
    pub(super) fn take(
        &mut self,
        name: &[u8],
        keep_option: KeepOption,
        rest: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        let word: &[u8] = if keep_option == KeepOption::Kept { b"keepttl" } else { b"persist" };
        if name.eq_ignore_ascii_case(word) && self.moment.is_none() {
            self.keep_option = Some(keep_option);
            return Ok(());
        }
        let is_free = |unit: &Unit| self.keep_option.is_none() && self.moment.is_none_or(|(_, before)| before == *unit);
        let unit = unit_of(name).filter(is_free).ok_or(Refusal::Syntax)?;
        self.moment = Some((rest.next().ok_or(Refusal::Syntax)?, unit));
        Ok(())
    }

    /// Returns whether no such option was given.
    pub(super) fn is_unset(&self) -> bool {
        self.keep_option.is_none() && self.moment.is_none()
    }

    /// Returns whether the key's expiry stays unchanged.
    pub(super) fn is_kept(&self) -> bool {
        self.keep_option == Some(KeepOption::Kept)
    }

    /// Returns the time in milliseconds since the Unix epoch, if one was given.
    pub(super) fn moment(&self, command: &'static str) -> Result<Option<i64>, Refusal> {
        self.moment.map(|(number, unit)| positive_moment_of(number, unit, command)).transpose()
    }
}

/// Returns the store's time in milliseconds since the Unix epoch.
pub(super) fn now_ms() -> i64 {
    Clock::default().now_ms() as i64
}

/// Returns how far the store's time is ahead of the clock that clients see (`TIME`).
pub(super) fn lead_ms() -> i64 {
    Clock::default().lead_ms() as i64
}

/// Returns the time that a number of this unit means, in milliseconds since the Unix epoch; it may be in the past, and
/// negative.
pub(super) fn moment_of(number: i64, unit: Unit, command: &'static str) -> Result<i64, Refusal> {
    let refused = || Refusal::ExpireTime { command };
    let ms = if unit.is_ms { number } else { number.checked_mul(1000).ok_or_else(refused)? };
    ms.checked_add(if unit.is_relative { now_ms() } else { lead_ms() }).ok_or_else(refused)
}

/// Like [`moment_of`], for a number that must be above 0.
pub(super) fn positive_moment_of(argument: &[u8], unit: Unit, command: &'static str) -> Result<i64, Refusal> {
    let number = resp::parse_integer(argument).ok_or(Refusal::NotAnInteger)?;
    if number <= 0 {
        return Err(Refusal::ExpireTime { command });
    }
    moment_of(number, unit, command)
}

/// Converts a checked time for the store.
pub(super) fn expiry_at(ms: i64) -> Expiry {
    Expiry::at_ms(ms.max(0) as u64)
}

/// Converts a time of the store to milliseconds since the Unix epoch; `None` means never.
pub(super) fn ms_of(expiry: Expiry) -> Option<i64> {
    (!expiry.is_never()).then(|| i64::try_from(expiry.ms()).unwrap_or(i64::MAX))
}

/// Returns the key's expiry in milliseconds since the Unix epoch, with an inner `None` for never; `None` if the key
/// does not exist.
pub(super) fn expiry_of(items: Items<'_>, key: &[u8]) -> Result<Option<Option<i64>>, Refusal> {
    Ok(items.expires_at(key)?.map(ms_of))
}
