//! Commands of hikv.

use crate::category;
use crate::command::Command;
use crate::cost::Cost::{Keys, Ranges, Values};
use crate::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::{Conditions, Order};
use crate::policy::on;
use crate::touches::Touches::{Prefix, Range};
use crate::touches::{Access, key};

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "cas",
        4,
        WRITE | DENYOOM | FAST,
        on(Kind::Update, key(Access::ReadAndUpdate)).costs(Values).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key> <old> <new>")
    .documented("string", "0.2.0", "Set the value of a key if the current value is the expected one", "O(1)"),
    Command::new("countrange", 3, READONLY, on(Kind::Range, Range).costs(Keys).needs(Order))
        .in_categories(category::KEYSPACE)
        .syntax("<start> <end>")
        .documented(
            "generic",
            "0.2.0",
            "Return the number of keys between two keys",
            "O(N) where N is the number of those keys; it reads the index, not the items",
        ),
    Command::new("prefix", -2, READONLY, on(Kind::Range, Prefix).costs(Ranges).needs(Order))
        .in_categories(category::KEYSPACE)
        .syntax("<prefix> [LIMIT <count:integer>] [REV] [what(KEYS|VALUES)]")
        .documented(
            "generic",
            "0.1.0",
            "Return the keys with a prefix in order, with their values",
            "O(log(N)+M) where N is the number of keys, and M the number of those returned",
        ),
    Command::new("range", -3, READONLY, on(Kind::Range, Range).costs(Ranges).needs(Order))
        .in_categories(category::KEYSPACE)
        .syntax("<start> <end> [LIMIT <count:integer>] [REV] [what(KEYS|VALUES)]")
        .documented(
            "generic",
            "0.1.0",
            "Return the keys between two keys in order, with their values",
            "O(log(N)+M) where N is the number of keys, and M the number of those returned",
        ),
];
