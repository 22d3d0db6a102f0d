//! Threads with real-time priorities, more than there are processors: a waiting thread must let the thread run that it
//! waits for.
//!
//! The work is done by this test, started again on one processor, with a store in memory. Threads with real-time
//! priorities interrupt each other, a writer with normal priority, and the store's background, at any point, including
//! growth of the file and the ordered index. Then they wait for locks that these hold. The kernel ends a process if
//! such a thread runs for seconds without sleeping (RLIMIT_RTTIME; yielding does not count). So a livelock fails the
//! test without blocking the machine.
//!
//! If the process may not use real-time priorities, the test is skipped and prints so on stderr.

use std::env;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hikv::{Durability, Options, Store};

/// Set in the restarted test.
const IS_CHILD: &str = "HIKV_TEST_REAL_TIME";
/// Seconds that a thread may run without sleeping.
const RUN_SECONDS_MAX: libc::rlim_t = 3;
const ROUND_COUNT: u32 = 400;
/// Keys of each thread: some tens of MiB in total, so that the file grows most of the time.
const KEY_COUNT: u32 = 96;
/// The pause between two rounds of a thread. Other threads use it to acquire locks that the thread then needs.
const PERIOD: Duration = Duration::from_micros(300);

#[test]
fn waiting_threads_yield() {
    if env::var_os(IS_CHILD).is_some() {
        return interrupt_one_another();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["real_time::waiting_threads_yield", "--exact", "--nocapture"]).env(IS_CHILD, "");
    let output = command.output().unwrap();
    io::stderr().write_all(&output.stderr).unwrap();
    assert!(output.status.success(), "{}: 24 or 9 is a thread that kept its processor", output.status);
}

fn interrupt_one_another() {
    limit_run_time();
    keep_to_one_processor();
    if let Err(error) = thread::spawn(|| be_real_time(1)).join().unwrap() {
        let left_out = format!("left out: no thread may be given a real-time priority: {error}\n");
        io::stderr().write_all(left_out.as_bytes()).unwrap();
        return;
    }
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let options =
        Options::new().durability(Durability::Process).tuning(|tuning| tuning.background_threads(1).partition_count(1));
    let store = options.open(dir.path()).unwrap();
    assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), 0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let usual = scope.spawn(|| {
            for round in (0..).take_while(|_| !is_over.load(Ordering::Acquire)) {
                write(&store, 0, round);
            }
        });
        let urgent = [(1, 1), (2, 2), (3, 2), (4, 3)].map(|(thread, priority)| {
            let store = &store;
            scope.spawn(move || {
                be_real_time(priority).unwrap();
                (0..ROUND_COUNT).for_each(|round| work(store, thread, round));
            })
        });
        urgent.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Release);
        usual.join().unwrap();
    });
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

/// Two threads only write; the others scan the written items.
fn work(store: &Store, thread: u8, round: u32) {
    // This sleep waits for nothing. A real-time thread keeps its processor until it sleeps, so the sleep lets other
    // threads acquire locks, and its end interrupts them there. The test's result is correct whenever it ends.
    thread::sleep(PERIOD);
    write(store, thread, round);
    if thread > 2 {
        let found = store.ordered().unwrap().prefix([thread]).unwrap().next().unwrap().unwrap();
        assert_eq!(found.0[0], thread);
    }
}

fn write(store: &Store, thread: u8, round: u32) {
    let key = |number: u32| [&[thread][..], &(number % KEY_COUNT).to_be_bytes()].concat();
    let large = vec![thread; 4_000 + (round as usize * 7_919) % 300_000];
    store.put(key(round), large).unwrap();
    store.put(key(round + 1), [thread; 100]).unwrap();
    store.delete(key(round + 7)).unwrap();
}

fn be_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of the plain struct.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: changes the calling thread; the struct is only read during the call.
    succeeded(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

fn limit_run_time() {
    let limit = libc::rlimit { rlim_cur: RUN_SECONDS_MAX * 1_000_000, rlim_max: (RUN_SECONDS_MAX + 1) * 1_000_000 };
    // SAFETY: the struct is only read during the call.
    succeeded(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) }).unwrap();
}

/// Keeps this thread, and those that it starts, on its present processor.
fn keep_to_one_processor() {
    // SAFETY: all zeros are an empty set, the processor exists, and the set is only read during the call.
    succeeded(unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    })
    .unwrap();
}

fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
