//! Phases driven by counts and a stepped clock, and roles that change hands.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::*;

const GET_TICKS: u64 = 400;
const SCAN_TICKS: u64 = 5_600;
const WRITE_TICKS: u64 = 1_300;
const APPLY_TICKS: u64 = 900;
/// Changes applied by one call of `apply`.
const GROUP_COUNT: u64 = 16;

/// A queue that consists only of its number of changes, and a clock that advances with the work done.
#[derive(Default)]
struct Stepped {
    now: AtomicU64,
    queued: AtomicU64,
    applied: AtomicU64,
}

impl Stepped {
    fn spend(&self, ticks: u64) {
        self.now.fetch_add(ticks, Ordering::Relaxed);
    }
}

impl Work for &Stepped {
    fn ticks(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn apply(&self) -> Result<u64, Error> {
        let count = self.queued.load(Ordering::Relaxed).min(GROUP_COUNT);
        self.queued.fetch_sub(count, Ordering::Relaxed);
        self.applied.fetch_add(count, Ordering::Relaxed);
        self.spend(count * APPLY_TICKS);
        Ok(count)
    }

    fn queued_count(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    fn applied(&self) -> [u64; 2] {
        [self.applied.load(Ordering::Relaxed), 0]
    }
}

fn serve(member: &mut Member<'_, &Stepped>, kind: Kind) {
    let work = *member.pool().work();
    let begun = member.begin();
    match kind {
        Kind::Get => work.spend(GET_TICKS),
        Kind::Scan => work.spend(SCAN_TICKS),
        Kind::Write => {
            work.spend(WRITE_TICKS);
            work.queued.fetch_add(1, Ordering::Relaxed);
        }
    }
    member.end(kind, 1, begun);
}

/// Lets every member in turn act by its role, until `window_count` windows are over.
fn drive(pool: &Pool<&Stepped>, members: &mut [Member<'_, &Stepped>], window_count: u64, kind: Kind) {
    let end = pool.figures().window_count + window_count;
    while pool.figures().window_count < end {
        for member in &mut *members {
            match member.role() {
                Role::Serve => serve(member, kind),
                Role::Apply => drop(member.apply().unwrap()),
            }
        }
    }
}

/// The applying threads of 16, by equations (1) and (2).
fn expected(served_ticks: u64, applied_ticks: u64) -> usize {
    (16.0 * applied_ticks as f64 / (served_ticks + applied_ticks) as f64).round() as usize
}

#[test]
fn three_phases_match_equation_splits() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 16, Plan::Adaptive(Reading::WritesLumped));
    let mut members: Vec<_> = (0..16).map(|_| pool.member()).collect();
    drive(&pool, &mut members, 3, Kind::Write);
    let writes = pool.figures();
    assert_eq!(writes.split.backend, expected(WRITE_TICKS, APPLY_TICKS));
    assert_eq!(writes.window.writes.mean_ticks(), Some(WRITE_TICKS as f64), "each is timed by its own work");
    assert_eq!(writes.window.applied.mean_ticks(), Some(APPLY_TICKS as f64));
    drive(&pool, &mut members, 3, Kind::Scan);
    assert_eq!((pool.figures().split, work.queued.load(Ordering::Relaxed)), (Split { serving: 16, backend: 0 }, 0));
    drive(&pool, &mut members, 3, Kind::Get);
    assert_eq!(pool.figures().split.backend, 0);
    drive(&pool, &mut members, 1, Kind::Get);
    assert_eq!(pool.figures().backend_count, 0, "without writes no thread applies");
    drive(&pool, &mut members, 3, Kind::Write);
    assert_eq!(pool.figures().split.backend, expected(WRITE_TICKS, APPLY_TICKS), "and back again");
}

#[test]
fn mix_is_split_by_all_its_kinds() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 16, Plan::Adaptive(Reading::WritesLumped));
    let mut members: Vec<_> = (0..16).map(|_| pool.member()).collect();
    // One scan, ten gets, five writes, in this order, one by each member in turn.
    let mix: Vec<Kind> = [vec![Kind::Scan; 1], vec![Kind::Get; 10], vec![Kind::Write; 5]].concat();
    let mut number = 0;
    while pool.figures().window_count < 4 {
        for member in &mut members {
            match member.role() {
                Role::Serve => {
                    // The stride is coprime to 32, of which one operation is timed: each kind is timed as often as it
                    // occurs.
                    number += 7;
                    serve(member, mix[number % mix.len()]);
                }
                Role::Apply => drop(member.apply().unwrap()),
            }
        }
    }
    let window = pool.figures().window;
    let served = window.gets.count * GET_TICKS + window.scans.count * SCAN_TICKS + window.writes.count * WRITE_TICKS;
    assert_eq!(pool.figures().split.backend, expected(served, window.left_count * APPLY_TICKS));
    assert!(
        window.left_count.abs_diff(window.writes.count) <= 16 * FLUSH_COUNT,
        "only uncounted changes are missing: {window:?}"
    );
    assert!(window.gets.count > window.writes.count && window.writes.count > window.scans.count, "{window:?}");
}

