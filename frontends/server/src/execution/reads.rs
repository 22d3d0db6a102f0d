//! Groups of GET and MGET.
//!
//! The keys of consecutive reads, across requests, are looked up together so that their memory accesses overlap.
//! Replies keep the order of the requests.

use std::borrow::Cow;
use std::time::Duration;

use hikv::Store;
use resp::{Protocol, Reply, Request, Requests};

use crate::commands::values::answer_value;
use crate::connections::output::{FULL_BYTES, Output};
use crate::errors::{FixedError, Refusal};
use crate::execution::client::Client;
use crate::execution::permission;
use crate::execution::pipeline::Cursor;
use crate::keyspace::collections::Locked;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;
use crate::telemetry::EventCounts;
use command_table::{Action, Entry, ReadShape};

/// Maximum number of keys looked up at a time. The store overlaps about as many; more would only delay the first reply.
const GROUP_COUNT_MAX: usize = 32;

/// Values of at least this size are streamed instead of copied into the output; see [`crate::connections::output`] for
/// the cost of each.
const STREAMED_BYTES_MIN: usize = 16 << 20;

/// A key to be answered with its value.
pub(crate) struct RequestedKey<'a> {
    key: Cow<'a, [u8]>,
    /// Length of the array that starts with this value.
    opens: Option<usize>,
    /// The command, if this is its last key.
    ends: Option<Entry>,
    /// The cursor after this key.
    after: Cursor,
}

impl AsRef<[u8]> for RequestedKey<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// Consecutive reads of a pipeline, from the first unanswered key on.
pub(crate) struct Reads<'a> {
    requests: &'a Requests,
    input: &'a [u8],
    first: Cursor,
    group: Vec<RequestedKey<'a>>,
}

impl<'a> Reads<'a> {
    /// Collects the reads from `first` to the first request that is not a read.
    pub(crate) fn gather(requests: &'a Requests, input: &'a [u8], first: Cursor, client: &Client<'_>) -> Reads<'a> {
        let Client { shared, session, .. } = client;
        let namespace = shared.keyspace.namespace(session.db);
        let mut group = Vec::with_capacity(GROUP_COUNT_MAX.min(requests.len() - first.request));
        let mut cursor = first;
        while group.len() < GROUP_COUNT_MAX && cursor.request < requests.len() {
            let request = requests.get(cursor.request, input);
            let entry = permission::admit(&request, session).ok();
            let Some(entry) = entry.filter(|entry| entry.command.is_read()) else { break };
            cursor = gather_keys(&mut group, request, entry, namespace, cursor);
            if shared.gate.has_claim() || !shared.observers.monitors.is_empty() {
                // The claim may block the next request, and monitors receive each request.
                break;
            }
        }
        Reads { requests, input, first, group }
    }

    /// Locks the keys if there may be collections. `SUNIONSTORE` replaces a string by one in one step, so a reader must
    /// not look for the collection before it and for the string after it.
    fn lock_keys<'s>(&self, shared: &'s Shared, db: Database) -> Locked<'s> {
        if !shared.keyspace.collections.exist() {
            return Locked::None;
        }
        let namespace = shared.keyspace.namespace(db);
        let keys = self.group.iter().map(|wanted| namespace.key_of(&wanted.key).unwrap_or_default());
        shared.keyspace.collections.locks.lock(namespace, keys, false)
    }

    /// Returns which of the keys are collections that a command on strings must refuse; nothing if there are none.
    fn wrong_types(&self, client: &Client<'_>) -> Vec<bool> {
        let (keyspace, db) = (&client.shared.keyspace, client.session.db);
        let namespace = keyspace.namespace(db);
        let Some(view) = keyspace.view(keyspace.items(None), namespace) else { return Vec::new() };
        let key_of = |wanted: &RequestedKey<'_>| view.record_key(namespace.key_of(&wanted.key).unwrap_or_default());
        let records: Vec<_> = self.group.iter().map(key_of).collect();
        let (mut wrong, mut index) = (vec![false; self.group.len()], 0);
        let found = |record: Option<&[u8]>| {
            wrong[index] = record.is_some() && self.group[index].is_single();
            index += 1;
        };
        // If a record cannot be read, the value is read in any case.
        let _ = view.multi_get(&records, found);
        wrong
    }

    /// Answers keys up to a large value or a full output, and returns the cursor after them. Answers at least one key.
    pub(crate) fn answer(&self, client: &mut Client<'_>, output: &mut Output) -> Cursor {
        let _locked = self.lock_keys(client.shared, client.session.db);
        let wrong = self.wrong_types(client);
        let (group, Client { shared, session, event_counts }) = (&self.group, &mut *client);
        let (store, protocol) = (&shared.keyspace.store, session.protocol);
        let (answered, copied) = copy_values((group, &wrong), store, &mut output.reply(protocol), event_counts);
        let Some(next) = group.get(answered).filter(|_| copied == Copied::UpToLarge) else {
            self.note_wrong(&wrong[..answered.min(wrong.len())], client);
            return self.group[answered - 1].after;
        };
        next.answer_alone(store, protocol, output, event_counts);
        self.note_wrong(&wrong[..answered.min(wrong.len())], client);
        next.after
    }

    /// Counts the answered requests that were refused.
    fn note_wrong(&self, wrong: &[bool], client: &mut Client<'_>) {
        for wanted in self.group.iter().zip(wrong).filter_map(|(wanted, is_wrong)| is_wrong.then_some(wanted)) {
            if let Some(entry) = wanted.ends {
                client.shared.counters_of(client.session).commands.note_failed(entry.number);
                client.note_failed(entry, &FixedError::WrongType.into());
            }
        }
    }

    /// Records the first `count` requests as answered. `took` is their common duration, because each waited for the
    /// others; `before` is added to the first request, for its keys in earlier groups.
    pub(crate) fn note(&self, count: usize, before: Duration, took: Duration, client: &Client<'_>) {
        let counters = &client.shared.counters_of(client.session).commands;
        let share = (before + took) / count as u32;
        let mut ended = self.group.iter().filter_map(|wanted| wanted.ends).take(count).peekable();
        while let Some(entry) = ended.next() {
            let mut equal_count = 1;
            while ended.next_if(|next| next.number == entry.number).is_some() {
                equal_count += 1;
            }
            counters.note(entry.number, equal_count, share);
        }
        if client.shared.administration.settings.is_slow(before + took) {
            self.note_slow(count, before, took, client);
        }
    }

    #[cold]
    fn note_slow(&self, count: usize, before: Duration, took: Duration, client: &Client<'_>) {
        let ended = self.group.iter().filter_map(|wanted| wanted.ends).take(count);
        for (index, entry) in ended.enumerate() {
            let request = self.requests.get(self.first.request + index, self.input);
            let before = if index == 0 { before } else { Duration::ZERO };
            client.note_time(entry, &request, before + took);
        }
    }
}

