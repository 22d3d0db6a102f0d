//! `cargo xtask vm rounds N`: power cuts in a guest, round after round on one store.
//!
//! A round boots Debian's kernel in QEMU, without a need for KVM or root. The program `power_cut` (an example of the library) opens
//! the store that the last round left, on ext4, XFS or btrfs, judges what is there by what was acknowledged, and writes, saying what
//! is acknowledged; after some of that the power is cut. The disk has a volatile write cache ([`disk`]): what was not flushed is
//! kept, lost or torn, in any order.
//!
//! Before the rounds of a file system two twins must be caught: a disk that ignores flushes, and a store that acknowledges without
//! having synced. A rig that catches neither would see no loss of ours.

mod disk;
mod guest;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::Failure;
use disk::{Disk, Image, Served};
use guest::{DISK_BYTES, Guest};

const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const THREAD_COUNT: usize = 2;
/// A round is cut after fewer acknowledged changes than this.
const CHANGE_COUNT_MAX: u64 = 400;
/// A twin that is not caught in so many rounds is not seen.
const TWIN_ROUND_COUNT_MAX: u64 = 12;
/// No boot and no change takes as long, on a machine however busy.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// What is tried.
#[derive(Clone, Copy)]
struct Trial {
    fs: &'static str,
    /// The level that the store is opened at, and the one that it is judged by.
    opened: &'static str,
    promised: &'static str,
    disk: Disk,
}

/// How a round ended.
enum Ended {
    Held,
    /// What the program objects to.
    Lost(String),
}

/// What one round leaves to the next.
struct Life<'a> {
    guest: &'a Guest,
    trial: Trial,
    image: Image,
    seed: u64,
    random: u64,
    acknowledged: [u64; THREAD_COUNT],
    total: u64,
}

/// Runs `count` rounds on each file system and at each level that loses no hole, after the twins.
pub(crate) fn rounds(count: u64, seed: Option<u64>) -> Result<(), Failure> {
    let seed =
        seed.unwrap_or_else(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_secs()));
    println!("seed {seed}");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let work = program.ancestors().nth(2).ok_or("the program lies in no target directory")?.join("vm");
    let guest = Guest::make(&work)?;
    for fs in FILE_SYSTEMS {
        let honest = Trial { fs, opened: "power", promised: "power", disk: Disk::Honest };
        catch(&guest, "a disk that ignores flushes", Trial { disk: Disk::IgnoresFlushes, ..honest }, seed)?;
        catch(&guest, "a store that acknowledges without a sync", Trial { opened: "process", ..honest }, seed)?;
        hold(&guest, honest, count, seed)?;
        hold(&guest, Trial { opened: "buffered", promised: "buffered", ..honest }, count, seed)?;
    }
    Ok(())
}

fn catch(guest: &Guest, twin: &str, trial: Trial, seed: u64) -> Result<(), Failure> {
    let mut life = Life::new(guest, trial, seed)?;
    for round in 1..=TWIN_ROUND_COUNT_MAX {
        if let Ended::Lost(why) = life.round()? {
            println!("{}: {twin}: caught in round {round}: {why}", trial.fs);
            return Ok(());
        }
    }
    Err(format!("{}: {twin} was not caught in {TWIN_ROUND_COUNT_MAX} rounds: the rounds show nothing", trial.fs))
}

fn hold(guest: &Guest, trial: Trial, count: u64, seed: u64) -> Result<(), Failure> {
    let mut life = Life::new(guest, trial, seed)?;
    // One more, to judge what the last cut left.
    for round in 0..=count {
        if let Ended::Lost(why) = life.round()? {
            return Err(format!("{} at {}, seed {seed}, round {round}: {why}", trial.fs, trial.opened));
        }
    }
    println!("{} at {}: {count} cuts, {} changes acknowledged, nothing lost", trial.fs, trial.opened, life.total);
    Ok(())
}