#[test]
fn fixed_split_stays() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 16, Plan::Fixed(Split { serving: 12, backend: 4 }));
    let mut members: Vec<_> = (0..16).map(|_| pool.member()).collect();
    for kind in [Kind::Write, Kind::Get] {
        drive(&pool, &mut members, 2, kind);
        assert_eq!((pool.figures().split.backend, pool.figures().backend_count), (4, 4));
    }
}

#[test]
fn backend_that_finds_nothing_serves() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 2, Plan::Adaptive(Reading::WritesLumped));
    let mut member = pool.member();
    assert_eq!(member.role(), Role::Apply);
    assert_eq!(member.apply().unwrap(), 0);
    assert_eq!([member.role(), member.role()], [Role::Serve, Role::Apply]);
    let fixed = Pool::new(&work, 2, Plan::Fixed(Split { serving: 1, backend: 1 }));
    let mut member = fixed.member();
    assert_eq!(member.role(), Role::Apply);
    assert_eq!(member.apply().unwrap(), 0);
    assert_eq!(member.role(), Role::Apply, "as printed: it polls");
}

#[test]
fn dying_member_returns_its_role() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 2, Plan::Adaptive(Reading::WritesLumped));
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut member = pool.member();
        assert_eq!(member.role(), Role::Apply);
        std::panic::resume_unwind(Box::new("within its role"));
    }));
    assert!(died.is_err());
    let mut member = pool.member();
    assert_eq!(member.role(), Role::Apply, "the role is free again");
}

#[test]
fn resting_member_returns_its_role() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 2, Plan::Adaptive(Reading::WritesLumped));
    let (mut asleep, mut awake) = (pool.member(), pool.member());
    assert_eq!([asleep.role(), awake.role()], [Role::Apply, Role::Serve]);
    asleep.rest();
    asleep.rest();
    assert_eq!((pool.figures().backend_count, awake.role()), (0, Role::Apply));
    assert_eq!(asleep.role(), Role::Serve, "awake again, it finds the role taken");
}

#[test]
fn roles_are_never_more_than_wanted() {
    let work = Stepped::default();
    let pool = Pool::new(&work, 4, Plan::Adaptive(Reading::WritesLumped));
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut member = pool.member();
                for _ in 0..10_000 {
                    match member.role() {
                        Role::Serve => serve(&mut member, Kind::Write),
                        Role::Apply => {
                            // Another member may apply the counted changes, because this `apply` is not the ring's. A
                            // resting thread has no role.
                            most.fetch_max(pool.figures().backend_count, Ordering::Relaxed);
                            member.rest();
                        }
                    }
                }
            });
        }
    });
    assert!((1..=3).contains(&most.load(Ordering::Relaxed)));
    assert_eq!(pool.figures().backend_count, 0, "each gave its role back");
}
