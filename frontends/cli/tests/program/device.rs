//! Tests `hikv device` and `hikv nvme`: a device in another process is used, stopped and killed.
//!
//! `cargo xtask device rounds N` runs more kills.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use device_client::{Client, Error, Operation, Options, Outcome, StoreIf};
use nvme::{Admin, Feature, Health, Status};
use rustix::process::Signal;

use crate::serve::Serving;
use crate::strace::Strace;
use crate::support::{Ended, Place, hikv, program};

/// Kills per run; the second is for the long form.
const KILL_COUNT: u64 = 3;
const KILL_COUNT_LONG: u64 = 200;
/// Hosts that write during the kills, keys per host, and rounds over all keys between two kills.
const HOST_COUNT: usize = 2;
const KEY_COUNT: usize = 40;
const ROUNDS_PER_KILL: u64 = 5;

fn device(place: &Place, tcp: &str) -> Serving {
    Serving::spawned(hikv("device", &place.store(), &["--tcp", tcp, "--threads", "2"]))
}

fn nvme(address: &str, arguments: &[&str]) -> Ended {
    Ended(program().arg("nvme").arg(address).args(arguments).output().unwrap())
}

#[test]
fn device_and_host_commands_share_a_store() {
    let place = Place::new();
    let device = device(&place, "127.0.0.1:0");
    let (addr, banner) = (device.address().to_owned(), device.banner().to_owned());
    let (host, port) = addr.split_once(':').unwrap();
    assert!(
        banner.contains(&format!("nvme connect -t tcp -a {host} -s {port} -n nqn.2014-08.org.nvmexpress:uuid:")),
        "{banner}"
    );
    assert!(banner.contains("engine pmekv") && banner.contains("every user of this machine"), "{banner}");
    nvme(&addr, &["store", "fruit", "apple"]).succeeded();
    nvme(&addr, &["store", "grain", "rye"]).succeeded();
    assert_eq!(nvme(&addr, &["retrieve", "fruit"]).succeeded(), b"apple");
    assert_eq!(nvme(&addr, &["list"]).succeeded(), b"fruit\ngrain\n");
    assert_eq!(nvme(&addr, &["list", "g"]).succeeded(), b"grain\n");
    nvme(&addr, &["exist", "grain"]).succeeded();
    nvme(&addr, &["delete", "grain"]).succeeded();
    nvme(&addr, &["exist", "grain"]).failed(1, &["key not found: 'grain'"]);
    nvme(&addr, &["retrieve", "grain"]).failed(1, &["key not found: 'grain'"]);
    nvme(&addr, &["store", "seventeen letters", "x"]).failed(2, &["17 bytes"]);
    nvme(host, &["list"]).failed(2, &[host, "HOST:PORT"]);
    let subsystem = banner.split_once(" -n ").unwrap().1.lines().next().unwrap();
    let printed = String::from_utf8(nvme(&addr, &["discover"]).succeeded()).unwrap();
    assert_eq!(printed, format!("{addr} {subsystem}\n"));
    let identified = String::from_utf8(nvme(&addr, &["identify"]).succeeded()).unwrap();
    assert!(identified.contains(subsystem) && identified.contains("hikv pmekv device"), "{identified}");
    assert!(device.stop(Signal::TERM).contains("holds 1 item"));
    assert_eq!(place.run("get", &["fruit"]).succeeded(), b"apple");
    nvme(&addr, &["retrieve", "fruit"]).failed(2, &[&addr]);
}