/// Adds the keys of one read up to the group's capacity, and returns the cursor after them.
fn gather_keys<'a>(
    group: &mut Vec<RequestedKey<'a>>,
    request: Request<'a>,
    entry: Entry,
    namespace: Namespace,
    mut cursor: Cursor,
) -> Cursor {
    let count = request.len() - 1;
    let is_array = matches!(entry.command.action, Action::Read(ReadShape::Array));
    for index in (1 + cursor.key..request.len()).take(GROUP_COUNT_MAX - group.len()) {
        let opens = (is_array && cursor.key == 0).then_some(count);
        cursor.key += 1;
        if cursor.key == count {
            cursor = Cursor { request: cursor.request + 1, key: 0 };
        }
        let ends = (cursor.key == 0).then_some(entry);
        group.push(RequestedKey { key: namespace.raw(request.argument(index)), opens, ends, after: cursor });
    }
    cursor
}

/// Why copying ended.
#[derive(PartialEq, Eq)]
enum Copied {
    /// After the last value, or the value that filled the output.
    Enough,
    /// Before a large value, or a value that failed to be read with the group.
    UpToLarge,
}

/// Writes the values to the reply and returns how many.
fn copy_values(
    (group, wrong): (&[RequestedKey<'_>], &[bool]),
    store: &Store,
    reply: &mut Reply<'_>,
    event_counts: &mut EventCounts,
) -> (usize, Copied) {
    let (mut answered, mut copied_bytes) = (0, 0);
    let mut large = false;
    let outcome = store.in_place().multi_get(group, |index, value| {
        let len_bytes = value.map_or(0, <[u8]>::len);
        large |= len_bytes >= STREAMED_BYTES_MIN;
        if !large && copied_bytes < FULL_BYTES {
            if wrong.get(index) == Some(&true) {
                reply.error(&Refusal::from(FixedError::WrongType).text());
            } else {
                group[index].write(value, reply, event_counts);
            }
            copied_bytes += len_bytes;
            answered += 1;
        }
    });
    let up_to_large = copied_bytes < FULL_BYTES && (large || outcome.is_err());
    (answered, if up_to_large { Copied::UpToLarge } else { Copied::Enough })
}

impl RequestedKey<'_> {
    /// Returns whether it is the only key of its command.
    fn is_single(&self) -> bool {
        self.ends.is_some_and(|entry| entry.command.action == Action::Read(ReadShape::Value))
    }

    fn open(&self, reply: &mut Reply<'_>) {
        if let Some(count) = self.opens {
            reply.array(count);
        }
    }

    fn write(&self, value: Option<&[u8]>, reply: &mut Reply<'_>, event_counts: &mut EventCounts) {
        self.open(reply);
        answer_value(value, reply, event_counts);
    }

    /// Answers with one large value, or with that key's error.
    fn answer_alone(&self, store: &Store, protocol: Protocol, output: &mut Output, event_counts: &mut EventCounts) {
        match store.reader(&self.key) {
            Ok(Some(value)) => {
                event_counts.hits += 1;
                self.open(&mut output.reply(protocol));
                output.stream(value);
            }
            Ok(None) => self.write(None, &mut output.reply(protocol), event_counts),
            Err(error) => {
                let mut reply = output.reply(protocol);
                self.open(&mut reply);
                reply.error(&Refusal::Store(error).text());
            }
        }
    }
}
