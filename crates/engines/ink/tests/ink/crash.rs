//! What the engine adds to the tree, crashed: keys that expire, writes that depend on what a key holds, readers and a second
//! writer in between. The tree's own scripts are `pbtree`'s.

use pmem_sim::{Model, Sim};
use testkit::{Crashed, Op, Operations, Script, Settings, Shape, Subject, Visitor, conformance, explore};

use crate::subject::OfInk;

fn settings() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways];
    Settings { region_bytes: 1 << 20, visitors, images_per_op_max: 20, nested_images_max: 1, ..Settings::default() }
}

fn shape(op_count: usize) -> Shape {
    Shape { swaps: true, scans: true, clears: true, reopens: true, multi_puts: true, ..Shape::small(op_count) }
}

fn expiring() -> Script {
    let until = |key: &str, at_ms| Op::PutExpiring(key.into(), vec![b'v'; 12], at_ms);
    let expire = |key: &str, at_ms| Op::Expire(key.into(), at_ms);
    let first = [until("a", 10), until("b", 20), expire("b", Some(30)), expire("c", Some(5)), expire("a", None)];
    let then = [Op::At(35), until("b", 50), Op::Settle, expire("a", Some(40)), Op::At(45), Op::Settle, Op::Reopen];
    Script::fresh(1, first.into_iter().chain(then))
}

#[test]
fn it_answers_like_a_map() {
    fn new<const IN_PLACE: bool>() -> Box<dyn Operations> {
        Box::new(Crashed::<OfInk<IN_PLACE>>::format(Sim::new(0, Model::Line)).expect("there is room"))
    }
    let shape = Shape { reopens: false, ..shape(500) };
    for make in [new::<false>, new::<true>] {
        let compared = conformance(make, &shape, 0..4);
        assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 2000);
    }
}

#[test]
fn it_survives_every_crash() {
    let scripts = [expiring(), Script::seeded(2, &shape(10))];
    let counts = explore::<Crashed<OfInk>>(&scripts, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(200, 100, 50), "{counts:?}");
    let in_place = [Script::seeded(3, &shape(8))];
    explore::<Crashed<OfInk<true>>>(&in_place, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
}
