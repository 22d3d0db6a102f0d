//! Threads of real-time priorities, more of them than processors: a thread that waits lets run the one that it waits for.
//!
//! The work is done by this test, started anew and kept to one processor, on a store in memory. Threads of real-time
//! priorities interrupt one another, a writer of the usual priority and the store's background anywhere, the file's growth and
//! the ordered index included, and then want what those hold. The kernel ends a process of which such a thread runs for seconds without
//! having slept (RLIMIT_RTTIME; to yield is not to sleep): so a livelock fails the test and leaves the machine alone.
//!
//! Where nobody may be given such a priority the test is left out, and says so on stderr.

use std::env;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hikv::{Durability, Options, Store};

/// In the test that was started again.
const IS_CHILD: &str = "HIKV_TEST_REAL_TIME";
/// Seconds that a thread may run without having slept.
const RUN_SECONDS_MAX: libc::rlim_t = 3;
const ROUND_COUNT: u32 = 400;
/// Keys of each thread: some tens of MiB in all, so that the file grows for most of the time.
const KEY_COUNT: u32 = 96;
/// Between two rounds of a thread: others get far enough to hold something when it comes back.
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
    let options = Options::new().durability(Durability::Process).background_threads(1).partition_count(1);
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

/// Two threads do nothing but write, the others scan what they wrote.
fn work(store: &Store, thread: u8, round: u32) {
    // Nothing is waited for: a thread of a real-time priority keeps its processor until it sleeps, so this is what lets others get
    // to where they hold something, and the timer what interrupts them there. Whenever it rings, the test's verdict is right.
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
    // SAFETY: of the calling thread; the struct is read during the call alone.
    succeeded(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

fn limit_run_time() {
    let limit = libc::rlimit { rlim_cur: RUN_SECONDS_MAX * 1_000_000, rlim_max: (RUN_SECONDS_MAX + 1) * 1_000_000 };
    // SAFETY: the struct is read during the call alone.
    succeeded(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) }).unwrap();
}

/// On whichever this thread is; those that it starts stay there, too.
fn keep_to_one_processor() {
    // SAFETY: all zeros are an empty set, the processor is one that there is, and the set is read during the call alone.
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
