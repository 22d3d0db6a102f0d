//! Tests signals: those that stop commands, and those that are ignored.

use std::fs;
use std::io::{PipeReader, Read, Write, pipe};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process};

use crate::removed::answered;
use crate::serve::Serving;
use crate::support::{Place, hikv, program};

/// The capacity and the free space of the pipe of [`nearly_full`]: enough for one progress line, not for three.
const PIPE_BYTES: usize = 4096;
const FREE_BYTES: usize = 120;

/// Creates a pipe that blocks its writer at the second or third line, until the reader reads.
fn nearly_full() -> (PipeReader, Stdio) {
    let (reader, mut writer) = pipe().unwrap();
    fcntl_setpipe_size(&writer, PIPE_BYTES).unwrap();
    writer.write_all(&[b'\n'; PIPE_BYTES - FREE_BYTES]).unwrap();
    (reader, writer.into())
}

/// Runs a command that shows its progress, and sends it a signal between the first and the last line. Returns the exit
/// code and the messages.
fn interrupted(mut command: Command, signal: Signal) -> (Option<i32>, String) {
    let (mut reader, stderr) = nearly_full();
    let mut child = command.arg("--progress-every").arg("0").stderr(stderr).stdout(Stdio::null()).spawn().unwrap();
    // Closes the command's end of the pipe here, so that the read ends with the process.
    drop(command);
    while ioctl_fionread(&reader).unwrap() <= (PIPE_BYTES - FREE_BYTES) as u64 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it showed any progress");
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said.trim_start().to_owned())
}

/// Signals end reads from a silent terminal or pipe, and the store is closed.
#[test]
fn commands_that_wait_for_input_are_interrupted() {
    for (command, arguments, said) in [
        ("put", &["k", "-"][..], "nothing was stored"),
        ("batch", &[], "nothing was applied"),
        ("load", &["-"], "loaded 0"),
    ] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            let place = Place::new();
            let mut child = hikv(command, &place.store(), arguments).stdin(Stdio::piped()).spawn().unwrap();
            await_caught(&child, signal);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(code), "{command}: {stderr}");
            assert!(stderr.contains(&format!("interrupted: {said}")), "{command}: {stderr}");
        }
    }
}

/// Waits until a process has a handler for the signal.
fn await_caught(child: &Child, signal: Signal) {
    let status = format!("/proc/{}/status", child.id());
    let is_caught = || {
        let text = fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
    };
    while !is_caught() {
        thread::yield_now();
    }
}

/// Every step of a compaction leaves an undamaged store, in each engine.
#[test]
fn compactions_stop_between_steps() {
    for engine in ["hikv", "ink", "pmekv", "rewo-hash"] {
        let place = Place::new();
        let value = "v".repeat(2_000);
        let items: String = (0..20_000).map(|number| format!("key-{number}\t{value}\n")).collect();
        let load = ["-", "--durability", "process", "--engine", engine];
        place.run_with_input("load", &load, items.as_bytes()).succeeded();
        let deletes: String =
            (0..20_000).filter(|number| number % 4 > 0).map(|number| format!("delete\tkey-{number}\n")).collect();
        place.run_with_input("batch", &["--durability", "process"], deletes.as_bytes()).succeeded();
        let (ended, messages) = interrupted(hikv("compact", &place.store(), &[""; 0]), Signal::INT);
        assert_eq!(ended, Some(130), "{engine}: {messages}");
        assert!(messages.lines().last().unwrap_or_default().starts_with("hikv: interrupted: moved "), "{messages}");
        place.run("check", &["--deep"]).succeeded();
        place.run("compact", &[""; 0]).succeeded();
    }
}

fn filled() -> Place {
    let place = Place::new();
    let items: String = (0..20_000).map(|number| format!("key-{number}\tvalue-{number}\n")).collect();
    place.run_with_input("load", &["-", "--durability", "process"], items.as_bytes()).succeeded();
    place
}

#[test]
fn interrupted_commands_say_how_far_they_came() {
    let place = filled();
    let out = place.file("out");
    let name = out.to_str().unwrap();
    for (command, arguments, said) in [
        ("check", &["--deep"][..], "checked "),
        ("check", &[], "checked "),
        ("backup", &[name], "backed up "),
        ("restore", &[name], "restored "),
        ("convert", &[name, "--engine", "pmekv"], "converted "),
        ("dump", &[name, "--format", "tsv"], "dumped "),
    ] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            let (ended, messages) = interrupted(hikv(command, &place.store(), arguments), signal);
            let last = messages.lines().last().unwrap_or_default();
            assert_eq!(ended, Some(code), "{command}: {messages}");
            assert!(last.starts_with(&format!("hikv: interrupted: {said}")), "{command}: {messages}");
            let left: Vec<_> = fs::read_dir(place.file("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["store"], "{command} leaves something behind");
        }
    }
    place.run("check", &["--deep"]).succeeded();
}

#[test]
fn meaningless_signals_do_nothing() {
    let place = Place::new();
    let serving = Serving::start(&place);
    assert_eq!(answered(&serving, "SET k v"), "+OK");
    for signal in [Signal::USR1, Signal::USR2, Signal::HUP] {
        serving.signal(signal);
        assert_eq!(answered(&serving, "GET k"), "$1");
    }
    assert!(serving.stop(Signal::TERM).contains("1 item"));
}

#[test]
fn killed_server_names_truncated_files() {
    Place::on_tmpfs(64, |place| {
        let serving = Serving::start(place);
        assert_eq!(answered(&serving, "SET k v"), "+OK");
        let region = place.store().join("store.hikv");
        fs::OpenOptions::new().write(true).open(&region).unwrap().set_len(0).unwrap();
        // This request gets no reply.
        let _ = serving.connect().write_all(b"GET k\r\n");
        let ended = serving.ended();
        assert_eq!(ended.0.status.signal(), Some(Signal::BUS.as_raw()), "{}", ended.messages());
        let line = ended.messages().lines().find(|line| line.contains("SIGBUS")).unwrap_or_default().to_owned();
        assert!(line.contains("store.hikv") && line.contains("truncated"), "{}", ended.messages());
    });
}

#[test]
fn foreign_bus_errors_blame_no_file() {
    let place = Place::new();
    let serving = Serving::start(&place);
    serving.signal(Signal::BUS);
    let ended = serving.ended();
    assert_eq!(ended.0.status.signal(), Some(Signal::BUS.as_raw()), "{}", ended.messages());
    assert!(!ended.messages().contains("truncated"), "{}", ended.messages());
}

#[test]
fn servers_outlive_the_readers_of_their_banner() {
    use std::io::{BufRead, BufReader};
    let place = Place::new();
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut command = hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "1"]);
    let mut child = command.stdin(Stdio::null()).stdout(writer).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("cannot print") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server has ended");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains("stopped"), "it closed its store: {rest}");
}

#[test]
fn unwritable_help_is_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["help", "put"], &["completions", "bash"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = program().args(arguments).stdout(full).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.starts_with("hikv: standard output: No space left"), "{said}");
    }
}
