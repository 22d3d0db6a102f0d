//! Malicious hosts, for as long as requested: `cargo xtask device fuzz MINUTES`.
//!
//! Each round is a host of some kind, over TCP or shared memory: random bytes; or a correctly connected queue that then
//! sends nearly valid data (commands with random fields, values too early, repeated, for other commands, at wrong
//! offsets, with wrong digests), and is closed at any time, or left half open. The device serves another host all the
//! time, and its memory is bounded.

use std::collections::VecDeque;
use std::env;
use std::io::Write;
use std::time::{Duration, Instant};

use device_client::{Controller, Endpoint, Host, Queue, Wire};
use fastrand::Rng;
use nvme::{Command, Data, Digests, Kv, Pdu, Sgl, StoreIf};

use crate::support::{Bench, key};

/// Number of hosts in a test run, and the default number of minutes of the command.
const HOST_COUNT: u64 = 60;
const MINUTES: u64 = 15;
/// Maximum number of connections left open.
const OPEN_COUNT_MAX: usize = 200;
/// Maximum resident memory of the process with its hosts: far above the limits of this many connections.
const RESIDENT_BYTES_MAX: u64 = 1 << 30;
/// Maximum time that a host waits for an optional answer.
const PATIENCE: Duration = Duration::from_millis(5);

fn digests(random: &mut Rng) -> Digests {
    Digests { header: random.u8(..4) == 0, data: random.u8(..4) == 0 }
}

/// Returns a nearly valid command.
fn command(random: &mut Rng) -> Command {
    let key = key(vec![b'k'; random.usize(..17)]);
    let len = [0, 1, 100, 8192, 8193, 100_000, 1 << 20, u32::MAX][random.usize(..8)];
    let mut command = match random.u8(..8) {
        0 | 1 => Kv::Store { key, value_bytes: len, when: StoreIf::Always },
        2 => Kv::Store { key, value_bytes: len, when: StoreIf::Absent },
        3 => Kv::Retrieve { key, buffer_bytes: len },
        4 => Kv::List { from: key, buffer_bytes: len },
        5 => Kv::Range { from: key, buffer_bytes: len },
        6 => Kv::Delete { key },
        _ => Kv::Flush,
    }
    .command(random.u16(..8), 1);
    let sgl_len = if random.bool() { len } else { random.u32(..20_000) };
    command = command.with_sgl(match random.u8(..5) {
        0 => Sgl::Other,
        1 | 2 => Sgl::InCapsule { offset: u64::from(random.u8(..20) == 0), len_bytes: sgl_len },
        _ => Sgl::Transport { len_bytes: sgl_len },
    });
    for _ in 0..random.usize(..3) / 2 {
        command.0[random.usize(..64)] = random.u8(..);
    }
    command
}

/// Sends some nearly valid PDUs, and corrupts a byte now and then.
fn speak(wire: &mut Wire, random: &mut Rng) {
    let mut asked = VecDeque::new();
    for _ in 0..random.usize(1..30) {
        let mut bytes = Vec::new();
        let part = vec![random.u8(..); random.usize(..9000)];
        match random.u8(..4) {
            0 => {
                let (id, tag) = asked.pop_front().unwrap_or((random.u16(..8), random.u16(..8)));
                if random.bool() {
                    asked.push_back((id, tag));
                }
                let offset = if random.bool() { 0 } else { random.u32(..20_000) };
                let data = Data { id, tag, offset, is_last: random.bool(), is_success: false, bytes: &part };
                wire.writer.data(&mut bytes, &data);
            }
            _ => wire.writer.command(&mut bytes, &command(random), if random.bool() { &part } else { &[] }),
        }
        if random.u8(..10) == 0 {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        if random.u8(..20) == 0 {
            bytes.truncate(random.usize(..bytes.len()));
        }
        if wire.socket().write_all(&bytes).is_err() {
            return;
        }
        if random.bool() {
            let ready = wire.receive(|pdu| match pdu {
                Pdu::Ready(ready) => Ok(Some((ready.id, ready.tag))),
                _ => Ok(None),
            });
            asked.extend(ready.ok().flatten());
        }
    }
}

/// A connection that a host leaves open.
enum Left {
    Wire(Wire),
    Queue(Box<(Queue, Controller)>),
}

fn host(endpoint: &Endpoint, subsystem: &str, random: &mut Rng) -> Option<Left> {
    let digests = digests(random);
    if random.u8(..3) == 0 {
        let mut wire = Wire::open(endpoint.clone(), digests).ok()?;
        speak(&mut wire, random);
        return Some(Left::Wire(wire));
    }
    let controller = Controller::connect(endpoint.clone(), digests, &Host::new(), subsystem, 0).ok()?;
    let mut queue = controller.queue(1, random.u16(2..129)).ok()?;
    speak(queue.wire(), random);
    Some(Left::Queue(Box::new((queue, controller))))
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("it is Linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

/// Runs hosts until `is_over`, and returns their number.
fn attack(seed: u64, is_over: impl Fn(u64) -> bool) -> u64 {
    let bench = Bench::with(device::Config::default(), hikv::Options::new().region_bytes_max(256 << 20));
    let mut good = bench.client();
    let (mut random, mut open) = (Rng::with_seed(seed), VecDeque::new());
    let mut count = 0;
    while !is_over(count) {
        let place = if random.bool() { bench.addr.into() } else { Endpoint::from(&*bench.shm) };
        open.extend(host(&place.with_timeout(Some(PATIENCE)), &bench.subsystem, &mut random));
        // Some stay half open, some leave in the middle of a message.
        while open.len() > OPEN_COUNT_MAX || random.u8(..3) > 0 {
            let Some(left) = open.remove(random.usize(..open.len().max(1))) else { break };
            match left {
                Left::Wire(wire) => drop(wire),
                Left::Queue(both) => {
                    let (queue, controller) = *both;
                    if random.bool() { drop((queue, controller)) } else { drop((controller, queue)) }
                }
            }
        }
        good.exists("good").expect("others are served");
        assert!(resident_bytes() < RESIDENT_BYTES_MAX, "{} bytes after {count} hosts", resident_bytes());
        count += 1;
    }
    drop(open);
    // The hosts' keys may fill the store.
    bench.store.clear().expect("it is emptied");
    bench.is_alive();
    count
}

#[test]
fn hostile_hosts_only_end_connections() {
    assert_eq!(attack(1, |count| count >= HOST_COUNT), HOST_COUNT);
}

/// The long form, which prints the number of hosts.
#[test]
#[ignore = "many minutes"]
#[expect(clippy::print_stdout, reason = "the count is for reading")]
fn hosts_that_mean_harm_for_minutes() {
    let minutes = env::var("HIKV_MINUTES").map_or(MINUTES, |minutes| minutes.parse().expect("a number of minutes"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (began, time) = (Instant::now(), Duration::from_secs(60 * minutes));
    let count = attack(seed, |_| began.elapsed() >= time);
    println!("{count} hosts in {minutes} minutes; the device is alive, {} bytes resident", resident_bytes());
}
