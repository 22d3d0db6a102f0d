//! COMMAND: the command table.

use resp::{Reply, Request, Requests};

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use command_table::{self as table, Access, Argument, Command, Keys, Places, Unknown, category, flag};
use resp::glob;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "": ["command" => all],
    "command|": [count, docs, getkeys, getkeysandflags, info, list],
];

fn all(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(table::commands().count());
    table::commands().for_each(|command| write_info(command, &mut call.reply));
    Ok(())
}

fn count(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(table::commands().count() as i64);
    Ok(())
}

/// Documents the named commands, or all; unknown ones are omitted.
fn docs(call: &mut Call<'_>) -> Result<(), Refusal> {
    let commands: Vec<&Command> = match call.request.len() {
        2 => table::commands().collect(),
        _ => call.request.arguments().skip(1).filter_map(by_name).collect(),
    };
    call.reply.map(commands.len());
    for command in commands {
        call.reply.bulk(command.name.as_bytes());
        write_docs(command, &mut call.reply);
    }
    Ok(())
}

fn by_name(name: &[u8]) -> Option<&'static Command> {
    table::by_name(name).map(|entry| entry.command)
}

/// Describes the named commands, or all; unknown ones get a null.
fn info(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 2 {
        return all(call);
    }
    call.reply.array(call.request.len() - 2);
    for name in call.request.arguments().skip(1) {
        match by_name(name) {
            Some(command) => write_info(command, &mut call.reply),
            None => call.reply.null_bulk(),
        }
    }
    Ok(())
}

fn list(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_wanted: Box<dyn Fn(&Command) -> bool> = match call.request.len() {
        2 => Box::new(|_| true),
        5 if call.argument(2).eq_ignore_ascii_case(b"filterby") => {
            let value = call.argument(4).to_ascii_lowercase();
            match call.argument(3).to_ascii_lowercase().as_slice() {
                b"pattern" => Box::new(move |command| glob::matches(&value, command.name.as_bytes())),
                b"aclcat" => {
                    let wanted = category::by_name(&value).unwrap_or(0);
                    Box::new(move |command| command.categories & wanted != 0)
                }
                // There are no modules.
                b"module" => Box::new(|_| false),
                _ => return Err(Refusal::Syntax),
            }
        }
        _ => return Err(Refusal::Syntax),
    };
    // As in Redis, subcommands are listed as well.
    let all = table::entries().iter().map(|entry| entry.command);
    let names: Vec<&str> = all.filter(|command| is_wanted(command)).map(|command| command.name).collect();
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn getkeys(call: &mut Call<'_>) -> Result<(), Refusal> {
    let keys = keys_of(call)?;
    call.reply.array(keys.len());
    keys.iter().for_each(|(key, _)| call.reply.bulk(key));
    Ok(())
}

fn getkeysandflags(call: &mut Call<'_>) -> Result<(), Refusal> {
    let keys = keys_of(call)?;
    call.reply.array(keys.len());
    for (key, access) in &keys {
        let flags = access.flags();
        call.reply.array(2);
        call.reply.bulk(key);
        call.reply.set(flags.len());
        flags.iter().for_each(|flag| call.reply.simple(flag));
    }
    Ok(())
}

/// Returns the keys of the request that follows the subcommand.
fn keys_of(call: &Call<'_>) -> Result<Vec<(Vec<u8>, Access)>, Refusal> {
    let mut requests = Requests::default();
    let words: Vec<&[u8]> = call.request.arguments().skip(1).collect();
    requests.push_words(&words);
    let request: Request<'_> = requests.get(0, &[]);
    let command = match table::find(&request) {
        Ok(entry) => entry.command,
        Err(Unknown::ArgumentCount(_)) if has_no_keys(request.name()) => {
            return Err(FixedError::NoKeyArguments.into());
        }
        Err(Unknown::ArgumentCount(_)) => return Err(FixedError::BadArgumentCount.into()),
        Err(_) => return Err(FixedError::UnknownCommandName.into()),
    };
    let keys: Vec<_> =
        command.keys_of(&request).map(|(index, access)| (request.argument(index).to_vec(), access)).collect();
    match command.policy.touches.keys() {
        None => Err(FixedError::NoKeyArguments.into()),
        Some(_) if keys.is_empty() && !command.has(flag::NO_MANDATORY_KEYS) => Err(FixedError::BadKeyArguments.into()),
        Some(_) => Ok(keys),
    }
}

/// Returns whether no request of this command has a key, whatever its arguments.
fn has_no_keys(name: &[u8]) -> bool {
    by_name(name).is_some_and(|command| command.policy.touches.keys().is_none())
}

fn write_docs(command: &Command, reply: &mut Reply<'_>) {
    let docs = &command.docs;
    let texts =
        [("summary", docs.summary), ("since", docs.since), ("group", docs.group), ("complexity", docs.complexity)];
    let arguments = command.arguments();
    reply.map(texts.len() + usize::from(!arguments.is_empty()) + usize::from(!command.subcommands.is_empty()));
    for text in texts.iter().flat_map(|(name, text)| [name, text]) {
        reply.bulk(text.as_bytes());
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        write_arguments(&arguments, reply);
    }
    if !command.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(command.subcommands.len());
        for subcommand in command.subcommands {
            reply.bulk(subcommand.name.as_bytes());
            write_docs(subcommand, reply);
        }
    }
}

