//! A script that every engine with compaction is crashed by.

use crate::{Op, Script};

/// Eight of these fill a chunk of slots.
const LARGE_BYTES: usize = 30_000;

/// Of two chunks one is nearly empty: its item moves into a gap of the other. Then the space that was given back is used again, and there
/// is more to move.
pub fn evacuating() -> Script {
    let key = |number: u8| vec![b'k', number];
    let large = |number: u8, fill: u8| Op::Put(key(number), vec![fill; LARGE_BYTES]);
    let setup = (0..9).map(|number| large(number, 1)).chain([Op::Delete(key(2))]);
    let first = [Op::Compact, Op::Put(key(8), b"replaced".to_vec()), large(2, 2), large(9, 3), Op::Delete(key(0))];
    let then = [Op::Compact, Op::Reopen, large(0, 4), Op::Delete(key(9))];
    Script::after(70, setup, first.into_iter().chain(then))
}
