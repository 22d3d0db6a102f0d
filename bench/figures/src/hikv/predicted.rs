//! Figure 7 on more threads than this machine has cores, by the model: from the service times of one thread, for the
//! paper's number of pairs. Its answer for two threads is compared with the measurement.

use super::claims::ALL;
use super::modelled::PREDICTED_AT;
use super::services::{APPLY, CHANGE, READ, SCAN, SERVICES, WRITE};
use super::work::{Mix, YCSB};
use crate::model::{Model, Services, Threads};
use crate::point::{Point, Points};

/// The paper's pairs.
const PAIR_COUNT: u64 = 50_000_000;
/// Changes that wait in HiKV's queues at most.
const QUEUE_CAPACITY: usize = 4096;
/// The number of threads on which model and measurement are compared.
const MEASURED_AT: f64 = 2.0;
/// A model that differs from the measurement by more than this factor says nothing about more threads.
const TOLERANCE: f64 = 1.15;
/// The mix of which every system's reads are known.
const READS_OF: usize = 2;

/// Returns the predicted points of figure 7.
pub(super) fn predict(points: &Points) -> Points {
    let mut predicted = Points::default();
    for (number, (workload, mix)) in YCSB.into_iter().enumerate() {
        for system in ALL.iter().copied() {
            let Some(model) = model(points, number, mix, system) else { continue };
            let ns_at = |at: f64| model.ns_per_operation(threads(&model, system, at as usize));
            let mut add = |at, ns| predicted.add(Point { ns, ..Point::of(workload, system, at, 0) });
            let Some(measured) = points.median_ns(workload, system, MEASURED_AT) else { continue };
            let on_two = ns_at(MEASURED_AT);
            add(MEASURED_AT, on_two);
            if (1.0 / TOLERANCE..=TOLERANCE).contains(&(on_two / measured)) {
                PREDICTED_AT.iter().copied().filter(|at| *at > MEASURED_AT).for_each(|at| add(at, ns_at(at)));
            }
        }
    }
    predicted
}

/// Returns the threads of a system: as measured on two, and in proportion to their work on more.
fn threads(model: &Model, system: &str, thread_count: usize) -> Threads {
    match (system, thread_count) {
        ("hikv", 2) => Threads { serving: 1, background: 1 },
        ("hikv", _) => model.split(thread_count),
        _ => Threads { serving: thread_count, background: 0 },
    }
}

/// Returns the model of a system under a mix; `None` if its service times were not measured.
fn model(points: &Points, number: usize, mix: Mix, system: &str) -> Option<Model> {
    let ns_of = |number: usize, kind: usize| points.median_ns(SERVICES[number][kind], system, 1.0);
    let read = ns_of(number, READ).or_else(|| ns_of(READS_OF, READ))?;
    let written = ns_of(number, WRITE).or_else(|| Some(ns_of(number, CHANGE)? - read));
    let (shares, written) = (mix.shares(), written.unwrap_or(0.0));
    if written == 0.0 && shares.writes + shares.changes > 0 {
        return None;
    }
    // A write searches as a read does, and holds its lock for the rest.
    let search = read.min(written);
    let services = Services {
        read,
        search,
        locked: written - search,
        scan: ns_of(number, SCAN).unwrap_or(0.0),
        apply: if system == "hikv" { ns_of(number, APPLY).unwrap_or(0.0) } else { 0.0 },
    };
    Some(Model {
        services,
        shares,
        record_count: PAIR_COUNT,
        place_count: place_count(system),
        queue_capacity: QUEUE_CAPACITY,
    })
}

/// Returns the number of a system's locks: of buckets, or of leaves that are about 70 % full.
fn place_count(system: &str) -> u64 {
    let pairs_a_place = match system {
        "hikv" => 2,
        "nvstore" => 118,
        _ => 45,
    };
    PAIR_COUNT / pairs_a_place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_needs_service_times() {
        let mut points = Points::default();
        assert!(predict(&points).is_empty());
        let mut add = |workload, system, at, ns| points.add(Point { ns, ..Point::of(workload, system, at, 0) });
        [("ycsb-c-read", 500.0), ("ycsb-a-read", 500.0), ("ycsb-a-write", 2000.0), ("ycsb-a-apply", 400.0)]
            .into_iter()
            .for_each(|(workload, ns)| add(workload, "hikv", 1.0, ns));
        add("ycsb-a", "hikv", 2.0, 1300.0);
        add("ycsb-c", "hikv", 2.0, 700.0);
        add("ycsb-c-read", "fptree", 1.0, 1000.0);
        add("ycsb-c", "fptree", 2.0, 520.0);
        let predicted = predict(&points);
        let ns = |workload, system, at| predicted.median_ns(workload, system, at);
        let is_near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 0.02;
        // Reads scale; half of YCSB A are writes, which the backend keeps up with.
        assert!(is_near(ns("ycsb-c", "fptree", 32.0), 1000.0 / 32.0));
        assert!(is_near(ns("ycsb-a", "hikv", 2.0), 1250.0));
        assert!(ns("ycsb-a", "hikv", 16.0).unwrap() < 1250.0 / 10.0);
        assert_eq!((ns("ycsb-a", "fptree", 2.0), ns("ycsb-b", "hikv", 2.0)), (None, None));
        // On two threads a read was measured to take longer than 500 ns.
        assert!(is_near(ns("ycsb-c", "hikv", 2.0), 500.0) && ns("ycsb-c", "hikv", 4.0).is_none());
    }
}
