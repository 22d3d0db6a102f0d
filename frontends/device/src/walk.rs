//! List and Range, one piece per turn. However many keys in between are too long for the command set, and however large
//! the host's buffer is, other connections get their turns. The connection's next command waits for the end of the
//! list. If an engine builds the order on first use, the list waits until the store's threads have built it, without
//! blocking the loop.

use std::ops::ControlFlow;

use hikv::{Error, Ordered};
use nvme::{Key, ListWriter, RangeWriter, Status};

use crate::apply::{status_of, status_of_read};
use crate::limits;

/// A list that is being written.
pub(crate) struct Walk {
    pub(crate) id: u16,
    /// The key to continue from.
    from: Vec<u8>,
    list: List,
}

enum List {
    Keys(ListWriter),
    Items(RangeWriter),
}

/// The outcome of one step.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// It continues in another turn.
    More,
    /// It continues when the order of keys is ready.
    Later,
    /// Finished: the result, and the buffer size that the next item alone needs, or 0.
    Done(Vec<u8>, u64),
}

impl Walk {
    /// Creates a list of the keys from `from` on, for a buffer of `buffer_bytes`.
    pub(crate) fn of_keys(id: u16, from: &Key, buffer_bytes: usize) -> Walk {
        Walk { id, from: from.as_bytes().to_vec(), list: List::Keys(ListWriter::new(buffer_bytes)) }
    }

    /// Creates a list of the keys and values from `from` on, for a buffer of `buffer_bytes`.
    pub(crate) fn of_items(id: u16, from: &Key, buffer_bytes: usize) -> Walk {
        Walk { id, from: from.as_bytes().to_vec(), list: List::Items(RangeWriter::new(buffer_bytes)) }
    }

    /// Adds items whose keys the command set allows, until the buffer is full or this turn's limit is reached. Longer
    /// keys, which other users of the store may have written, are skipped, all keys with the same prefix together.
    pub(crate) fn step(&mut self, ordered: &Ordered) -> Result<Piece, Status> {
        let (mut seek_count, mut item_count, mut value_bytes) = (0, 0, 0);
        loop {
            let list = &mut self.list;
            let scanned = ordered.scan(&self.from, |key, value| {
                if item_count >= limits::WALK_ITEM_COUNT_MAX || value_bytes >= limits::OUTPUT_BYTES_MAX {
                    return ControlFlow::Break(Stop::Turn(key.to_vec()));
                }
                if key.len() > Key::BYTES_MAX {
                    return ControlFlow::Break(Stop::Long(past_all_that_begin_with(&key[..Key::BYTES_MAX])));
                }
                (item_count, value_bytes) = (item_count + 1, value_bytes + list.bytes_of(value));
                list.push(key, value).map_or(ControlFlow::Continue(()), |next| ControlFlow::Break(Stop::Full(next)))
            });
            let stop = match scanned {
                Err(Error::NotOrderedYet { .. }) => return Ok(Piece::Later),
                scanned => scanned.map_err(|error| self.list.status_of(&error))?,
            };
            match stop {
                None | Some(Stop::Long(None)) => return Ok(self.end(0)),
                Some(Stop::Full(next_bytes)) => return Ok(self.end(next_bytes)),
                Some(Stop::Turn(next)) => {
                    self.from = next;
                    return Ok(Piece::More);
                }
                Some(Stop::Long(Some(next))) => self.from = next,
            }
            seek_count += 1;
            if seek_count >= limits::WALK_SEEK_COUNT_MAX {
                return Ok(Piece::More);
            }
        }
    }

    fn end(&mut self, next_bytes: u64) -> Piece {
        Piece::Done(
            match &mut self.list {
                List::Keys(list) => list.take(),
                List::Items(list) => list.take(),
            },
            next_bytes,
        )
    }
}

/// Why a scan stops.
enum Stop {
    /// The turn's limit is reached; with the key to continue from.
    Turn(Vec<u8>),
    /// A key is too long; with the key to continue from, if there is one.
    Long(Option<Vec<u8>>),
    /// The next item does not fit; in a range, with the buffer size that it alone needs.
    Full(u64),
}

