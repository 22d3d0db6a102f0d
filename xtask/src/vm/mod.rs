//! `cargo xtask vm rounds N [SEED [MEDIUM]]`: power cuts in a guest, round after round on one store.
//!
//! A round boots Debian's kernel in QEMU, without KVM or root. The program `power_cut` (an example of `testkit`)
//! opens the store of the last round on ext4, XFS or btrfs, compares it with the acknowledged changes, then writes
//! and prints each acknowledged change. After some of them the power is cut. The disk has a volatile write cache
//! ([`disk`]): a cut keeps, loses or tears unflushed writes, in any order.
//!
//! Before the rounds of a file system, two broken variants must be caught: a disk that ignores flushes, and a store
//! that acknowledges without a sync. A test rig that misses them would miss a loss of hikv's.
//!
//! On an NVDIMM, ext4 and XFS are mounted with DAX and grant `MAP_SYNC`. There, cuts come between any two
//! instructions of the guest but lose nothing of the NVDIMM; only [`cached`] models the processor's cache. The broken
//! variant there promises more than was acknowledged.

pub(crate) mod acknowledged;
pub(crate) mod cache;
mod cached;
mod disk;
pub(crate) mod files;
mod guest;
pub(crate) mod judge;
pub(crate) mod life;
pub(crate) mod time;
mod traced;

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::failure::Failure;
use acknowledged::{Acknowledged, Report};
use disk::{Disk, Image, Served};
use guest::{DISK_BYTES, Guest};

const DISK_FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const DAX_FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];
const THREAD_COUNT: usize = 2;
const NVDIMM_BYTES: u64 = 512 << 20;
/// A round is cut after fewer acknowledged changes than this.
const CHANGE_COUNT_MAX: u64 = 400;
/// A broken variant that is not caught in this many rounds counts as missed.
const VARIANT_ROUND_COUNT_MAX: u64 = 12;
/// Longer than any boot or change, even on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Time of an instruction on the clock of a guest with one processor.
pub(crate) const ICOUNT_NS: u64 = 1 << ICOUNT_SHIFT;
const ICOUNT_SHIFT: u32 = 3;

/// The parameters of a series of rounds.
#[derive(Clone, Copy)]
struct Trial {
    fs: &'static str,
    /// The level at which the store is opened, and the level by which it is judged.
    opened: &'static str,
    promised: &'static str,
    medium: Medium,
    /// Changes added to the acknowledged ones, to deceive the judge.
    exaggerated: u64,
}

/// The storage of the file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Disk(Disk),
    Nvdimm,
}

/// The device of a guest, and the contents that a cut leaves.
enum Plugged {
    Disk(Served, PathBuf),
    Nvdimm([String; 4]),
}

/// The end of a round.
enum Ended {
    Held,
    /// The program's objection.
    Lost(String),
}

/// State that one round passes to the next.
struct Life<'a> {
    guest: &'a Guest,
    trial: Trial,
    image: Image,
    seed: u64,
    random: u64,
    acknowledged: Acknowledged,
    total: u64,
    /// True until a change was acknowledged or an NVDIMM formatted.
    is_new: bool,
}

const USAGE: &str = "usage: cargo xtask vm rounds COUNT [SEED [MEDIUM]] | vm cached COUNT [SEED]";

/// Runs the command given by `words`.
pub(crate) fn command(words: &[&str]) -> Result<(), Failure> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| USAGE.to_owned());
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let (kind, count, rest) = match *words {
        [kind, count, ref rest @ ..] if rest.len() < 3 => (kind, number(count)?, rest),
        _ => return Err(USAGE.to_owned()),
    };
    let seed = rest.first().map_or_else(|| Ok(now()), |seed| number(seed))?;
    let only = rest.get(1).copied().unwrap_or("");
    match kind {
        "rounds" => rounds(count, seed, only),
        "cached" if only.is_empty() => cached::cached(count, seed),
        _ => Err(USAGE.to_owned()),
    }
}

