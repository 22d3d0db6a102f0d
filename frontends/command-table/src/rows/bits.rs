//! Bit operations.

use crate::category;
use crate::command::Command;
use crate::cost::Cost::{Bits, Values};
use crate::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Conditions;
use crate::policy::on;
use crate::touches::{Access, Touches, key};

pub(super) static ROWS: &[Command] = &[
    Command::new("bitcount", -2, READONLY, on(Kind::Read, key(Access::Read)).costs(Values))
        .in_categories(category::BITMAP)
        .syntax("<key:key> [index{<start:integer> <end:integer> [index_unit(BYTE|BIT)]}]")
        .documented("bitmap", "2.6.0", "Count set bits in a string", "O(N)"),
    Command::new("bitfield", -2, WRITE | DENYOOM, on(Kind::Update, Touches::BITFIELD).costs(Values).needs(Conditions))
        .in_categories(category::BITMAP)
        .syntax(
            "<key:key> [operation(GET encoding_offset{<encoding> <offset:integer>}|write{[OVERFLOW \
             wrap_sat_fail(WRAP|SAT|FAIL)] write_operation(SET encoding_offset_value{<encoding> \
             <offset:integer> <value:integer>}|INCRBY encoding_offset_increment{<encoding> <offset:integer> \
             <increment:integer>})})...]",
        )
        .documented(
            "bitmap",
            "3.2.0",
            "Perform arbitrary bitfield integer operations on strings",
            "O(1) for each subcommand specified",
        ),
    Command::new("bitfield_ro", -2, READONLY | FAST, on(Kind::Read, key(Access::Read)).costs(Values))
        .in_categories(category::BITMAP)
        .syntax("<key:key> [GET encoding_offset{<encoding> <offset:integer>}...*]")
        .documented(
            "bitmap",
            "6.0.0",
            "Perform arbitrary bitfield integer operations on strings. Read-only variant of BITFIELD",
            "O(1) for each subcommand specified",
        ),
    Command::new("bitop", -4, WRITE | DENYOOM, on(Kind::Update, Touches::BITOP).costs(Values))
        .in_categories(category::BITMAP)
        .alone()
        .syntax("<operation> <destkey:key> <key:key>...")
        .documented("bitmap", "2.6.0", "Perform bitwise operations between strings", "O(N)"),
    Command::new("bitpos", -3, READONLY, on(Kind::Read, key(Access::Read)).costs(Values))
        .in_categories(category::BITMAP)
        .syntax("<key:key> <bit:integer> [index{<start:integer> [end_index{<end:integer> [index_unit(BYTE|BIT)]}]}]")
        .documented("bitmap", "2.8.7", "Find first bit set or clear in a string", "O(N)"),
    Command::new("getbit", 3, READONLY | FAST, on(Kind::Read, key(Access::Read)))
        .in_categories(category::BITMAP)
        .syntax("<key:key> <offset:integer>")
        .documented("bitmap", "2.2.0", "Returns the bit value at offset in the string value stored at key", "O(1)"),
    Command::new(
        "setbit",
        4,
        WRITE | DENYOOM,
        on(Kind::Update, key(Access::ReadAndUpdate)).costs(Bits(2)).needs(Conditions),
    )
    .in_categories(category::BITMAP)
    .syntax("<key:key> <offset:integer> <value:integer>")
    .documented("bitmap", "2.2.0", "Sets or clears the bit at offset in the string value stored at key", "O(1)"),
];
