//! HiKV closed cleanly, and crashed at every step of the close and of the operations after it.

use pmem_sim::Model;
use testkit::{Op, Script, Settings, Shape, Visitor};

use crate::scripts::{delete, put};
use crate::subject::{Crashed, InOrder};
use crate::{caught, passes, settings};

/// Larger than the largest size class: an extent, which may use the space of an old image.
const EXTENT_BYTES: usize = 300_000;

/// Changes of every kind before and after images; an image in the space of an older one; consecutive closes without a
/// change.
pub(crate) fn closed_and_changed() -> Script {
    let ops = [
        put("a", "1"),
        Op::Reopen,
        put("b", "2"),
        Op::Reopen,
        delete("a"),
        Op::Reopen,
        Op::Reopen,
        put("b", "3"),
        put("c", ""),
        Op::Reopen,
        Op::Clear,
        Op::Reopen,
        put("a", "4"),
    ];
    Script::fresh(60, ops)
}

/// The next large item uses the extent that an image gives up.
fn extents() -> Script {
    let large = |fill: u8| vec![fill; EXTENT_BYTES];
    let ops = [Op::Reopen, put("a", large(1)), Op::Reopen, put("a", large(2)), delete("b"), Op::Reopen, delete("a")];
    Script::after(61, [put("b", "1")], ops)
}

/// No image is written if there is no space for it.
fn full() -> Script {
    let large = |fill: u8| vec![fill; EXTENT_BYTES];
    let ops = (0..5).map(|i| put([b'k', i], large(i)));
    Script::after(62, [Op::Full], ops.chain([Op::Reopen, delete([b'k', 0]), Op::Reopen, put("a", "1")]))
}

fn seeded() -> impl Iterator<Item = Script> {
    let shape = Shape { clears: true, reopens: true, ..Shape::small(14) };
    (63..65).map(move |seed| Script::seeded(seed, &shape))
}

/// Images that contain the keys' order: with a change since, without one, and without a scan after the opening.
fn in_order() -> Script {
    let ops = [
        put("b", "1"),
        put("a", "2"),
        Op::Scan,
        Op::Reopen,
        Op::Scan,
        put("c", "3"),
        delete("b"),
        Op::Reopen,
        Op::Scan,
        Op::Reopen,
        put("b", "4"),
        Op::Reopen,
        Op::Scan,
    ];
    Script::fresh(66, ops)
}

#[test]
fn clean_close_keeps_key_order() {
    let counts = passes::<InOrder>(&[in_order(), extents()], &Settings { images_per_step_max: 12, ..settings() });
    assert!(counts.reach(100, 0, 0), "{counts:?}");
}

#[test]
fn clean_closes_survive() {
    let scripts: Vec<_> = [closed_and_changed(), extents(), full()].into_iter().chain(seeded()).collect();
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter];
    let counts = passes::<Crashed>(
        &scripts,
        &Settings { visitors, images_per_step_max: 12, nested_images_max: 2, ..settings() },
    );
    assert!(counts.reach(500, 0, 0), "{counts:?}");
}

#[test]
fn an_image_that_stays_named_is_caught() {
    caught(heap::canary::CLEAN_FLAG_LEFT_SET, Model::Line, &[closed_and_changed()], settings());
}

/// Only few of the many mixtures of two images, one written over the other, are intact.
#[test]
fn stale_image_is_caught() {
    let thorough = || Settings { images_per_step_max: 60, ..settings() };
    for canary in [engine_hikv::canary::STALE_IMAGE, engine_hikv::canary::TORN_IMAGE] {
        caught(canary, Model::Line, &[closed_and_changed()], thorough());
    }
}