#[test]
fn unusable_address_makes_no_store() {
    let place = Place::new();
    let [file, nowhere] = [place.write("file", "not a socket"), place.file("none/socket")];
    let [file, nowhere] = [&file, &nowhere].map(|path| path.to_str().unwrap());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--tcp", "0.0.0.0:0"], &["--tcp", "--insecure"]),
        (&["--tcp", ""], &["--tcp ''", "HOST:PORT"]),
        (&["--tcp", "127.0.0.1"], &["--tcp '127.0.0.1'", "HOST:PORT"]),
        (&["--tcp", &taken], &[&taken, "in use"]),
        (&["--host-nqn", "two words"], &["two words"]),
        (&["--shm", file], &["--shm", "not a socket"]),
        (&["--shm", nowhere], &["--shm", nowhere]),
        (&["--dhchap-key", nowhere], &[nowhere]),
    ];
    for (arguments, words) in cases {
        let all: &[&str] =
            if arguments[0] == "--tcp" { arguments } else { &[&["--tcp", "127.0.0.1:0"], arguments].concat() };
        place.run("device", all).failed(2, words);
        assert!(!place.store().exists(), "{arguments:?}");
    }
}

#[test]
fn nvme_target_listens_locally_by_default() {
    let place = Place::new();
    place.run("device", &["--tcp", "127.0.0.1:0", "--size", "0"]).misused(&["--size", "1048576"]);
    place.run("device", &["--tcp", "127.0.0.1:0", "--shm", "s", "--shm-mode", "9"]).misused(&["--shm-mode", "octal"]);
    place.run("device", &["--threads", "129"]).misused(&["--threads", "128"]);
    let anywhere = hikv("device", &place.store(), &["--tcp", "127.0.0.1:0", "--host-nqn", "nqn.2024-01.org.example:a"]);
    let device = Serving::spawned(anywhere);
    nvme(device.address(), &["list"]).failed(2, &["host is not permitted to connect"]);
    device.stop(Signal::INT);
}

#[test]
fn hosts_and_devices_prove_who_they_are() {
    const HOSTS: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const DEVICES: &str = "DHHC-1:00:wS+mm6ZuwVZtQGor9xVUptbzY7Uf7F8wqkEO23lnNc/nwr1X:";
    let place = Place::new();
    let secret = |name, text| {
        let path = place.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (hosts, devices) = (secret("hosts", HOSTS), secret("devices", DEVICES));
    let open = place.write("open", HOSTS).into_os_string().into_string().unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    place.run("device", &["--tcp", "127.0.0.1:0", "--dhchap-key", &open]).failed(2, &["every user may read"]);
    let keys = ["--dhchap-key", &*hosts, "--dhchap-ctrl-key", &*devices];
    let device = Serving::spawned(hikv("device", &place.store(), &[&["--tcp", "127.0.0.1:0"], &keys[..]].concat()));
    assert!(device.banner().contains("every host with the secret"), "{}", device.banner());
    let addr = device.address().to_owned();
    nvme(&addr, &["store", "k", "v"]).failed(2, &["authentication required"]);
    nvme(&addr, &["--dhchap-key", &devices, "store", "k", "v"]).failed(2, &["rejected the secret"]);
    nvme(&addr, &[&keys[..], &["store", "k", "v"]].concat()).succeeded();
    nvme(&addr, &["--dhchap-key", &hosts, "--dhchap-ctrl-key", &hosts, "list"])
        .failed(2, &["does not prove its secret"]);
    device.stop(Signal::TERM);
    // Another device at the same address, which requests no secret.
    let other = Place::new();
    let posing = Serving::spawned(hikv("device", &other.store(), &["--tcp", &addr]));
    nvme(&addr, &[&keys[..], &["store", "k", "v"]].concat()).failed(2, &["does not prove its secret"]);
    assert!(posing.stop(Signal::TERM).contains("holds 0 items"));
}

#[test]
fn any_engine_may_stand_behind_a_device() {
    for engine in ["hikv", "ink", "rewo-hash"] {
        let place = Place::new();
        place.run("put", &["--engine", engine, "--durability", "process", "old", "1"]).succeeded();
        let device = device(&place, "127.0.0.1:0");
        assert!(device.banner().contains(&format!("engine {engine}")), "{}", device.banner());
        nvme(device.address(), &["store", "new", "2"]).succeeded();
        assert_eq!(nvme(device.address(), &["retrieve", "old"]).succeeded(), b"1");
        if engine != "rewo-hash" {
            assert_eq!(nvme(device.address(), &["list"]).succeeded(), b"new\nold\n");
        }
        device.stop(Signal::TERM);
    }
}

#[test]
fn local_hosts_share_memory_with_device() {
    let place = Place::new();
    let path = place.file("device.socket");
    let socket = path.to_str().unwrap();
    let arguments = ["--tcp", "127.0.0.1:0", "--shm", socket, "--shm-mode", "620"];
    let start = || Serving::spawned(hikv("device", &place.store(), &arguments));
    let mut device = start();
    assert!(device.banner().contains(&format!("{socket}, shared with")), "{}", device.banner());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o620);
    nvme(socket, &["store", "fruit", "apple"]).succeeded();
    assert_eq!(nvme(device.address(), &["retrieve", "fruit"]).succeeded(), b"apple");
    let printed = String::from_utf8(nvme(socket, &["discover"]).succeeded()).unwrap();
    assert!(printed.starts_with(device.address()), "{printed}");
    let mut client = Client::connect_shm(&path, Options::default()).unwrap();
    client.store("grain", "rye").unwrap();
    // The next device replaces the socket of a killed one, and the client continues with the new device.
    device.child.kill().unwrap();
    device.child.wait().unwrap();
    assert!(path.exists());
    let device = start();
    assert_eq!(client.retrieve("grain").unwrap().as_deref(), Some(&b"rye"[..]));
    drop(client);
    device.stop(Signal::TERM);
    assert!(!path.exists());
}

