//! A simulated region that tells a thread's test of each load, store and wait before it happens.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use pmem::{
    Acknowledge, Bytes, Canary, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Ticket,
};
use pmem_sim::Sim;

/// What is about to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Load,
    Store,
    Wait,
}

type Hook = Rc<dyn Fn(Access)>;

thread_local! {
    static IS_FAILING: Cell<bool> = const { Cell::new(false) };
    static IS_READ_ONLY: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Does `work`, for which nothing that is waited for becomes durable.
pub(crate) fn failing<R>(work: impl FnOnce() -> R) -> R {
    IS_FAILING.set(true);
    let done = work();
    IS_FAILING.set(false);
    done
}

/// Does `work`, for which this thread's media may only be read.
pub(crate) fn reading_only<R>(work: impl FnOnce() -> R) -> R {
    IS_READ_ONLY.set(true);
    let done = work();
    IS_READ_ONLY.set(false);
    done
}

/// Tells `hook` of this thread's accesses, those of its own among them.
pub(crate) fn hook(hook: impl Fn(Access) + 'static) {
    HOOK.set(Some(Rc::new(hook)));
}

/// Tells nobody any more.
pub(crate) fn unhook() {
    HOOK.set(None);
}

fn tell(access: Access) {
    let hook = HOOK.with_borrow(Clone::clone);
    hook.into_iter().for_each(|hook| hook(access));
}

pub(crate) struct Hooked(pub(crate) Sim);

// SAFETY: the memory is the inner medium's, and so is every promise about it.
unsafe impl Bytes for Hooked {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    fn is_writable(&self) -> bool {
        !IS_READ_ONLY.get()
    }

    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        tell(Access::Load);
        self.0.load(at, ordering)
    }

    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        assert!(self.is_writable(), "a region that is only read is changed");
        tell(Access::Store);
        self.0.store(at, word, ordering);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(at, current, new)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.0.write(at, bytes) }
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.0.stream(at, parts) }
    }
}

impl Persist for Hooked {
    fn durability(&self) -> Durability {
        self.0.durability()
    }

    fn flush(&self, span: Span) {
        self.0.flush(span);
    }

    fn order(&self) {
        self.0.order();
    }

    fn commit_published(&self, at: Offset, key: u64) -> Ticket {
        self.0.commit_published(at, key)
    }

    fn commit(&self, level: Level) -> Ticket {
        self.0.commit(level)
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        tell(Access::Wait);
        if IS_FAILING.get() {
            return Err(MediumError::ReadOnly);
        }
        self.0.wait(ticket)
    }
}

impl Acknowledge for Hooked {}

impl Residency for Hooked {}

impl Space for Hooked {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.0.grow(to_bytes)
    }
}

impl Medium for Hooked {
    fn name(&self) -> &'static str {
        "hooked"
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.0.breaks(canary)
    }
}
