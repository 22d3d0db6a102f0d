//! Transactions.

use crate::category;
use crate::command::Command;
use crate::cost::Cost::Values;
use crate::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE};
use crate::kind::Kind;
use crate::policy::When::{AtOnce, Executes};
use crate::policy::on;
use crate::touches::Touches::Nothing;
use crate::touches::{Access, keys};

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "discard",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        on(Kind::Transaction, Nothing).when(AtOnce),
    )
    .in_categories(category::TRANSACTION)
    .documented(
        "transactions",
        "2.0.0",
        "Discard all commands issued after MULTI",
        "O(N), when N is the number of queued commands",
    ),
    Command::new("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG, on(Kind::Transaction, Nothing).when(Executes))
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
        on(Kind::Transaction, Nothing).when(AtOnce),
    )
    .in_categories(category::TRANSACTION)
    .documented("transactions", "1.2.0", "Mark the start of a transaction block", "O(1)"),
    Command::new("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, on(Kind::Transaction, Nothing))
        .in_categories(category::TRANSACTION)
        .documented("transactions", "2.2.0", "Forget about all watched keys", "O(1)"),
    Command::new(
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        on(Kind::Transaction, keys(Access::Inspect)).when(AtOnce).costs(Values),
    )
    .in_categories(category::TRANSACTION)
    .alone()
    .syntax("<key:key>...")
    .documented(
        "transactions",
        "2.2.0",
        "Watch the given keys to determine execution of the MULTI/EXEC block",
        "O(1) for every key.",
    ),
];
