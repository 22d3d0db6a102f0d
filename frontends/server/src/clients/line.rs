//! The line of a client in `CLIENT LIST`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::record::{BLOCKED, BROADCASTS, CLOSING, DIRTY, IN_TRANSACTION, MONITORS, Record, SUBSCRIBED, TRACKS};
use super::session::Session;
use crate::connections::output::FULL_BYTES;
use command_table as table;

impl Record {
    /// Formats the line of `CLIENT LIST`.
    pub(crate) fn line(&self) -> Vec<u8> {
        let names = self.names.lock().clone();
        let get = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        let age_ms = self.connected.elapsed().as_millis() as u64;
        let command = table::entries().get(get(&self.command)).map_or("NULL", |entry| entry.command.name);
        let (input_bytes, unused_bytes) = (get(&self.input_bytes), get(&self.input_unused_bytes));
        let unread_bytes = get(&self.output_bytes);
        let backlog_bytes = unread_bytes.saturating_sub(FULL_BYTES);
        // The fixed size of a client, and its buffers.
        let own_bytes = size_of::<Record>() + size_of::<Session>();
        let memory_bytes = own_bytes + input_bytes + unused_bytes + unread_bytes + get(&self.queued_bytes);
        let mut line =
            format!("id={} addr={} laddr={} fd={} name=", self.place.client_id, self.addr, self.laddr, self.place.key)
                .into_bytes();
        line.extend_from_slice(&names.name);
        line.extend_from_slice(
            format!(
                " age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs=0 rbp=0 obl={} oll={} omem={} tot-mem={} events=r cmd={} user={} redir={} resp={} lib-name=",
                age_ms / 1000,
                age_ms.saturating_sub(self.active_ms.load(Ordering::Relaxed)) / 1000,
                self.messages(),
                self.db.load(Ordering::Relaxed),
                get(&self.channel_count),
                get(&self.pattern_count),
                get(&self.shard_count),
                self.queued_count.load(Ordering::Relaxed),
                input_bytes,
                unused_bytes,
                get(&self.queued_bytes),
                unread_bytes - backlog_bytes,
                u8::from(backlog_bytes > 0),
                backlog_bytes,
                memory_bytes,
                command,
                names.user,
                self.redirect.load(Ordering::Relaxed),
                self.resp.load(Ordering::Relaxed),
            )
            .as_bytes(),
        );
        line.extend_from_slice(&names.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&names.library_version);
        line
    }

    fn messages(&self) -> String {
        let flags = self.flags.load(Ordering::Relaxed);
        let has = |flag: u32| flags & flag != 0;
        let known = [
            (has(MONITORS), 'O'),
            (has(SUBSCRIBED), 'P'),
            (has(IN_TRANSACTION), 'x'),
            (has(BLOCKED), 'b'),
            (has(TRACKS), 't'),
            (self.is_redirect_broken.load(Ordering::Relaxed), 'R'),
            (has(BROADCASTS), 'B'),
            (has(DIRTY), 'd'),
            (has(CLOSING), 'c'),
            (self.addr.is_unix(), 'U'),
            (!self.is_evictable.load(Ordering::Relaxed), 'e'),
        ];
        let messages: String = known.iter().filter(|(holds, _)| *holds).map(|(_, message)| *message).collect();
        if messages.is_empty() { "N".into() } else { messages }
    }
}
