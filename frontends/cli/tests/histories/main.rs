//! Tests `hikv serve` with several clients, killed by SIGKILL at random points and restarted on the same store: the
//! replies must fit one order of all requests ([`testkit::History`]), and no transaction may be half done.
//!
//! Requests without a reply when the server died may have happened or not. The clients see the kill as the end of their
//! sockets: by then no thread of the server runs any more.
//!
//! The ignored tests run longer: `cargo test -p hikv-cli --release --test histories -- --ignored`.

mod client;
mod collections;
mod drive;
mod process;
mod sorted_sets;
mod transactions;

use std::path::Path;

use tempfile::TempDir;

use drive::{Trial, Undone};
use transactions::{Asked, Rounds};

/// The storage of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// Memory, if there is such a file system.
    Memory,
    /// The file system of temporary directories: with a journal, unless it is also memory.
    Disk,
}

impl On {
    fn home(self) -> TempDir {
        let memory = Path::new("/dev/shm");
        if self == On::Memory && memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
    }
}

const SHORT: Trial = Trial {
    on: On::Memory,
    client_count: 4,
    life_count: 5,
    answers_max: 4_000,
    key_count: 8,
    undone: Undone::Nothing,
    seed: 1,
};
/// Short, because each write is synced before its reply.
const SHORT_ON_DISK: Trial = Trial { on: On::Disk, answers_max: 300, ..SHORT };
/// The number of trials of a long test.
const LONG: u64 = 40;

#[test]
fn histories_are_linearizable_on_memory() {
    SHORT.judge().unwrap_or_else(|anomaly| panic!("{anomaly}"));
}

#[test]
fn histories_are_linearizable_on_a_journal() {
    SHORT_ON_DISK.judge().unwrap_or_else(|anomaly| panic!("{anomaly}"));
}

/// Broken variant: the files are set back by one life of the server, so acknowledged writes are lost.
#[test]
fn store_that_forgets_is_caught() {
    let trial = Trial { undone: Undone::LifeBeforeLast, ..SHORT };
    assert!(trial.judge().is_err(), "the judge did not see that a life's writes are lost");
}

#[test]
#[ignore = "minutes"]
fn histories_are_linearizable_for_long() {
    for seed in 0..LONG {
        for short in [SHORT, SHORT_ON_DISK] {
            let trial = Trial { seed, life_count: 8, key_count: 1 + seed % 12, ..short };
            trial.judge().unwrap_or_else(|anomaly| panic!("{trial:?}: {anomaly}"));
        }
    }
}

const TRANSACTIONS: Rounds =
    Rounds { on: On::Memory, asked: Asked::AsTransaction, count: 6, answers_max: 600, seed: 1 };
/// Short, because each transaction is synced before its reply.
const TRANSACTIONS_ON_DISK: Rounds = Rounds { on: On::Disk, count: 4, answers_max: 60, ..TRANSACTIONS };

fn whole(rounds: Rounds) {
    let answered = rounds.judge().unwrap_or_else(|found| panic!("{rounds:?}: {found}"));
    assert!(answered > 0, "no transaction was answered");
}

#[test]
fn transactions_are_atomic_after_crashes() {
    whole(TRANSACTIONS);
    whole(TRANSACTIONS_ON_DISK);
}

#[test]
fn scripts_are_atomic_after_crashes() {
    whole(Rounds { asked: Asked::AsScript, ..TRANSACTIONS });
    whole(Rounds { asked: Asked::AsScript, ..TRANSACTIONS_ON_DISK });
}

/// Broken variant: the commands are not atomic.
#[test]
fn transactions_that_are_half_done_are_caught() {
    for rounds in [TRANSACTIONS, TRANSACTIONS_ON_DISK] {
        let found = Rounds { asked: Asked::OneByOne, ..rounds }.judge();
        assert!(found.is_err_and(|found| found.contains("half done")), "the judge did not see it: {rounds:?}");
    }
}

#[test]
#[ignore = "minutes"]
fn transactions_are_atomic_for_long() {
    for seed in 0..LONG {
        whole(Rounds { count: 10, answers_max: 1_500, seed, ..TRANSACTIONS });
        whole(Rounds { count: 6, answers_max: 150, seed, ..TRANSACTIONS_ON_DISK });
        whole(Rounds { count: 10, answers_max: 1_500, seed, asked: Asked::AsScript, ..TRANSACTIONS });
    }
}

const SORTED_SETS: sorted_sets::Rounds =
    sorted_sets::Rounds { on: On::Memory, is_torn: false, count: 6, answers_max: 600, seed: 1 };

#[test]
fn orders_of_sorted_sets_agree() {
    for rounds in [SORTED_SETS, sorted_sets::Rounds { on: On::Disk, count: 4, answers_max: 60, ..SORTED_SETS }] {
        let count = rounds.judge().unwrap_or_else(|found| panic!("{rounds:?}: {found}"));
        assert!(count > 0, "no member is left: {rounds:?}");
    }
}

/// Broken variant: the changes of two sorted sets are not one step.
#[test]
fn sorted_sets_that_differ_are_caught() {
    let found = sorted_sets::Rounds { is_torn: true, count: 20, ..SORTED_SETS }.judge();
    assert!(found.is_err_and(|found| found.contains("half done")), "the judge did not see it");
}

const COLLECTIONS: collections::Rounds =
    collections::Rounds { on: On::Memory, is_torn: false, count: 6, answers_max: 2_000, seed: 1 };
/// Short, because each command is synced before its reply.
const COLLECTIONS_ON_DISK: collections::Rounds =
    collections::Rounds { on: On::Disk, count: 4, answers_max: 200, ..COLLECTIONS };

fn sound(rounds: collections::Rounds) {
    let answered = rounds.judge().unwrap_or_else(|found| panic!("{rounds:?}: {found}"));
    assert!(answered > 0, "no command was answered");
}

#[test]
fn collections_are_as_their_clients_know_them() {
    sound(COLLECTIONS);
    sound(COLLECTIONS_ON_DISK);
}

#[test]
#[ignore = "minutes"]
fn collections_match_their_clients_for_long() {
    for seed in 0..LONG {
        sound(collections::Rounds { count: 10, answers_max: 6_000, seed, ..COLLECTIONS });
        sound(collections::Rounds { count: 8, answers_max: 500, seed, ..COLLECTIONS_ON_DISK });
    }
}

/// Broken variant: a job moves in two commands.
#[test]
fn half_moved_jobs_are_caught() {
    let found = collections::Rounds { is_torn: true, count: 30, ..COLLECTIONS }.judge();
    assert!(found.is_err_and(|found| found.contains("moved by half")), "the judge did not see it");
}
