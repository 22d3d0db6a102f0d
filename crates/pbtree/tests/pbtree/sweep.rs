//! Two threads sweep: when either returns, all free space is known.

use std::sync::{Arc, Mutex};
use std::thread;

use heap::{Heap, Place};
use pbtree::{Change, FreeImmediately, NewValue, Options, Retire, Tree};
use pmem::Canary;
use pmem_sim::{Model, Sim, SimDram};

use crate::subject::{parameters, put};

type Store = Tree<Sim, SimDram, FreeImmediately>;
/// The delay of the first thread, in checks of the second thread's result.
const LOOK_COUNT: usize = 20_000;

/// Returns an opened tree that contains a value without a reference.
fn reopened(canary: Option<Canary>) -> (Sim, Arc<Store>) {
    let sim = canary.into_iter().fold(Sim::new(0, Model::Span), Sim::with_canary);
    let tree: Store = Tree::format(sim.clone(), &parameters(), Options::default(), SimDram, FreeImmediately).unwrap();
    let change = Change::Put(NewValue { bytes: &[7; 100_000], expiry: None });
    tree.write(0, b"key", change, &mut |_| true).unwrap();
    tree.heap().reserve_extent(tree.medium(), 200_000).unwrap().publish();
    drop(tree);
    (sim.clone(), Arc::new(Tree::open(sim, Options::default(), SimDram, FreeImmediately).unwrap()))
}

/// The second sweep begins while the first frees space. Returns true if it returns before all free space is known.
fn returns_early(canary: Option<Canary>) -> bool {
    let (sim, tree) = reopened(canary);
    let second = Arc::new(Mutex::new(None));
    let (begun, shared) = (Arc::clone(&second), Arc::clone(&tree));
    sim.observe(Box::new(move |sim, _| {
        sim.unobserve();
        let shared = Arc::clone(&shared);
        let sweeping = thread::spawn(move || {
            shared.sweep().unwrap();
            !shared.heap().is_swept()
        });
        for _ in (0..LOOK_COUNT).take_while(|_| !sweeping.is_finished()) {
            thread::yield_now();
        }
        *begun.lock().unwrap() = Some(sweeping);
    }));
    tree.sweep().unwrap();
    let sweeping = second.lock().unwrap().take();
    sweeping.expect("without space that is given back this shows nothing").join().unwrap()
}

#[test]
fn sweep_returns_when_free_space_is_known() {
    assert!(!returns_early(None));
    assert!(returns_early(Some(pbtree::canary::SWEEP_NOT_AWAITED)));
}

/// For readers that never leave.
struct Never;

impl Retire<Sim, SimDram> for Never {
    fn retire(&self, _: &Sim, _: &Heap<SimDram>, _: Place) {}
}

/// The sweep frees everything that it does not find, unless it was marked; readers may still read released places.
#[test]
fn sweep_spares_unlinked_items() {
    for change in [Change::Delete, put(b"another")] {
        let (sim, _) = reopened(None);
        let tree = Tree::open(sim, Options::default(), SimDram, Never).unwrap();
        let place = tree.get(b"key", |value| value.place).unwrap().expect("it is there");
        tree.write(0, b"key", change, &mut |_| true).unwrap();
        assert_eq!(tree.heap().sweep().mark_reached(place), Ok(false), "it would be freed under a reader");
    }
}
