//! The slow requests, newest first.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use resp::Request;

use crate::administration::{Administration, secrets};
use crate::clients::session::Session;
use command_table::{Command, Hides};

/// As in Redis: further arguments are only counted.
const ARGUMENT_COUNT_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

#[derive(Clone)]
pub(crate) struct SlowRequest {
    pub(crate) number: u64,
    pub(crate) unix_seconds: u64,
    pub(crate) took: Duration,
    /// Its name in the table.
    pub(crate) command: &'static str,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) addr: String,
    pub(crate) client_name: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct SlowLog {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next_number: u64,
    requests: VecDeque<SlowRequest>,
}

impl SlowLog {
    /// Records a request if it was slow.
    #[inline]
    pub(crate) fn note(
        &self,
        administration: &Administration,
        session: &Session,
        request: &Request<'_>,
        timing: (&'static Command, Duration),
    ) {
        let limit_us = administration.settings.slow_us_min();
        if limit_us >= 0 && timing.1.as_micros() >= limit_us as u128 {
            self.add(administration.settings.slow_count_max(), session, request, timing);
            administration.log.slow((timing.0.name, timing.1));
        }
    }

    #[cold]
    fn add(&self, count_max: usize, session: &Session, request: &Request<'_>, timing: (&'static Command, Duration)) {
        let (command, took) = timing;
        let mut inner = self.inner.lock();
        let slow = SlowRequest {
            number: inner.next_number,
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            took,
            command: command.name,
            arguments: shown_arguments(command.policy.hides, request),
            addr: session.record.addr.to_string(),
            client_name: session.record.names.lock().name.clone(),
        };
        inner.next_number += 1;
        inner.requests.push_front(slow);
        inner.requests.truncate(count_max);
    }

    pub(crate) fn newest(&self, count: usize) -> Vec<SlowRequest> {
        self.inner.lock().requests.iter().take(count).cloned().collect()
    }

    /// Returns the number of slow requests since the start, including those that the log has dropped.
    pub(crate) fn total(&self) -> u64 {
        self.inner.lock().next_number
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().requests.len()
    }

    pub(crate) fn clear(&self) {
        self.inner.lock().requests.clear();
    }
}

/// Returns the arguments without secrets, and limited in length.
fn shown_arguments(hides: Hides, request: &Request<'_>) -> Vec<Vec<u8>> {
    let count = request.len();
    let shown_count = if count > ARGUMENT_COUNT_MAX { ARGUMENT_COUNT_MAX - 1 } else { count };
    let mut shown: Vec<Vec<u8>> = (0..shown_count).map(|index| cut(secrets::shown(hides, request, index))).collect();
    if count > shown_count {
        shown.push(format!("... ({} more arguments)", count - shown_count).into_bytes());
    }
    shown
}

fn cut(argument: &[u8]) -> Vec<u8> {
    let mut shown = argument[..argument.len().min(ARGUMENT_BYTES_MAX)].to_vec();
    if argument.len() > ARGUMENT_BYTES_MAX {
        shown.extend_from_slice(format!("... ({} more bytes)", argument.len() - ARGUMENT_BYTES_MAX).as_bytes());
    }
    shown
}
