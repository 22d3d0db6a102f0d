//! SUBSCRIBE and its variants, PUBLISH, SPUBLISH, PUBSUB.

use crate::clients::Kind;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "": [psubscribe, publish, punsubscribe, spublish, ssubscribe, subscribe, sunsubscribe, unsubscribe],
    "pubsub|": [channels, numpat, numsub, shardchannels, shardnumsub],
];

fn subscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    subscribe_to(call, Kind::Channel, "subscribe")
}

fn psubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    subscribe_to(call, Kind::Pattern, "psubscribe")
}

fn ssubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.is_executing {
        return Err(FixedError::SsubscribeInExec.into());
    }
    subscribe_to(call, Kind::Shard, "ssubscribe")
}

fn unsubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    unsubscribe_from(call, Kind::Channel, "unsubscribe")
}

fn punsubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    unsubscribe_from(call, Kind::Pattern, "punsubscribe")
}

fn sunsubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    unsubscribe_from(call, Kind::Shard, "sunsubscribe")
}

fn subscribe_to(call: &mut Call<'_>, kind: Kind, verb: &str) -> Result<(), Refusal> {
    for name in call.request.arguments() {
        if call.session.subscriptions_mut(kind).insert(name.to_vec()) {
            call.shared.observers.pubsub.subscribe(kind, name, call.session.record.place);
        }
        confirm(call, kind, verb, Some(name));
    }
    Ok(())
}

/// Unsubscribes from the given names, or from all.
fn unsubscribe_from(call: &mut Call<'_>, kind: Kind, verb: &str) -> Result<(), Refusal> {
    let names: Vec<Vec<u8>> = match call.request.len() {
        1 => call.session.subscriptions.of(kind).iter().cloned().collect(),
        _ => call.request.arguments().map(<[u8]>::to_vec).collect(),
    };
    for name in &names {
        if call.session.subscriptions_mut(kind).remove(name) {
            call.shared.observers.pubsub.unsubscribe(kind, name, call.session.record.place);
        }
        confirm(call, kind, verb, Some(name));
    }
    if names.is_empty() {
        confirm(call, kind, verb, None);
    }
    Ok(())
}

/// Replies with the number of subscriptions: channels and patterns together, shard channels separately.
fn confirm(call: &mut Call<'_>, kind: Kind, verb: &str, name: Option<&[u8]>) {
    call.reply.push(3);
    call.reply.bulk(verb.as_bytes());
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null_bulk(),
    }
    let count_of = |kind| call.session.subscriptions.of(kind).len();
    let count = if kind == Kind::Shard { count_of(kind) } else { count_of(Kind::Channel) + count_of(Kind::Pattern) };
    call.reply.integer(count as i64);
}

fn publish(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = call.publish(Kind::Channel, call.argument(1), call.argument(2));
    call.reply.integer(count as i64);
    Ok(())
}

fn spublish(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = call.publish(Kind::Shard, call.argument(1), call.argument(2));
    call.reply.integer(count as i64);
    Ok(())
}

fn channels(call: &mut Call<'_>) -> Result<(), Refusal> {
    list(call, Kind::Channel)
}

fn shardchannels(call: &mut Call<'_>) -> Result<(), Refusal> {
    list(call, Kind::Shard)
}

fn list(call: &mut Call<'_>, kind: Kind) -> Result<(), Refusal> {
    let pattern = match call.request.len() {
        2 => None,
        3 => Some(call.argument(2)),
        _ => return Err(Refusal::subcommand_arguments("pubsub", call.argument(1))),
    };
    let names = call.shared.observers.pubsub.names(kind, pattern);
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

fn numsub(call: &mut Call<'_>) -> Result<(), Refusal> {
    count(call, Kind::Channel)
}

fn shardnumsub(call: &mut Call<'_>) -> Result<(), Refusal> {
    count(call, Kind::Shard)
}

fn count(call: &mut Call<'_>, kind: Kind) -> Result<(), Refusal> {
    call.reply.array(2 * (call.request.len() - 2));
    for name in call.request.arguments().skip(1) {
        call.reply.bulk(name);
        call.reply.integer(call.shared.observers.pubsub.subscriber_count(kind, name) as i64);
    }
    Ok(())
}

fn numpat(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(call.shared.observers.pubsub.name_count(Kind::Pattern) as i64);
    Ok(())
}
