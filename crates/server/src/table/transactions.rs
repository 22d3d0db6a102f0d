use super::category;
use super::command::{Action, Command};
use super::cost::Cost::{Moment, Values};
use super::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE};
use super::needs::Needs::Any;
use super::policy::Hides::Open;
use super::policy::When::{AtOnce, Executes, Usual};
use super::policy::policy;
use super::touches::Touches::Nothing;
use super::touches::{Access, keys};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "discard",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        policy(Kind::Transaction, Nothing, Open, AtOnce, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::TRANSACTION)
    .documented(
        "transactions",
        "2.0.0",
        "Discard all commands issued after MULTI",
        "O(N), when N is the number of queued commands",
    ),
    Command::new(
        "exec",
        1,
        NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG,
        policy(Kind::Transaction, Nothing, Open, Executes, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::TRANSACTION)
    .alone()
    .documented(
        "transactions",
        "1.2.0",
        "Execute all commands issued after MULTI",
        "Depends on commands in the transaction",
    ),
    Command::new(
        "multi",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        policy(Kind::Transaction, Nothing, Open, AtOnce, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::TRANSACTION)
    .documented("transactions", "1.2.0", "Mark the start of a transaction block", "O(1)"),
    Command::new(
        "unwatch",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        policy(Kind::Transaction, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::TRANSACTION)
    .documented("transactions", "2.2.0", "Forget about all watched keys", "O(1)"),
    Command::new(
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        policy(Kind::Transaction, keys(Access::Inspect), Open, AtOnce, Values, Any),
        Action::Apply,
    )
    .in_categories(category::TRANSACTION)
    .alone()
    .documented(
        "transactions",
        "2.2.0",
        "Watch the given keys to determine execution of the MULTI/EXEC block",
        "O(1) for every key.",
    ),
];
