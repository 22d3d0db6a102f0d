//! The model against hand-made cases, its inputs against the pages that they come from, and its tables against
//! `docs/scale.md`.

use std::fs;
use std::path::PathBuf;

use scale::cluster::{Cluster, Partition};
use scale::measured;
use scale::page;
use scale::plan::{Bottleneck, Memory, Plan};
use scale::systems::System;
use scale::year::simulate;

fn docs(page: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn pages_have_the_measured_figures() {
    for figure in measured::ALL {
        let page = docs(figure.page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(figure.quote), "docs/{} does not say '{}'", figure.page, figure.quote);
    }
}

#[test]
fn page_has_the_present_tables() {
    let page = docs("scale.md");
    assert_eq!(
        page::updated(&page).as_deref(),
        Ok(page.as_str()),
        "run `cargo run -p hikv-scale -- write docs/scale.md`"
    );
}

#[test]
fn page_without_a_place_is_refused() {
    assert_eq!(page::updated("# Growing\n"), Err("no place for the table measured".into()));
}

#[test]
fn placements_cover_all_items_with_distinct_homes() {
    for system in System::ALL {
        for machines in [system.machines_min(), 5, 64] {
            let cluster = system.place(machines);
            let total: f64 = cluster.partitions.iter().map(|partition| partition.share).sum();
            assert!((total - 1.0).abs() < 1e-9, "{system:?} on {machines}: {total}");
            for Partition { homes, .. } in &cluster.partitions {
                assert_eq!(homes.len(), system.copies(), "{system:?} on {machines}");
                assert!(homes.iter().all(|&home| home < machines), "{system:?} on {machines}: {homes:?}");
                assert!(homes.iter().enumerate().all(|(at, home)| !homes[..at].contains(home)), "{homes:?}");
            }
        }
    }
}

#[test]
fn placements_do_not_change_between_runs() {
    for system in System::ALL {
        assert_eq!(system.place(20), system.place(20));
    }
}

#[test]
fn kafka_streams_is_even() {
    assert!(System::Streams.place(10).unevenness() < 1.000_001);
}

#[test]
fn added_machine_takes_only_its_share() {
    for system in System::ALL {
        let before = system.place(30);
        let mut after = before.clone();
        let moved = after.add_machine();
        assert!((after.loads()[30] - moved).abs() < 1e-9, "{system:?}");
        let mean = system.copies() as f64 / 31.0;
        assert!(moved > 0.6 * mean && moved <= mean, "{system:?}: {moved} of {mean}");
        let total: f64 = after.loads().iter().sum();
        assert!((total - system.copies() as f64).abs() < 1e-9, "{system:?}: {total}");
        for Partition { homes, .. } in &after.partitions {
            assert!(homes.iter().enumerate().all(|(at, home)| !homes[..at].contains(home)), "{homes:?}");
        }
    }
}

#[test]
fn sources_are_the_other_homes() {
    let partition = |homes: &[usize]| Partition { share: 0.25, homes: homes.to_vec() };
    let partitions = [[0, 1], [0, 2], [1, 2], [2, 0]].map(|homes| partition(&homes)).to_vec();
    let cluster = Cluster { machines: 4, partitions };
    assert_eq!([0, 1, 2, 3].map(|machine| cluster.sources(machine)), [2, 2, 2, 0]);
}

#[test]
fn fullest_machine_has_space_by_one_machine() {
    for memory in [Memory::Whole, Memory::Limited] {
        let plan = Plan::new(System::Streams, memory, 1e11);
        assert!(plan.items_of_fullest() <= memory.items_max());
        let fewer = System::Streams.place(plan.cluster.machines - 1);
        assert!(2e11 / fewer.machines as f64 * fewer.unevenness() > memory.items_max());
        for system in [System::Cassandra, System::Fleet] {
            let plan = Plan::new(system, memory, 1e11);
            assert!(plan.items_of_fullest() <= memory.items_max(), "{system:?}");
        }
    }
}

#[test]
fn slowest_resource_limits_filling() {
    let plan = Plan::new(System::Fleet, Memory::Limited, 1e10);
    let (seconds, bottleneck) = plan.filling(1e9);
    assert_eq!((seconds.round(), bottleneck), ((1e9 * 331.0 / 625e6_f64).round(), Bottleneck::Network));
    let plan = Plan::new(System::Streams, Memory::Limited, 1e10);
    assert_eq!(plan.filling(1e9).1, Bottleneck::Puts);
    assert_eq!(plan.filling(1e9).0.round(), (1e9 / (490_431.0 * plan.stores())).round());
}

#[test]
fn years_without_copies_sum_outages() {
    let plan = Plan::new(System::Fleet, Memory::Limited, 1e10);
    let year = simulate(&plan, 400, 3);
    let machines = plan.cluster.machines as f64;
    let expected = (year.kills * plan.opening_seconds() + year.losses * plan.refill_seconds()) / machines;
    // Failures that overlap, and uneven shards, make the difference.
    assert!((year.unserved_seconds / expected - 1.0).abs() < 0.05, "{} {expected}", year.unserved_seconds);
    assert!((year.kills / machines - 12.0).abs() < 1.0, "{}", year.kills);
}

#[test]
fn copies_help() {
    let years = System::ALL.map(|system| simulate(&Plan::new(system, Memory::Limited, 1e11), 20, 5));
    let [streams, cassandra, fleet] = years;
    assert!(cassandra.unserved_seconds < streams.unserved_seconds && streams.unserved_seconds < fleet.unserved_seconds);
    assert!(cassandra.lost_partitions <= streams.lost_partitions && streams.lost_partitions < fleet.lost_partitions);
}

#[test]
fn simulation_repeats_itself() {
    let plan = Plan::new(System::Cassandra, Memory::Limited, 1e10);
    assert_eq!(simulate(&plan, 5, 9), simulate(&plan, 5, 9));
    assert_ne!(simulate(&plan, 5, 9), simulate(&plan, 5, 10));
}
