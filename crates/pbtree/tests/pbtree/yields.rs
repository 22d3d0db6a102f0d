//! Long walks let other threads run, which a kernel that does not preempt a walk requires, and end when their callers
//! are gone.

use pbtree::{Change, Error, FreeImmediately, NewValue, Options, Tree};
use pmem_sim::{Model, Sim, SimDram};

use crate::subject::parameters;

/// A tree whose nodes have few keys, and values that fill several chunks.
fn grown() -> Tree<Sim, SimDram, FreeImmediately> {
    let options = Options { order: 7, in_place: false };
    let tree = Tree::format(Sim::new(0, Model::Span), &parameters(), options, SimDram, FreeImmediately).unwrap();
    for i in 0..400u32 {
        let change = Change::Put(NewValue { bytes: &[7; 2000], expiry: None });
        tree.write(0, &i.to_be_bytes(), change, &mut |_| true).unwrap();
    }
    tree
}

#[test]
fn long_walks_yield_at_every_node() {
    let tree = grown();
    let (sim, node_count) = (tree.medium().clone(), tree.figures().unwrap().node_count);
    assert!(node_count > 50, "{node_count} nodes show nothing");
    let breaths_of = |work: &dyn Fn()| {
        let before = sim.breath_count();
        work();
        sim.breath_count() - before
    };
    assert!(breaths_of(&|| _ = tree.check(&mut |_| ()).unwrap()) >= node_count);
    assert!(breaths_of(&|| tree.clear(0).unwrap()) >= node_count);
    let again = grown();
    let reopened = Tree::open(again.medium().clone(), Options::default(), SimDram, FreeImmediately).unwrap();
    let (sim, chunk_count) = (reopened.medium(), reopened.heap().stats().mark_bytes / (1 << 20));
    let before = sim.breath_count();
    reopened.heap().sweep().finish(sim);
    assert!(chunk_count > 0 && sim.breath_count() - before > chunk_count);
}

#[test]
fn check_stops_on_callers_request() {
    let (tree, mut node_count) = (grown(), 0);
    let mut goes_on = || {
        node_count += 1;
        node_count < 3
    };
    assert_eq!(tree.check_while(&mut |_| (), &mut goes_on), Err(Error::Stopped));
    assert_eq!(node_count, 3);
}
