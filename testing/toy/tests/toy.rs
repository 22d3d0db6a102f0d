//! The toy engine behaves like a map, survives every crash, and its broken variants are caught.

use engine::Clock;
use engine_toy::{Toy, canary};
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Crashed, Failure, Made, Script, Settings, Shape, catches, engine_conforms, survives};

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

fn scripts_and_settings() -> (Vec<Script>, Settings) {
    let shape = Shape { clears: true, reopens: true, ..Shape::small(12) };
    let settings = Settings { region_bytes: REGION_BYTES, nested_images_max: 2, ..Settings::default() };
    (vec![Script::seeded(1, &shape), Script::seeded(2, &shape)], settings)
}

#[test]
fn it_answers_like_a_map() {
    let lacks = engine_conforms::<OfToy>(|| Sim::new(REGION_BYTES, Model::Line), 300, 0..8);
    let expected = ["order", "batch", "snapshots", "expiry", "conditional", "compaction", "salvage"];
    assert_eq!(lacks.unwrap_or_else(|mismatch| panic!("{mismatch}")), expected, "and nothing else is left out");
}

#[test]
fn it_survives_every_crash() {
    let (scripts, settings) = scripts_and_settings();
    survives::<Crashed<OfToy>>(&scripts, &settings);
}

#[test]
fn broken_variants_are_caught() {
    let (scripts, settings) = scripts_and_settings();
    for canary in [canary::IMAGE_NOT_ORDERED, canary::LOG_NOT_ORDERED] {
        catches::<Crashed<OfToy>>(canary, &scripts, &settings);
    }
}