fn write_arguments(arguments: &[Argument], reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        let texts =
            [("name", Some(&*argument.name)), ("type", Some(argument.kind)), ("token", argument.token.as_deref())];
        let texts: Vec<_> = texts.iter().filter_map(|(name, text)| Some((name, (*text)?))).collect();
        let (has_flags, has_parts) = (!argument.flags.is_empty(), !argument.parts.is_empty());
        reply.map(texts.len() + usize::from(has_flags) + usize::from(has_parts));
        for text in texts.iter().flat_map(|(name, text)| [**name, *text]) {
            reply.bulk(text.as_bytes());
        }
        if has_flags {
            reply.bulk(b"flags");
            reply.set(argument.flags.len());
            argument.flags.iter().for_each(|flag| reply.simple(flag));
        }
        if has_parts {
            reply.bulk(b"arguments");
            write_arguments(&argument.parts, reply);
        }
    }
}

fn write_info(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity);
    write_set(reply, "", flag::NAMES.iter().filter(|(bit, _)| command.has(*bit)));
    let keys = command.policy.touches.keys();
    keys.map_or([0; 3], Keys::range).into_iter().for_each(|position| reply.integer(position));
    write_set(reply, "@", category::NAMES.iter().filter(|(bit, _)| command.categories & bit != 0));
    // There are no tips.
    reply.set(0);
    write_key_specifications(keys, reply);
    match command.subcommands.len() {
        // As in Redis.
        0 => reply.set(0),
        count => reply.array(count),
    }
    command.subcommands.iter().for_each(|subcommand| write_info(subcommand, reply));
}

fn write_set<'n>(reply: &mut Reply<'_>, prefix: &str, names: impl Iterator<Item = &'n (u32, &'n str)>) {
    let names: Vec<String> = names.map(|(_, name)| format!("{prefix}{name}")).collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.simple(name));
}

/// Keys are found by their positions, or after a word.
fn write_key_specifications(keys: Option<Keys>, reply: &mut Reply<'_>) {
    let places: Vec<Places> = keys.iter().flat_map(|keys| [Some(keys.first), keys.then]).flatten().collect();
    reply.set(places.len());
    for Places { first, last, step, access } in places {
        reply.map(3);
        reply.bulk(b"flags");
        let varies = keys.is_some_and(|keys| keys.varies.is_some()).then_some("variable_flags");
        let flags: Vec<&str> = access.flags().iter().copied().chain(varies).collect();
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
        reply.bulk(b"begin_search");
        if let Some(index) = keys.and_then(|keys| keys.counted).filter(|index| *index < first) {
            write_spec(reply, "index", &[("index", index as i64)]);
            reply.bulk(b"find_keys");
            write_spec(reply, "keynum", &[("keynumidx", 0), ("firstkey", (first - index) as i64), ("keystep", 1)]);
            continue;
        }
        if let Some(from) = keys.and_then(|keys| keys.streams) {
            reply.map(2);
            reply.bulk(b"type");
            reply.bulk(b"keyword");
            reply.bulk(b"spec");
            reply.map(2);
            reply.bulk(b"keyword");
            reply.bulk(b"STREAMS");
            reply.bulk(b"startfrom");
            reply.integer(from as i64);
            reply.bulk(b"find_keys");
            write_spec(reply, "range", &[("lastkey", -1), ("keystep", 1), ("limit", 2)]);
            continue;
        }
        write_spec(reply, "index", &[("index", first as i64)]);
        reply.bulk(b"find_keys");
        let last = if last < 0 { last } else { last - first as i64 };
        write_spec(reply, "range", &[("lastkey", last), ("keystep", step as i64), ("limit", 0)]);
    }
}

fn write_spec(reply: &mut Reply<'_>, kind: &str, numbers: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}
