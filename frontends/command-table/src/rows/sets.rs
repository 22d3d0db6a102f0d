//! Sets.

use crate::category;
use crate::command::{Action, Command};
use crate::cost::Cost::{Elements, ElementsOver};
use crate::flag::{DENYOOM, FAST, MOVABLE_KEYS, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Collections;
use crate::policy::on;
use crate::touches::{Access, Touches, counted_keys_from, key, keys};

/// Creates the row of a command that stores its result under its first key.
const fn storing(name: &'static str, summary: &'static str, complexity: &'static str) -> Command {
    let policy = on(Kind::Update, Touches::STORED_FROM_KEYS).costs(Elements).needs(Collections);
    Command::new(name, -3, WRITE | DENYOOM, policy)
        .in_categories(category::SET)
        .syntax("<destination:key> <key:key>...")
        .documented("set", "1.0.0", summary, complexity)
}

pub(super) static ROWS: &[Command] = &[
    Command::new("sadd", -3, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Extend)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::SET)
        .syntax("<key:key> <member>...")
        .documented(
            "set",
            "1.0.0",
            "Add one or more members to a set",
            "O(1) for each element added, so O(N) to add N elements when the command is called with \
             multiple arguments.",
        ),
    Command::new("scard", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect)).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key>")
        .documented("set", "1.0.0", "Get the number of members in a set", "O(1)"),
    Command::new("sdiff", -2, READONLY, on(Kind::Range, keys(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key>...")
        .documented(
            "set",
            "1.0.0",
            "Subtract multiple sets",
            "O(N) where N is the total number of elements in all given sets.",
        ),
    storing(
        "sdiffstore",
        "Subtract multiple sets and store the resulting set in a key",
        "O(N) where N is the total number of elements in all given sets.",
    ),
    Command::new("sinter", -2, READONLY, on(Kind::Range, keys(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key>...")
        .documented(
            "set",
            "1.0.0",
            "Intersect multiple sets",
            "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of \
             sets.",
        ),
    Command::new(
        "sintercard",
        -3,
        READONLY | MOVABLE_KEYS,
        on(Kind::Read, counted_keys_from(1, Access::Read)).costs(Elements).needs(Collections),
    )
    .in_categories(category::SET)
    .syntax("<numkeys:integer> <key:key>... [LIMIT <limit:integer>]")
    .documented(
        "set",
        "7.0.0",
        "Intersect multiple sets and return the cardinality of the result",
        "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of \
             sets.",
    ),
    storing(
        "sinterstore",
        "Intersect multiple sets and store the resulting set in a key",
        "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of \
             sets.",
    ),
    Command::new("sismember", 3, READONLY | FAST, on(Kind::Read, key(Access::Inspect)).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key> <member>")
        .documented("set", "1.0.0", "Determine if a given value is a member of a set", "O(1)"),
    Command::new("smembers", 2, READONLY, on(Kind::Range, key(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key>")
        .documented("set", "1.0.0", "Get all the members in a set", "O(N) where N is the set cardinality."),
    Command::new("smismember", -3, READONLY | FAST, on(Kind::Read, key(Access::Read)).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key> <member>...")
        .documented(
            "set",
            "6.2.0",
            "Returns the membership associated with the given elements for a set",
            "O(N) where N is the number of elements being checked for membership",
        ),
    Command::new("smove", 4, WRITE | FAST, on(Kind::Update, Touches::SMOVE).needs(Collections))
        .in_categories(category::SET)
        .syntax("<source:key> <destination:key> <member>")
        .documented("set", "1.0.0", "Move a member from one set to another", "O(1)"),
    Command::new(
        "spop",
        -2,
        WRITE | FAST,
        on(Kind::Update, key(Access::ReadAndDelete)).costs(ElementsOver(2)).needs(Collections),
    )
    .in_categories(category::SET)
    .syntax("<key:key> [<count:integer>]")
    .documented(
        "set",
        "1.0.0",
        "Remove and return one or multiple random members from a set",
        "Without the count argument O(1), otherwise O(N) where N is the value of the passed \
             count.",
    ),
    Command::new(
        "srandmember",
        -2,
        READONLY,
        on(Kind::Read, key(Access::Read)).costs(ElementsOver(2)).needs(Collections),
    )
    .in_categories(category::SET)
    .syntax("<key:key> [<count:integer>]")
    .documented(
        "set",
        "1.0.0",
        "Get one or multiple random members from a set",
        "Without the count argument O(1), otherwise O(N) where N is the absolute value of the \
             passed count.",
    ),
    Command::new("srem", -3, WRITE | FAST, on(Kind::Update, key(Access::Remove)).needs(Collections))
        .grouped(Action::Change)
        .in_categories(category::SET)
        .syntax("<key:key> <member>...")
        .documented(
            "set",
            "1.0.0",
            "Remove one or more members from a set",
            "O(N) where N is the number of members to be removed.",
        ),
    Command::new("sscan", -3, READONLY, on(Kind::Range, key(Access::Read)).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key> <cursor:integer> [MATCH <pattern:pattern>] [COUNT <count:integer>]")
        .documented(
            "set",
            "2.8.0",
            "Incrementally iterate Set elements",
            "O(1) for every call. O(N) for a complete iteration, including enough command calls for \
             the cursor to return back to 0. N is the number of elements inside the collection..",
        ),
    Command::new("sunion", -2, READONLY, on(Kind::Range, keys(Access::Read)).costs(Elements).needs(Collections))
        .in_categories(category::SET)
        .syntax("<key:key>...")
        .documented(
            "set",
            "1.0.0",
            "Add multiple sets",
            "O(N) where N is the total number of elements in all given sets.",
        ),
    storing(
        "sunionstore",
        "Add multiple sets and store the resulting set in a key",
        "O(N) where N is the total number of elements in all given sets.",
    ),
];
