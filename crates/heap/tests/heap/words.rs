//! Words that a call has set are durable before anything that the caller stores next, and the data that a word refers
//! to is durable before the word.

use heap::{EngineNumber, FEATURE_BATCHES, FEATURE_EXPIRY, Heap, Region};
use pmem::{Bytes, Durability, Level, Persist};
use pmem_sim::{Image, Model, Sim};

use crate::killed::{IMAGE_COUNT_MAX, at_steps};
use crate::memory::{Host, PARAMETERS};

fn formatted(model: Model) -> (Sim, Heap<Host>) {
    let sim = Sim::new(0, model);
    let heap = Heap::format(&sim, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
    heap.region().finish_format(&sim).unwrap();
    (sim, heap)
}

fn images(sim: &Sim) -> Vec<Image> {
    sim.images(IMAGE_COUNT_MAX, sim.step_count())
}

/// Returns the result of `read` for each of these images.
fn found<T>(images: &[Image], read: impl Fn(&Sim, &Heap<Host>) -> T) -> Vec<T> {
    assert!(!images.is_empty());
    let open = |image| {
        let sim = Sim::from_image(image, Model::Line);
        let heap = Heap::open(&sim, EngineNumber::HIKV, Host::default()).unwrap();
        read(&sim, &heap)
    };
    images.iter().map(open).collect()
}

#[test]
fn new_region_is_durable_and_records_purpose() {
    for model in [Model::Line, Model::Span] {
        let (sim, _) = formatted(model);
        let made_for = found(&images(&sim), |sim, _| Region::made_for(sim));
        assert!(made_for.iter().all(|level| *level == Some(Durability::Power)), "{made_for:?}");
    }
}

#[test]
fn word_that_was_set_is_set() {
    let (sim, heap) = formatted(Model::Line);
    heap.region().set_snapshot_epoch(&sim, 7);
    assert!(
        found(&images(&sim), |sim, heap| heap.region().snapshot_epoch(sim).unwrap()).iter().all(|epoch| *epoch == 7)
    );
    heap.region().set_generation(&sim, 3);
    assert!(found(&images(&sim), |_, heap| heap.region().generation()).iter().all(|generation| *generation == 3));
    heap.region().set_features(&sim, FEATURE_EXPIRY);
    assert!(found(&images(&sim), |_, heap| heap.region().has_features(FEATURE_EXPIRY)).iter().all(|is_set| *is_set));
}

/// Copies of the superblock are stored one after the other, even by two calls: one of them is always intact.
#[test]
fn other_copy_is_durable_during_store() {
    let (sim, heap) = formatted(Model::Line);
    let crashes = at_steps(&sim, images, || {
        heap.region().set_features(&sim, FEATURE_EXPIRY);
        heap.region().set_features(&sim, FEATURE_BATCHES);
    });
    assert!(found(&crashes, |_, heap| heap.region().superblock().uuid).iter().all(|uuid| *uuid == PARAMETERS.uuid));
}

#[test]
fn image_is_durable_before_it_is_named() {
    for model in [Model::Line, Model::Span] {
        let (sim, heap) = formatted(model);
        for number in 1..4 {
            let reservation = heap.reserve_extent(&sim, 300_000).unwrap();
            let bytes = [number; 64];
            // SAFETY: the extent is reserved.
            unsafe { sim.stream(reservation.place().offset, &[&bytes]) };
            let crashes = at_steps(&sim, images, || heap.image().name(&sim, reservation).unwrap());
            let is_whole = |sim: &Sim, heap: &Heap<Host>| {
                let named = heap.image().named()?;
                assert_eq!(named.number, u32::from(number));
                // SAFETY: no thread stores to it.
                Some(unsafe { sim.bytes(named.place.offset.span(64)) }.unwrap() == bytes)
            };
            assert!(!found(&crashes, is_whole).contains(&Some(false)), "an image is named and is not there");
            assert!(found(&images(&sim), is_whole).iter().all(|is_whole| *is_whole == Some(true)), "it is not durable");
            heap.forget_image(&sim);
            if model == Model::Line {
                assert!(found(&images(&sim), |_, heap| heap.image().named()).iter().all(Option::is_none));
            }
            sim.wait(sim.commit(Level::default())).unwrap();
        }
    }
}

const LAST_COUNT: usize = 24;

/// The next process sees the stores of a killed process and relies on them: the chunks that it finds, and the mark
/// over them.
#[test]
fn killed_process_data_is_durable_before_use() {
    for is_from_run in [false, true] {
        let (sim, heap) = formatted(Model::Line);
        if is_from_run {
            let run = heap.reserve_extent(&sim, 2_000_000).unwrap().publish();
            heap.free(&sim, run);
        }
        sim.wait(sim.commit(Level::default())).unwrap();
        let killed =
            at_steps(&sim, |sim| sim.killed().into_iter().collect(), || drop(heap.reserve_segment(&sim).unwrap()));
        // For a run the header is ordered before the zeroes, which change nothing here: less can be lost.
        let image_count_min = if is_from_run { 4 } else { LAST_COUNT };
        assert!(killed.len() > image_count_min, "{} images", killed.len());
        // The heads of segments are zeroed before these.
        for image in killed.iter().rev().take(LAST_COUNT) {
            let sim = Sim::from_image(image, Model::Line);
            let heap = Heap::open(&sim, EngineNumber::HIKV, Host::default()).unwrap();
            heap.sweep().finish(&sim);
            let segment = heap.reserve_segment(&sim).unwrap().publish();
            let extent = heap.reserve_extent(&sim, 300_000).unwrap().publish();
            let places = found(&images(&sim), |_, heap| [segment, extent].map(|place| heap.table().check_place(place)));
            assert!(places.iter().flatten().all(Result::is_ok), "{places:?}");
        }
    }
}
