//! A full disk whose file system copies what is overwritten, Btrfs: mounted for these tests alone, which need to be root for it and
//! are left out where they are not.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use hikv::{Durability, Options};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Room for a store, and little besides.
const DISK_BYTES: u64 = 160 << 20;
/// Of few keys, and more than the log holds, so that it is written over, and checkpointed.
const PUT_COUNT: u32 = 12_000;
const VALUE_BYTES: usize = 1_000;

fn run(program: &str, arguments: &[&OsStr]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// A file system that only this thread and its children see.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// None where it cannot be mounted.
fn mount(home: &Path) -> Option<Mounted> {
    // SAFETY: a mount namespace of its own changes no file descriptor and no memory.
    let is_apart = unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.is_ok()
        && mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).is_ok();
    let (disk, at) = (home.join("disk"), home.join("at"));
    File::create(&disk).and_then(|file| file.set_len(DISK_BYTES)).unwrap();
    fs::create_dir(&at).unwrap();
    let is_mounted = is_apart
        && run("mkfs.btrfs", &["--mixed".as_ref(), "--quiet".as_ref(), disk.as_ref()])
        && run("mount", &["-o".as_ref(), "loop".as_ref(), disk.as_ref(), at.as_ref()]);
    is_mounted.then_some(Mounted(at))
}

fn fill(file: &Path) {
    let (mut file, mut rng) = (File::create(file).unwrap(), fastrand::Rng::with_seed(0));
    for piece_bytes in [1 << 20, 4096, 4096] {
        let mut piece = vec![0; piece_bytes];
        rng.fill(&mut piece);
        while file.write_all(&piece).is_ok() {}
        let _ = file.sync_all();
    }
}

/// A store that is written to on a full disk, and no less healthy.
fn write_to_a_full_disk(durability: Durability) {
    let test = move || {
        let home = tempfile::tempdir().unwrap();
        let Some(mounted) = mount(home.path()) else {
            return eprintln!("left out: Btrfs cannot be mounted here");
        };
        let options = Options::new().partition_count(1).durability(durability).log_bytes_max(8 << 20);
        let store = options.open(mounted.0.join("store")).unwrap();
        (0..100u32).for_each(|i| store.put(i.to_le_bytes(), [0; VALUE_BYTES]).unwrap());
        fill(&mounted.0.join("filling"));
        for i in 0..PUT_COUNT {
            let put = store.put((i % 100).to_le_bytes(), [i as u8; VALUE_BYTES]);
            put.unwrap_or_else(|error| panic!("put {i}: {error}"));
        }
        store.sync().unwrap();
        store.health().unwrap();
    };
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_full_disk_ends_no_journal_whose_files_are_overwritten() {
    write_to_a_full_disk(Durability::Buffered);
}

#[test]
fn a_full_disk_ends_no_process_that_stores_to_a_mapped_file() {
    write_to_a_full_disk(Durability::Process);
}
