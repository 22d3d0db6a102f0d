//! Damages every byte of a small store, one after the other: the opened store returns the correct value for keys of any
//! length, or an error. With `Verify::Absence`, a key in a node is never reported absent, even if a checkpoint came
//! between the damage and the opening.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use engine::prelude::*;
use engine::{Clock, Direction, ScanCursor, Verify};
use engine_pmekv::Pmekv;
use engine_pmekv::layout::SHORT_KEY_BYTES_MAX;
use heap::layout::UNIT_BYTES;
use pmem::{Bytes, Offset};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};
use testkit::Made;

use crate::lengths::{OfOlder, keys, value};
use crate::subject::{OPTIONS, OfPmekv, OnSim};

/// A store whose keys are all in the checkpoint.
struct Victim {
    image: Image,
    /// The offsets of words that are not zero.
    words: Vec<u64>,
    items: BTreeMap<Vec<u8>, Vec<u8>>,
    has_keys_in_nodes: bool,
}

impl Victim {
    fn new<K: Made<Engine = OnSim, Medium = Sim>>(has_keys_in_nodes: bool) -> Victim {
        let sim = Sim::new(0, Model::Line);
        let store = K::format(sim.clone(), Clock::manual(1)).unwrap();
        let items: BTreeMap<_, _> =
            keys().into_iter().enumerate().map(|(number, key)| (key, value(number, 1))).collect();
        items.iter().for_each(|(key, value)| store.put(key, value).unwrap());
        store.checkpoint().unwrap();
        let words = (0..sim.len_bytes()).step_by(8).filter(|&at| sim.load(Offset(at), Ordering::Acquire) != 0);
        Victim { image: sim.images(1, 0).remove(0), words: words.collect(), items, has_keys_in_nodes }
    }

    fn medium(&self) -> Sim {
        Sim::from_image(&self.image, Model::Line)
    }

    fn is_in_node(&self, key: &[u8]) -> bool {
        self.has_keys_in_nodes && key.len() <= SHORT_KEY_BYTES_MAX
    }

    /// Returns the number of gets and scans that fail.
    fn reported(&self, store: &OnSim) -> usize {
        let scans = [Direction::Forward, Direction::Backward].map(|direction| self.scan(store, direction));
        self.got(store) + scans.into_iter().filter(|is_whole| !is_whole).count()
    }

    fn got(&self, store: &OnSim) -> usize {
        let get = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let got = store.get(key, &mut |_, _, found| assert_eq!(found, value, "{key:?}"));
            let is_hidden = matches!(got, Ok(false));
            assert!(!is_hidden || !self.is_in_node(key), "{key:?} is reported absent");
            got.is_err()
        };
        self.items.iter().map(get).filter(|is_reported| *is_reported).count()
    }

    /// Returns true if the scan returns all items.
    fn scan(&self, store: &OnSim, direction: Direction) -> bool {
        let (mut cursor, mut shown) = (ScanCursor::new(Bound::Unbounded, direction), Vec::new());
        let mut each = |key: &[u8], value: &[u8]| {
            assert_eq!(self.items.get(key).map(Vec::as_slice), Some(value));
            shown.push(key.to_vec());
            ControlFlow::Continue(())
        };
        let ordered = store.ordered().unwrap();
        let is_whole = loop {
            match ordered.scan(&mut cursor, &mut each) {
                Ok(true) => {}
                ended => break ended.is_ok(),
            }
        };
        if direction == Direction::Backward {
            shown.reverse();
        }
        assert!(shown.is_sorted_by(|one, other| one < other), "{shown:?}");
        assert!(!is_whole || shown.len() == self.items.len(), "{shown:?}");
        is_whole
    }
}

fn opened(sim: &Sim) -> Option<OnSim> {
    Pmekv::open(sim.clone(), HostDram, OPTIONS).ok().map(|store| store.verifying(Verify::Absence))
}

/// Flips a bit of a byte; the bit's number varies.
fn flip(sim: &Sim, at: u64, byte: u64) {
    let word = sim.load(Offset(at), Ordering::Acquire);
    sim.store(Offset(at), word ^ 1 << (8 * byte + (at / 8 + byte) % 8), Ordering::Release);
}

#[test]
fn byte_flips_swap_or_hide_no_key() {
    for victim in [Victim::new::<OfPmekv>(true), Victim::new::<OfOlder>(false)] {
        let (mut refused, mut reported) = (0, 0);
        for (at, byte) in victim.words.iter().flat_map(|&at| (0..8).map(move |byte| (at, byte))) {
            let sim = victim.medium();
            flip(&sim, at, byte);
            match opened(&sim) {
                None => refused += 1,
                Some(store) => reported += usize::from(victim.reported(&store) > 0),
            }
        }
        assert!(refused > 100 && reported > 100, "{refused} openings are refused, {reported} stores report damage");
    }
}

/// A checkpoint reads a record that was damaged since the last one.
#[test]
fn damaged_key_before_checkpoint_is_not_confused() {
    let victim = Victim::new::<OfPmekv>(true);
    let (mut named, mut reported) = (0, 0);
    let of_items = victim.words.iter().filter(|&&at| at > 2 * UNIT_BYTES);
    for (at, byte) in of_items.flat_map(|&at| (0..8).map(move |byte| (at, byte))) {
        let sim = victim.medium();
        let store = opened(&sim).unwrap();
        flip(&sim, at, byte);
        store.put(b"more", b"value").unwrap();
        let is_named = store.checkpoint().is_ok();
        drop(store);
        let Some(store) = opened(&sim) else { continue };
        let is_reported = victim.got(&store) > 0;
        (named, reported) = (named + usize::from(is_named), reported + usize::from(is_named && is_reported));
    }
    assert!(
        named > 100 && reported > 100,
        "{named} checkpoints are made, {reported} openings after them report damage"
    );
}
