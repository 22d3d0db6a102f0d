//! A full disk whose file system copies overwritten blocks: Btrfs, mounted for this test, which needs root and is
//! skipped otherwise.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use journal::{File as _, OsFile};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const DISK_BYTES: u64 = 160 << 20;
const PAGE_COUNT: u64 = 256;

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

/// Mounts the file system; `None` if that is impossible.
fn mount(home: &Path) -> Option<Mounted> {
    // SAFETY: a separate mount namespace changes no file descriptor and no memory.
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

/// Aligned for direct I/O.
#[repr(align(4096))]
struct Page([u8; 4096]);

#[test]
#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
fn reserved_space_is_overwritten_on_full_disk() {
    let test = || {
        let home = tempfile::tempdir().unwrap();
        let Some(mounted) = mount(home.path()) else {
            return eprintln!("left out: Btrfs cannot be mounted here");
        };
        let log = OsFile::create(&mounted.0.join("log")).unwrap();
        log.allocate(0..PAGE_COUNT * 4096).unwrap();
        let write = |byte| {
            let page = Page([byte; 4096]);
            (0..PAGE_COUNT).try_for_each(|i| log.write_through(&page.0, i * 4096)).and_then(|()| log.sync())
        };
        write(0).unwrap();
        fill(&mounted.0.join("filling"));
        (1..9).for_each(|byte| write(byte).unwrap());
    };
    thread::spawn(test).join().unwrap();
}