/// Commands of a host at queue depth 1.
const ALONE_COUNT: usize = 1000;
/// The maximum number of other system calls, to stop.
const OTHER_CALLS_MAX: usize = 400;

/// Returns true if a line of strace is an empty poll before a sleep, or a yield between two polls. Their number depends
/// on the other side's speed, up to a bound (`rings::PollBudget`).
fn is_poll(line: &str) -> bool {
    line.contains("sched_yield(")
        || line.contains("epoll_wait(") && line.contains(", 0)") && line.trim_end().ends_with("= 0")
}

/// Counts the system calls of a device's threads, without polls, while a host reads one key repeatedly.
fn calls_of_commands(by_shm: bool) -> Option<usize> {
    let place = Place::new();
    let path = place.file("device.socket");
    let arguments =
        ["--tcp", "127.0.0.1:0", "--shm", path.to_str().unwrap(), "--threads", "1", "--durability", "process"];
    let device = Serving::spawned(hikv("device", &place.store(), &arguments));
    let options = Options::default();
    let client = if by_shm { Client::connect_shm(&path, options) } else { Client::connect(device.address(), options) };
    let mut client = client.unwrap();
    client.store("fruit", "apple").unwrap();
    let strace = Strace::attach(&place, &device, &["trace=all"])?;
    (0..ALONE_COUNT).for_each(|_| assert!(client.retrieve("fruit").unwrap().is_some()));
    drop(client);
    device.stop(Signal::TERM);
    Some(strace.lines().lines().filter(|line| !line.contains(" resumed>") && !is_poll(line)).count())
}

/// At most a wait and a wake per command over shared memory; over TCP a wait, a read and a write.
#[test]
fn commands_that_come_alone_take_few_calls() {
    for (by_shm, each) in [(true, 2), (false, 3)] {
        let Some(count) = calls_of_commands(by_shm) else { return };
        let most = ALONE_COUNT * each + OTHER_CALLS_MAX;
        assert!(count <= most, "{count} calls for {ALONE_COUNT} commands, shared memory: {by_shm}");
    }
}

