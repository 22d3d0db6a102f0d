//! Hashes.

use crate::category;
use crate::command::{Action, Command};
use crate::cost::Cost::{Elements, ElementsOver};
use crate::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Collections;
use crate::policy::on;
use crate::touches::{Access, key};

pub(super) static ROWS: &[Command] = &[
    Command::new("hdel", -3, WRITE | FAST, on(Kind::Update, key(Access::Remove)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::HASH)
        .syntax("<key:key> <field>...")
        .documented(
            "hash",
            "2.0.0",
            "Delete one or more hash fields",
            "O(N) where N is the number of fields to be removed.",
        ),
    Command::new("hexists", 3, READONLY | FAST, on(Kind::Read, key(Access::Inspect)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key> <field>")
        .documented("hash", "2.0.0", "Determine if a hash field exists", "O(1)"),
    Command::new("hget", 3, READONLY | FAST, on(Kind::Read, key(Access::Read)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key> <field>")
        .documented("hash", "2.0.0", "Get the value of a hash field", "O(1)"),
    Command::new("hgetall", 2, READONLY, on(Kind::Range, key(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key>")
        .documented(
            "hash",
            "2.0.0",
            "Get all the fields and values in a hash",
            "O(N) where N is the size of the hash.",
        ),
    Command::new("hincrby", 4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::HASH)
        .syntax("<key:key> <field> <increment:integer>")
        .documented("hash", "2.0.0", "Increment the integer value of a hash field by the given number", "O(1)"),
    Command::new(
        "hincrbyfloat",
        4,
        WRITE | DENYOOM | FAST,
        on(Kind::Update, key(Access::ReadAndUpdate)).needs(Collections),
    )
    .grouped(Action::Change)
    .in_categories(category::HASH)
    .syntax("<key:key> <field> <increment:double>")
    .documented("hash", "2.6.0", "Increment the float value of a hash field by the given amount", "O(1)"),
    Command::new("hkeys", 2, READONLY, on(Kind::Range, key(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key>")
        .documented("hash", "2.0.0", "Get all the fields in a hash", "O(N) where N is the size of the hash."),
    Command::new("hlen", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key>")
        .documented("hash", "2.0.0", "Get the number of fields in a hash", "O(1)"),
    Command::new("hmget", -3, READONLY | FAST, on(Kind::Read, key(Access::Read)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key> <field>...")
        .documented(
            "hash",
            "2.0.0",
            "Get the values of all the given hash fields",
            "O(N) where N is the number of fields being requested.",
        ),
    Command::new("hmset", -4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Update)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::HASH)
        .syntax("<key:key> field_value{<field> <value>}...")
        .documented(
            "hash",
            "2.0.0",
            "Set multiple hash fields to multiple values",
            "O(N) where N is the number of fields being set.",
        ),
    Command::new(
        "hrandfield",
        -2,
        READONLY,
        on(Kind::Read, key(Access::Read)).costs(ElementsOver(2)).needs(Collections),
    )
    .in_categories(category::HASH)
    .syntax("<key:key> [options{<count:integer> [WITHVALUES]}]")
    .documented(
        "hash",
        "6.2.0",
        "Get one or multiple random fields from a hash",
        "O(N) where N is the number of fields returned",
    ),
    Command::new("hscan", -3, READONLY, on(Kind::Range, key(Access::Read)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key> <cursor:integer> [MATCH <pattern:pattern>] [COUNT <count:integer>]")
        .documented(
            "hash",
            "2.8.0",
            "Incrementally iterate hash fields and associated values",
            "O(1) for every call. O(N) for a complete iteration, including enough command calls for \
             the cursor to return back to 0. N is the number of elements inside the collection..",
        ),
    Command::new("hset", -4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Update)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::HASH)
        .syntax("<key:key> field_value{<field> <value>}...")
        .documented(
            "hash",
            "2.0.0",
            "Set the string value of a hash field",
            "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the \
             command is called with multiple field/value pairs.",
        ),
    Command::new("hsetnx", 4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Extend)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::HASH)
        .syntax("<key:key> <field> <value>")
        .documented("hash", "2.0.0", "Set the value of a hash field, only if the field does not exist", "O(1)"),
    Command::new("hstrlen", 3, READONLY | FAST, on(Kind::Read, key(Access::Inspect)).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key> <field>")
        .documented("hash", "3.2.0", "Get the length of the value of a hash field", "O(1)"),
    Command::new("hvals", 2, READONLY, on(Kind::Range, key(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::HASH)
        .syntax("<key:key>")
        .documented("hash", "2.0.0", "Get all the values in a hash", "O(N) where N is the size of the hash."),
];
