use super::category;
use super::command::{Access, Action, Command, Keys};
use super::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::commands::{ordered, set};

pub(super) static ROWS: &[Command] = &[
    Command::new("cas", 4, WRITE | DENYOOM | FAST, Action::Apply(set::cas))
        .in_categories(category::STRING)
        .with_keys(Keys::at(1, 1, 1, Access::ReadWrite))
        .documented("string", "0.2.0", "Set the value of a key if it holds another", "O(1)"),
    Command::new("countrange", 3, READONLY, Action::Apply(ordered::countrange))
        .in_categories(category::KEYSPACE)
        .documented(
            "generic",
            "0.2.0",
            "Return the number of keys between two keys",
            "O(N) where N is the number of those keys; it reads the index, not the items",
        ),
    Command::new("prefix", -2, READONLY, Action::Apply(ordered::prefix)).in_categories(category::KEYSPACE).documented(
        "generic",
        "0.1.0",
        "Return the keys that begin with a prefix, and their values, in order",
        "O(log(N)+M) where N is the number of keys, and M the number of those returned",
    ),
    Command::new("range", -3, READONLY, Action::Apply(ordered::range)).in_categories(category::KEYSPACE).documented(
        "generic",
        "0.1.0",
        "Return the keys between two keys, and their values, in order",
        "O(log(N)+M) where N is the number of keys, and M the number of those returned",
    ),
];
