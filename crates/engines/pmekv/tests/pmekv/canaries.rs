//! Every broken variant is caught.

use engine_pmekv::canary;
use pmem::Canary;
use testkit::{Crashed, Op, Settings, Verdict, Visitor, catches, hunt};

use crate::crash::{batches, churn, groups, groups_of_deletes, settings};
use crate::subject::OfPmekv;

fn is_caught(canaries: &[Canary]) {
    is_caught_by(Visitor::Nobody, canaries);
}

fn is_caught_by(visitor: Visitor, canaries: &[Canary]) {
    let quiet = Settings { visitors: vec![visitor], images_per_op_max: 60, ..settings() };
    for &canary in canaries {
        catches::<Crashed<OfPmekv>>(canary, &[churn(), batches()], &quiet);
    }
}

#[test]
fn writes_that_break_a_rule_are_caught() {
    is_caught(&[
        items::canary::ITEM_NOT_FLUSHED,
        canary::ACKNOWLEDGED_BEFORE_COMMIT,
        canary::FREED_BEFORE_COMMIT,
        canary::WORD_BEFORE_HEADER,
        canary::KEY_IN_ANY_LANE,
    ]);
}

#[test]
fn recoveries_that_break_a_rule_are_caught() {
    is_caught(&[
        canary::RECORD_BELIEVED,
        canary::ENDED_BY_BAD_RECORD,
        canary::REPLAYED_BACKWARDS,
        canary::PLACE_OF_ANY_LANE,
    ]);
}

#[test]
fn checkpoints_that_break_a_rule_are_caught() {
    is_caught(&[canary::FREED_BEFORE_ROOT, canary::ROOT_BEFORE_NODES, canary::RECORD_IN_PLACE]);
}

#[test]
fn batches_that_break_a_rule_are_caught() {
    is_caught(&[canary::BATCH_WITHOUT_LINE, canary::BATCH_LINE_NOT_ORDERED]);
}

#[test]
fn broken_multi_puts_are_caught() {
    let quiet = Settings { visitors: vec![Visitor::Nobody], images_per_op_max: 60, ..settings() };
    catches::<Crashed<OfPmekv>>(canary::GROUP_REPORTED_DURABLE, &[groups()], &quiet);
}

#[test]
fn broken_multi_deletes_are_caught() {
    let quiet = Settings { visitors: vec![Visitor::Nobody], images_per_op_max: 60, ..settings() };
    for canary in [canary::GROUP_REPORTED_DURABLE, canary::GROUP_NOT_COMMITTED] {
        let verdict = hunt::<Crashed<OfPmekv>>(canary, &[groups_of_deletes()], &quiet);
        let is_by_itself = matches!(&verdict, Verdict::Caught(violation) if matches!(violation.op, Op::MultiDelete(_)));
        assert!(is_by_itself, "{canary:?}: {verdict:?}");
    }
}

/// Faults that only a reader during a write can see.
#[test]
fn variants_with_two_threads_are_caught() {
    is_caught_by(Visitor::ReaderAlways, &[canary::TREE_BEFORE_COMMIT]);
}
