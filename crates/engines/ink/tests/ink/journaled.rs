//! The engine on the journal, on a disk that loses, tears and reorders what was not synced.

use engine::Clock;
use engine_ink::{Ink, Options};
use journal::{JournalError, JournalOptions, Journaled};
use pmem::Durability;
use pmem_os::HostDram;
use pmem_sim::{Model, SimDisk, SimFile};
use testkit::{Contents, Crashed, Failure, Made, Script, Settings, Visitor, explore};

use crate::crash::{dense_batch, shape};
use crate::subject::{PARAMETERS, try_get};

type OnDisk = Ink<Journaled<SimFile>, HostDram>;

struct InkOnDisk;

const OPTIONS: Options = Options { order: 7, in_place: true };

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

impl Made for InkOnDisk {
    type Engine = OnDisk;
    type Medium = SimDisk;

    fn format(on: SimDisk, clock: Clock) -> Result<OnDisk, Failure> {
        let made = match Journaled::open(on.files(), journal(), &|_| {}) {
            Err(JournalError::Unfinished) => {
                Journaled::create(on.files(), PARAMETERS.region_bytes, PARAMETERS.uuid, journal())
            }
            opened => opened,
        };
        Ok(Ink::format(made.map_err(failure)?, HostDram, &PARAMETERS, OPTIONS)?.by_clock(clock))
    }

    fn open(on: SimDisk, clock: Clock) -> Result<OnDisk, Failure> {
        let opened = Journaled::open(on.files(), journal(), &|_| {}).map_err(failure)?;
        Ok(Ink::open(opened, HostDram, OPTIONS)?.by_clock(clock))
    }

    fn try_get(store: &Crashed<Self>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        try_get(&store.0, key)
    }

    fn settle(engine: &OnDisk) -> Result<(), Failure> {
        engine.tree().medium().checkpoint().map_err(|error| Failure::Other(error.to_string()))
    }

    fn needed_bytes(engine: &OnDisk, _contents: &Contents) -> Option<u64> {
        engine.tree().check(&mut |_| {}).ok().map(|figures| figures.used_bytes)
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
    let scripts = [Script::seeded(7, &shape(8)), dense_batch()];
    let counts = explore::<Crashed<InkOnDisk>>(&scripts, &settings).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(60, 30, 0), "{counts:?}");
}
