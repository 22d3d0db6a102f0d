//! `HELP` of commands that have subcommands.

use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use command_table as table;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "acl|": [help],
    "client|": [help],
    "command|": [help],
    "config|": [help],
    "function|": [help],
    "latency|": [help],
    "memory|": [help],
    "module|": [help],
    "object|": [help],
    "pubsub|": [help],
    "script|": [help],
    "slowlog|": [help],
    "xgroup|": [help],
    "xinfo|": [help],
];

/// Lists the subcommands of the requested command with their descriptions.
fn help(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(entry) = table::by_name(call.request.name()) else { return Err(Refusal::Syntax) };
    let name = entry.command.name.to_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    let others = entry.command.subcommands.iter().filter(|subcommand| subcommand.short_name() != "help");
    for subcommand in others {
        lines.push(subcommand.short_name().to_uppercase());
        lines.push(format!("    {}.", subcommand.docs.summary.trim_end_matches('.')));
    }
    lines.extend(["HELP".into(), "    Prints this help.".into()]);
    call.reply.array(lines.len());
    lines.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}
