//! HiKV compacted, and crashed at every step of the compaction and of the operations that reuse the freed space.

use pmem_sim::Model;
use testkit::{Op, Script, Settings};

use crate::scripts::{delete, put};
use crate::subject::{Crashed, InOrder};
use crate::{caught, passes, settings, sparing};

/// Eight values of this size fill a chunk of slots.
const LARGE_BYTES: usize = 30_000;
/// A value of this size gets a chunk of its own.
const EXTENT_BYTES: usize = 300_000;

fn key(number: u8) -> [u8; 2] {
    [b'k', number]
}

fn large(number: u8, fill: u8) -> Op {
    put(key(number), [fill; LARGE_BYTES])
}

/// Of two chunks, one is nearly empty: its item moves into a gap of the other. Then the freed space is used again, and
/// more items have to be moved.
fn evacuated() -> Script {
    let setup = (0..9).map(|number| large(number, 1)).chain([delete(key(2))]);
    let ops = [
        Op::Compact,
        put(key(8), "replaced"),
        large(2, 2),
        large(9, 3),
        delete(key(0)),
        Op::Compact,
        Op::Reopen,
        large(0, 4),
        delete(key(9)),
    ];
    Script::after(70, setup, ops)
}

/// Runs of several chunks that are punched, carved and joined again.
fn runs() -> Script {
    let extent = |name: &str, fill: u8| put(name, vec![fill; EXTENT_BYTES]);
    let setup = [extent("a", 1), extent("b", 2), put("c", "3"), extent("d", 4), delete("a"), delete("b")];
    let ops = [Op::Compact, large(1, 5), delete("d"), Op::Compact, extent("a", 6), Op::Compact, Op::Clear, Op::Compact];
    Script::after(71, setup, ops.into_iter().chain([extent("e", 7), Op::Reopen, put("f", "8")]))
}

/// A full medium: discarded space cannot be allocated again, and items can only be copied into gaps.
fn full() -> Script {
    let setup = (0..9).map(|number| large(number, 1)).chain([delete(key(2)), delete(key(3))]);
    let ops = [
        Op::Full,
        Op::Compact,
        large(2, 2),
        large(3, 3),
        put("small", "4"),
        Op::Compact,
        Op::NotFull,
        put("small", "5"),
        large(9, 6),
    ];
    Script::after(72, setup, ops)
}

/// The ordered index follows moved items, also after more writes.
fn in_order() -> Script {
    let setup = (0..9).map(|number| large(number, 1)).chain([delete(key(2)), Op::Scan]);
    Script::after(73, setup, [Op::Compact, Op::Scan, delete(key(8)), large(2, 2), Op::Scan, Op::Compact, Op::Scan])
}

#[test]
fn compactions_survive() {
    let counts = passes::<Crashed>(&[evacuated(), runs()], &sparing());
    assert!(counts.reach(300, 300, 0), "{counts:?}");
}

#[test]
fn compaction_without_space_loses_nothing() {
    passes::<Crashed>(&[full()], &sparing());
}

#[test]
fn moved_items_stay_in_order() {
    passes::<InOrder>(&[in_order()], &sparing());
}

#[test]
fn broken_compactions_are_caught() {
    for canary in [
        heap::canary::PUNCH_BEFORE_HEADER,
        heap::canary::PUNCHED_RUN_NOT_BACKED,
        engine_hikv::canary::MOVE_FREES_EARLY,
        engine_hikv::canary::ITEM_NOT_ORDERED,
    ] {
        caught(canary, Model::Line, &[evacuated(), runs()], sparing());
    }
}

#[test]
#[ignore = "many minutes"]
fn compactions_survive_for_long() {
    let settings = Settings { images_per_step_max: 12, ..settings() };
    passes::<Crashed>(&[evacuated(), runs(), full()], &settings);
    passes::<InOrder>(&[evacuated(), runs(), full(), in_order()], &settings);
}
