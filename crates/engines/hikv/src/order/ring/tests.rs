//! Every interleaving of writers and a drainer, with the reorderings that the memory model allows.

mod tickets;

use loom::sync::Arc;
use loom::thread;
use word::model::{Modelled, Weakened, Weakening, explore};

use super::*;

/// Release stores and Acquire loads are Relaxed.
struct Unordered;

impl Weakening for Unordered {
    fn load(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }

    fn store(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }

    fn update(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

type Relaxed = Weakened<Unordered>;

/// Puts two changes in, or as many as there is space for.
fn write<W: Word>(ring: &Ring<W>, writer: u64) {
    for i in 1..=2 {
        if let Some(ticket) = ring.take() {
            ticket.fill([writer * 10 + i; CHANGE_WORDS]);
        }
    }
}

/// The changes come out complete, and each writer's in order.
fn drain<W: Word>(ring: &Ring<W>, last: &mut [u64; 3]) {
    let mut changes = [[0; CHANGE_WORDS]; 2];
    let count = ring.peek(&mut changes);
    for change in &changes[..count] {
        assert_eq!(*change, [change[0]; CHANGE_WORDS], "torn or out of order");
        let (writer, number) = ((change[0] / 10) as usize, change[0] % 10);
        assert!(number > last[writer], "torn or out of order");
        last[writer] = number;
    }
    ring.advance(count);
}

/// Two places, so that the third change reuses one.
fn model<W: Word + Send + Sync + 'static>(writers: u64) {
    explore(2, move || {
        let ring = Arc::new(Ring::<W>::new(2));
        let spawn = |writer| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || write(&ring, writer))
        };
        let threads: Vec<_> = (1..=writers).map(spawn).collect();
        let mut last = [0; 3];
        (0..2).for_each(|_| drain(&ring, &mut last));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        (0..2).for_each(|_| drain(&ring, &mut last));
        assert_eq!(ring.len(), 0);
    });
}

#[test]
fn changes_come_out_whole_and_in_order() {
    model::<Modelled>(2);
}

#[test]
#[should_panic(expected = "torn or out of order")]
fn words_without_an_order_are_caught() {
    model::<Relaxed>(1);
}

#[test]
fn full_queue_gives_no_ticket() {
    let ring = Ring::<std::sync::atomic::AtomicU64>::new(2);
    drop(ring.take());
    ring.take().unwrap().fill([7; CHANGE_WORDS]);
    assert!(ring.take().is_none());
    let mut changes = [[1; CHANGE_WORDS]; 4];
    assert_eq!(ring.peek(&mut changes), 2);
    assert_eq!(changes[..2], [[0; CHANGE_WORDS], [7; CHANGE_WORDS]]);
    ring.advance(1);
    assert!(ring.take().is_some() && ring.take().is_none());
}
