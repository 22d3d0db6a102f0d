//! Explores every interleaving of a writer and a reader under the memory model, and broken variants that lack an order.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::thread;
use word::model::{Modelled, Weakened, Weakening, explore, is_caught};

use super::tests::Owned;
use super::*;

/// Positions are stored without release.
struct PlacesRelaxed;

impl Weakening for PlacesRelaxed {
    fn store(_: Ordering) -> Ordering {
        Relaxed
    }
}

/// There is no fence between an end's word and the other's.
struct NoFence;

impl Weakening for NoFence {
    fn has_fence(_: Ordering) -> bool {
        false
    }
}

impl<T: Weakening> Words for Weakened<T> {}

/// The number of preemptions that detects each of the broken variants.
const PREEMPTION_COUNT: usize = 3;

/// Five words through a ring with space for three, as far as a few turns of each end go.
fn transfer<W: Words + Send + Sync + 'static>() {
    let owned = Arc::new(Owned::<W>::new(4));
    let shared = Arc::clone(&owned);
    let writer = thread::spawn(move || {
        let (ring, mut sender) = (shared.ring(), Sender::default());
        let bytes: [u8; 40] = std::array::from_fn(|at| at as u8 + 1);
        let mut at = 0;
        for _ in 0..2 {
            at += sender.push(&ring, &bytes[at..]).unwrap();
        }
    });
    let (ring, mut receiver, mut at) = (owned.ring(), Receiver::default(), 0);
    for _ in 0..2 {
        let mut out = [0; 40];
        let pulled = receiver.pull(&ring, &mut out).unwrap();
        out[..pulled].iter().for_each(|byte| {
            at += 1;
            assert_eq!(*byte, at, "what was written");
        });
    }
    writer.join().unwrap();
}

/// A writer stages bytes, also partial words, and publishes some of them, then the others: exactly the published bytes
/// are readable.
fn stages_and_publishes<W: Words + Send + Sync + 'static>() {
    let owned = Arc::new(Owned::<W>::new(4));
    let shared = Arc::clone(&owned);
    let writer = thread::spawn(move || {
        let (ring, mut sender) = (shared.ring(), Sender::default());
        assert_eq!(sender.stage(&ring, &[1, 2, 3, 4]), Ok(true));
        assert_eq!(sender.stage(&ring, &[5, 6, 7, 8, 9, 10]), Ok(true));
        sender.publish(&ring, 5);
        sender.publish(&ring, 5);
    });
    let (ring, mut receiver, mut at) = (owned.ring(), Receiver::default(), 0);
    for _ in 0..2 {
        let mut out = [0; 10];
        let pulled = receiver.pull(&ring, &mut out).unwrap();
        assert!([0, 5, 10].contains(&(usize::from(at) + pulled)), "exactly the published bytes");
        out[..pulled].iter().for_each(|byte| {
            at += 1;
            assert_eq!(*byte, at, "what was written");
        });
    }
    writer.join().unwrap();
}

/// Writes eight bytes, and returns whether the reader must be woken.
fn writes<W: Words + Send + Sync + 'static>(owned: &Arc<Owned<W>>) -> thread::JoinHandle<(bool, Sender)> {
    let shared = Arc::clone(owned);
    thread::spawn(move || {
        let (ring, mut sender) = (shared.ring(), Sender::default());
        assert_eq!(sender.push(&ring, &[1; 8]), Ok(8));
        (sender.wakes(&ring), sender)
    })
}

/// A reader that sleeps without data is woken by the writer.
fn reader_sleeps<W: Words + Send + Sync + 'static>() {
    let owned = Arc::new(Owned::<W>::new(4));
    let writer = writes(&owned);
    let sleeps = Receiver::default().may_sleep(&owned.ring()).unwrap();
    let (is_woken, _) = writer.join().unwrap();
    assert!(is_woken || !sleeps, "it sleeps forever");
}

/// A way for a reader that has polled before to go to sleep; returns whether it sleeps.
type Sleep<W> = fn(&Receiver, &Ring<'_, W>) -> bool;

/// A reader polls, sleeps, is woken by another event, clears its word, and sleeps again: a writer at any time wakes it,
/// or its data is found.
fn reader_looks_and_sleeps<W: Words + Send + Sync + 'static>(sleep: Sleep<W>) {
    let owned = Arc::new(Owned::<W>::new(4));
    let writer = writes(&owned);
    let (ring, receiver) = (owned.ring(), Receiver::default());
    let finds = receiver.has_data(&ring) || !sleep(&receiver, &ring) || {
        receiver.stays_awake(&ring);
        receiver.has_data(&ring) || !sleep(&receiver, &ring)
    };
    let (is_woken, _) = writer.join().unwrap();
    assert!(is_woken || finds, "it sleeps forever");
}

/// As an end does it.
fn announces_and_checks<W: Words>(receiver: &Receiver, ring: &Ring<'_, W>) -> bool {
    receiver.may_sleep(ring).unwrap()
}

/// A broken variant: an earlier poll permits sleeping.
fn announces_only<W: Words>(_: &Receiver, ring: &Ring<'_, W>) -> bool {
    ring.reader.store(1, Relaxed);
    W::fence(SeqCst);
    true
}

