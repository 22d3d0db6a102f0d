//! ACL: users and their rights.

use std::sync::Arc;

use resp::Requests;

use super::client::disconnect;
use crate::clients::{Kind, Place, Record};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use acl::{DEFAULT_USER, Reason, User, is_word, random_hex};
use command_table::{self as table, Unknown, category};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["acl|": [
    cat, deluser, dryrun, genpass, getuser, list, load, log, save, setuser, users, whoami,
]];

/// As in Redis.
const LOG_COUNT_DEFAULT: usize = 10;
const GENPASS_BITS_DEFAULT: i64 = 256;

fn name_of(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

fn whoami(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(call.session.login.name().as_bytes());
    Ok(())
}

fn users(call: &mut Call<'_>) -> Result<(), Refusal> {
    let users = call.shared.administration.acl.all();
    call.reply.array(users.len());
    users.iter().for_each(|user| call.reply.bulk(user.name.as_bytes()));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Result<(), Refusal> {
    let users = call.shared.administration.acl.all();
    call.reply.array(users.len());
    users.iter().for_each(|user| call.reply.bulk(user.line().as_bytes()));
    Ok(())
}

fn cat(call: &mut Call<'_>) -> Result<(), Refusal> {
    let names: Vec<&str> = match call.request.len() {
        2 => category::NAMES.iter().map(|(_, name)| *name).collect(),
        3 => {
            let wanted = category::by_name(call.argument(2))
                .ok_or_else(|| Refusal::Message(format!("Unknown category '{}'", name_of(call.argument(2)))))?;
            let entries = table::entries().iter().filter(|entry| entry.command.categories & wanted != 0);
            entries.map(|entry| entry.command.name).collect()
        }
        _ => return Err(Refusal::subcommand_arguments("acl", call.argument(1))),
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

/// All rules are applied, or none. The user's clients keep their connections, with the new rights. Exception: clients
/// that receive messages they may no longer receive are disconnected.
fn setuser(call: &mut Call<'_>) -> Result<(), Refusal> {
    let name = name_of(call.argument(2));
    if name.is_empty() || !is_word(call.argument(2)) {
        return Err(Refusal::Message("Usernames can't contain spaces or null characters".into()));
    }
    let mut user = call.shared.administration.acl.user(&name).map_or_else(|| User::new(&name), |user| (*user).clone());
    for rule in call.request.arguments().skip(2) {
        user.apply(rule).map_err(|error| {
            let shown = if matches!(rule, [b'>' | b'<', ..]) { "(redacted)".into() } else { name_of(rule) };
            Refusal::Message(format!("Error in ACL SETUSER modifier '{shown}': {}", error.text()))
        })?;
    }
    call.shared.administration.acl.put(user.clone());
    close_listeners_of(call, &user);
    call.ok();
    Ok(())
}

/// Also disconnects the clients of the deleted users.
fn deluser(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.arguments().skip(1).any(|name| name == DEFAULT_USER.as_bytes()) {
        return Err(FixedError::SelfDelete.into());
    }
    let mut count = 0;
    for name in call.request.arguments().skip(1).map(name_of) {
        if call.shared.administration.acl.delete(&name) {
            count += 1;
            close_clients_of(call, &name);
        }
    }
    call.reply.integer(count);
    Ok(())
}

fn close_clients_of(call: &mut Call<'_>, name: &str) {
    close_where(call, name, |_| true);
}

/// Disconnects clients of a user that subscribe to a channel, or monitor, without the right to. The caller has
/// exclusive access, so no client can subscribe at the same time.
fn close_listeners_of(call: &mut Call<'_>, user: &User) {
    let shared = call.shared;
    let is_forbidden = |kind, name: &[u8]| !user.selector.allows_channel(name, matches!(kind, Kind::Pattern));
    let mut places = shared.observers.pubsub.subscribers(is_forbidden);
    if table::by_name(b"monitor").is_some_and(|monitor| !user.may_run(monitor)) {
        places.extend(shared.observers.monitors.places());
    }
    close_where(call, &user.name, |place| places.contains(&place));
}

/// Disconnects the clients of a user for which `is_meant` returns true.
fn close_where(call: &mut Call<'_>, name: &str, is_meant: impl Fn(Place) -> bool) {
    let is_theirs = |record: &Arc<Record>| record.names.lock().user == name && is_meant(record.place);
    let records: Vec<Arc<Record>> = call.shared.clients.all().into_iter().filter(is_theirs).collect();
    disconnect(call, &records);
}

fn getuser(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(user) = call.shared.administration.acl.user(&name_of(call.argument(2))) else {
        call.reply.null_bulk();
        return Ok(());
    };
    let mut flags = vec![if user.is_enabled { "on" } else { "off" }];
    flags.extend(user.needs_no_password.then_some("nopass"));
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords.len());
    user.passwords.iter().for_each(|hash| reply.bulk(hash.hex().as_bytes()));
    let rights = &user.selector;
    for (name, text) in
        [("commands", rights.commands_text()), ("keys", rights.keys_text()), ("channels", rights.channels_text())]
    {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
    Ok(())
}

fn genpass(call: &mut Call<'_>) -> Result<(), Refusal> {
    let bits = match call.request.len() {
        2 => GENPASS_BITS_DEFAULT,
        3 => call.integer(2)?,
        _ => return Err(Refusal::subcommand_arguments("acl", call.argument(1))),
    };
    if !(1..=4096).contains(&bits) {
        return Err(FixedError::GenpassBits.into());
    }
    let password = random_hex((bits as usize).div_ceil(4)).ok_or(FixedError::NoRandomness)?;
    call.reply.bulk(password.as_bytes());
    Ok(())
}

fn load(call: &mut Call<'_>) -> Result<(), Refusal> {
    let file = call.shared.administration.acl.file().ok_or(FixedError::NoAclFile)?;
    let users = file.read().map_err(|error| Refusal::Message(error.to_string()))?;
    let before = call.shared.administration.acl.all();
    call.shared.administration.acl.replace(users);
    for name in before.iter().map(|user| &user.name) {
        match call.shared.administration.acl.user(name) {
            Some(user) => close_listeners_of(call, &user),
            None => close_clients_of(call, name),
        }
    }
    call.ok();
    Ok(())
}

fn save(call: &mut Call<'_>) -> Result<(), Refusal> {
    let file = call.shared.administration.acl.file().ok_or(FixedError::NoAclFile)?;
    let users: Vec<Arc<User>> = call.shared.administration.acl.all();
    file.write(&users).map_err(|error| Refusal::Message(format!("cannot write the ACL file: {error}")))?;
    call.ok();
    Ok(())
}

/// Returns whether a user may execute a command, without executing it.
fn dryrun(call: &mut Call<'_>) -> Result<(), Refusal> {
    let name = name_of(call.argument(2));
    let user = call
        .shared
        .administration
        .acl
        .user(&name)
        .ok_or_else(|| Refusal::Message(format!("User '{name}' not found")))?;
    let words: Vec<&[u8]> = call.request.arguments().skip(2).collect();
    let mut requests = Requests::default();
    requests.push_words(&words);
    let request = requests.get(0, &[]);
    let entry = match table::find(&request) {
        Err(Unknown::Command) => {
            return Err(Refusal::Message(format!("Command '{}' not found", name_of(words[0]))));
        }
        found => found.map_err(|unknown| Refusal::of_unknown(unknown, &request))?,
    };
    match user.check(entry, &request) {
        Ok(()) => call.ok(),
        Err(denied) => {
            let (object, what) = (name_of(&denied.object), denied.reason.name());
            let verb = if denied.reason == Reason::Command { "run" } else { "access" };
            call.reply.bulk(format!("This user has no permissions to {verb} the '{object}' {what}").as_bytes());
        }
    }
    Ok(())
}

fn log(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = match call.request.len() {
        2 => LOG_COUNT_DEFAULT,
        3 if call.argument(2).eq_ignore_ascii_case(b"reset") => {
            call.shared.administration.acl.log.clear();
            call.ok();
            return Ok(());
        }
        _ => usize::try_from(call.integer(2)?).unwrap_or(0),
    };
    let entries = call.shared.administration.acl.log.newest(count);
    let reply = &mut call.reply;
    reply.array(entries.len());
    for entry in &entries {
        reply.map(8);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        for (name, text) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.name().as_bytes()),
            ("object", &entry.object),
            ("username", entry.user.as_bytes()),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double(entry.at.elapsed().as_millis() as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(&entry.client);
        reply.bulk(b"entry-id");
        reply.integer(entry.number as i64);
    }
    Ok(())
}
