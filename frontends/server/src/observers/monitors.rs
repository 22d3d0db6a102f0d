//! Clients that see every request (`MONITOR`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use resp::Request;

use crate::administration::secrets;
use crate::clients::Place;
use crate::clients::session::Session;
use crate::messages::{ClientMessage, Mailboxes};
use command_table::Entry;

#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    places: Mutex<Vec<Place>>,
}

impl Monitors {
    pub(crate) fn add(&self, place: Place) {
        let mut places = self.places.lock();
        places.push(place);
        self.count.store(places.len(), Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, place: Place) {
        let mut places = self.places.lock();
        places.retain(|other| *other != place);
        self.count.store(places.len(), Ordering::Relaxed);
    }

    /// Returns their places.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.places.lock().clone()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Shows a request to the monitoring clients.
    #[cold]
    pub(crate) fn show(&self, mailboxes: &Mailboxes, entry: Entry, session: &Session, request: &Request<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sender = if session.runs_script { "lua".into() } else { session.record.addr.monitored().to_string() };
        let mut line = format!("+{}.{:06} [{} {sender}]", now.as_secs(), now.subsec_micros(), session.db);
        for index in 0..request.len() {
            line.push_str(&format!(" \"{}\"", quoted(secrets::shown(entry.command.policy.hides, request, index))));
        }
        line.push_str("\r\n");
        mailboxes.send(&self.places.lock(), ClientMessage::of_line(line));
    }
}

fn quoted(argument: &[u8]) -> String {
    argument.iter().fold(String::new(), |mut text, byte| {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
        text
    })
}
