//! Every interleaving of threads that take, leave and give back roles, and broken variants whose exchange is not one
//! step.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use word::model::{InTwoSteps, Modelled, explore};

use super::*;

/// The state of a thread that acts as a member.
#[derive(Default)]
struct Thread {
    is_backend: bool,
}

impl Thread {
    fn come_by<W: Word>(&mut self, roles: &Roles<W>) {
        self.is_backend = if self.is_backend { !roles.leave() } else { roles.take() };
    }
}

/// One of two threads is wanted. A thread that has the role gives it back, and takes it again.
fn one_at_a_time<W: Word + Send + Sync + 'static>() {
    explore(3, || {
        let shared = Arc::new((Roles::<W>::new(1), AtomicUsize::new(0)));
        let take = |(roles, holders): &(Roles<W>, AtomicUsize)| {
            let has_role = roles.take();
            if has_role {
                assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two have the role of one");
            }
            has_role
        };
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || take(&other));
        if take(&shared) {
            shared.1.fetch_sub(1, Ordering::Relaxed);
            shared.0.release();
            take(&shared);
        }
        thread.join().unwrap();
        assert_eq!(shared.0.count(), 1, "none has it");
    });
}

/// The wanted number changes while two threads check their roles; then each checks its role once more.
fn settles<W: Word + Send + Sync + 'static>(from: usize, to: usize) {
    explore(3, move || {
        let roles = Arc::new(Roles::<W>::new(from));
        let theirs = Arc::clone(&roles);
        let other = thread::spawn(move || {
            let mut thread = Thread::default();
            (0..2).for_each(|_| thread.come_by(&theirs));
            thread
        });
        let mut thread = Thread::default();
        thread.come_by(&roles);
        roles.want(to);
        thread.come_by(&roles);
        let mut other = other.join().unwrap();
        for thread in [&mut other, &mut thread] {
            thread.come_by(&roles);
        }
        let holders = [&thread, &other].into_iter().filter(|thread| thread.is_backend).count();
        assert_eq!(roles.count(), holders, "a count is lost");
        assert_eq!(holders, to, "as many as are wanted");
    });
}

#[test]
fn role_is_one_threads_at_time() {
    one_at_a_time::<Modelled>();
}

#[test]
fn role_count_reaches_wanted_count() {
    for (from, to) in [(0, 1), (1, 0), (2, 1), (1, 2), (2, 0)] {
        settles::<Modelled>(from, to);
    }
}

#[test]
#[should_panic(expected = "two have the role of one")]
fn two_step_role_taking_is_caught() {
    one_at_a_time::<InTwoSteps>();
}

#[test]
#[should_panic(expected = "a count is lost")]
fn two_step_role_leaving_is_caught() {
    settles::<InTwoSteps>(2, 0);
}
