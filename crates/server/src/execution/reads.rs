//! Reads of values: GET and MGET, in groups.
//!
//! The keys of consecutive reads, of whatever requests, are looked up together, so that their memory accesses
//! overlap. Replies keep the order of the requests.

use std::borrow::Cow;
use std::time::Duration;

use hikv::Store;
use resp::{Protocol, Reply, Request, Requests};

use crate::clients::session::Session;
use crate::commands::values::answer_value;
use crate::connections::output::{FULL_BYTES, Output};
use crate::errors::Refusal;
use crate::execution::pipeline::Cursor;
use crate::execution::{accounts, permission};
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;
use crate::table::{Action, Entry, ReadShape};
use crate::telemetry::Tally;

/// Keys looked up at a time. The store overlaps about as many; more would only delay the first reply.
const GROUP_COUNT_MAX: usize = 32;

/// A value from this size on is not copied into the output but streamed: see [`crate::connections::output`] for the price of either.
const STREAMED_BYTES_MIN: usize = 16 << 20;

/// One key to be answered with its value.
pub(crate) struct Wanted<'a> {
    key: Cow<'a, [u8]>,
    /// The length of the array that this value opens.
    opens: Option<usize>,
    /// The command, if this is the last of its keys.
    ends: Option<Entry>,
    /// The place after it.
    after: Cursor,
}

impl AsRef<[u8]> for Wanted<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// Reads that wait at the same place of a pipeline, from the first key on that is not answered yet.
pub(crate) struct Reads<'a> {
    requests: &'a Requests,
    input: &'a [u8],
    first: Cursor,
    group: Vec<Wanted<'a>>,
}

impl<'a> Reads<'a> {
    /// The reads at `cursor`, up to the first request that is none.
    pub(crate) fn gather(
        requests: &'a Requests,
        input: &'a [u8],
        first: Cursor,
        session: &Session,
        shared: &Shared,
    ) -> Reads<'a> {
        let namespace = shared.keyspace.namespace(session.db);
        let mut group = Vec::with_capacity(GROUP_COUNT_MAX.min(requests.len() - first.request));
        let mut cursor = first;
        while group.len() < GROUP_COUNT_MAX && cursor.request < requests.len() {
            let request = requests.get(cursor.request, input);
            let entry = permission::admit(&request, session).ok();
            let Some(entry) = entry.filter(|entry| entry.command.is_read()) else { break };
            cursor = gather_keys(&mut group, request, entry, namespace, cursor);
            if shared.gate.has_claim() || !shared.observers.monitors.is_empty() {
                // The claim may keep the next one out, and monitors see each request.
                break;
            }
        }
        Reads { requests, input, first, group }
    }

    /// Answers the start of them up to a large value or a full output, and returns the place after what was answered. There
    /// is one at least.
    pub(crate) fn answer(&self, shared: &Shared, protocol: Protocol, output: &mut Output, tally: &mut Tally) -> Cursor {
        let group = &self.group;
        let (answered, copied) = copy_values(group, &shared.keyspace.store, &mut output.reply(protocol), tally);
        let Some(next) = group.get(answered).filter(|_| copied == Copied::UpToLarge) else {
            return group[answered - 1].after;
        };
        next.answer_alone(&shared.keyspace.store, protocol, output, tally);
        next.after
    }

    /// Takes note of the first `count` requests, which are answered, and took so long together: each waited for the others.
    /// For the first of them `before` counts as well, which its other keys took.
    pub(crate) fn note(&self, count: usize, before: Duration, took: Duration, session: &Session, shared: &Shared) {
        let counters = accounts::counters(shared, session);
        let share = (before + took) / count as u32;
        let mut ended = self.group.iter().filter_map(|wanted| wanted.ends).take(count).peekable();
        while let Some(entry) = ended.next() {
            let mut equal_count = 1;
            while ended.next_if(|next| next.number == entry.number).is_some() {
                equal_count += 1;
            }
            counters.note(entry.number, equal_count, share);
        }
        if shared.administration.settings.is_slow(before + took) {
            self.note_slow(count, before, took, session, shared);
        }
    }

    #[cold]
    fn note_slow(&self, count: usize, before: Duration, took: Duration, session: &Session, shared: &Shared) {
        let ended = self.group.iter().filter_map(|wanted| wanted.ends).take(count);
        for (index, entry) in ended.enumerate() {
            let request = self.requests.get(self.first.request + index, self.input);
            let before = if index == 0 { before } else { Duration::ZERO };
            accounts::note_time(entry, session, &request, shared, before + took);
        }
    }
}

/// Adds the keys of one read as far as the group has room, and returns the place after them.
fn gather_keys<'a>(
    group: &mut Vec<Wanted<'a>>,
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
        group.push(Wanted { key: namespace.raw(request.argument(index)), opens, ends, after: cursor });
    }
    cursor
}

/// Where copying ended.
#[derive(PartialEq, Eq)]
enum Copied {
    /// After the last value, or the one that filled the output.
    Enough,
    /// Before a value that is large, or that an error keeps from being read with the others.
    UpToLarge,
}

/// Replies with the values, and returns the number of those done.
fn copy_values(group: &[Wanted<'_>], store: &Store, reply: &mut Reply<'_>, tally: &mut Tally) -> (usize, Copied) {
    let (mut answered, mut copied_bytes) = (0, 0);
    let mut large = false;
    let outcome = store.multi_get_with(group, |index, value| {
        let len_bytes = value.map_or(0, <[u8]>::len);
        large |= len_bytes >= STREAMED_BYTES_MIN;
        if !large && copied_bytes < FULL_BYTES {
            group[index].write(value, reply, tally);
            copied_bytes += len_bytes;
            answered += 1;
        }
    });
    let up_to_large = copied_bytes < FULL_BYTES && (large || outcome.is_err());
    (answered, if up_to_large { Copied::UpToLarge } else { Copied::Enough })
}

impl Wanted<'_> {
    fn open(&self, reply: &mut Reply<'_>) {
        if let Some(count) = self.opens {
            reply.array(count);
        }
    }

    fn write(&self, value: Option<&[u8]>, reply: &mut Reply<'_>, tally: &mut Tally) {
        self.open(reply);
        answer_value(value, reply, tally);
    }

    /// Answers with a value that is large, or with the error of this very key.
    fn answer_alone(&self, store: &Store, protocol: Protocol, output: &mut Output, tally: &mut Tally) {
        match store.reader(&self.key) {
            Ok(Some(value)) => {
                tally.hits += 1;
                self.open(&mut output.reply(protocol));
                output.stream(value);
            }
            Ok(None) => self.write(None, &mut output.reply(protocol), tally),
            Err(error) => {
                let mut reply = output.reply(protocol);
                self.open(&mut reply);
                reply.error(&Refusal::Store(error).text());
            }
        }
    }
}
