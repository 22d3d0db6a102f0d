//! Errors as numbers and texts.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use engine::OpenError as RegionError;
use heap::HeapError;
use hikv::{BackupError, Error, MediumError, OpenError};
use journal::JournalError;

use crate::code;

/// The version, with the final zero of C.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version has a zero byte"),
};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A negative result and its text.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    /// Returns the failure of an argument.
    pub(crate) fn option(text: impl Into<String>) -> Failure {
        Failure::new(code::OPTION, text)
    }

    pub(crate) fn forked() -> Failure {
        Error::Forked.into()
    }

    /// Returns the failure of a call that has panicked.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
        Failure::new(code::PANIC, format!("a fault of hikv: {text}; close the store and open it again"))
    }

    /// Keeps the text for this thread, and returns the number.
    pub(crate) fn report(self) -> c_int {
        // The text is lost if the thread is ending.
        let _ = LAST.try_with(|last| last.replace(self.text));
        self.code
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::KeyTooLong { .. } => code::KEY_SIZE,
            Error::ValueTooLong { .. } => code::VALUE_SIZE,
            Error::BatchTooLong { .. } => code::BATCH_SIZE,
            Error::ExpiryTooLate { .. } | Error::TreeName { .. } => code::OPTION,
            Error::ConditionFailed { .. } => code::UNMET,
            Error::Medium(error) => of_medium(error),
            Error::Corrupt { .. } => code::DAMAGED,
            Error::NotOrderedYet { .. }
            | Error::SnapshotLive { .. }
            | Error::StillOpen { .. }
            | Error::TreeBusy { .. } => code::BUSY,
            Error::Unsupported { .. } | Error::NoOrder => code::UNSUPPORTED,
            Error::InsideCallback | Error::InsideTransaction => code::INSIDE_CALLBACK,
            Error::Conflict => code::CONFLICT,
            Error::Contended { .. } => code::CONTENDED,
            Error::NotANumber { .. } | Error::Overflow { .. } => code::NOT_A_NUMBER,
            Error::Durability { .. } => code::DURABILITY,
            Error::NoSuchTree { .. } => code::NO_SUCH_TREE,
            Error::TreeExists { .. } => code::TREE_EXISTS,
            Error::TooManyTrees { .. } => code::FULL,
            Error::Forked => code::FORKED,
            Error::HalfWay => code::PANIC,
            Error::Source(_) => code::IO,
            _ => code::ERROR,
        };
        Failure::new(code, error.to_string())
    }
}

fn of_medium(error: &MediumError) -> c_int {
    match error {
        error if error.is_full() => code::FULL,
        MediumError::OutOfBounds { .. } => code::DAMAGED,
        MediumError::ReadOnly => code::READ_ONLY,
        _ => code::IO,
    }
}

fn of_heap(error: &HeapError) -> c_int {
    match error {
        HeapError::Medium(error) => of_medium(error),
        HeapError::Damaged { .. } | HeapError::Truncated { .. } => code::DAMAGED,
        HeapError::Newer { .. } | HeapError::UnknownFeatures { .. } => code::FORMAT,
        HeapError::NoDram { .. } => code::ERROR,
        _ => code::UNUSABLE,
    }
}

fn of_journal(error: &JournalError) -> c_int {
    match error {
        JournalError::Version { .. } => code::FORMAT,
        JournalError::Damaged { .. } | JournalError::Gap { .. } | JournalError::Truncated { .. } => code::DAMAGED,
        JournalError::Unfinished => code::UNUSABLE,
        JournalError::Option { .. } => code::OPTION,
        _ => code::IO,
    }
}

fn of_opening(error: &OpenError) -> c_int {
    match error {
        OpenError::Missing { .. } => code::MISSING,
        OpenError::NotADirectory { .. } => code::UNUSABLE,
        OpenError::Locked { .. } => code::LOCKED,
        OpenError::Unusable { error: RegionError::Heap(error), .. } => of_heap(error),
        OpenError::Journal { error, .. } => of_journal(error),
        OpenError::Durability { .. } => code::DURABILITY,
        OpenError::EngineNotBuilt { .. } => code::UNSUPPORTED,
        OpenError::Option { .. } => code::OPTION,
        _ => code::IO,
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::new(of_opening(&error), error.to_string())
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let text = error.to_string();
        match error {
            BackupError::Exists { .. } | BackupError::Occupied { .. } | BackupError::Place { .. } => {
                Failure::option(text)
            }
            BackupError::Damaged { .. } => Failure::new(code::DAMAGED, text),
            BackupError::Open(error) => Failure::new(of_opening(&error), text),
            BackupError::Read(error) => Failure::new(Failure::from(error).code, text),
            _ => Failure::new(code::IO, text),
        }
    }
}

/// Copies the text of the thread's last error.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_last_error(out: *mut c_char, cap: usize) -> usize {
    let copy = |text: &RefCell<String>| {
        let text = text.borrow();
        let copied = text.len().min(cap.saturating_sub(1));
        if !out.is_null() && cap > 0 {
            // SAFETY: `copied` and the final zero are within `cap`, for which the caller vouches.
            unsafe {
                ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), copied);
                out.add(copied).write(0);
            }
        }
        text.len()
    };
    // The text is lost if the thread is ending.
    LAST.try_with(copy).unwrap_or(0)
}

/// Returns the version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn hikv_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Returns the version of the functions and structures in `hikv.h`.
#[unsafe(no_mangle)]
pub extern "C" fn hikv_abi() -> u32 {
    1
}
