//! Ranges compared with a map.

use std::collections::BTreeSet;

use super::*;

const QUEUE_BOUND: usize = 4096;

fn key(number: u64) -> Box<[u8]> {
    Box::from(number.to_be_bytes())
}

fn all(ranges: &Ranges) -> Vec<Box<[u8]>> {
    ranges.catch_up();
    let (mut all, mut next) = (Vec::new(), Some(Bound::Included(Box::default())));
    while let Some(from) = next {
        let (keys, after) = ranges.page(from);
        all.extend(keys);
        next = after;
    }
    all
}

/// Checks that no range is too large, apart from the contents of one queue.
fn are_level(ranges: &Ranges) {
    let counts: Vec<_> = ranges.all.iter().map(Range::key_count).collect();
    let mean = counts.iter().sum::<u64>() / counts.len() as u64;
    assert!(counts.iter().all(|&count| count <= mean + mean / 4 + SLACK_COUNT + QUEUE_BOUND as u64), "{counts:?}");
}

/// Ascending keys all belong to the last range: without migration it would hold them all.
#[test]
fn keys_migrate_to_neighbours_without_loss() {
    const COUNT: u64 = 40_000;
    let par = Par::new(4, QUEUE_BOUND, 0);
    par.ranges.load((0..COUNT).map(|number| key(2 * number)).collect());
    let mut model: BTreeSet<_> = (0..COUNT).map(|number| key(2 * number)).collect();
    for number in 2 * COUNT..4 * COUNT {
        // Every third key is deleted again, with its change in the same queue or, after a migration, in another one.
        par.ranges.queue(Change { key: key(number), is_there: true });
        model.insert(key(number));
        if number % 3 == 0 {
            par.ranges.queue(Change { key: key(number - 100), is_there: false });
            model.remove(&key(number - 100));
        }
    }
    assert!(all(&par.ranges).into_iter().eq(model));
    assert!(par.migration_count() > 2, "{}", par.migration_count());
    are_level(&par.ranges);
}

#[test]
fn concurrent_writes_survive_migration() {
    const COUNT: u64 = 20_000;
    let par = Par::new(4, 4096, 1);
    par.ranges.load((0..1000).map(key).collect());
    thread::scope(|scope| {
        for thread in 0..3 {
            let par = &par;
            scope.spawn(move || {
                for number in 0..COUNT {
                    par.ranges.queue(Change { key: key(1000 + 3 * number + thread), is_there: true });
                    if number % 100 == 0 {
                        par.wake();
                    }
                }
            });
        }
    });
    assert!(all(&par.ranges).into_iter().eq((0..1000 + 3 * COUNT).map(key)));
    assert!(par.migration_count() > 0);
}

#[test]
fn queue_holds_what_it_is_reported_to() {
    let par = Par::new(2, 8, 0);
    par.ranges.load((0..100).map(key).collect());
    for number in 0..100 {
        par.ranges.queue(Change { key: key(number), is_there: true });
        assert!(par.ranges.all.iter().all(|range| range.queued_count() <= 8), "after {number}");
    }
    assert!(par.ranges.queued_count() > 0);
}

#[test]
fn ranges_without_keys_are_filled() {
    let par = Par::new(4, QUEUE_BOUND, 0);
    par.ranges.load(Vec::new());
    assert_eq!(all(&par.ranges), []);
    for number in 0..10_000 {
        par.ranges.queue(Change { key: key(number), is_there: true });
    }
    assert!(all(&par.ranges).into_iter().eq((0..10_000).map(key)));
    are_level(&par.ranges);
}
