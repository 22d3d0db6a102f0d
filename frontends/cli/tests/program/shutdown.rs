//! Tests a server whose file system stops as at a power loss while clients write: the kernel discards everything that
//! was not synced (`FS_IOC_SHUTDOWN` without a flush). After the next mount, all acknowledged writes must exist.
//!
//! The tests need the right to mount a file by a loop device. They are skipped, with a message, if that is refused or a
//! file system cannot be created or shut down. The level `process` must lose writes, which proves that unsynced data is
//! discarded.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use journal::{File as _, OsFile};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, ioctl};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::Signal;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::serve::Serving;
use crate::support::{Ended, Place, hikv, left_out};

/// `FS_IOC_SHUTDOWN`, and its mode that writes nothing back, not even the file system's journal.
const SHUTDOWN: Opcode = 0x8004_587D;
const WITHOUT_A_FLUSH: u32 = 2;

/// File systems and the smallest image for each.
const KINDS: [(&str, &str); 3] = [("ext4", "128M"), ("xfs", "320M"), ("btrfs", "128M")];

/// Acknowledged writes before the shutdown: one, within the first segment of the log, and beyond it.
const ACKNOWLEDGED_COUNTS: [u64; 3] = [1, 60, 300];

/// Large enough that the last of those counts fill segments.
const VALUE_BYTES: usize = 20_000;

/// Shutdowns during syncs that need the file system's log: on ext4 and XFS, one in ten loses a page if a sync is
/// trusted without reading the page back.
const SYNCED_ROUND_COUNT: u64 = 60;

const PAGE_BYTES: u64 = 4096;

/// More attempts than a fork takes.
const BUSY_COUNT_MAX: usize = 1_000_000;

/// A file system in a file, mounted only for this thread and its children.
struct Disk<'a> {
    place: &'a Place,
    image: std::path::PathBuf,
}

impl Disk<'_> {
    fn mount(&self) -> bool {
        done(Command::new("mount").args(["-o", "loop"]).args([&self.image, &self.place.file("disk")]))
    }

    /// Cuts the power: nothing is written any more. Returns false if the file system does not support it.
    fn shut_down(&self) -> bool {
        let root = File::open(self.place.file("disk")).unwrap();
        // SAFETY: the call reads one number, which lives through it, and touches nothing else of this process.
        unsafe { ioctl(root.as_fd(), Setter::<SHUTDOWN, u32>::new(WITHOUT_A_FLUSH)) }.is_ok()
    }

    /// Unmounts the file system. Repeats it, because processes of other tests have our files open between fork and
    /// exec.
    fn unmount(&self) {
        let is_busy = || match unmount(self.place.file("disk"), UnmountFlags::empty()) {
            Err(Errno::BUSY) => true,
            unmounted => unmounted.map(|()| false).unwrap(),
        };
        let busy_count = (0..BUSY_COUNT_MAX).take_while(|_| is_busy()).inspect(|_| thread::yield_now()).count();
        assert!(busy_count < BUSY_COUNT_MAX, "the file system stays busy");
    }

    /// Restores the power: the file system recovers from its device.
    fn mount_again(&self) {
        self.unmount();
        assert!(self.mount(), "the file system cannot be mounted again");
    }
}

fn done(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs `test` on a fresh file system of each kind.
fn on_each_kind(test: impl Fn(&str, &Disk<'_>) + Sync) {
    for (kind, size) in KINDS {
        let place = Place::new();
        // In memory, where syncs cost nothing, if possible.
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let disk = Disk { place: &place, image: memory.path().join("image") };
        fs::create_dir(place.file("disk")).unwrap();
        let run = || {
            // SAFETY: a mount namespace of its own changes no file descriptor and no memory.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|error| error.to_string())?;
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).map_err(|error| error.to_string())?;
            let make = format!("mkfs.{kind}");
            let is_made = done(Command::new("truncate").args(["-s", size]).arg(&disk.image))
                && done(Command::new(make).arg("-q").arg(&disk.image));
            if !is_made || !disk.mount() {
                return Err("it cannot be made or mounted".to_owned());
            }
            test(kind, &disk);
            disk.unmount();
            Ok(())
        };
        let outcome = thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)));
        if let Err(error) = outcome {
            left_out(&format!("{kind}: {error}"));
        }
    }
}