/// Runs `count` rounds on each file system and storage, after the broken variants; only on those whose name begins
/// with `only`.
fn rounds(count: u64, seed: u64, only: &str) -> Result<(), Failure> {
    println!("seed {seed}");
    let guest = Guest::make(&work()?, guest::power_cut()?, &guest::MODULES)?;
    let is_wanted = |trial: &Trial| trial.to_string().starts_with(only);
    for fs in DISK_FILE_SYSTEMS {
        let disk = Medium::Disk(Disk::Honest);
        let honest = Trial { fs, opened: "power", promised: "power", medium: disk, exaggerated: 0 };
        if is_wanted(&honest) {
            let forgetful = Trial { medium: Medium::Disk(Disk::IgnoresFlushes), ..honest };
            catch(&guest, "a disk that ignores flushes", forgetful, seed)?;
            catch(&guest, "a store that acknowledges without a sync", Trial { opened: "process", ..honest }, seed)?;
            hold(&guest, honest, count, seed)?;
            hold(&guest, Trial { opened: "buffered", promised: "buffered", ..honest }, count, seed)?;
        }
    }
    for fs in DAX_FILE_SYSTEMS {
        let mapped = Trial { fs, opened: "power", promised: "power", medium: Medium::Nvdimm, exaggerated: 0 };
        if is_wanted(&mapped) {
            catch(&guest, "a promise of more than was acknowledged", Trial { exaggerated: 2, ..mapped }, seed)?;
            hold(&guest, mapped, count, seed)?;
        }
    }
    Ok(())
}

/// Returns the working directory.
fn work() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(program.ancestors().nth(2).ok_or("the program lies in no target directory")?.join("vm"))
}

fn catch(guest: &Guest, variant: &str, trial: Trial, seed: u64) -> Result<(), Failure> {
    let mut life = Life::new(guest, trial, seed)?;
    for round in 1..=VARIANT_ROUND_COUNT_MAX {
        if let Ended::Lost(why) = life.round()? {
            println!("{trial}: {variant}: caught in round {round}: {why}");
            return Ok(());
        }
    }
    Err(format!("{trial}: {variant} was not caught in {VARIANT_ROUND_COUNT_MAX} rounds, so the rounds prove nothing"))
}

fn hold(guest: &Guest, trial: Trial, count: u64, seed: u64) -> Result<(), Failure> {
    let mut life = Life::new(guest, trial, seed)?;
    // One more round judges the last cut.
    for round in 0..=count {
        if let Ended::Lost(why) = life.round()? {
            return Err(format!("{trial}, seed {seed}, round {round}: {why}"));
        }
    }
    println!("{trial}: {count} cuts, {} changes acknowledged, nothing lost", life.total);
    Ok(())
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let medium = if self.medium == Medium::Nvdimm { "an NVDIMM" } else { "a disk" };
        write!(f, "{} on {medium}, opened at {}", self.fs, self.opened)
    }
}

impl Plugged {
    fn arguments(&self) -> Vec<String> {
        match self {
            Plugged::Disk(_, socket) => {
                let drive = "file.driver=nbd,file.server.type=unix,format=raw,if=virtio,file.server.path";
                vec!["-drive".into(), format!("{drive}={}", socket.display())]
            }
            Plugged::Nvdimm(arguments) => arguments.to_vec(),
        }
    }
}

