//! The smallest correct persistent store: two tables of entries, one of them live, and cells for items.
//!
//! The store follows the protocols of the real engines (item, order, publish with a mark, commit, settle) and breaks a
//! rule where a canary requests it, so that tests can show that the explorer catches each bug.
//!
//! ```text
//! 0      root: MAGIC + live table, FRESH   64  seed
//! 4096   table 0, SLOT_COUNT x { signature, position }      5120  table 1
//! 8192   cells of 128 bytes: { key length u16, value length u16, checksum u32, 0 } key value
//! ```
//!
//! A writer holds the lock from the reservation of a cell to the commit, and releases the lock before waiting.

mod ops;

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pmem::{Bytes, Checksum, Level, Medium, MediumError, Offset, Persist, Space, Taken};
use pmem_sim::Sim;
use testkit::Failure;

const ROOT: Offset = Offset(0);
const SEED: Offset = Offset(64);
const TABLES: Offset = Offset(4096);
const SLOT_COUNT: u64 = 64;
const TABLE_BYTES: u64 = SLOT_COUNT * 16;
const CELLS: Offset = Offset(8192);
const CELL_BYTES: u64 = 128;
const HEADER_BYTES: u64 = 16;
/// Four cells, so that scripts cause growth often.
const GROWTH_BYTES: u64 = 4 * CELL_BYTES;

/// The smallest region: no cell fits, so the first put grows it.
pub(crate) const REGION_BYTES: u64 = CELLS.0;

const MAGIC: u64 = 0x510_7AB1E << 8;
const HASH_SEED: u64 = 0x5EED;
/// Visible, but not yet known to be durable.
const FRESH: u64 = 1 << 48;
const DELETED: u64 = 1 << 49;
const OFFSET: u64 = FRESH - 1;

/// An entry of two words; the second one is the commit point.
#[derive(Clone, Copy)]
struct Slot {
    signature: Offset,
    position: Offset,
}

/// The store; see the module's head.
pub(crate) struct SlotTable {
    sim: Sim,
    /// Free cells; the last one is used first.
    free: Mutex<Vec<u64>>,
    /// Writers that have published and whose wait has not ended.
    under_way: AtomicUsize,
}

impl SlotTable {
    /// Formats. Steps, with the state that a crash after each leaves: 1 root zero: no store. 2 table and seed durable:
    /// no store. 3 root: an empty store.
    fn make(sim: Sim) -> SlotTable {
        let table = SlotTable { sim, free: Mutex::default(), under_way: AtomicUsize::new(0) };
        table.set_word(ROOT, 0);
        table.sync();
        if table.sim.breaks(heap::canary::FORMAT_MARK_EARLY) {
            table.publish_root(0);
        }
        table.zero(0);
        table.set_word(SEED, HASH_SEED);
        table.sim.order();
        table.publish_root(0);
        table.find_free();
        table
    }

    /// Recovers: deleted entries become empty, and marks are cleared. Both may be repeated.
    fn recover(sim: Sim) -> Result<SlotTable, Failure> {
        let table = SlotTable { sim, free: Mutex::default(), under_way: AtomicUsize::new(0) };
        if table.word(ROOT) & !(FRESH | 1) != MAGIC {
            return Err(Failure::Unfinished);
        }
        if table.word(SEED) != HASH_SEED {
            return Err(Failure::Other("the seed is damaged".into()));
        }
        table.set_word(ROOT, table.word(ROOT) & !FRESH);
        for slot in table.slots() {
            let position = table.word(slot.position);
            table.set_word(slot.position, if position & DELETED == 0 { position & !FRESH } else { 0 });
        }
        table.sync();
        table.find_free();
        Ok(table)
    }

    fn find_free(&self) {
        let live: Vec<u64> = self.slots().map(|slot| self.word(slot.position) & OFFSET).collect();
        let cells = (CELLS.0..self.sim.len_bytes()).step_by(CELL_BYTES as usize);
        *self.free.lock() = cells.filter(|cell| !live.contains(cell)).collect();
    }

    fn reserve(&self, free: &mut Vec<u64>) -> Result<u64, MediumError> {
        if free.is_empty() {
            let end = self.sim.len_bytes();
            self.sim.grow(end + GROWTH_BYTES)?;
            free.extend((end..end + GROWTH_BYTES).step_by(CELL_BYTES as usize));
        }
        Ok(free.pop().expect("there are cells after a growth"))
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        let table = TABLES.plus((self.settled(ROOT) & 1) * TABLE_BYTES);
        let slot = move |i: u64| Slot { signature: table.plus(i * 16), position: table.plus(i * 16 + 8) };
        (0..SLOT_COUNT).map(slot)
    }

