//! Command flags as bits; the names are Redis'.

pub const WRITE: u32 = 1;
pub const READONLY: u32 = 1 << 1;
pub const DENYOOM: u32 = 1 << 2;
pub const ADMIN: u32 = 1 << 3;
pub const PUBSUB: u32 = 1 << 4;
pub const NOSCRIPT: u32 = 1 << 5;
pub const BLOCKING: u32 = 1 << 6;
pub const LOADING: u32 = 1 << 7;
pub const STALE: u32 = 1 << 8;
/// Not shown to monitors.
pub const SKIP_MONITOR: u32 = 1 << 9;
/// Never added to the slow log.
pub const SKIP_SLOWLOG: u32 = 1 << 10;
pub const FAST: u32 = 1 << 11;
/// Allowed before login.
pub const NO_AUTH: u32 = 1 << 12;
/// Not allowed in a transaction.
pub const NO_MULTI: u32 = 1 << 13;
pub const ALLOW_BUSY: u32 = 1 << 14;
pub const NO_MANDATORY_KEYS: u32 = 1 << 15;
/// Its keys are found by its arguments.
pub const MOVABLE_KEYS: u32 = 1 << 16;
/// Runs a script, which may use any keys. Not shown.
pub const SCRIPT: u32 = 1 << 17;

/// The names in `COMMAND`, by their bits.
pub const NAMES: [(u32, &str); 17] = [
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (SKIP_MONITOR, "skip_monitor"),
    (SKIP_SLOWLOG, "skip_slowlog"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MULTI, "no_multi"),
    (ALLOW_BUSY, "allow_busy"),
    (NO_MANDATORY_KEYS, "no_mandatory_keys"),
    (MOVABLE_KEYS, "movablekeys"),
];