impl Life<'_> {
    fn new(guest: &Guest, trial: Trial, seed: u64) -> Result<Life<'_>, Failure> {
        let image = if trial.medium == Medium::Nvdimm {
            guest.empty_nvdimm(NVDIMM_BYTES)?;
            Image::default()
        } else {
            guest.formatted(trial.fs)?
        };
        Ok(Life {
            is_new: true,
            guest,
            trial,
            image,
            seed,
            random: seed | 1,
            acknowledged: Acknowledged::new(THREAD_COUNT),
            total: 0,
        })
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Boots, waits for some acknowledged changes, and cuts the power.
    fn round(&mut self) -> Result<Ended, Failure> {
        let plugged = self.plug()?;
        let mut qemu = self.boot(&plugged)?;
        let lines = lines_of(&mut qemu);
        let (wanted, mut said) = (self.random() % CHANGE_COUNT_MAX, 0);
        let mut ended = Ended::Held;
        let (mut is_up, mut last) = (false, String::new());
        while !is_up || said < wanted {
            let Ok(line) = lines.recv_timeout(SILENCE_MAX) else {
                _ = qemu.kill();
                return Err(format!(
                    "{}, seed {}: the guest printed nothing more after '{last}'",
                    self.trial, self.seed
                ));
            };
            last.clone_from(&line);
            if line.starts_with("lost") {
                ended = Ended::Lost(line);
                break;
            }
            match self.record(&line)? {
                Report::Change => said += 1,
                report => is_up |= report == Report::Contents,
            }
        }
        if let Plugged::Disk(served, _) = &plugged {
            self.image = served.cut(&mut || self.random());
        }
        _ = qemu.kill();
        _ = qemu.wait();
        // Lines printed before the cut count, whether they were read by then or not.
        for line in lines {
            said += u64::from(self.record(&line)? == Report::Change);
        }
        self.total += said;
        self.is_new = false;
        Ok(ended)
    }

    fn plug(&mut self) -> Result<Plugged, Failure> {
        let Medium::Disk(disk) = self.trial.medium else { return Ok(Plugged::Nvdimm(self.guest.nvdimm_arguments()?)) };
        let socket = std::env::temp_dir().join(format!("hikv-vm-{}", std::process::id()));
        _ = std::fs::remove_file(&socket);
        let image = std::mem::take(&mut self.image);
        let served = Served::start(image, DISK_BYTES, disk, &socket).map_err(|error| error.to_string())?;
        Ok(Plugged::Disk(served, socket))
    }

    /// Records a line and returns its meaning.
    fn record<'l>(&mut self, line: &'l str) -> Result<Report<'l>, Failure> {
        let report = self.acknowledged.record(line)?;
        if let Report::Said(medium, durability) = report {
            let wanted = if self.trial.medium == Medium::Nvdimm { "dax" } else { self.trial.fs };
            if (medium, durability) != (wanted, self.trial.opened) {
                return Err(format!("{}: the store reports {line}", self.trial));
            }
        }
        Ok(report)
    }

    fn boot(&self, plugged: &Plugged) -> Result<Child, Failure> {
        let Trial { fs, opened, promised, exaggerated, .. } = self.trial;
        let reported = if self.is_new { 0 } else { exaggerated };
        let counts: Vec<String> =
            self.acknowledged.counts().iter().map(|count| (count + reported).to_string()).collect();
        let dax = match plugged {
            Plugged::Disk(..) => "no",
            Plugged::Nvdimm(_) if self.is_new => "new",
            Plugged::Nvdimm(_) => "old",
        };
        let words = format!("fs={fs} dax={dax} run={opened},{promised},any,{},{}", self.seed, counts.join(","));
        self.guest.boot(&words, &plugged.arguments())
    }
}

/// Returns an emulated machine with this much memory and this many processors, space for an NVDIMM, and a console on
/// standard input and output.
pub(crate) fn machine(memory_mib: u32, processor_count: u32) -> Command {
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-machine", "q35,nvdimm=on,nvdimm-persistence=mem-ctrl", "-accel", "tcg", "-cpu", "max"]);
    qemu.args(["-m", &format!("{memory_mib},slots=2,maxmem=4G")]);
    qemu.args(["-smp", &processor_count.to_string()]);
    // Time is counted in instructions: on a busy machine, a guest would take its own slowness for broken timers and
    // stop. With two processors it would not boot this way.
    if processor_count == 1 {
        qemu.args(["-icount", &format!("shift={ICOUNT_SHIFT},sleep=off")]);
    }
    qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none", "-serial", "stdio"]);
    qemu
}

/// Receives the complete lines that the guest prints; ends with the guest.
pub(crate) fn lines_of(qemu: &mut Child) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let mut output = BufReader::new(qemu.stdout.take().expect("it is piped"));
    thread::spawn(move || {
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|_| line.ends_with(b"\n")) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}