/// A reader finds data while going to sleep, reads it, and sleeps. The writer has seen the first of the two words, and
/// clears the second: the reader is woken without reason. The next data wakes it, or finds it awake.
fn reader_is_woken_late<W: Words + Send + Sync + 'static>(sleeps_on: Sleep<W>) {
    let owned = Arc::new(Owned::<W>::new(8));
    let writer = writes(&owned);
    let (ring, mut receiver) = (owned.ring(), Receiver::default());
    let reads = |receiver: &mut Receiver| receiver.pull(&ring, &mut [0; 16]).unwrap() > 0;
    let mut sleeps = receiver.may_sleep(&ring).unwrap() || reads(&mut receiver) && receiver.may_sleep(&ring).unwrap();
    let (is_woken, mut sender) = writer.join().unwrap();
    if is_woken && sleeps {
        sleeps = if reads(&mut receiver) { receiver.may_sleep(&ring).unwrap() } else { sleeps_on(&receiver, &ring) };
    }
    assert_eq!(sender.push(&ring, &[1; 8]), Ok(8));
    assert!(sender.wakes(&ring) || !sleeps, "it sleeps forever");
}

/// As an end does it.
fn announces_again<W: Words>(receiver: &Receiver, ring: &Ring<'_, W>) -> bool {
    receiver.stays_awake(ring);
    receiver.may_sleep(ring).unwrap()
}

/// A broken variant, like earlier ends: it assumes that its word is still set.
fn trusts_its_word<W: Words>(_: &Receiver, _: &Ring<'_, W>) -> bool {
    true
}

/// A writer that sleeps without space is woken by the reader that frees some.
fn writer_sleeps<W: Words + Send + Sync + 'static>() {
    let owned = Arc::new(Owned::<W>::new(4));
    let mut sender = Sender::default();
    assert_eq!(sender.push(&owned.ring(), &[1; 30]), Ok(24));
    let shared = Arc::clone(&owned);
    let reader = thread::spawn(move || {
        let (ring, mut receiver) = (shared.ring(), Receiver::default());
        assert_eq!(receiver.pull(&ring, &mut [0; 8]), Ok(8));
        receiver.wakes(&ring)
    });
    let sleeps = sender.may_sleep(&owned.ring()).unwrap();
    let is_woken = reader.join().unwrap();
    assert!(is_woken || !sleeps, "it sleeps forever");
}

/// Returns whether a reader that has read wakes the writer.
type Wakes<W> = fn(&mut Receiver, &Ring<'_, W>) -> bool;

/// A writer that fills the ring while a reader runs, and sleeps, is woken by it: the reader reads while there is data.
fn writer_fills_and_sleeps<W: Words + Send + Sync + 'static>(wakes: Wakes<W>) {
    let owned = Arc::new(Owned::<W>::new(4));
    let mut sender = Sender::default();
    assert_eq!(sender.push(&owned.ring(), &[1; 16]), Ok(16));
    let shared = Arc::clone(&owned);
    let reader = thread::spawn(move || {
        let (ring, mut receiver) = (shared.ring(), Receiver::default());
        let reads = |receiver: &mut Receiver| receiver.pull(&ring, &mut [0; 24]).unwrap() > 0 && wakes(receiver, &ring);
        let is_woken = reads(&mut receiver);
        (is_woken || reads(&mut receiver), receiver)
    });
    assert_eq!(sender.push(&owned.ring(), &[1; 8]), Ok(8));
    let sleeps = sender.may_sleep(&owned.ring()).unwrap();
    let (mut is_woken, mut receiver) = reader.join().unwrap();
    let ring = owned.ring();
    while receiver.has_data(&ring) {
        receiver.pull(&ring, &mut [0; 24]).unwrap();
        is_woken |= wakes(&mut receiver, &ring);
    }
    assert!(is_woken || !sleeps, "it sleeps forever");
}

/// As an end does it.
fn checks_when_full<W: Words>(receiver: &mut Receiver, ring: &Ring<'_, W>) -> bool {
    receiver.wakes(ring)
}

/// A broken variant: it treats each position as one after whose fence it has checked.
fn checks_when_full_now<W: Words>(receiver: &mut Receiver, ring: &Ring<'_, W>) -> bool {
    let is_woken = receiver.wakes(ring);
    receiver.read_head = receiver.head;
    is_woken
}

#[test]
fn no_early_read_and_no_lost_wakeup() {
    explore(PREEMPTION_COUNT, transfer::<Modelled>);
    explore(PREEMPTION_COUNT, stages_and_publishes::<Modelled>);
    explore(PREEMPTION_COUNT, reader_sleeps::<Modelled>);
    explore(PREEMPTION_COUNT, || reader_looks_and_sleeps::<Modelled>(announces_and_checks));
    explore(PREEMPTION_COUNT, || reader_is_woken_late::<Modelled>(announces_again));
    explore(PREEMPTION_COUNT, writer_sleeps::<Modelled>);
    explore(PREEMPTION_COUNT, || writer_fills_and_sleeps::<Modelled>(checks_when_full));
}

#[test]
fn broken_variants_are_detected() {
    let is_caught = |scene| is_caught(PREEMPTION_COUNT, scene);
    assert!(is_caught(transfer::<Weakened<PlacesRelaxed>>), "positions without release");
    assert!(is_caught(stages_and_publishes::<Weakened<PlacesRelaxed>>), "positions without release");
    assert!(is_caught(reader_sleeps::<Weakened<NoFence>>), "a reader whose word is not seen");
    assert!(is_caught(|| reader_looks_and_sleeps::<Modelled>(announces_only)), "a reader that trusts its last poll");
    assert!(
        is_caught(|| reader_looks_and_sleeps::<Weakened<NoFence>>(announces_and_checks)),
        "a reader whose word is not seen"
    );
    assert!(is_caught(|| reader_is_woken_late::<Modelled>(trusts_its_word)), "a reader that trusts its word");
    assert!(is_caught(writer_sleeps::<Weakened<NoFence>>), "a writer whose word is not seen");
    assert!(is_caught(|| writer_fills_and_sleeps::<Modelled>(checks_when_full_now)), "a ring that was full before");
    assert!(
        is_caught(|| writer_fills_and_sleeps::<Weakened<NoFence>>(checks_when_full)),
        "a writer whose word is not seen"
    );
}
