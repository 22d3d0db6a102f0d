//! SUBSCRIBE and the like, PUBLISH, PUBSUB.

use crate::call::Call;
use crate::errors::Refusal;
use crate::pubsub::{self, Kind};

pub(crate) fn subscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    subscribe_to(call, Kind::Channel, "subscribe")
}

pub(crate) fn psubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    subscribe_to(call, Kind::Pattern, "psubscribe")
}

pub(crate) fn unsubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    unsubscribe_from(call, Kind::Channel, "unsubscribe")
}

pub(crate) fn punsubscribe(call: &mut Call<'_>) -> Result<(), Refusal> {
    unsubscribe_from(call, Kind::Pattern, "punsubscribe")
}

fn subscribe_to(call: &mut Call<'_>, kind: Kind, verb: &str) -> Result<(), Refusal> {
    for name in call.request.arguments() {
        if call.session.names_of(kind).insert(name.to_vec()) {
            call.shared.pubsub.subscribe(kind, name, call.session.record.place);
        }
        confirm(call, verb, Some(name));
    }
    Ok(())
}

/// From the names given, or from all.
fn unsubscribe_from(call: &mut Call<'_>, kind: Kind, verb: &str) -> Result<(), Refusal> {
    let names: Vec<Vec<u8>> = match call.request.len() {
        1 => call.session.names_of(kind).iter().cloned().collect(),
        _ => call.request.arguments().map(<[u8]>::to_vec).collect(),
    };
    for name in &names {
        if call.session.names_of(kind).remove(name) {
            call.shared.pubsub.unsubscribe(kind, name, call.session.record.place);
        }
        confirm(call, verb, Some(name));
    }
    if names.is_empty() {
        confirm(call, verb, None);
    }
    Ok(())
}

fn confirm(call: &mut Call<'_>, verb: &str, name: Option<&[u8]>) {
    call.reply.push(3);
    call.reply.bulk(verb.as_bytes());
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null_bulk(),
    }
    call.reply.integer(call.session.subscription_count() as i64);
}

pub(crate) fn publish(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = pubsub::publish(call.shared, call.argument(1), call.argument(2));
    call.reply.integer(count as i64);
    Ok(())
}

pub(crate) fn channels(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pattern = match call.request.len() {
        2 => None,
        3 => Some(call.argument(2)),
        _ => return Err(Refusal::ArgumentCount { command: "pubsub|channels" }),
    };
    let names = call.shared.pubsub.channels(pattern);
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

pub(crate) fn numsub(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(2 * (call.request.len() - 2));
    for name in call.request.arguments().skip(1) {
        call.reply.bulk(name);
        call.reply.integer(call.shared.pubsub.subscriber_count(name) as i64);
    }
    Ok(())
}

pub(crate) fn numpat(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(call.shared.pubsub.pattern_count() as i64);
    Ok(())
}