/// `--size` limits the store; its file system may have less space.
#[test]
fn hosts_see_low_file_system_space() {
    Place::on_tmpfs(16, |place| {
        let device = device(place, "127.0.0.1:0");
        let mut client = Client::connect(device.address(), Options::default()).unwrap();
        let health = |client: &mut Client| Health::decode(&client.controller().unwrap().log(0x02, 0, 512).unwrap());
        let empty = health(&mut client);
        assert!(!empty.is_spare_low && empty.spare_percent > 50, "{empty:?}");
        let refused = (0u32..).find_map(|number| client.store(number.to_le_bytes(), [7; 8000]).err()).unwrap();
        assert!(matches!(refused, Error::Refused(status) if status.is(Status::CAPACITY_EXCEEDED)), "{refused}");
        let full = health(&mut client);
        assert!(full.is_spare_low, "{full:?}");
        device.stop(Signal::TERM);
    });
}

/// From now on every sync fails.
const FAILING: &[&str] = &["trace=fdatasync,fsync", "inject=fdatasync,fsync:error=EIO"];

/// Commands that are not durable are not completed. The device then logs the failure and notifies its hosts.
#[test]
fn device_whose_disk_fails_says_so() {
    let place = Place::new();
    let start = || {
        let arguments = ["--tcp", "127.0.0.1:0", "--threads", "1", "--durability", "power"];
        Serving::spawned(hikv("device", &place.store(), &arguments))
    };
    let device = start();
    let mut client = Client::connect(device.address(), Options::default()).unwrap();
    client.store("kept", "1").unwrap();
    let controller = client.controller().unwrap();
    let wanted = Admin::SetFeature { number: Feature::EVENTS, value: 1 << 3, save: false };
    controller.admin(wanted, 0, 0).unwrap();
    let awaited = controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0);
    controller.admin.wire().send().unwrap();
    let Some(strace) = Strace::attach(&place, &device, FAILING) else { return };
    let once = Options { reconnect_max: Duration::ZERO, ..Options::default() };
    let mut other = Client::connect(device.address(), once.clone()).unwrap();
    // The connection ends, and a repeated command is refused.
    let lost = other.store("lost", "2");
    let is_refused = |error: &Error| matches!(error, Error::Refused(status) if status.is(Status::INTERNAL_ERROR));
    assert!(lost.as_ref().is_err_and(|error| error.is_of_connection() || is_refused(error)), "{lost:?}");
    // Reads succeed, writes are refused.
    let mut third = Client::connect(device.address(), once).unwrap();
    for refused in [third.store("k", "v"), third.delete("kept"), third.store_if("k", "v", StoreIf::Absent).map(drop)] {
        assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
    }
    assert_eq!(third.retrieve("kept").unwrap().as_deref(), Some(&b"1"[..]));
    let event = controller.admin.complete_one(awaited).unwrap();
    assert_eq!(event.result, 0x02_0001, "reliability is degraded: see the page of health");
    assert!(Health::decode(&controller.log(0x02, 0, 512).unwrap()).is_read_only);
    drop((strace, client, other, third));
    device.signal(Signal::TERM);
    device.ended().failed(2, &["error number 5"]);
    let again = start();
    assert_eq!(nvme(again.address(), &["retrieve", "kept"]).succeeded(), b"1");
    again.stop(Signal::TERM);
}

/// The completions that hosts received for their keys.
struct Printed {
    /// The latest number that was completed for each key.
    completed: Vec<AtomicU64>,
    rounds: AtomicU64,
}

/// Writes rising numbers to all keys of a host, while the device may be killed.
fn write(mut client: Client, host: usize, printed: &Printed, round_count: u64) {
    for number in 1..=round_count {
        let operations: Vec<Operation> = (0..KEY_COUNT)
            .map(|key| {
                let value = [&number.to_le_bytes()[..], &vec![number as u8; (key * 331) % 12_000]].concat();
                Operation::Store { key: name(host, key), value, when: StoreIf::Always }
            })
            .collect();
        let outcomes = client.run(&operations).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done), "{outcomes:?}");
        (0..KEY_COUNT).for_each(|key| printed.completed[host * KEY_COUNT + key].store(number, Ordering::Release));
        printed.rounds.fetch_add(1, Ordering::AcqRel);
    }
}