impl Life<'_> {
    fn new(guest: &Guest, trial: Trial, seed: u64) -> Result<Life<'_>, Failure> {
        let image = guest.formatted(trial.fs)?;
        Ok(Life { guest, trial, image, seed, random: seed | 1, acknowledged: [0; THREAD_COUNT], total: 0 })
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Boots, lets some changes be acknowledged, and cuts.
    fn round(&mut self) -> Result<Ended, Failure> {
        let socket = self.socket();
        _ = std::fs::remove_file(&socket);
        let image = std::mem::take(&mut self.image);
        let served = Served::start(image, DISK_BYTES, self.trial.disk, &socket).map_err(|error| error.to_string())?;
        let mut qemu = self.boot(&socket)?;
        let lines = lines_of(&mut qemu);
        let (wanted, mut said) = (self.random() % CHANGE_COUNT_MAX, 0);
        let mut ended = Ended::Held;
        let mut is_up = false;
        while !is_up || said < wanted {
            let Ok(line) = lines.recv_timeout(SILENCE_MAX) else {
                ended = Ended::Lost("the guest says nothing more".into());
                break;
            };
            if line.starts_with("lost") {
                ended = Ended::Lost(line);
                break;
            }
            is_up |= self.take(&line)?;
            said += u64::from(line.starts_with("a "));
        }
        let mut random = || self.random();
        self.image = served.cut(&mut random);
        _ = qemu.kill();
        _ = qemu.wait();
        // What was said before the cut counts, read or not.
        for line in lines {
            said += u64::from(line.starts_with("a "));
            self.take(&line)?;
        }
        self.total += said;
        Ok(ended)
    }

    fn socket(&self) -> PathBuf {
        std::env::temp_dir().join(format!("hikv-vm-{}", std::process::id()))
    }

    /// Enters what a line says; true if it says what was found.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["a", thread, count] => {
                // A line that the cut tore says nothing.
                if let (Ok(thread), Ok(count)) = (thread.parse::<usize>(), count.parse()) {
                    self.acknowledged[thread] = count;
                }
            }
            ["judged", ref counts @ ..] => {
                for (known, count) in self.acknowledged.iter_mut().zip(counts) {
                    *known = count.parse().map_err(|_| format!("not a count: {line}"))?;
                }
                return Ok(true);
            }
            ["said", medium, durability] if (medium, durability) != (self.trial.fs, self.trial.opened) => {
                return Err(format!("on {} at {} the store says {line}", self.trial.fs, self.trial.opened));
            }
            _ => {}
        }
        Ok(false)
    }

    fn boot(&self, socket: &std::path::Path) -> Result<Child, Failure> {
        let [first, second] = self.acknowledged;
        let Trial { fs, opened, promised, .. } = self.trial;
        let run = format!("{opened},{promised},{},{first},{second}", self.seed);
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args([
            "-machine",
            "q35",
            "-accel",
            "tcg",
            "-cpu",
            "max",
            "-m",
            "512",
            "-smp",
            "1",
            "-nodefaults",
            "-no-reboot",
        ]);
        qemu.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
        qemu.arg("-kernel").arg(&self.guest.kernel).arg("-initrd").arg(&self.guest.initrd);
        qemu.args(["-append", &format!("console=ttyS0 quiet panic=-1 fs={fs} run={run}")]);
        qemu.args([
            "-drive",
            &format!(
                "file.driver=nbd,file.server.type=unix,file.server.path={},format=raw,if=virtio",
                socket.display()
            ),
        ]);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        qemu.spawn().map_err(|error| format!("{qemu:?}: {error}"))
    }
}

/// What the guest says, whole lines alone; it ends with the guest.
fn lines_of(qemu: &mut Child) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let mut output = BufReader::new(qemu.stdout.take().expect("it is piped"));
    thread::spawn(move || {
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|_| line.ends_with(b"\n")) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}
