//! Writes a line on standard error for a process that a mapped file kills.
//!
//! The kernel answers a load or a store with SIGBUS if a mapped page has no bytes behind it: another process
//! truncated the file, or the disk could not be read. The process cannot continue, because the store's own words
//! may be there. The handler writes the file's name, and the process dies of the signal.
//!
//! The handler reads a table of mappings that were registered before, and calls only `write` and `sigaction`, which
//! are async-signal-safe.

use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Number of mappings with a name; further mappings are reported without one.
const SLOT_COUNT: usize = 64;

/// A registered mapping.
struct Slot {
    /// 0 if the slot is free.
    start: AtomicU64,
    end: AtomicU64,
    /// Never freed once set, so that a handler may read it at any time; the slot's next mapping gets another name.
    name: AtomicPtr<libc::c_char>,
}

static SLOTS: [Slot; SLOT_COUNT] =
    [const { Slot { start: AtomicU64::new(0), end: AtomicU64::new(0), name: AtomicPtr::new(ptr::null_mut()) } };
        SLOT_COUNT];

/// The start in a slot that is being filled: not a valid address.
const TAKEN: u64 = 1;

/// A mapping's entry in the table.
#[derive(Debug)]
pub(crate) struct Named(Option<usize>);

impl Named {
    /// Registers the addresses of a mapping of the file `path`.
    pub(crate) fn new(addresses: Range<u64>, path: &Path) -> Named {
        let take = |slot: &Slot| slot.start.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let Some(number) = SLOTS.iter().position(take) else { return Named(None) };
        let slot = &SLOTS[number];
        let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        slot.name.store(name.into_raw(), Ordering::Relaxed);
        slot.end.store(addresses.end, Ordering::Relaxed);
        slot.start.store(addresses.start, Ordering::Release);
        Named(Some(number))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            SLOTS[number].start.store(0, Ordering::Release);
        }
    }
}

/// Installs a handler for SIGBUS at a mapped file. It writes a line with the file's name, and then the process dies
/// as before. For programs: a library leaves signals to its program.
///
/// # Errors
/// The operating system's.
pub fn report_bus_errors() -> io::Result<()> {
    let handler = report as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: a description of zeros is valid, and means the default.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // The handler runs on the stack that the language sets up for overflows, if there is one.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the type that the flags announce, and lives as long as the program.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

extern "C" fn report(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a description of the signal.
    if unsafe { (*info).si_code } <= 0 {
        // Another process sent the signal: no instruction is repeated, and no file caused it.
        // SAFETY: the default is a valid action, and the signal comes when this returns.
        unsafe { (libc::signal(libc::SIGBUS, libc::SIG_DFL), libc::raise(libc::SIGBUS)) };
        return;
    }
    // SAFETY: a description of a SIGBUS by the kernel has an address.
    let address = unsafe { (*info).si_addr() } as u64;
    say(b"hikv: ");
    match SLOTS.iter().find(|slot| contains(slot, address)) {
        Some(slot) => {
            let name = slot.name.load(Ordering::Relaxed);
            // SAFETY: the name ends with a zero, and is never freed.
            say(unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes());
        }
        None => say(b"a mapped file"),
    }
    say(b": cannot read the store's bytes (SIGBUS): the file was truncated, or its disk failed; check both\n");
    // The instruction is repeated when this returns, and kills the process, with a core dump if those are enabled.
    // SAFETY: the default is a valid action.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}

fn contains(slot: &Slot, address: u64) -> bool {
    let start = slot.start.load(Ordering::Acquire);
    start > TAKEN && (start..slot.end.load(Ordering::Relaxed)).contains(&address)
}

fn say(text: &[u8]) {
    // SAFETY: the bytes live through the call. An error cannot be reported anywhere.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
