//! Backups that replace the previous one: which directories are replaced, and which are never touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use hikv::{BackupError, OpenError, Store};
use pmem_os::StoreLock;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

/// A store in `data/store`, in a separate directory with other files around it.
struct Scene {
    dir: TempDir,
    store: Store,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(dir.path().join("data/letter"), "dear").unwrap();
        let store = Store::open(dir.path().join("data/store")).unwrap();
        store.put("k", "1").unwrap();
        Scene { dir, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a directory with a file in it.
    fn full_dir(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.path(name)).unwrap();
        fs::write(self.path(name).join("letter"), "dear").unwrap();
        self.path(name)
    }

    /// Asserts that the place is refused permanently, whatever is in it, and that nothing has changed.
    #[track_caller]
    fn is_no_place(&self, place: impl AsRef<Path>) {
        let place = place.as_ref();
        let before = tree(self.dir.path());
        for refused in
            [hikv::FrontEnd::of(&self.store).check_backup_place(place), self.store.backup_latest(place).map(drop)]
        {
            assert!(matches!(refused, Err(BackupError::Place { .. })), "{}: {refused:?}", place.display());
        }
        assert!(tree(self.dir.path()) == before, "{} was changed", place.display());
    }

    /// Asserts that the present contents of the place, or next to it, are refused, and that nothing has changed.
    #[track_caller]
    fn is_occupied(&self, place: &Path) {
        let before = tree(self.dir.path());
        hikv::FrontEnd::of(&self.store).check_backup_place(place).unwrap();
        for refused in
            [hikv::FrontEnd::of(&self.store).check_latest_backup(place), self.store.backup_latest(place).map(drop)]
        {
            assert!(matches!(refused, Err(BackupError::Occupied { .. })), "{}: {refused:?}", place.display());
        }
        assert!(tree(self.dir.path()) == before, "{} was changed", place.display());
    }

    /// Asserts that a backup succeeds, twice.
    #[track_caller]
    fn is_taken(&self, place: impl AsRef<Path>) {
        let place = place.as_ref();
        for value in ["2", "3"] {
            self.store.put("k", value).unwrap();
            self.store.backup_latest(place).unwrap();
            assert_eq!(value_in(place), value.as_bytes());
        }
    }
}

fn value_in(backup: &Path) -> Vec<u8> {
    Store::open_read_only(backup).unwrap().get("k").unwrap().unwrap().into_vec()
}

/// Returns all names below a directory except for the open store's, and the contents of small files.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let held = match kind.is_file() && entry.metadata().unwrap().len() < 1 << 16 {
            true => fs::read(entry.path()).unwrap(),
            false => Vec::new(),
        };
        found.insert(entry.path(), held);
        if kind.is_dir() {
            found.extend(tree(&entry.path()));
        }
    }
    found
}

#[test]
fn store_paths_are_no_backup_place() {
    let scene = Scene::new();
    symlink(scene.path("data/store"), scene.path("link")).unwrap();
    symlink(scene.path("data"), scene.path("link-to-data")).unwrap();
    symlink("nowhere", scene.path("dangling")).unwrap();
    for name in [
        "data/store",
        "data/store/",
        "data/store/.",
        "data/../data/store",
        "link",
        "link/",
        "link-to-data/store",
        "data",
        "data/",
        "link-to-data",
        "link-to-data/",
        "data/store/..",
        ".",
        "",
        "dangling",
        "data/letter",
        "not-there/../data/store",
        "not-there/../data/store/x",
    ] {
        scene.is_no_place(scene.path(name));
    }
    for name in ["/", "..", "."] {
        scene.is_no_place(name);
    }
    let outside = scene.dir.path().parent().unwrap();
    scene.is_no_place(outside);
    scene.is_no_place(outside.canonicalize().unwrap());
}

#[test]
fn store_named_like_backup_leftover_is_refused() {
    for suffix in [".new", ".old", ".new.partial"] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join(format!("place{suffix}"))).unwrap();
        let scene = Scene { dir, store };
        scene.is_no_place(scene.path("place"));
        assert_eq!(scene.store.get("k").unwrap(), None);
    }
}

#[test]
fn within_the_store_there_is_one_place() {
    let scene = Scene::new();
    symlink(scene.path("data/store"), scene.path("link")).unwrap();
    for name in ["x", "store.hikv", "lock", "Backup", "backup/x", "x/backup", "backup.new", "backup/../x"] {
        scene.is_no_place(scene.path("data/store").join(name));
        scene.is_no_place(scene.path("link").join(name));
    }
    for name in ["data/store/backup", "data/store/backup/", "link/backup", "data/../data/store/backup"] {
        scene.is_taken(scene.path(name));
    }
}

#[test]
fn relative_path_uses_working_directory() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let name = dir.path().file_name().unwrap().to_owned();
    let store = Store::open(Path::new(&name).join("store")).unwrap();
    let scene = Scene { dir, store };
    for place in ["store", "store/x", "."] {
        scene.is_no_place(Path::new(&name).join(place));
    }
    scene.is_taken(Path::new(&name).join("place"));
    scene.is_taken(Path::new(&name).join("not/there/yet"));
}

