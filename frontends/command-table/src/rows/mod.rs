//! The rows of the table, one file per family.

mod acl;
mod bits;
mod cluster;
mod connection;
mod diagnostics;
mod hashes;
mod keys;
mod lists;
mod ordered;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;

use crate::command::Command;

/// All rows, without subcommands.
pub(crate) fn all() -> impl Iterator<Item = &'static Command> {
    let families = [
        acl::ROWS,
        bits::ROWS,
        cluster::ROWS,
        connection::ROWS,
        diagnostics::ROWS,
        hashes::ROWS,
        keys::ROWS,
        lists::ROWS,
        ordered::ROWS,
        pubsub::ROWS,
        scripting::ROWS,
        server::ROWS,
        sets::ROWS,
        sorted_sets::ROWS,
        streams::ROWS,
        strings::ROWS,
        transactions::ROWS,
    ];
    families.into_iter().flatten()
}
