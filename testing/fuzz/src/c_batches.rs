//! Buffers of operations, as C programs pass them to `hikv_write`.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, ptr};

use capi::{
    hikv_clear, hikv_close, hikv_get, hikv_open, hikv_options, hikv_options_init, hikv_slice, hikv_store, hikv_write,
};
use tempfile::TempDir;

use crate::served::STORES_VARIABLE;

const OK: c_int = 0;
const ABSENT: c_int = 1;
const OPTION: c_int = -6;
const UNMET: c_int = -12;
/// The level at which no write waits for a disk.
const PROCESS: c_int = 1;
const NO_SUCH_TREE: c_int = -23;

/// A store that a C program has opened.
struct Opened {
    store: *mut hikv_store,
    _dir: TempDir,
}

impl Opened {
    fn new() -> Opened {
        let place = env::var_os(STORES_VARIABLE).map_or_else(env::temp_dir, Into::into);
        let dir = tempfile::tempdir_in(place).expect("a directory");
        let (path, mut store) = (dir.path().to_str().expect("UTF-8").to_owned(), ptr::null_mut());
        let mut options = MaybeUninit::uninit();
        // SAFETY: the options are filled in; the path is valid for its length, and there is a place for the store.
        let result = unsafe {
            hikv_options_init(options.as_mut_ptr(), size_of::<hikv_options>());
            let options = hikv_options { durability: PROCESS, ..options.assume_init() };
            hikv_open(path.as_ptr().cast(), path.len(), &raw const options, &raw mut store)
        };
        assert_eq!(result, OK);
        Opened { store, _dir: dir }
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (mut value, mut len) = (vec![0; 1 << 16], 0);
        let out = value.as_mut_ptr().cast();
        // SAFETY: the store is open; key and buffer are valid for their lengths.
        let result = unsafe { hikv_get(self.store, ptr::null_mut(), slice(key), out, value.len(), &raw mut len) };
        value.truncate(len);
        assert!(result == OK || result == ABSENT);
        (result == OK).then_some(value)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the store is open, and has no children.
        unsafe { hikv_close(self.store) };
    }
}

fn slice(bytes: &[u8]) -> hikv_slice {
    hikv_slice { data: bytes.as_ptr().cast::<c_void>(), len: bytes.len() }
}

thread_local! {
    static OPENED: Opened = Opened::new();
}

/// The contents after a buffer, by another reader of buffers, and the result.
fn expected(mut rest: &[u8]) -> (c_int, BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let (mut items, mut result) = (BTreeMap::new(), OK);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
    while let [kind, lengths @ ..] = rest {
        let Some((lengths, behind)) = lengths.split_first_chunk::<8>() else { return (OPTION, BTreeMap::new()) };
        let key_len = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
        let value_len = u32::from_le_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]) as usize;
        let has_expiry = *kind == 3;
        let is_valid = match kind {
            1 | 3 => true,
            2 | 16 | 32 => value_len == 0,
            17 => value_len == 16,
            _ => false,
        };
        let total = key_len + value_len + if has_expiry { 8 } else { 0 };
        if !is_valid || behind.len() < total {
            // A tree is looked for as soon as its name is read.
            return (OPTION, BTreeMap::new());
        }
        let (key, value) = behind[..total].split_at(key_len);
        match kind {
            1 => _ = items.insert(key.to_vec(), Some(value.to_vec())),
            2 => _ = items.insert(key.to_vec(), None),
            3 => {
                let (expiry, value) = value.split_first_chunk::<8>().expect("it is there");
                let is_past = u64::from_le_bytes(*expiry) <= now_ms;
                items.insert(key.to_vec(), (!is_past).then(|| value.to_vec()));
            }
            // All keys are absent before the batch.
            16 => {}
            17 => result = UNMET,
            _ => return (NO_SUCH_TREE, BTreeMap::new()),
        }
        rest = &behind[total..];
    }
    if result == OK { (OK, items) } else { (result, BTreeMap::new()) }
}

/// Any buffer is applied as a whole or refused, is not read beyond its end, and says which it was.
pub fn c_batches(data: &[u8]) {
    OPENED.with(|opened| {
        // A copy of the exact length, so that the address sanitizer sees a byte too many.
        let ops: Box<[u8]> = data.into();
        let (wanted, items) = expected(data);
        // SAFETY: the store is open; the buffer is valid for its length.
        let result = unsafe {
            assert_eq!(hikv_clear(opened.store, ptr::null_mut()), OK);
            hikv_write(opened.store, ptr::null_mut(), ops.as_ptr().cast(), ops.len(), ptr::null_mut())
        };
        assert_eq!(result, wanted);
        for (key, value) in items {
            assert_eq!(opened.get(&key), value, "key '{}'", key.escape_ascii());
        }
    });
}