#[test]
fn foreign_backup_stays() {
    let scene = Scene::new();
    scene.is_occupied(&scene.full_dir("letters"));
    scene.full_dir("place.new");
    scene.is_occupied(&scene.path("place"));
    scene.full_dir("other.old");
    scene.is_occupied(&scene.path("other"));

    Store::open(scene.path("store-of-mine")).unwrap().put("k", "mine").unwrap();
    scene.is_occupied(&scene.path("store-of-mine"));
    scene.store.backup(scene.path("monday"), |_| {}).unwrap();
    scene.is_occupied(&scene.path("monday"));
    let another = Store::open(scene.path("another")).unwrap();
    another.backup_latest(scene.path("of-another")).unwrap();
    scene.is_occupied(&scene.path("of-another"));
}

#[test]
fn altered_mark_is_no_mark() {
    let scene = Scene::new();
    let place = scene.path("place");
    scene.is_taken(&place);
    let mark = fs::read_to_string(place.join("copy-of")).unwrap();
    for text in ["", "latest copy of x\n", mark.trim_end(), &mark[1..], &format!("{mark}\n")] {
        fs::write(place.join("copy-of"), text).unwrap();
        scene.is_occupied(&place);
    }
    fs::write(place.join("copy-of"), mark).unwrap();
    scene.is_taken(&place);
}

#[test]
fn adopted_backup_stays() {
    let scene = Scene::new();
    let place = scene.path("place");
    scene.is_taken(&place);
    fs::write(place.join("letter"), "dear").unwrap();
    scene.is_occupied(&place);
    fs::remove_file(place.join("letter")).unwrap();
    fs::create_dir(place.join("lock.d")).unwrap();
    scene.is_occupied(&place);
    fs::remove_dir(place.join("lock.d")).unwrap();
    assert_eq!(value_in(&place), b"3");
    scene.is_taken(&place);

    let own = Store::open(&place).unwrap();
    scene.is_occupied(&place);
    own.put("k", "own").unwrap();
    drop(own);
    scene.is_occupied(&place);
    assert_eq!(value_in(&place), b"own");
}

/// A process that opens the backup for writing has the lock before it removes the mark.
#[test]
fn backup_that_is_being_opened_stays() {
    let scene = Scene::new();
    let place = scene.path("place");
    scene.is_taken(&place);
    let lock = StoreLock::exclusive(&place.join("lock")).unwrap();
    let refused = scene.store.backup_latest(&place);
    assert!(matches!(refused, Err(BackupError::Open(OpenError::Locked { .. }))), "{refused:?}");
    drop(lock);
    assert_eq!(value_in(&place), b"3");
    scene.is_taken(&place);
}

#[test]
fn backup_accepts_empty_directory_or_earlier_backup() {
    let scene = Scene::new();
    fs::create_dir(scene.path("place")).unwrap();
    scene.is_taken(scene.path("place"));
    scene.is_taken(scene.path("place/"));
    assert_eq!(value_in(&scene.path("place")), b"3");
    let names: Vec<_> = fs::read_dir(scene.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// As a crash between two renames of step 3 leaves it.
#[test]
fn interrupted_backup_is_renamed_first() {
    let scene = Scene::new();
    let [place, new, old, other] = ["place", "place.new", "place.old", "other"].map(|name| scene.path(name));
    for (value, name) in [("2", &old), ("3", &new)] {
        scene.store.put("k", value).unwrap();
        scene.store.backup_latest(&other).unwrap();
        fs::rename(&other, name).unwrap();
    }
    // The next backup cannot be completed.
    scene.full_dir("place.new.partial");
    let refused = scene.store.backup_latest(&place);
    assert!(matches!(refused, Err(BackupError::Occupied { .. })), "{refused:?}");
    assert_eq!(value_in(&place), b"3");
    fs::remove_dir_all(scene.path("place.new.partial")).unwrap();
    scene.is_taken(&place);
    assert!(!new.exists() && !old.exists());
}

/// Bind mounts show one directory under several names. If mounting is refused, this is skipped and prints so.
#[test]
fn mount_of_store_is_no_backup_place() {
    let scene = Scene::new();
    let mounted = thread::scope(|scope| {
        let run = || {
            // SAFETY: a separate mount namespace changes no file descriptor and no memory.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            for (name, of) in [("mount", "data/store"), ("mount-of-data", "data")] {
                fs::create_dir(scene.path(name)).unwrap();
                mount_bind(scene.path(of), scene.path(name))?;
            }
            for name in ["mount", "mount/x", "mount-of-data", "mount-of-data/store", "mount-of-data/store/x"] {
                scene.is_no_place(scene.path(name));
            }
            scene.is_taken(scene.path("mount-of-data/place"));
            rustix::io::Result::Ok(())
        };
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if let Err(error) = mounted {
        left_out(&format!("nothing can be mounted here: {error}"));
    }
}

#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
fn left_out(why: &str) {
    eprintln!("left out: {why}");
}
