//! COMMAND: the table, as clients ask for it.

use resp::Reply;

use super::{Action, Call, Command, Keys, TABLE, by_name};
use crate::errors::Refusal;

pub(super) static COMMAND: Command = Command {
    name: "command",
    arity: -1,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    summary: "Get array of command details",
    complexity: "O(N) where N is the total number of commands",
    since: "2.8.13",
    action: Action::Apply(command),
};

fn command(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 1 {
        write_all(&mut call.reply);
        return Ok(());
    }
    match call.request.argument(1).to_ascii_lowercase().as_slice() {
        b"count" => count(call),
        b"docs" => docs(call),
        b"info" => info(call),
        _ => Err(Refusal::unknown_subcommand("command", call.request.argument(1))),
    }
}

fn count(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() != 2 {
        return Err(Refusal::ArgumentCount { command: "command|count" });
    }
    call.reply.integer(TABLE.len() as i64);
    Ok(())
}

/// The commands named, or all; those not known are left out.
fn docs(call: &mut Call<'_>) -> Result<(), Refusal> {
    let commands: Vec<&Command> = match call.request.len() {
        2 => TABLE.to_vec(),
        _ => call.request.arguments().skip(1).filter_map(by_name).collect(),
    };
    call.reply.map(commands.len());
    for command in commands {
        call.reply.bulk(command.name.as_bytes());
        command.write_docs(&mut call.reply);
    }
    Ok(())
}

/// The commands named, or all; nothing in the place of one not known.
fn info(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 2 {
        write_all(&mut call.reply);
        return Ok(());
    }
    call.reply.array(call.request.len() - 2);
    for name in call.request.arguments().skip(1) {
        match by_name(name) {
            Some(command) => command.write_info(&mut call.reply),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

fn write_all(reply: &mut Reply<'_>) {
    reply.array(TABLE.len());
    TABLE.iter().for_each(|command| command.write_info(reply));
}

impl Command {
    fn write_docs(&self, reply: &mut Reply<'_>) {
        let docs =
            [("summary", self.summary), ("since", self.since), ("group", self.group), ("complexity", self.complexity)];
        reply.map(docs.len());
        for text in docs.iter().flat_map(|(name, text)| [name, text]) {
            reply.bulk(text.as_bytes());
        }
    }

    fn write_info(&self, reply: &mut Reply<'_>) {
        reply.array(10);
        reply.bulk(self.name.as_bytes());
        reply.integer(self.arity);
        reply.set(self.flags.len());
        self.flags.iter().for_each(|flag| reply.simple(flag));
        for position in [self.keys.first, self.keys.last, self.keys.step] {
            reply.integer(position);
        }
        // Access categories, tips, key specifications and subcommands, none of which is kept.
        reply.set(0);
        (0..3).for_each(|_| reply.array(0));
    }
}