/// Creates an empty store with a journal, durably.
fn make(store: &Path) {
    Ended(hikv("put", store, &["made", ""]).output().unwrap()).succeeded();
    Ended(hikv("del", store, &["made"]).output().unwrap()).succeeded();
}

fn serve(store: &Path, level: &str) -> Serving {
    Serving::spawned(hikv("serve", store, &["--addr", "127.0.0.1:0", "--threads", "1", "--durability", level]))
}

fn key(number: u64) -> String {
    format!("key:{number:06}")
}

fn value(number: u64) -> String {
    format!("{number:>VALUE_BYTES$}")
}

/// Sets keys from `first` on, one after the other, until one is not acknowledged; reports each acknowledgement.
fn write_until_refused(address: &str, first: u64, acknowledged: &Sender<()>) {
    let mut socket = TcpStream::connect(address).unwrap();
    let mut answers = BufReader::new(socket.try_clone().unwrap());
    for number in first.. {
        let mut answer = String::new();
        // In one write: the kernel would delay a second one until the first is acknowledged.
        let asked = format!("SET {} {}\r\n", key(number), value(number).replace(' ', "0"));
        if socket.write_all(asked.as_bytes()).is_err() || answers.read_line(&mut answer).is_err() || answer != "+OK\r\n"
        {
            return;
        }
        acknowledged.send(()).unwrap();
    }
}

/// Writes, and cuts the power after `count` acknowledged writes. Returns the number of acknowledged writes; `None` if
/// the file system cannot be shut down.
fn cut_after(count: u64, disk: &Disk<'_>, serving: &Serving, first: u64) -> Option<u64> {
    let (acknowledged, is_cut) = write_until(count, serving, first, || disk.shut_down());
    is_cut.then_some(acknowledged)
}

/// Writes; after `count` acknowledged writes calls `stop`, then kills the server. Returns the number of acknowledged
/// writes, and the result of `stop`.
fn write_until<R>(count: u64, serving: &Serving, first: u64, stop: impl FnOnce() -> R) -> (u64, R) {
    let (notify, acknowledged) = channel();
    thread::scope(|scope| {
        scope.spawn(move || write_until_refused(serving.address(), first, &notify));
        let before = acknowledged.iter().take(count as usize).count();
        let stopped = stop();
        // A server without its disk never replies: killing it ends the writer.
        serving.signal(Signal::KILL);
        ((before + acknowledged.iter().count()) as u64, stopped)
    })
}

/// Returns the number of keys; checks that they are 0, 1, … without gaps.
fn kept(store: &Path) -> u64 {
    let checked = hikv("check", store, &["--deep"]).output().unwrap();
    Ended(checked).succeeded();
    let dumped = String::from_utf8(Ended(hikv("dump", store, &["--bare"]).output().unwrap()).succeeded()).unwrap();
    let mut items: Vec<_> = dumped.lines().map(|line| line.split_once('\t').unwrap()).collect();
    items.sort_unstable();
    for (number, item) in items.iter().enumerate() {
        let number = number as u64;
        assert!(item.0 == key(number) && item.1 == value(number).replace(' ', "0"), "{number} is missing, or wrong");
    }
    items.len() as u64
}

#[test]
fn acknowledged_writes_survive_at_their_level() {
    on_each_kind(|kind, disk| {
        for level in ["power", "buffered", "process"] {
            let mut lost = 0;
            for count in ACKNOWLEDGED_COUNTS {
                let store = disk.place.file("disk").join(format!("{level}-{count}"));
                make(&store);
                let serving = serve(&store, level);
                let Some(acknowledged) = cut_after(count, disk, &serving, 0) else {
                    drop(serving);
                    return left_out(&format!("{kind} cannot be shut down"));
                };
                drop(serving);
                disk.mount_again();
                let kept = kept(&store);
                assert!(kept <= acknowledged + 1, "{kind}: {kept} are there of {acknowledged}");
                lost += acknowledged.saturating_sub(kept);
                fs::remove_dir_all(&store).unwrap();
            }
            match level {
                "power" => assert_eq!(lost, 0, "{kind} at power"),
                "process" => assert!(lost > 0, "{kind}: unsynced writes survived: the shutdown discards nothing"),
                _ => {}
            }
        }
    });
}

