//! Forked children: a child detects the fork, has no region, and takes nothing from the parent.

use crate::alone;
use crate::common::{bytes, put};
use pmem::{Bytes, MediumError, Space};
use pmem_os::{MapOptions, Mapped, StoreLock};

/// Returns the status of a child that ran `act` and then, unless it exited before, exited with 0.
fn fork(act: impl FnOnce()) -> i32 {
    // SAFETY: the child runs `act`, which takes no lock that another thread of the tests could hold, and exits
    // without unwinding into the test harness.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        act();
        exit(0);
    }
    let mut status = 0;
    // SAFETY: the child belongs to this process, and `status` lives through the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status
}

fn exit(code: i32) -> ! {
    // SAFETY: exits immediately; no destructor of the parent runs in the child.
    unsafe { libc::_exit(code) }
}

/// Returns the child's exit code.
fn exit_code(status: i32) -> i32 {
    assert!(libc::WIFEXITED(status), "the child was killed by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status)
}

fn region() -> (tempfile::TempDir, Mapped) {
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("region"), 1 << 20, MapOptions::default()).unwrap();
    (place, medium)
}

#[test]
fn only_the_opener_is_the_owner() {
    let _alone = alone();
    let (_place, medium) = region();
    assert!(medium.in_owner());
    let status = fork(|| exit(if medium.in_owner() { 1 } else { 42 }));
    assert_eq!(exit_code(status), 42);
    assert!(medium.in_owner());
}

#[test]
fn child_has_no_region_or_reservation() {
    let _alone = alone();
    let (_place, medium) = region();
    medium.grow(2 << 20).unwrap();
    for at in [0, (2 << 20) - 1, 1 << 30] {
        let status = fork(|| {
            // SAFETY: in the child nothing is mapped there, so the load ends it; that is the tested behaviour.
            let byte = unsafe { medium.base().as_ptr().add(at).read_volatile() };
            exit(i32::from(byte));
        });
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "offset {at}: {status:#x}");
    }
}

#[test]
fn child_cannot_grow_or_unmap_region() {
    let _alone = alone();
    let (place, medium) = region();
    put(&medium, 0, b"kept");
    let mut medium = Some(medium);
    let base = medium.as_ref().map(|medium| medium.base().as_ptr()).unwrap();
    let status = fork(|| {
        let inherited = medium.take().unwrap();
        let refused = inherited.grow(1 << 25) == Err(MediumError::Os { errno: libc::ECHILD });
        // SAFETY: nothing is mapped there in the child, and with this flag no mapping would be replaced.
        let own = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            libc::mmap(base.cast(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        drop(inherited);
        // SAFETY: the page was mapped just now, and must still be.
        let zero = unsafe { own.cast::<u8>().read_volatile() };
        exit(if refused && own == base.cast() && zero == 0 { 42 } else { 1 });
    });
    assert_eq!(exit_code(status), 42);
    let medium = medium.unwrap();
    medium.grow(1 << 21).unwrap();
    assert_eq!(bytes(&medium, 0, 4), b"kept");
    assert_eq!(std::fs::metadata(place.path().join("region")).unwrap().len(), 1 << 21);
}

#[test]
fn child_keeps_the_parents_lock() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    let mut lock = Some(StoreLock::exclusive(&path).unwrap());
    let status = fork(|| {
        drop(lock.take());
        exit(42);
    });
    assert_eq!(exit_code(status), 42);
    assert!(StoreLock::exclusive(&path).is_err());
    drop(lock);
    assert!(StoreLock::exclusive(&path).is_ok());
}
