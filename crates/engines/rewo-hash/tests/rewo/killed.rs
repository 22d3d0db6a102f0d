//! Processes that are killed during a batch, a split and a clear; then the power fails while the next process runs.

use pmem_sim::Model;
use testkit::{Crashed, End, Op, Script, Settings, Visitor, explore};

use crate::crash::batch;
use crate::splits::splitting;
use crate::subject::OfRewoHash;

fn kills(nested_images_max: usize) -> Settings {
    Settings {
        end: End::Kill,
        models: vec![Model::Line],
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 8,
        images_per_op_max: 200,
        nested_images_max,
        ..Settings::default()
    }
}

fn survives(script: Script) {
    let counts =
        explore::<Crashed<OfRewoHash>>(&[script], &kills(24)).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(50, 10, 0), "{counts:?}");
}

#[test]
fn batch_survives_kill() {
    survives(batch());
}

#[test]
fn split_survives_kill() {
    survives(splitting());
}

#[test]
fn clear_survives_kill() {
    let put = |key: &str| Op::Put(key.into(), vec![1; 5]);
    survives(Script::fresh(3, [put("a"), Op::Clear, put("b"), put("a"), Op::Reopen]));
}
