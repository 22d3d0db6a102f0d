//! Processes that are killed during a batch, a split and a clear; then the power fails while the next process runs.

use pmem_sim::Model;
use testkit::{Crashed, End, Op, Script, Settings, Visitor, survives};

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

fn survives_kills(script: Script) {
    let counts = survives::<Crashed<OfRewoHash>>(&[script], &kills(24));
    assert!(counts.reach(50, 10, 0), "{counts:?}");
}

#[test]
fn batch_survives_kill() {
    survives_kills(batch());
}

#[test]
fn split_survives_kill() {
    survives_kills(splitting());
}

#[test]
fn clear_survives_kill() {
    let put = |key: &str| Op::Put(key.into(), vec![1; 5]);
    survives_kills(Script::fresh(3, [put("a"), Op::Clear, put("b"), put("a"), Op::Reopen]));
}