    /// Returns the live entry of this key and its settled position; settles deleted entries of this key on the way.
    fn find(&self, key: &[u8]) -> Option<(Slot, u64)> {
        let has_key = |slot: &Slot| {
            let position = self.word(slot.position);
            position & OFFSET != 0
                && self.word(slot.signature) == signature(key)
                && self.item(position).is_ok_and(|(found, _)| found == key)
        };
        let live_or_not = self.slots().filter(has_key).map(|slot| (slot, self.settled(slot.position)));
        live_or_not.filter(|(_, position)| position & DELETED == 0).last()
    }

    fn find_empty(&self) -> Option<Slot> {
        self.slots().find(|slot| self.word(slot.position) & OFFSET == 0)
    }

    /// Returns the key and value at `position`, or the damage found.
    fn item(&self, position: u64) -> Result<(&[u8], &[u8]), String> {
        let at = Offset(position & OFFSET);
        // SAFETY: cells are private until published, and are used again only after no entry reaches them; tests read
        // and write from one thread.
        let cell = unsafe { self.sim.bytes(at.span(CELL_BYTES)) }.map_err(|error| error.to_string())?;
        let (header, body) = cell.split_at(HEADER_BYTES as usize);
        let short = |i: usize| usize::from(u16::from_le_bytes([header[i], header[i + 1]]));
        let (key_bytes, value_bytes) = (short(0), short(2));
        let item = body.get(..key_bytes + value_bytes).ok_or("an item longer than its cell")?;
        if header[4..8] != checksum(&header[..4], item).to_le_bytes() {
            return Err(format!("the checksum at {:#x} is wrong", at.0));
        }
        Ok(item.split_at(key_bytes))
    }

    fn write_item(&self, cell: u64, key: &[u8], value: &[u8]) {
        let lens = [(key.len() as u16).to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
        let check = checksum(&lens, &[key, value].concat()).to_le_bytes();
        let parts = [&lens[..], &check, &[0; 8], key, value];
        // SAFETY: the cell was reserved by this writer.
        unsafe {
            match self.sim.breaks(items::canary::ITEM_NOT_FLUSHED) {
                true => self.sim.write(Offset(cell), &parts.concat()),
                false => self.sim.stream(Offset(cell), &parts),
            }
        }
        if !self.sim.breaks(engine_hikv::canary::ITEM_NOT_ORDERED) {
            self.sim.order();
        }
    }

    /// Returns the word without its mark after making it durable; readers may only act on such a word.
    fn settled(&self, at: Offset) -> u64 {
        let word = self.word(at);
        if word & FRESH != 0 && !self.sim.breaks(index::canary::UNSETTLED_READ) {
            self.sim.flush(at.span(8));
            self.sync();
            let _ = self.sim.compare_exchange(at, word, word & !FRESH);
        }
        word & !FRESH
    }

    fn publish_root(&self, table: u64) {
        assert_eq!(self.sim.publish(&[(ROOT, MAGIC | table | FRESH)], table), Taken::Yes);
        self.sync();
        let _ = self.sim.compare_exchange(ROOT, MAGIC | table | FRESH, MAGIC | table);
    }

    fn zero(&self, table: u64) {
        let at = TABLES.plus(table * TABLE_BYTES);
        // SAFETY: the table is not live, so no thread reads it.
        unsafe { self.sim.write(at, &[0; TABLE_BYTES as usize]) };
        self.sim.flush(at.span(TABLE_BYTES));
    }

    fn set_word(&self, at: Offset, word: u64) {
        if self.word(at) != word {
            self.sim.store(at, word, Ordering::Release);
            self.sim.flush(at.span(8));
        }
    }

    fn word(&self, at: Offset) -> u64 {
        self.sim.load(at, Ordering::Acquire)
    }

    fn sync(&self) {
        let ticket = self.sim.commit(Level::Strongest);
        self.sim.wait(ticket).expect("a simulated wait succeeds");
    }
}

fn signature(key: &[u8]) -> u64 {
    u64::from(pmem::crc32c(0, key)) | 1 << 32
}

fn checksum(lens: &[u8], item: &[u8]) -> u32 {
    Checksum::default().update(lens).update(item).value()
}
