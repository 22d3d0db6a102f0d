//! The simulated region as a medium: growth, faults, canaries, and the observer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use pmem::{Bytes, Canary, Level, Medium, MediumError, Offset, Persist, Space, Taken};
use pmem_sim::{Model, REGION_BYTES_MAX, Sim, StepKind};

const MODELS: [Model; 2] = [Model::Line, Model::Span];

#[test]
fn growth_moves_nothing_and_adds_zeroes() {
    for model in MODELS {
        let sim = Sim::new(4096, model);
        let base = sim.base();
        sim.store(Offset(0), 1, Ordering::Relaxed);
        sim.grow(1 << 20).expect("there is space");
        assert_eq!((sim.base(), sim.len_bytes()), (base, 1 << 20));
        assert_eq!(sim.load(Offset((1 << 20) - 8), Ordering::Relaxed), 0);
        assert_eq!(sim.images(1, 0)[0].len_bytes(), 1 << 20);
        let limit = MediumError::Limit { wanted_bytes: REGION_BYTES_MAX + 1, limit_bytes: REGION_BYTES_MAX };
        assert_eq!(sim.grow(REGION_BYTES_MAX + 1), Err(limit));
    }
}

/// At the start of a line, within one, at the region's end; by a flush and by a stream.
#[test]
fn empty_span_is_in_no_line() {
    for (model, image_count) in [(Model::Line, 2), (Model::Span, 1)] {
        let sim = Sim::new(4096, model);
        sim.store(Offset(32), 1, Ordering::Relaxed);
        for at in [0, 16, 32, 64, 4096].map(Offset) {
            sim.flush(at.span(0));
            // SAFETY: no other thread uses the region.
            unsafe { sim.stream(at, &[&[]]) };
        }
        sim.wait(sim.commit(Level::Strongest)).expect("a simulated wait succeeds");
        let images = sim.images(8, 0);
        assert_eq!(images.len(), image_count, "{model:?}");
        assert!(images.iter().any(|image| image.line(Offset(0)) == [0; 8]), "{model:?}");
    }
}

#[test]
#[should_panic(expected = "0 bytes at offset 0x1001 lie outside the region")]
fn empty_span_past_region_is_refused() {
    Sim::new(4096, Model::Line).flush(Offset(4097).span(0));
}

#[test]
fn growth_fails_where_it_was_asked_to() {
    let sim = Sim::new(4096, Model::Line);
    sim.fail_grow_after(1);
    sim.grow(8192).expect("the first growth");
    assert_eq!(sim.grow(16384), Err(MediumError::Full { wanted_bytes: 16384 }));
    assert_eq!(sim.grow(8192), Ok(()), "what is there already needs no room");
    assert_eq!(sim.len_bytes(), 8192);
    sim.fail_grow_after(u64::MAX);
    sim.grow(16384).expect("room again");
}

#[test]
fn only_the_chosen_step_is_broken() {
    let variant = Sim::new(4096, Model::Line).with_canary(Canary("FlushLeftOut"));
    assert!(variant.breaks(Canary("FlushLeftOut")));
    assert!(!variant.breaks(Canary("OrderLeftOut")));
    assert!(!Sim::new(4096, Model::Line).breaks(Canary("FlushLeftOut")));
}

/// Makes one call of each kind and returns the steps that the observer saw.
fn steps_of_every_call(model: Model) -> Vec<StepKind> {
    let sim = Sim::new(4096, model);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&seen);
    sim.observe(Box::new(move |_, kind| recorder.lock().expect("no recorder panics").push(kind)));
    sim.store(Offset(0), 1, Ordering::Relaxed);
    let _ = sim.compare_exchange(Offset(0), 1, 2);
    // SAFETY: no other thread uses the region.
    unsafe {
        sim.write(Offset(64), &[1; 100]);
        sim.stream(Offset(256), &[&[1; 100]]);
    }
    sim.flush(Offset(64).span(100));
    sim.order();
    assert_eq!(sim.publish(&[(Offset(512), 1), (Offset(520), 2)], 2), Taken::Yes);
    let ticket = sim.commit(Level::Strongest);
    sim.wait(ticket).expect("a simulated wait succeeds");
    sim.grow(8192).expect("there is space");
    sim.unobserve();
    sim.order();
    let seen = seen.lock().expect("no recorder panics").clone();
    assert_eq!(sim.step_count(), seen.len() as u64 + 1, "counted whether observed or not");
    seen
}

#[test]
fn every_call_is_a_step() {
    use StepKind::{
        Commit, CompareExchange, Flush, Grow, Order, PublishLast, PublishLogged, PublishWord, Store, Stream, WaitBegin,
        WaitEnd, Write,
    };
    let before = [Store, CompareExchange, Write, Stream, Flush, Order];
    let after = [Commit, WaitBegin, WaitEnd, Grow];
    let line = [PublishWord, PublishLast, Flush];
    let span = [PublishLogged, PublishWord, PublishLast];
    assert_eq!(steps_of_every_call(Model::Line), [&before[..], &line, &after].concat());
    assert_eq!(steps_of_every_call(Model::Span), [&before[..], &span, &after].concat());
}

#[test]
fn observer_may_use_medium_without_recursion() {
    let sim = Sim::new(4096, Model::Line);
    let calls = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&calls);
    sim.observe(Box::new(move |sim, _| {
        *counter.lock().expect("no counter panics") += 1;
        sim.order();
        assert!(!sim.images(8, 0).is_empty());
    }));
    sim.store(Offset(0), 1, Ordering::Relaxed);
    sim.flush(Offset(0).span(8));
    assert_eq!(*calls.lock().expect("no counter panics"), 2);
    assert_eq!(sim.step_count(), 4);
    assert_eq!(sim.images(8, 0).len(), 2, "the observer's fence completes no flush of the observed thread");
}

#[test]
fn large_pending_state_is_sampled() {
    let sim = Sim::new(2 << 20, Model::Line);
    // SAFETY: no other thread uses the region.
    unsafe { sim.write(Offset(0), &vec![7; 1 << 20]) };
    let images = sim.images(40, 3);
    assert_eq!(images.len(), 40);
    sim.flush(Offset(0).span(1 << 20));
    sim.order();
    assert_eq!(images[0].line(Offset(0)), [0; 8], "an image does not change after it was taken");
    assert_eq!(sim.images(40, 3).len(), 1);
    assert_eq!(sim.images(1, 0)[0].hash(), images[1].hash(), "everything survived, then and now");
}
