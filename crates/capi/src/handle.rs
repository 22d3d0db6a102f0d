//! The handles that threads share.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hikv::{Error, Snapshot, Store, Tree};

use crate::code;
use crate::failure::Failure;
use crate::memory::value;

/// An open store.
#[allow(non_camel_case_types)]
pub struct hikv_store {
    pub(crate) store: Store,
    /// A call has panicked.
    is_broken: AtomicBool,
}

/// A tree with a name.
#[allow(non_camel_case_types)]
pub struct hikv_tree {
    pub(crate) tree: Tree,
    pub(crate) store: Arc<hikv_store>,
}

/// The store at one moment.
#[allow(non_camel_case_types)]
pub struct hikv_snapshot {
    pub(crate) snapshot: Snapshot,
    pub(crate) store: Arc<hikv_store>,
}

/// A handle of a store, or of a part of it.
pub(crate) trait OfStore {
    fn store(&self) -> &hikv_store;
}

impl OfStore for hikv_store {
    #[inline(always)]
    fn store(&self) -> &hikv_store {
        self
    }
}

impl OfStore for hikv_snapshot {
    fn store(&self) -> &hikv_store {
        &self.store
    }
}

/// Threads share these handles.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<hikv_store>();
    is_shared::<hikv_tree>();
    is_shared::<hikv_snapshot>();
};

impl hikv_store {
    pub(crate) fn new(store: Store) -> hikv_store {
        hikv_store { store, is_broken: AtomicBool::new(false) }
    }

    /// Returns an error after a panic.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_broken.load(Ordering::Relaxed) { Err(broken()) } else { Ok(()) }
    }

    pub(crate) fn break_off(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }

    /// Returns an error in a child process.
    pub(crate) fn check_fork(&self) -> Result<(), Failure> {
        if matches!(self.store.health(), Err(Error::Forked)) { Err(Failure::forked()) } else { Ok(()) }
    }

    /// Returns the tree of a call: the store's own for null.
    ///
    /// # Safety
    /// `tree` is null or a live handle.
    #[inline(always)]
    pub(crate) unsafe fn tree(&self, tree: *mut hikv_tree) -> Result<&Tree, Failure> {
        // SAFETY: as this function's.
        match unsafe { tree.as_ref() } {
            None => Ok(&self.store),
            Some(tree) if ptr::eq(self, &*tree.store) => Ok(&tree.tree),
            Some(tree) => {
                let name = tree.tree.name().unwrap_or_default();
                Err(Failure::option(format!("the tree '{name}' belongs to another store")))
            }
        }
    }

    /// Returns a further count of the handle.
    ///
    /// # Safety
    /// `store` is a live handle.
    pub(crate) unsafe fn shared(store: *const hikv_store) -> Arc<hikv_store> {
        // SAFETY: the handle is the content of an `Arc`, and holds one count.
        unsafe {
            Arc::increment_strong_count(store);
            Arc::from_raw(store)
        }
    }
}

#[cold]
fn broken() -> Failure {
    Failure::new(code::PANIC, "an earlier call has panicked; close the store and open it again")
}

/// Returns the store of a handle.
///
/// # Safety
/// `store` is null or a live handle.
#[inline(always)]
pub(crate) unsafe fn store_of<'a>(store: *mut hikv_store) -> Result<&'a hikv_store, Failure> {
    // SAFETY: as this function's.
    unsafe { value(store, "store") }
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};
    use std::ptr;
    use std::sync::Arc;

    use hikv::Store;

    use super::hikv_store;
    use crate::memory::hikv_slice;
    use crate::{call, code, hikv_close, hikv_contains, hikv_last_error, hikv_transact, hikv_tx, hikv_tx_put};

    const KEY: hikv_slice = hikv_slice { data: ptr::null(), len: 0 };

    #[test]
    fn panic_becomes_result_and_breaks_store() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Arc::into_raw(Arc::new(hikv_store::new(Store::open(dir.path()).expect("it opens")))).cast_mut();
        // SAFETY: the handle is live until it is closed.
        unsafe {
            assert_eq!(hikv_contains(store, ptr::null_mut(), KEY), code::ABSENT);
            let panicked: c_int = call::on(super::store_of(store), |_| panic!("number {}", 7));
            assert_eq!(panicked, code::PANIC);
            let mut text = [0u8; 100];
            let len = hikv_last_error(text.as_mut_ptr().cast(), text.len());
            assert_eq!(&text[..len], b"a fault of hikv: number 7; close the store and open it again");
            assert_eq!(hikv_contains(store, ptr::null_mut(), KEY), code::PANIC);
            assert_eq!(hikv_close(store), code::OK);
        }
    }

    /// Changes a key, and overlooks that a call panics.
    unsafe extern "C" fn careless(tx: *mut hikv_tx, store: *mut c_void) -> c_int {
        // SAFETY: the transaction and the store are live.
        unsafe {
            assert_eq!(hikv_tx_put(tx, ptr::null_mut(), KEY, KEY), code::OK);
            let panicked = call::on(super::store_of(store.cast()), |_| panic!("number {}", 8));
            assert_eq!(panicked, code::PANIC);
        }
        code::OK
    }

    #[test]
    fn panicking_body_is_not_committed() {
        let dir = tempfile::tempdir().expect("a directory");
        let opened = || Store::open(dir.path()).expect("it opens");
        let store = Arc::into_raw(Arc::new(hikv_store::new(opened()))).cast_mut();
        // SAFETY: the handle is live until it is closed.
        unsafe {
            assert_eq!(hikv_transact(store, ptr::null(), Some(careless), store.cast()), code::PANIC);
            assert_eq!(hikv_close(store), code::OK);
        }
        assert!(!opened().contains("").expect("it is read"));
    }
}
