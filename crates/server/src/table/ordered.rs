use super::category;
use super::command::{Action, Command};
use super::cost::Cost::{Keys, Ranges, Values};
use super::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::needs::Needs::{Conditions, Order};
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::Touches::{Prefix, Range};
use super::touches::{Access, key};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "cas",
        4,
        WRITE | DENYOOM | FAST,
        policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Values, Conditions),
        Action::Apply,
    )
    .in_categories(category::STRING)
    .documented("string", "0.2.0", "Set the value of a key if the current value is the expected one", "O(1)"),
    Command::new("countrange", 3, READONLY, policy(Kind::Range, Range, Open, Usual, Keys, Order), Action::Apply)
        .in_categories(category::KEYSPACE)
        .documented(
            "generic",
            "0.2.0",
            "Return the number of keys between two keys",
            "O(N) where N is the number of those keys; it reads the index, not the items",
        ),
    Command::new("prefix", -2, READONLY, policy(Kind::Range, Prefix, Open, Usual, Ranges, Order), Action::Apply)
        .in_categories(category::KEYSPACE)
        .documented(
            "generic",
            "0.1.0",
            "Return the keys with a prefix in order, with their values",
            "O(log(N)+M) where N is the number of keys, and M the number of those returned",
        ),
    Command::new("range", -3, READONLY, policy(Kind::Range, Range, Open, Usual, Ranges, Order), Action::Apply)
        .in_categories(category::KEYSPACE)
        .documented(
            "generic",
            "0.1.0",
            "Return the keys between two keys in order, with their values",
            "O(log(N)+M) where N is the number of keys, and M the number of those returned",
        ),
];
