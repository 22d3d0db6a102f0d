//! The loaded scripts, by their hashes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lua_scripts::{Hash, Script};
use parking_lot::Mutex;

use crate::errors::Refusal;

/// Maximum bytes of all scripts. If a script exceeds it, all scripts that were only executed are forgotten.
const SCRIPT_BYTES_MAX: usize = 64 << 20;
/// A script's share of the map.
const ENTRY_BYTES: usize = 128;

struct Loaded {
    script: Arc<Script>,
    /// By SCRIPT LOAD: only SCRIPT FLUSH forgets it.
    is_kept: bool,
}

#[derive(Default)]
struct Inner {
    scripts: HashMap<Hash, Loaded>,
    len_bytes: usize,
}

/// The loaded scripts.
#[derive(Default)]
pub(crate) struct Cache {
    inner: Mutex<Inner>,
    /// Increases when scripts are forgotten.
    generation: AtomicU64,
}

fn size_of(script: &Script) -> usize {
    script.text.len() + ENTRY_BYTES
}

impl Cache {
    /// Returns the script with this hash.
    pub(crate) fn get(&self, hash: &Hash) -> Option<Arc<Script>> {
        self.inner.lock().scripts.get(hash).map(|loaded| Arc::clone(&loaded.script))
    }

    /// Adds a script.
    ///
    /// # Errors
    /// The scripts that must be kept exceed the limit.
    pub(crate) fn add(&self, script: Script, is_kept: bool) -> Result<Arc<Script>, Refusal> {
        let mut inner = self.inner.lock();
        if let Some(loaded) = inner.scripts.get_mut(&script.hash) {
            loaded.is_kept |= is_kept;
            return Ok(Arc::clone(&loaded.script));
        }
        let added_bytes = size_of(&script);
        let script = Arc::new(script);
        if inner.len_bytes + added_bytes > SCRIPT_BYTES_MAX {
            let count = inner.scripts.len();
            inner.scripts.retain(|_, loaded| loaded.is_kept);
            inner.len_bytes = inner.scripts.values().map(|loaded| size_of(&loaded.script)).sum();
            // Otherwise all interpreters would be created again for nothing.
            if inner.scripts.len() < count {
                self.generation.fetch_add(1, Ordering::SeqCst);
            }
        }
        if inner.len_bytes + added_bytes > SCRIPT_BYTES_MAX {
            // A script that is only executed need not be remembered.
            let refusal = || Refusal::Message("the loaded scripts exceed their memory limit; use SCRIPT FLUSH".into());
            return if is_kept { Err(refusal()) } else { Ok(script) };
        }
        inner.len_bytes += added_bytes;
        inner.scripts.insert(script.hash, Loaded { script: Arc::clone(&script), is_kept });
        Ok(script)
    }

    /// Forgets all scripts.
    pub(crate) fn clear(&self) {
        *self.inner.lock() = Inner::default();
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Returns the number of scripts and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.scripts.len(), inner.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize, len: usize) -> Script {
        let text = format!("{number}");
        Script::parse((text.clone() + &" ".repeat(len - text.len())).as_bytes()).expect("a script")
    }

    #[test]
    fn executed_scripts_make_room_for_loaded_ones() {
        const BYTES: usize = 16 << 20;
        let cache = Cache::default();
        let loaded: Vec<Hash> =
            (0..2).map(|number| cache.add(script(number, BYTES), true).expect("room").hash).collect();
        let executed = cache.add(script(2, BYTES), false).expect("room").hash;
        assert!(cache.get(&executed).is_some());
        let third = cache.add(script(3, BYTES), true).expect("room").hash;
        assert!(cache.get(&executed).is_none() && cache.get(&third).is_some());
        assert!(loaded.iter().all(|hash| cache.get(hash).is_some()));
        assert!(cache.add(script(4, BYTES), true).is_err());
        let generation = cache.generation();
        let run_once = cache.add(script(5, BYTES), false).expect("it runs").hash;
        assert!(cache.get(&run_once).is_none());
        assert_eq!(cache.generation(), generation, "no script was forgotten");
        assert_eq!(cache.size(), (3, 3 * (BYTES + ENTRY_BYTES)));
        cache.clear();
        assert_eq!(cache.size(), (0, 0));
    }
}
