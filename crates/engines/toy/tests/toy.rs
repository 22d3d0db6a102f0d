//! The toy engine answers like a map, survives every crash, and its broken twins are caught.

use engine::Clock;
use engine_toy::Toy;
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, Failure, Made, Operations, Script, Settings, Shape, Subject, Verdict, conformance, explore, hunt,
};

const REGION_BYTES: u64 = 1 << 20;

struct OfToy;

impl Made for OfToy {
    type Engine = Toy<Sim, HostDram>;
    type Medium = Sim;

    fn format(on: Sim, _clock: Clock) -> Result<Toy<Sim, HostDram>, Failure> {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
        Ok(Toy::format(on, HostDram, &parameters)?)
    }

    fn open(on: Sim, _clock: Clock) -> Result<Toy<Sim, HostDram>, Failure> {
        Ok(Toy::open(on, HostDram)?)
    }
}

fn scripts() -> Vec<Script> {
    let shape = Shape { clears: true, reopens: true, ..Shape::small(12) };
    vec![Script::seeded(1, &shape), Script::seeded(2, &shape)]
}

fn settings() -> Settings {
    Settings { region_bytes: REGION_BYTES, nested_images_max: 2, ..Settings::default() }
}

#[test]
fn it_answers_like_a_map() {
    let open = || {
        let store = Crashed::<OfToy>::format(Sim::new(REGION_BYTES, Model::Line)).expect("there is room");
        Box::new(store) as Box<dyn Operations>
    };
    let shape = Shape { clears: true, ..Shape::small(300) };
    conformance(open, &shape, 0..8).unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

#[test]
fn it_survives_every_crash() {
    explore::<Crashed<OfToy>>(&scripts(), &settings()).unwrap_or_else(|objection| panic!("{objection}"));
}

#[test]
fn its_twins_are_caught() {
    for canary in [engine_toy::canary::IMAGE_NOT_ORDERED, engine_toy::canary::LOG_NOT_ORDERED] {
        let verdict = hunt::<Crashed<OfToy>>(canary, &scripts(), &settings());
        assert!(matches!(verdict, Verdict::Caught(_)), "{canary:?}: {verdict:?}");
    }
}
