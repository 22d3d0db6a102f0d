//! Tests resource limits: file size, open files, address space, threads, memory. The program reports an error, and
//! stored items remain.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::memory::figure;
use crate::serve::Serving;
use crate::support::{Ended, Place, hikv, left_out};

const KEPT_COUNT: u32 = 50;

/// Creates a store, and a file of items of about 20 MB.
fn filled(level: &str) -> Place {
    let place = Place::new();
    let items = |range: std::ops::Range<u32>, bytes: usize| -> String {
        range.map(|i| format!("key-{i}\t{i:0bytes$}\n")).collect()
    };
    let kept = place.write("kept.tsv", items(0..KEPT_COUNT, 10));
    place.run("load", &["--durability", level, kept.to_str().unwrap()]).succeeded();
    place.write("more.tsv", items(KEPT_COUNT..9_000, 2_000));
    place
}

/// Returns `command` with a limit set by `prlimit`.
fn limited(limit: &str, command: &Command) -> Command {
    let mut limited = Command::new("prlimit");
    limited.arg(limit).arg(command.get_program()).args(command.get_args());
    limited.stdout(Stdio::piped()).stderr(Stdio::piped());
    limited
}

/// Runs `command` with a limit, and checks that it succeeds or ends with an error. Returns true if the limit caused an
/// error; `None` without `prlimit`.
fn is_felt(limit: &str, command: &Command) -> Option<bool> {
    let Ok(ended) = limited(limit, command).output() else {
        left_out("there is no prlimit");
        return None;
    };
    Some(is_refused(limit, Ended(ended)))
}

/// Returns true if the command failed; checks that the error then has a reason.
fn is_refused(limit: &str, ended: Ended) -> bool {
    if ended.0.status.success() {
        return false;
    }
    assert_eq!(ended.0.status.code(), Some(2), "{limit}: {:?} {}", ended.0.status, ended.messages());
    ended.failed(2, &[]);
    true
}

fn assert_kept(place: &Place) {
    place.run("check", &["--deep"]).succeeded();
    let dumped = String::from_utf8(place.run("dump", &["--bare"]).succeeded()).unwrap();
    let lines: HashSet<&str> = dumped.lines().collect();
    for i in 0..KEPT_COUNT {
        assert!(lines.contains(&*format!("key-{i}\t{i:010}")), "item {i} is lost");
    }
    place.run("put", &["it", "goes on"]).succeeded();
}

#[test]
fn on_the_length_of_files() {
    for level in ["power", "process"] {
        let place = filled(level);
        let mut felt_count = 0;
        for kib in [0, 100, 4_096, 8_192, 9_000, 16_384] {
            let more = hikv("load", &place.store(), &[place.file("more.tsv")]);
            let Some(is_felt) = is_felt(&format!("--fsize={}", kib << 10), &more) else { return };
            felt_count += u32::from(is_felt);
            assert_kept(&place);
            let fresh = hikv("put", &place.file(&format!("{level}-{kib}")), &["--durability", level, "k", "v"]);
            self::is_felt(&format!("--fsize={}", kib << 10), &fresh);
        }
        assert!(felt_count >= 3, "{level}: {felt_count} were felt");
    }
}

#[test]
fn on_open_files() {
    let place = filled("power");
    let mut felt_count = 0;
    // With fewer open files, the dynamic linker cannot load the libraries.
    for count in 4..32 {
        let Some(is_felt) = is_felt(&format!("--nofile={count}"), &hikv("put", &place.store(), &["k", "v"])) else {
            return;
        };
        felt_count += u32::from(is_felt);
        let fresh = hikv("put", &place.file(&count.to_string()), &["k", "v"]);
        self::is_felt(&format!("--nofile={count}"), &fresh);
    }
    assert!(felt_count >= 4, "{felt_count} were felt");
    assert_kept(&place);
}

#[test]
fn on_addresses() {
    for level in ["power", "process"] {
        let place = filled(level);
        let mut felt_count = 0;
        for mib in [256, 1_024, 2_048] {
            let more = hikv("load", &place.store(), &[place.file("more.tsv")]);
            let Some(is_felt) = is_felt(&format!("--as={}", mib << 20), &more) else { return };
            felt_count += u32::from(is_felt);
            assert_kept(&place);
        }
        assert!(felt_count >= 1, "{level}: {felt_count} were felt");
    }
}

/// A user without other processes, because the limit counts all threads of a user. Root has no such limit.
const USER_ID: u32 = 54_321;

/// Returns `command`, run by that user.
fn as_user(command: &Command) -> Command {
    let mut user = Command::new("setpriv");
    user.arg(format!("--reuid={USER_ID}")).arg("--clear-groups").arg(command.get_program()).args(command.get_args());
    user.stdout(Stdio::piped()).stderr(Stdio::piped());
    user
}

