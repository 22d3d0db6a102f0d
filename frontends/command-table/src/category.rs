//! The command categories of ACL rules, as bits.

use super::flag;

pub const KEYSPACE: u32 = 1;
pub const READ: u32 = 1 << 1;
pub const WRITE: u32 = 1 << 2;
pub const SET: u32 = 1 << 3;
pub const SORTEDSET: u32 = 1 << 4;
pub const LIST: u32 = 1 << 5;
pub const HASH: u32 = 1 << 6;
pub const STRING: u32 = 1 << 7;
pub const BITMAP: u32 = 1 << 8;
pub const HYPERLOGLOG: u32 = 1 << 9;
pub const GEO: u32 = 1 << 10;
pub const STREAM: u32 = 1 << 11;
pub const PUBSUB: u32 = 1 << 12;
pub const ADMIN: u32 = 1 << 13;
pub const FAST: u32 = 1 << 14;
pub const SLOW: u32 = 1 << 15;
pub const BLOCKING: u32 = 1 << 16;
pub const DANGEROUS: u32 = 1 << 17;
pub const CONNECTION: u32 = 1 << 18;
pub const TRANSACTION: u32 = 1 << 19;
pub const SCRIPTING: u32 = 1 << 20;

/// Names by bits, in the order of `ACL CAT`. Categories of data types that this server lacks exist without commands, so
/// that rules written for Redis are accepted.
pub const NAMES: [(u32, &str); 21] = [
    (KEYSPACE, "keyspace"),
    (READ, "read"),
    (WRITE, "write"),
    (SET, "set"),
    (SORTEDSET, "sortedset"),
    (LIST, "list"),
    (HASH, "hash"),
    (STRING, "string"),
    (BITMAP, "bitmap"),
    (HYPERLOGLOG, "hyperloglog"),
    (GEO, "geo"),
    (STREAM, "stream"),
    (PUBSUB, "pubsub"),
    (ADMIN, "admin"),
    (FAST, "fast"),
    (SLOW, "slow"),
    (BLOCKING, "blocking"),
    (DANGEROUS, "dangerous"),
    (CONNECTION, "connection"),
    (TRANSACTION, "transaction"),
    (SCRIPTING, "scripting"),
];

/// Returns the categories implied by a command's flags.
pub(crate) const fn of_flags(flags: u32) -> u32 {
    let mut categories = 0;
    let rules = [
        (flag::WRITE, WRITE),
        (flag::READONLY, READ),
        (flag::ADMIN, ADMIN | DANGEROUS),
        (flag::PUBSUB, PUBSUB),
        (flag::FAST, FAST),
        (flag::BLOCKING, BLOCKING),
    ];
    let mut at = 0;
    while at < rules.len() {
        if flags & rules[at].0 != 0 {
            categories |= rules[at].1;
        }
        at += 1;
    }
    if categories & FAST == 0 { categories | SLOW } else { categories }
}

/// Returns the category with this name, ignoring case.
pub fn by_name(name: &[u8]) -> Option<u32> {
    NAMES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(bit, _)| *bit)
}