impl List {
    /// Returns the buffer size that the item alone needs, if it does not fit.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Option<u64> {
        match self {
            // The empty key is not allowed by the command set either.
            _ if key.is_empty() => None,
            List::Keys(list) => (!list.push(key)).then_some(0),
            List::Items(list) => (!list.push(key, value)).then(|| RangeWriter::alone_bytes(key, value) as u64),
        }
    }

    /// Returns the status of a failed walk: a list of items reads values.
    fn status_of(&self, error: &Error) -> Status {
        if matches!(self, List::Items(_)) { status_of_read(error) } else { status_of(error) }
    }

    fn bytes_of(&self, value: &[u8]) -> usize {
        if matches!(self, List::Items(_)) { value.len() } else { 0 }
    }
}

/// Returns the smallest key greater than all keys with the prefix `start`, if there is one.
fn past_all_that_begin_with(start: &[u8]) -> Option<Vec<u8>> {
    let len = start.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut past = start[..len].to_vec();
    past[len - 1] += 1;
    Some(past)
}

#[cfg(test)]
mod tests {
    use hikv::{Durability, EngineKind, Options};
    use nvme::Keys;

    use super::*;

    /// Enough keys that are too long, each with a different prefix, to block a loop's other connections for long.
    #[test]
    fn turn_skips_bounded_number_of_long_keys() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().engine(EngineKind::Pmekv).durability(Durability::Process);
        let store = options.open(dir.path()).expect("a store");
        let count = limits::WALK_SEEK_COUNT_MAX * 3;
        let long = |number: usize| format!("{number:016} and more");
        (0..count).for_each(|number| store.put(long(number), "").expect("it stores"));
        store.put("last", "").expect("it stores");
        let ordered = store.ordered().expect("it has order");
        let mut walk = Walk::of_keys(1, &Key::default(), 1 << 20);
        let mut turn_count = 1;
        let keys = loop {
            match walk.step(&ordered).expect("it reads") {
                Piece::More => turn_count += 1,
                Piece::Later => panic!("its order is native"),
                Piece::Done(keys, _) => break keys,
            }
        };
        assert_eq!(Keys::new(&keys).collect::<Vec<_>>(), [b"last"]);
        assert_eq!(turn_count, 4);
    }

    /// An engine that builds the order on first use, and a store without threads to build it.
    #[test]
    fn walk_does_not_wait_for_order() {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let options = Options::new().engine(EngineKind::HiKv).durability(Durability::Process).background(false);
        let store = options.open(dir.path()).expect("a store");
        (0..100).for_each(|number| store.put(format!("{number:03}"), "v").expect("it stores"));
        let ordered = store.ordered().expect("it can have order");
        let mut walk = Walk::of_keys(1, &Key::default(), 1 << 20);
        let refusing = ordered.clone().fail_if_not_ready();
        (0..3).for_each(|_| assert_eq!(walk.step(&refusing).expect("it answers"), Piece::Later));
        ordered.wait_until_ready(|_| {}).expect("it is made");
        let Piece::Done(keys, 0) = walk.step(&refusing).expect("it reads") else { panic!("it is not done") };
        assert_eq!(Keys::new(&keys).count(), 100);
    }

    #[test]
    fn turn_shows_bounded_number_of_items() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().engine(EngineKind::Pmekv).durability(Durability::Process);
        let store = options.open(dir.path()).expect("a store");
        let count = limits::WALK_ITEM_COUNT_MAX + 10;
        (0..count).for_each(|number| store.put(format!("{number:08}"), "").expect("it stores"));
        let ordered = store.ordered().expect("it has order");
        for mut walk in [Walk::of_keys(1, &Key::default(), 1 << 20), Walk::of_items(1, &Key::default(), 1 << 20)] {
            assert_eq!(walk.step(&ordered).expect("it reads"), Piece::More);
            let Piece::Done(bytes, 0) = walk.step(&ordered).expect("it reads") else { panic!("it is not done") };
            assert_eq!(u32::from_le_bytes(*bytes.first_chunk().expect("a count")) as usize, count);
        }
    }
}
