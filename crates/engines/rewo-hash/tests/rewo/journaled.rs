//! The engine on the journal, on a disk that loses, tears and reorders what was not synced.

use engine::Clock;
use engine_rewo_hash::RewoHash;
use journal::{JournalError, JournalOptions, Journaled};
use pmem::Durability;
use pmem_os::HostDram;
use pmem_sim::{Model, SimDisk, SimFile};
use testkit::{Crashed, Failure, Made, Script, Settings, Visitor, explore};

use crate::crash::{batch, refills, shape};
use crate::subject::PARAMETERS;

type OnDisk = RewoHash<Journaled<SimFile>, HostDram>;

struct OfRewoHashOnDisk;

/// Small segments, so that few changes fill the log and have it checkpointed.
fn journal() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level: Durability::Power,
        log_bytes_max: 3 << 14,
        segment_bytes: 1 << 14,
        block_bytes: 1 << 12,
        background: false,
        ..JournalOptions::default()
    }
}

fn failure(error: JournalError) -> Failure {
    match error {
        JournalError::Unfinished => Failure::Unfinished,
        other => Failure::Other(other.to_string()),
    }
}

impl Made for OfRewoHashOnDisk {
    type Engine = OnDisk;
    type Medium = SimDisk;

    fn format(on: SimDisk, clock: Clock) -> Result<OnDisk, Failure> {
        let made = match Journaled::open(on.files(), journal(), &|_| {}) {
            Err(JournalError::Unfinished) => {
                Journaled::create(on.files(), PARAMETERS.region_bytes, PARAMETERS.uuid, journal())
            }
            opened => opened,
        };
        Ok(RewoHash::format(made.map_err(failure)?, HostDram, &PARAMETERS)?.by_clock(clock))
    }

    fn open(on: SimDisk, clock: Clock) -> Result<OnDisk, Failure> {
        let opened = Journaled::open(on.files(), journal(), &|_| {}).map_err(failure)?;
        Ok(RewoHash::open(opened, HostDram)?.by_clock(clock))
    }

    fn settle(engine: &OnDisk) -> Result<(), Failure> {
        engine.medium().checkpoint().map_err(|error| Failure::Other(error.to_string()))
    }
}

#[test]
fn it_survives_on_a_disk() {
    let settings = Settings {
        models: vec![Model::Disk],
        region_bytes: PARAMETERS.region_bytes,
        images_per_step_max: 3,
        images_per_op_max: 15,
        nested_images_max: 1,
        visitors: vec![Visitor::Nobody],
        ..Settings::default()
    };
    let scripts = [Script::seeded(7, &shape(8)), batch(), refills()];
    let counts =
        explore::<Crashed<OfRewoHashOnDisk>>(&scripts, &settings).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(60, 30, 0), "{counts:?}");
}