/// The writes of a killed server are only in the kernel's cache, where the next server finds them. Once that server
/// acknowledges a write at level `power`, all earlier writes are durable: a power loss leaves no write without those
/// before it.
#[test]
fn kill_and_then_power() {
    on_each_kind(|kind, disk| {
        for count in ACKNOWLEDGED_COUNTS {
            let store = disk.place.file("disk").join(count.to_string());
            make(&store);
            let first = serve(&store, "process");
            let (acknowledged, ()) = write_until(count, &first, 0, || ());
            drop(first);
            let before = kept(&store);
            assert!(before >= acknowledged, "{kind}: a kill loses nothing");
            let second = serve(&store, "power");
            let Some(more) = cut_after(count, disk, &second, before) else {
                drop(second);
                return left_out(&format!("{kind} cannot be shut down"));
            };
            drop(second);
            disk.mount_again();
            let kept = kept(&store);
            assert!((before + more..=before + more + 1).contains(&kept), "{kind}: {kept} of {before} and {more}");
            fs::remove_dir_all(&store).unwrap();
        }
    });
}

/// Writes pages to new space and syncs each, until that fails. Reports each synced page, while the receiver exists.
fn sync_pages(file: &OsFile, synced: &Sender<()>) {
    for number in 0u64.. {
        let (at, page) = (number * PAGE_BYTES, number.to_le_bytes().repeat(PAGE_BYTES as usize / 8));
        let written = file.allocate(at..at + PAGE_BYTES).and_then(|()| file.write_at(&page, at));
        if written.and_then(|()| file.sync()).is_err() {
            return;
        }
        if synced.send(()).is_err() {
            return;
        }
    }
}

/// The sync that the shutdown overtakes must not succeed unless the file system recovers the page.
#[test]
fn sync_that_succeeds_survives() {
    on_each_kind(|kind, disk| {
        for round in 0..SYNCED_ROUND_COUNT {
            let path = disk.place.file("disk").join("file");
            let file = OsFile::create(&path).unwrap();
            assert!(done(&mut Command::new("sync")));
            let (notify, synced) = channel();
            let (synced_count, is_cut) = thread::scope(|scope| {
                let file = &file;
                scope.spawn(move || sync_pages(file, &notify));
                let before = synced.iter().take((1 + round % 16) as usize).count();
                let is_cut = disk.shut_down();
                let more = if is_cut { synced.iter().count() } else { 0 };
                ((before + more) as u64, is_cut)
            });
            drop(file);
            if !is_cut {
                return left_out(&format!("{kind} cannot be shut down"));
            }
            disk.mount_again();
            let kept = fs::read(&path).unwrap();
            let words = kept.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            let whole = words.zip(0u64..).take_while(|(word, i)| *word == i * 8 / PAGE_BYTES).count() as u64;
            assert!(whole * 8 >= synced_count * PAGE_BYTES, "{kind}, round {round}: the file lacks a synced page");
            fs::remove_file(&path).unwrap();
        }
    });
}

/// Fills the file system to its last block.
fn fill(disk: &Disk<'_>) {
    let file = File::create(disk.place.file("disk").join("filling")).unwrap();
    for piece_bytes in [1 << 20, 4096] {
        let piece = vec![1; piece_bytes];
        while (&file).write_all(&piece).is_ok() {}
    }
    // A delayed allocation may fail here.
    let _ = file.sync_all();
}

/// Btrfs with checksums never writes in place, so a full one accepts no write.
#[test]
fn full_disk_keeps_no_young_store_shut() {
    on_each_kind(|kind, disk| {
        if kind == "btrfs" {
            return;
        }
        let stores = ["hikv", "rewo-hash", "ink", "pmekv"].map(|engine| {
            let store = disk.place.file("disk").join(engine);
            Ended(hikv("put", &store, &["old", "value", "--engine", engine]).output().unwrap()).succeeded();
            store
        });
        fill(disk);
        for store in stores {
            Ended(hikv("put", &store, &["new", "value"]).output().unwrap()).succeeded();
            assert_eq!(Ended(hikv("get", &store, &["old"]).output().unwrap()).succeeded(), b"value", "{kind}");
        }
    });
}
