use super::category;
use super::command::{Action, Command};
use super::cost::Cost::{Bits, Moment, Values};
use super::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::needs::Needs::{Any, Conditions};
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::{Access, Touches, key};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "bitcount",
        -2,
        READONLY,
        policy(Kind::Read, key(Access::Read), Open, Usual, Values, Any),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented("bitmap", "2.6.0", "Count set bits in a string", "O(N)"),
    Command::new(
        "bitfield",
        -2,
        WRITE | DENYOOM,
        policy(Kind::Update, Touches::BITFIELD, Open, Usual, Values, Conditions),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented(
        "bitmap",
        "3.2.0",
        "Perform arbitrary bitfield integer operations on strings",
        "O(1) for each subcommand specified",
    ),
    Command::new(
        "bitfield_ro",
        -2,
        READONLY | FAST,
        policy(Kind::Read, key(Access::Read), Open, Usual, Values, Any),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented(
        "bitmap",
        "6.0.0",
        "Perform arbitrary bitfield integer operations on strings. Read-only variant of BITFIELD",
        "O(1) for each subcommand specified",
    ),
    Command::new(
        "bitop",
        -4,
        WRITE | DENYOOM,
        policy(Kind::Update, Touches::BITOP, Open, Usual, Values, Any),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .alone()
    .documented("bitmap", "2.6.0", "Perform bitwise operations between strings", "O(N)"),
    Command::new(
        "bitpos",
        -3,
        READONLY,
        policy(Kind::Read, key(Access::Read), Open, Usual, Values, Any),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented("bitmap", "2.8.7", "Find first bit set or clear in a string", "O(N)"),
    Command::new(
        "getbit",
        3,
        READONLY | FAST,
        policy(Kind::Read, key(Access::Read), Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented("bitmap", "2.2.0", "Returns the bit value at offset in the string value stored at key", "O(1)"),
    Command::new(
        "setbit",
        4,
        WRITE | DENYOOM,
        policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Bits(2), Conditions),
        Action::Apply,
    )
    .in_categories(category::BITMAP)
    .documented("bitmap", "2.2.0", "Sets or clears the bit at offset in the string value stored at key", "O(1)"),
];