/// Runs a server, and stops the process as soon as it serves, if startup succeeds.
fn served(mut command: Command) -> Ended {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.contains("durability") && out.read_line(&mut banner).unwrap() > 0 {}
    if banner.contains("durability") {
        // The server may have ended already.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    out.read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Ended(Output { status: child.wait().unwrap(), stdout, stderr })
}

#[test]
fn on_threads() {
    let place = Place::new();
    std::fs::set_permissions(place.file(""), Permissions::from_mode(0o777)).unwrap();
    let is_there = as_user(&hikv("stats", &place.file("none"), &[""; 0])).output();
    if !geteuid().is_root() || is_there.is_err() || is_there.is_ok_and(|ended| ended.status.code() != Some(2)) {
        return left_out("the program cannot be run as another user");
    }
    let mut felt_counts = [0; 2];
    for count in 1..16 {
        let limit = format!("--nproc={count}");
        let put = as_user(&hikv("put", &place.file(&format!("put-{count}")), &["k", "v"]));
        let Some(is_felt) = is_felt(&limit, &put) else { return };
        felt_counts[0] += u32::from(is_felt);
        let arguments = ["--addr", "127.0.0.1:0", "--http", "127.0.0.1:0", "--threads", "2"];
        let serve = as_user(&hikv("serve", &place.file(&format!("serve-{count}")), &arguments));
        felt_counts[1] += u32::from(is_refused(&limit, served(limited(&limit, &serve))));
    }
    assert!(felt_counts[0] >= 4 && felt_counts[1] > felt_counts[0], "{felt_counts:?} were felt");
}

/// If there is no memory for a request, the process aborts; acknowledged writes remain.
#[test]
fn on_memory() {
    const CLIENT_COUNT_MAX: usize = 2_000;
    let place = filled("power");
    let serve = hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "1"]);
    let serving = Serving::spawned(limited(&format!("--data={}", 100 << 20), &serve));
    assert_eq!(serving.ask(b"SET told yes\r\n", 5), b"+OK\r\n");
    let half = [b"*2\r\n$4\r\nECHO\r\n$400000\r\n".as_slice(), &[b'x'; 200_000]].concat();
    let mut clients = Vec::new();
    while clients.len() < CLIENT_COUNT_MAX {
        let Ok(mut client) = std::net::TcpStream::connect(serving.address()) else { break };
        if client.write_all(&half).is_err() {
            break;
        }
        clients.push(client);
    }
    let ended = serving.ended();
    assert_eq!(ended.0.status.signal(), Some(Signal::ABORT.as_raw()), "{}", ended.messages());
    assert!(ended.messages().contains("memory allocation of"), "{}", ended.messages());
    assert_kept(&place);
    assert_eq!(place.run("get", &["told"]).succeeded(), b"yes");
}

/// Values of `--memory` that are no number, or too small, are refused by every command that has the option.
#[test]
fn impossible_memory_limit_is_refused() {
    let place = filled("buffered");
    let input = place.file("kept.tsv");
    let commands: [(&str, &[&str]); 5] =
        [("load", &[input.to_str().unwrap()]), ("dump", &[]), ("check", &[]), ("compact", &[]), ("serve", &[])];
    for (command, arguments) in commands {
        let run = |bytes: &str| place.run(command, &[arguments, &["--memory", bytes]].concat());
        for bytes in ["", "1.5", "64M", "18446744073709551616"] {
            run(bytes).misused(&["--memory", bytes]);
        }
        run("67108863").failed(2, &["67108863", "67108864", "memory_bytes_max"]);
    }
    assert_kept(&place);
}

/// Every command that has `--memory` works within it, and the server reports its pages.
#[test]
fn commands_work_within_a_limit_of_memory() {
    const LEAST: [&str; 2] = ["--memory", "67108864"];
    let place = filled("buffered");
    let more = place.file("more.tsv");
    place.run("load", &[&["--durability", "buffered", more.to_str().unwrap()], &LEAST[..]].concat()).succeeded();
    let whole = place.run("dump", &["--bare"]).succeeded();
    assert!(place.run("dump", &[&["--bare"], &LEAST[..]].concat()).succeeded() == whole);
    assert_eq!(place.run("put", &[&["with", "limit"], &LEAST[..]].concat()).succeeded(), b"");
    assert_eq!(place.run("get", &[&["with"], &LEAST[..]].concat()).succeeded(), b"limit");
    assert_eq!(place.run("ttl", &[&["with"], &LEAST[..]].concat()).succeeded(), b"unlimited\n");
    assert_eq!(place.run("scan", &[&["--prefix", "with"], &LEAST[..]].concat()).succeeded(), b"with\tlimit\n");
    place.run("stats", &LEAST).succeeded();
    place.run("del", &[&["with"], &LEAST[..]].concat()).succeeded();
    let run_at =
        |command, dir: &Path, arguments: &[&str]| Ended(hikv(command, dir, arguments).output().unwrap()).succeeded();
    let copies = ["backup", "restored", "converted"].map(|name| place.file(name));
    let [backup, restored, converted] = copies.each_ref().map(|path| path.to_str().unwrap());
    place.run("backup", &[&[backup], &LEAST[..]].concat()).succeeded();
    run_at("restore", &copies[0], &[&[restored], &LEAST[..]].concat());
    run_at("convert", &copies[1], &[&[converted, "--engine", "pmekv"], &LEAST[..]].concat());
    // Each engine has an order of its own.
    let sorted = |dump: &[u8]| {
        let mut lines: Vec<_> = dump.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    assert!(sorted(&run_at("dump", &copies[2], &["--bare"])) == sorted(&whole));
    place.run("compact", &LEAST).succeeded();
    place.run("check", &[&["--deep"], &LEAST[..]].concat()).succeeded();
    let arguments = [&["--addr", "127.0.0.1:0"], &LEAST[..]].concat();
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    let memory_bytes = figure(&serving, "page_memory_max_bytes");
    assert!((16 << 20..64 << 20).contains(&memory_bytes), "{memory_bytes}");
    assert!(figure(&serving, "page_resident_bytes") > 0);
    serving.stop(Signal::INT);
    assert!(place.run("dump", &["--bare"]).succeeded() == whole);
}
