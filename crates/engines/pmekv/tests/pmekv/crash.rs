//! Scripts, crashed at every step, and again while they recover.

use pmem_sim::{Model, Sim};
use testkit::{Crashed, Op, Operations, Script, Settings, Shape, Subject, Visitor, conformance, explore};

use crate::subject::{OfPmekv, put, shape};

pub(crate) fn settings() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways];
    Settings { region_bytes: 1 << 20, visitors, images_per_op_max: 12, nested_images_max: 2, ..Settings::default() }
}

/// Keys that come and go in the same room, over segments, checkpoints and openings.
pub(crate) fn churn() -> Script {
    let first = (0..10).map(|i| put(["a", "b", "c"][i % 3], i as u8));
    let then = [Op::Delete("a".into()), put("d", 20), Op::Reopen, put("a", 21), put("b", 22), Op::Delete("d".into())];
    let last = (0..6).map(|i| put(["c", "d"][i % 2], 30 + i as u8));
    Script::fresh(1, first.chain(then).chain(last).chain([Op::Reopen]))
}

#[test]
fn it_answers_like_a_map() {
    let new = || {
        Box::new(Crashed::<OfPmekv>::format(Sim::new(0, Model::Line)).expect("there is room")) as Box<dyn Operations>
    };
    let shape = Shape { reopens: false, ..shape(500) };
    let compared = conformance(new, &shape, 0..4);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 2000);
}

#[test]
fn it_survives_every_crash() {
    let scripts = [churn(), Script::seeded(2, &shape(12))];
    let counts = explore::<Crashed<OfPmekv>>(&scripts, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(80, 50, 50), "{counts:?}");
}
