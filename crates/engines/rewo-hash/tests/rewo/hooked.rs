//! A simulated region that calls a hook of the thread before each load, store and wait.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use pmem::{
    Acknowledge, Bytes, Canary, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Taken,
    Ticket, Waited,
};
use pmem_sim::{Model, Sim};

/// The access that is about to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Load,
    Store,
    Wait,
}

type Hook = Rc<dyn Fn(Access)>;

thread_local! {
    static IS_FAILING: Cell<bool> = const { Cell::new(false) };
    static IS_DEFERRED: Cell<bool> = const { Cell::new(false) };
    static IS_READ_ONLY: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `work`; its waits fail.
pub(crate) fn failing<R>(work: impl FnOnce() -> R) -> R {
    IS_FAILING.set(true);
    let done = work();
    IS_FAILING.set(false);
    done
}

/// Makes all waits fail from now on, or succeed again.
pub(crate) fn set_failing(is_failing: bool) {
    IS_FAILING.set(is_failing);
}

/// Runs `work` while other threads have written data that is not durable yet and is not waited for.
pub(crate) fn deferring<R>(work: impl FnOnce() -> R) -> R {
    IS_DEFERRED.set(true);
    let done = work();
    IS_DEFERRED.set(false);
    done
}

/// Runs `work` with this thread's media read-only.
pub(crate) fn reading_only<R>(work: impl FnOnce() -> R) -> R {
    IS_READ_ONLY.set(true);
    let done = work();
    IS_READ_ONLY.set(false);
    done
}

/// Calls `hook` before each access of this thread, including the hook's own.
pub(crate) fn hook(hook: impl Fn(Access) + 'static) {
    HOOK.set(Some(Rc::new(hook)));
}

/// Removes the hook.
pub(crate) fn unhook() {
    HOOK.set(None);
}

fn report(access: Access) {
    let hook = HOOK.with_borrow(Clone::clone);
    hook.into_iter().for_each(|hook| hook(access));
}

pub(crate) struct Hooked {
    sim: Sim,
    /// As in a log: the ticket at which the words last published with this key are durable.
    published: Mutex<BTreeMap<u64, Ticket>>,
}

impl Hooked {
    pub(crate) fn on(sim: Sim) -> Hooked {
        Hooked { sim, published: Mutex::default() }
    }
}

// SAFETY: the memory is the inner medium's, and so are all guarantees about it.
unsafe impl Bytes for Hooked {
    fn base(&self) -> NonNull<u8> {
        self.sim.base()
    }

    fn len_bytes(&self) -> u64 {
        self.sim.len_bytes()
    }

    fn is_writable(&self) -> bool {
        !IS_READ_ONLY.get()
    }

    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        report(Access::Load);
        self.sim.load(at, ordering)
    }

    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        assert!(self.is_writable(), "a read-only region is changed");
        report(Access::Store);
        self.sim.store(at, word, ordering);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.sim.compare_exchange(at, current, new)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: the caller's contract is the same.
        unsafe { self.sim.write(at, bytes) }
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        // SAFETY: the caller's contract is the same.
        unsafe { self.sim.stream(at, parts) }
    }
}

impl Persist for Hooked {
    fn durability(&self) -> Durability {
        self.sim.durability()
    }

    fn flush(&self, span: Span) {
        self.sim.flush(span);
    }

    fn order(&self) {
        self.sim.order();
    }

    fn publish(&self, words: &[(Offset, u64)], key: u64) -> Taken {
        words.iter().for_each(|_| report(Access::Store));
        let taken = self.sim.publish(words, key);
        self.published.lock().insert(key, self.sim.commit(Level::Strongest));
        taken
    }

    fn commit_published(&self, at: Offset, key: u64) -> Ticket {
        match self.sim.model() {
            Model::Line => self.sim.commit_published(at, key),
            _ => self.published.lock().get(&key).copied().unwrap_or_default(),
        }
    }

    fn commit(&self, level: Level) -> Ticket {
        self.sim.commit(level)
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        report(Access::Wait);
        if IS_FAILING.get() {
            return Err(MediumError::ReadOnly);
        }
        self.sim.wait(ticket)
    }
}

impl Acknowledge for Hooked {
    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        if IS_DEFERRED.get() { Ok(Waited::Deferred) } else { self.acknowledge(ticket) }
    }

    fn deferred(&self) -> Option<Ticket> {
        IS_DEFERRED.get().then(Ticket::default)
    }
}

impl Residency for Hooked {}

impl Space for Hooked {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.sim.grow(to_bytes)
    }
}

impl Medium for Hooked {
    fn name(&self) -> &'static str {
        "hooked"
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.sim.breaks(canary)
    }
}
