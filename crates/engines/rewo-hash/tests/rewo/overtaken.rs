//! A reader that waits for one write on a log while another overtakes it: the lock bits of the later write stay.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use pmem::Medium;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::hooked::{Access, Hooked, hook, unhook};
use crate::subject::PARAMETERS;

const KEY: &[u8] = b"a key";

type Store = RewoHash<Hooked, HostDram>;

fn value<M: Medium>(store: &RewoHash<M, HostDram>) -> Vec<u8> {
    let mut value = Vec::new();
    store.get(KEY, &mut |_, _, found| value = found.to_vec()).unwrap();
    value
}

/// A thread that stops at chosen accesses.
struct Standing {
    thread: JoinHandle<()>,
    stands: Receiver<()>,
    go: Sender<()>,
}

impl Standing {
    /// Does `work` on a thread that stops before the accesses for which `is_place` returns true.
    fn start(is_place: impl FnMut(Access) -> bool + Send + 'static, work: impl FnOnce() + Send + 'static) -> Standing {
        let ((stood, stands), (go, may_go)) = (channel(), channel());
        let thread = thread::spawn(move || {
            let places = RefCell::new(is_place);
            hook(move |access| {
                if places.borrow_mut()(access) {
                    stood.send(()).unwrap();
                    may_go.recv().unwrap();
                }
            });
            work();
            unhook();
        });
        Standing { thread, stands, go }
    }

    /// Waits until the thread stops; false if it has ended.
    fn stands(&self) -> bool {
        self.stands.recv().is_ok()
    }

    fn go_on(&self) {
        self.go.send(()).unwrap();
    }

    fn end(self) {
        self.go_on();
        self.join();
    }

    fn join(self) {
        self.thread.join().unwrap();
    }
}

/// While a first put waits for its log, a second one stops before its store number `store_count`. A reader starts, and
/// waits for the first put; the second continues, and waits; the reader ends. Returns true if the value that a reader
/// then finds survives any power loss, and `None` if the second put has fewer stores.
fn stays(store_count: usize) -> Option<bool> {
    let sim = Sim::new(0, Model::Span);
    let store: Arc<Store> = Arc::new(RewoHash::format(Hooked::on(sim.clone()), HostDram, &PARAMETERS).unwrap());
    store.put(KEY, b"old").unwrap();
    let (theirs, outcome) = (Arc::clone(&store), Rc::new(Cell::new(None)));
    let noted = Rc::clone(&outcome);
    hook(move |access| {
        if access != Access::Wait {
            return;
        }
        unhook();
        let (mut left, written, read) = (store_count, Arc::clone(&theirs), Arc::clone(&theirs));
        let is_place = move |access| match access {
            Access::Store if left > 0 => {
                left -= 1;
                false
            }
            Access::Store => std::mem::replace(&mut left, usize::MAX) == 0,
            Access::Wait => true,
            Access::Load => false,
        };
        let writer = Standing::start(is_place, move || written.put(KEY, b"newest").unwrap());
        assert!(writer.stands());
        let reader = Standing::start(|access| access == Access::Wait, move || drop(value(&read)));
        let waits = reader.stands();
        writer.go_on();
        let overtakes = writer.stands();
        if waits {
            reader.end();
        }
        if !overtakes {
            return writer.join();
        }
        assert_eq!(value(&theirs), b"newest");
        let stays =
            |image: &_| value(&RewoHash::open(Sim::from_image(image, Model::Span), HostDram).unwrap()) == b"newest";
        noted.set(Some(sim.images(20, 1).iter().all(stays)));
        writer.end();
    });
    store.put(KEY, b"first").unwrap();
    unhook();
    outcome.get()
}

#[test]
fn lock_bits_of_overtaking_write_stay() {
    let all: Vec<_> = (0..).map_while(stays).collect();
    assert!(all.len() > 1 && all.iter().all(|stays| *stays), "{all:?}");
}
