//! The map from commands to the functions that execute them.

use std::sync::LazyLock;

use super::{
    acl, bitfield, bits, blocking, client, client_waiting, cluster, command, config, connection, databases, debug,
    dump, expiry, hashes, hello, help, info, keys, latency, lcs, libraries, lists, lpos, memory, moving, numbers,
    object, ordered, pubsub, scan, scripting, server, set, sets, slowlog, sort, sorted_sets, streams, strings,
    tracking, transactions, values,
};
use crate::execution::call::Function;
use command_table::{self as table, Entry};

/// By row names; one entry per file.
const FAMILIES: [&[(&str, Function)]; 54] = [
    acl::FUNCTIONS,
    bitfield::FUNCTIONS,
    bits::FUNCTIONS,
    blocking::FUNCTIONS,
    client::FUNCTIONS,
    client_waiting::FUNCTIONS,
    cluster::FUNCTIONS,
    command::FUNCTIONS,
    config::FUNCTIONS,
    connection::FUNCTIONS,
    databases::FUNCTIONS,
    debug::FUNCTIONS,
    dump::FUNCTIONS,
    expiry::FUNCTIONS,
    hashes::FUNCTIONS,
    hello::FUNCTIONS,
    help::FUNCTIONS,
    info::FUNCTIONS,
    keys::FUNCTIONS,
    latency::FUNCTIONS,
    lcs::FUNCTIONS,
    libraries::FUNCTIONS,
    lists::FUNCTIONS,
    lpos::FUNCTIONS,
    memory::FUNCTIONS,
    moving::FUNCTIONS,
    numbers::FUNCTIONS,
    object::FUNCTIONS,
    ordered::FUNCTIONS,
    pubsub::FUNCTIONS,
    scan::FUNCTIONS,
    scripting::FUNCTIONS,
    server::FUNCTIONS,
    set::FUNCTIONS,
    sets::FUNCTIONS,
    slowlog::FUNCTIONS,
    sort::FUNCTIONS,
    sorted_sets::add::FUNCTIONS,
    sorted_sets::algebra::FUNCTIONS,
    sorted_sets::pop::FUNCTIONS,
    sorted_sets::ranges::FUNCTIONS,
    sorted_sets::read::FUNCTIONS,
    sorted_sets::remove::FUNCTIONS,
    streams::add::FUNCTIONS,
    streams::claim::FUNCTIONS,
    streams::groups::FUNCTIONS,
    streams::info::FUNCTIONS,
    streams::pending::FUNCTIONS,
    streams::range::FUNCTIONS,
    streams::read::FUNCTIONS,
    strings::FUNCTIONS,
    tracking::FUNCTIONS,
    transactions::FUNCTIONS,
    values::FUNCTIONS,
];

/// By command index; `None` for a command that only has subcommands.
static FUNCTIONS: LazyLock<Box<[Option<Function>]>> =
    LazyLock::new(|| table::entries().iter().map(|entry| by_name(entry.command.name)).collect());

fn by_name(name: &str) -> Option<Function> {
    FAMILIES.iter().copied().flatten().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

/// Returns the command's function; `None` if only its subcommands can be executed.
#[inline]
pub(crate) fn of(entry: Entry) -> Option<Function> {
    FUNCTIONS[entry.number]
}

#[cfg(test)]
mod tests {
    use super::*;
    use command_table::Action;

    #[test]
    fn commands_and_functions_match() {
        for entry in table::entries() {
            let name = entry.command.name;
            let count = FAMILIES.iter().copied().flatten().filter(|(known, _)| *known == name).count();
            assert_eq!(count, usize::from(entry.command.action != Action::Subcommands), "{name}");
            assert_eq!(of(*entry).is_some(), count == 1, "{name}");
        }
        for (name, _) in FAMILIES.into_iter().flatten() {
            assert!(table::by_name(name.as_bytes()).is_some_and(|entry| entry.command.name == *name), "{name}");
        }
    }
}