fn name(host: usize, key: usize) -> Vec<u8> {
    format!("{host}:{key}").into_bytes()
}

/// Checks that every key has its last completed number or a later one, and that its value is intact.
fn compare(addr: &str, completed: &[u64]) {
    let mut client = Client::connect(addr, Options::default()).unwrap();
    for (place, least) in completed.iter().enumerate() {
        let (host, key) = (place / KEY_COUNT, place % KEY_COUNT);
        let Some(value) = client.retrieve(name(host, key)).unwrap() else {
            assert_eq!(*least, 0, "key {key} of host {host} is gone");
            continue;
        };
        let number = u64::from_le_bytes(*value.first_chunk().unwrap());
        assert!(number >= *least, "key {key} of host {host} has {number}, and {least} was completed");
        assert!(value[8..] == vec![number as u8; (key * 331) % 12_000], "key {key} of host {host} is torn");
    }
}

fn killed(kill_count: u64) {
    let place = Place::new();
    let shm = place.file("device.socket");
    let start = |tcp: &str| {
        let arguments = ["--tcp", tcp, "--shm", shm.to_str().unwrap(), "--threads", "2"];
        Serving::spawned(hikv("device", &place.store(), &arguments))
    };
    let mut serving = start("127.0.0.1:0");
    let addr = serving.address().to_owned();
    // Hosts alternate between both transports. On a busy machine a device needs long to restart.
    let connect = |host: usize| {
        let options = Options { reconnect_max: Duration::from_secs(120), ..Options::default() };
        if host.is_multiple_of(2) { Client::connect(&*addr, options) } else { Client::connect_shm(&shm, options) }
            .unwrap()
    };
    let printed = Printed {
        completed: (0..HOST_COUNT * KEY_COUNT).map(|_| AtomicU64::new(0)).collect(),
        rounds: AtomicU64::new(0),
    };
    let completed = || printed.completed.iter().map(|number| number.load(Ordering::Acquire)).collect::<Vec<_>>();
    thread::scope(|scope| {
        // More rounds than needed, so that the last kill also happens under load.
        let round_count = (kill_count + 1) * ROUNDS_PER_KILL;
        let hosts: Vec<_> = (0..HOST_COUNT)
            .map(|host| {
                let (client, printed) = (connect(host), &printed);
                scope.spawn(move || write(client, host, printed, round_count))
            })
            .collect();
        for kill in 1..=kill_count {
            let is_due = || printed.rounds.load(Ordering::Acquire) >= kill * ROUNDS_PER_KILL;
            while !is_due() {
                let is_over = hosts.iter().any(|host| host.is_finished());
                assert!(!is_over || is_due(), "a host has given up, after {} kills", kill - 1);
                thread::yield_now();
            }
            let before = completed();
            serving.child.kill().unwrap();
            assert!(!serving.child.wait().unwrap().success());
            serving = start(&addr);
            compare(&addr, &before);
        }
        hosts.into_iter().for_each(|host| host.join().unwrap());
    });
    compare(&addr, &completed());
    serving.stop(Signal::TERM);
    assert!(String::from_utf8(place.run("check", &["--deep"]).succeeded()).unwrap().contains("no damage"));
}

#[test]
fn killed_nvme_target_keeps_completed_commands() {
    killed(KILL_COUNT);
}

#[test]
#[ignore = "many minutes"]
fn often_killed_nvme_target_keeps_completed_commands() {
    let count =
        std::env::var("HIKV_ROUNDS").map_or(KILL_COUNT_LONG, |count| count.parse().expect("a number of rounds"));
    killed(count);
}
