//! The thread that deletes elements of dead collections (`keyspace::collections`), and the help that it gets from
//! commands that write while it is behind (`keyspace::collections::pace`).

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hikv::Clock;

use crate::errors::Refusal;
use crate::keyspace::collections::Reclaim;
use crate::shared::Shared;

/// The number of groups of a pass, after which it looks for expired collections again.
const GROUP_COUNT_MAX: usize = 64;
/// How long jobs in the background wait for expired collections.
const JOBS_WAIT_MAX: Duration = Duration::from_millis(20);

/// The thread, which ends when this is dropped.
pub(crate) struct Reclaimer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Reclaimer {
    /// Starts the thread, with this lane of the gate.
    pub(crate) fn start(shared: &Arc<Shared>, lane: usize) -> io::Result<Reclaimer> {
        let thread = thread::Builder::new().name("hikv-reclaim".into()).spawn({
            let shared = Arc::clone(shared);
            move || {
                let collections = &shared.keyspace.collections;
                while collections.wake.await_pass(collections.exist()) {
                    // What fails is tried again in the next pass; commands report the error of the store.
                    let _ = pass(&shared, lane, Clock::default().now_ms());
                }
            }
        })?;
        Ok(Reclaimer { shared: Arc::clone(shared), thread: Some(thread) })
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.shared.keyspace.collections.wake.stop();
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

/// Deletes elements of collections that are deleted, or have expired at this time, in milliseconds since the Unix
/// epoch. If some are left, asks for another pass.
pub(crate) fn pass(shared: &Shared, lane: usize, now_ms: u64) -> Result<(), Refusal> {
    let keyspace = &shared.keyspace;
    let Some(reclaim) = keyspace.reclaim() else { return Ok(()) };
    // This waits until keys are in order, so that what follows does not.
    let is_more_due = reclaim.begin_pass(now_ms)?;
    if keyspace.collections.wake.may_have_lost() {
        // A command in the background may be a transaction, which swaps databases.
        let _jobs = shared.gate.between_jobs();
        let _pass = shared.gate.pass(lane);
        keyspace.store.deferred(|_| reclaim.note_lost(&keyspace.databases.ids())).0?;
        keyspace.collections.wake.found_lost();
    }
    while !is_stopped(shared) && expire_between_jobs(shared, &reclaim, lane)? {}
    let mut has_more = true;
    for _ in 0..GROUP_COUNT_MAX {
        has_more = !is_stopped(shared) && keyspace.store.deferred(|_| reclaim.delete_some()).0?;
        if !has_more {
            break;
        }
    }
    if has_more || is_more_due {
        keyspace.collections.wake.wake();
    }
    Ok(())
}

/// Deletes expired collections for a short time, in which no command runs in the background, because that may be
/// reading them; returns false if there are none left.
fn expire_between_jobs(shared: &Shared, reclaim: &Reclaim<'_>, lane: usize) -> Result<bool, Refusal> {
    let (_jobs, began) = (shared.gate.between_jobs(), Instant::now());
    while began.elapsed() < JOBS_WAIT_MAX {
        let _pass = shared.gate.pass(lane);
        if !shared.keyspace.store.deferred(|_| reclaim.expire_some()).0? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_stopped(shared: &Shared) -> bool {
    shared.keyspace.collections.wake.is_stopped()
}

/// Does steps of the thread while it is behind, for as long as a command that has written `took`. The caller has a lane
/// of the gate, and no lock of a key.
#[cold]
pub(crate) fn help(shared: &Shared, took: Duration) {
    let Some(reclaim) = shared.keyspace.reclaim() else { return };
    let began = Instant::now();
    while step(shared, &reclaim).unwrap_or(false)
        && shared.keyspace.collections.pace.is_behind()
        && began.elapsed() < took
    {}
}

/// Returns false if nothing is dead.
fn step(shared: &Shared, reclaim: &Reclaim<'_>) -> Result<bool, Refusal> {
    // A command that begins to run in the background waits for the caller's lane.
    if !shared.gate.has_claim() && reclaim.expire_some()? {
        return Ok(true);
    }
    reclaim.delete_some()
}

#[cfg(test)]
mod tests {
    use hikv::FrontEnd;
    use resp::Requests;

    use super::*;
    use crate::clients::session::Session;
    use crate::connections::output::Output;
    use crate::execution::client::Client;
    use crate::telemetry::EventCounts;
    use crate::testing;

    fn execute(shared: &Shared, session: &mut Session, words: &[&str]) -> Vec<u8> {
        let (mut requests, mut output) = (Requests::default(), Output::default());
        requests.push_words(words);
        let request = requests.get(0, &[]);
        let entry = command_table::find(&request).expect("a command");
        let event_counts = &mut EventCounts::default();
        Client { shared, session, event_counts }.answer(entry, request, &mut output);
        output.into_bytes()
    }

    /// The number of stored records, elements and rows.
    fn item_count(shared: &Shared) -> u64 {
        let tree = shared.keyspace.store.existing_tree("hikv:collections").expect("it is found");
        tree.expect("there is the tree").len().expect("it is counted")
    }

    #[test]
    fn slow_reclaimer_keeps_deleted_elements_few() {
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), testing::session(server.shared()));
        shared.begin_collections().expect("the tree is made");
        // The thread waits for this.
        let _jobs = shared.gate.between_jobs();
        let members: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
        let add: Vec<&str> = ["SADD", "s"].into_iter().chain(members.iter().map(String::as_str)).collect();
        for _ in 0..100 {
            execute(shared, &mut session, &add);
            execute(shared, &mut session, &["DEL", "s"]);
        }
        assert!(item_count(shared) < 50_000, "{} of 100,000 dead elements are left", item_count(shared));
    }

    /// The library's keys of emptied databases are counted too: `stored` counts every key.
    #[test]
    fn flushed_databases_keep_few_dead_keys() {
        const ROUND_COUNT: u64 = 100;
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), testing::session(server.shared()));
        shared.begin_collections().expect("the tree is made");
        let _jobs = shared.gate.between_jobs();
        execute(shared, &mut session, &["SELECT", "1"]);
        let members: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
        let add: Vec<&str> = ["SADD", "s"].into_iter().chain(members.iter().map(String::as_str)).collect();
        let strings = members.iter().flat_map(|key| [key.as_str(), "v"]);
        let put: Vec<&str> = ["MSET"].into_iter().chain(strings).collect();
        for round in 0..ROUND_COUNT {
            execute(shared, &mut session, &add);
            execute(shared, &mut session, &put);
            assert_eq!(execute(shared, &mut session, &["FLUSHDB"]), b"+OK\r\n");
            let mut count = 0_u64;
            FrontEnd::of(&shared.keyspace.store).stored().for_each(|_, _| count += 1).expect("keys are walked");
            assert!(count < 130_000, "{count} keys after {round} rounds of 2,000");
        }
    }

    #[test]
    fn slow_reclaimer_keeps_expired_collections_few() {
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), testing::session(server.shared()));
        shared.begin_collections().expect("the tree is made");
        let _jobs = shared.gate.between_jobs();
        for key in (0..10_000).map(|number| format!("h{number}")) {
            execute(shared, &mut session, &["HSET", &key, "f", "v"]);
            execute(shared, &mut session, &["PEXPIRE", &key, "1"]);
        }
        while execute(shared, &mut session, &["EXISTS", "h9999"]) == b":1\r\n" {
            thread::yield_now();
        }
        let reclaim = shared.keyspace.reclaim().expect("there is the tree");
        reclaim.begin_pass(Clock::default().now_ms()).expect("rows are read");
        assert!(shared.keyspace.collections.pace.is_behind());
        help(shared, Duration::from_secs(3600));
        assert!(!shared.keyspace.collections.pace.is_behind());
        // At most an element, a row and a record of each that was not read.
        assert!(item_count(shared) < 6_000, "{} items of expired collections are left", item_count(shared));
    }
}
