//! HiKV on the journal, on a disk that loses, tears and reorders what was not synced.

use engine::HashOnly;
use journal::{JournalError, JournalOptions, Journaled};
use pmem::{Canary, Durability, Probe, Probed, Span};
use pmem_sim::{Model, SimDisk, SimFile, StepKind};
use testkit::{Failure, Script, Settings, Verdict, Violation, Visitor, explore, hunt};

use crate::scripts::{clears_and_reopens, everyday, growth, several_at_once};
use crate::subject::{Crashed, Over, REGION_BYTES};

/// Tells the disk of the medium's steps, so that others come by there.
pub(crate) struct Reports(SimDisk);

impl Probe for Reports {
    fn flushed(&self, _span: Span) {
        self.0.report(StepKind::Flush);
    }

    fn waits(&self) {
        self.0.report(StepKind::WaitBegin);
    }
}

/// The journal over a crashed disk.
pub(crate) type OnDisk = Probed<Journaled<SimFile>, Reports>;

/// The store that is crashed.
type Journal<O = HashOnly> = Crashed<O, OnDisk>;

/// Small segments, so that few changes fill the log and have it checkpointed.
pub(crate) fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level: Durability::Power,
        log_bytes_max: 3 << 14,
        segment_bytes: 1 << 14,
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

impl Over for OnDisk {
    type Medium = SimDisk;

    fn make(on: SimDisk) -> Result<OnDisk, Failure> {
        let journal = match Journaled::open(on.files(), options(), &|_| {}) {
            Err(JournalError::Unfinished) => Journaled::create(on.files(), REGION_BYTES, [7; 16], options()),
            opened => opened,
        };
        let journal = journal.map_err(failure)?;
        Ok(Probed::with_probe(journal, Reports(on)))
    }

    fn open(on: SimDisk) -> Result<OnDisk, Failure> {
        let journal = Journaled::open(on.files(), options(), &|_| {}).map_err(failure)?;
        Ok(Probed::with_probe(journal, Reports(on)))
    }

    fn settle(&self) -> Result<(), Failure> {
        self.inner().checkpoint().map_err(|error| Failure::Other(error.to_string()))
    }
}

fn settings() -> Settings {
    Settings {
        models: vec![Model::Disk],
        region_bytes: REGION_BYTES,
        images_per_step_max: 8,
        images_per_op_max: 100,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter],
        ..Settings::default()
    }
}

fn passes(scripts: &[Script], settings: &Settings) -> testkit::Counts {
    explore::<Journal>(scripts, settings).unwrap_or_else(|objection| panic!("{objection}"))
}

fn caught(canary: Canary, scripts: &[Script], settings: Settings) -> Box<Violation> {
    match hunt::<Journal>(canary, scripts, &settings) {
        Verdict::Caught(violation) => violation,
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught: {counts:?}"),
    }
}

#[test]
fn everyday_operations_survive() {
    let counts = passes(&everyday()[..1], &settings());
    assert!(counts.images > 100 && counts.nested_images > 100 && counts.visits > 20, "{counts:?}");
}
