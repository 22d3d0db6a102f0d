//! Every workload on a correct store and on variants with one fault each, whose wrong results must be counted.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bench::{Bounds, Config, Error, Event, Need, Persists, Records, Row, Subject, Workload, run};

/// The fault of a variant.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// Reads return the value of another key.
    OtherValue,
    /// Reads miss the last byte.
    CutValue,
    /// Reads find nothing.
    LostKeys,
    /// Reads of absent keys find something, and so do deletes.
    GhostKeys,
    /// Deletes report that nothing existed.
    LostDeletes,
    /// Scans leave out the key at which they begin.
    LateScans,
    /// Scans end after two items.
    ShortScans,
    /// Scans continue from the second item to the fourth, and then to the third.
    UnorderedScans,
    /// The store reports that it has no scans.
    NoScans,
}

struct Faulty {
    items: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fault: Fault,
}

impl Faulty {
    fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        let items = self.items.lock().unwrap();
        let value = items.get(key).cloned();
        match self.fault {
            Fault::OtherValue => value.and_then(|value| items.values().find(|other| **other != value).cloned()),
            Fault::CutValue => value.map(|value| value[..value.len() - 1].to_vec()),
            Fault::LostKeys => None,
            Fault::GhostKeys => value.or_else(|| Some(vec![0; 32])),
            _ => value,
        }
    }
}

impl Faulty {
    fn scanned_keys(&self, from: &[u8]) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = self.items.lock().unwrap().range(from.to_vec()..).map(|(key, _)| key.clone()).collect();
        match self.fault {
            Fault::LateScans => drop(keys.remove(0)),
            Fault::ShortScans => keys.truncate(2),
            Fault::UnorderedScans if keys.len() > 3 => keys.swap(2, 3),
            _ => {}
        }
        keys
    }
}

impl Subject for Faulty {
    fn name(&self) -> String {
        "variant".into()
    }

    fn offers(&self, need: Need) -> bool {
        self.fault != Fault::NoScans || need != Need::Scans
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        self.get_with(key, |found| found.clone_into(value))
    }

    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.value(key))
    }

    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Ok(self.value(key).map(|value| read(&value)).is_some())
    }

    fn multi_get_with(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().enumerate().for_each(|(place, key)| found(place, self.value(key).as_deref()));
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.items.lock().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let removed = self.items.lock().unwrap().remove(key).is_some();
        Ok(removed && self.fault != Fault::LostDeletes)
    }

    fn put_in_order(&self) -> Result<(), Error> {
        Ok(())
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        for key in self.scanned_keys(from) {
            let Some(value) = self.value(&key) else { continue };
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn transact(
        &self,
        keys: [&[u8]; 2],
        values: Option<[&[u8]; 2]>,
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        for (place, key) in keys.into_iter().enumerate() {
            self.value(key).iter().for_each(|value| found(place, value));
        }
        let puts = values.iter().flat_map(|values| keys.iter().zip(values));
        { puts }.try_for_each(|(key, value)| self.put(key, value))
    }

    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        let first = self.items.lock().unwrap().pop_first();
        Ok(first.map(|(key, _)| key).filter(|_| self.fault != Fault::LostDeletes))
    }

    fn queued_count(&self) -> Option<u64> {
        Some(3)
    }

    fn persists(&self) -> Option<Persists> {
        Some(Persists::default())
    }
}

fn config(workloads: &[Workload]) -> Config {
    Config {
        workloads: workloads.to_vec(),
        records: Records { count: 500, key_bytes: 24, shared_bytes: 9, value_bytes: 32 },
        pass: Duration::from_millis(5),
        threads: 2,
        plan: None,
        keeps_order: false,
        seed: 0,
    }
}

fn rows(fault: Fault, workloads: &[Workload]) -> (Vec<Row>, Faulty) {
    let subject = Faulty { items: Mutex::default(), fault };
    let mut rows = Vec::new();
    let keep = |event| {
        match event {
            Event::Loaded { records, .. } => assert_eq!(records, 500),
            Event::Measured(row) => rows.push(*row),
        }
        ControlFlow::Continue(())
    };
    run(&subject, &config(workloads), &Bounds::default(), &|| false, keep).unwrap();
    (rows, subject)
}

#[test]
fn correct_store_has_no_errors() {
    let (rows, subject) = rows(Fault::None, &Workload::ALL);
    assert!(rows.iter().map(|row| row.workload).eq(Workload::ALL.map(Workload::name)));
    for row in rows {
        assert_eq!(row.errors, 0, "{row}");
        assert_eq!(row.queued_count, (row.workload != "rebuild").then_some(3), "{row}");
        assert_eq!(row.own_ns.is_some(), row.workload != "rebuild", "{row}");
        assert!(row.ops_per_sec > 0.0 && row.p50_us > Some(0.0) && row.p50_us <= row.p999_us, "{row}");
        assert!(row.p999_us <= row.p9999_us && row.p9999_us <= row.max_us, "{row}");
    }
    assert_eq!(subject.items.lock().unwrap().len(), 500, "added and removed records are restored");
}

#[test]
fn exhausted_records_end_the_pass_early() {
    let (rows, _) = rows(Fault::None, &[Workload::Insert, Workload::Delete]);
    for row in rows {
        assert_eq!((row.ops_per_sec * row.seconds).round(), 500.0, "{row}");
    }
}

#[test]
fn every_fault_is_counted() {
    use Workload::*;
    const READING_NO_VALUE: &[Workload] =
        &[Miss, Insert, Update, Delete, InsertOrdered, UpdateOrdered, DeleteOrdered, TransactFirst];
    let reads: Vec<_> = Workload::ALL.into_iter().filter(|workload| !READING_NO_VALUE.contains(workload)).collect();
    let caught: &[(Fault, &[Workload])] = &[
        (Fault::OtherValue, &reads),
        (Fault::CutValue, &reads),
        (Fault::LostKeys, &reads),
        (Fault::GhostKeys, &[Miss]),
        (Fault::LostDeletes, &[Delete, DeleteOrdered, TransactFirst]),
        (Fault::LateScans, &[Rebuild, Scan, YcsbE]),
        (Fault::ShortScans, &[Rebuild, Scan, YcsbE]),
        (Fault::UnorderedScans, &[Rebuild, Scan, YcsbE]),
    ];
    for (fault, workloads) in caught {
        for row in rows(*fault, workloads).0 {
            assert!(row.errors > 0, "{fault:?} escaped: {row}");
        }
    }
}

#[test]
fn stopped_pass_is_reported() {
    let subject = Faulty { items: Mutex::default(), fault: Fault::None };
    let config = Config { pass: Duration::MAX, ..config(&[Workload::Get, Workload::Miss]) };
    // The second check after the load comes after a burst of operations.
    let looks = AtomicU32::new(0);
    let mut rows = Vec::new();
    let loaded = AtomicBool::new(false);
    let keep = |event| {
        match event {
            Event::Loaded { .. } => loaded.store(true, Ordering::Relaxed),
            Event::Measured(row) => rows.push(*row),
        }
        ControlFlow::Continue(())
    };
    let stop = || loaded.load(Ordering::Relaxed) && looks.fetch_add(1, Ordering::Relaxed) > 8;
    run(&subject, &config, &Bounds::default(), &stop, keep).unwrap();
    assert_eq!(rows.len(), 1, "the second workload never began");
    let row = &rows[0];
    assert!(row.workload == "get" && row.operations > 0 && row.errors == 0, "{row}");
    assert_eq!((row.p50_us, row.max_us), (None, None), "latencies were not measured: {row}");
}

#[test]
fn unsupported_workload_is_refused_before_load() {
    let subject = Faulty { items: Mutex::default(), fault: Fault::NoScans };
    let config = config(&[Workload::InsertOrdered, Workload::YcsbE]);
    let refused = run(&subject, &config, &Bounds::default(), &|| false, |event| panic!("{event:?}"));
    assert_eq!(refused.unwrap_err().to_string(), "variant has no ordered scans, which ycsb-e needs");
    assert!(subject.items.lock().unwrap().is_empty());
}

/// Runs each workload on a store without order: it uses no operation that it does not declare.
#[test]
fn workloads_need_what_they_say() {
    struct Points(Faulty);
    impl Subject for Points {
        fn name(&self) -> String {
            "points".into()
        }

        fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
            self.0.get_into(key, value)
        }

        fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
            self.0.put(key, value)
        }

        fn delete(&self, key: &[u8]) -> Result<bool, Error> {
            self.0.delete(key)
        }
    }
    for workload in Workload::ALL {
        let points = Points(Faulty { items: Mutex::default(), fault: Fault::None });
        let fits = workload.needs().iter().all(|need| points.offers(*need));
        let mut errors = None;
        let outcome = run(&points, &config(&[workload]), &Bounds::default(), &|| false, |event| {
            if let Event::Measured(row) = event {
                errors = Some(row.errors);
            }
            ControlFlow::Continue(())
        });
        assert_eq!((outcome.is_ok(), errors), (fits, fits.then_some(0)), "{workload:?}");
    }
}

#[test]
fn machine_bounds_exist_except_for_mixes() {
    use Workload::*;
    let place = tempfile::tempdir().unwrap();
    let config = config(&[GetWith, Miss, MultiGet, InsertOrdered, Update, Delete, Scan, YcsbA]);
    let bounds = Bounds::measure(place.path(), &config, pmem::Latency::default(), &|| false).unwrap();
    let bounded: HashSet<_> =
        Workload::ALL.into_iter().filter(|workload| bounds.of(*workload).is_some()).map(Workload::name).collect();
    let expected = [
        Get,
        GetOwned,
        GetWith,
        Miss,
        MultiGet,
        Scan,
        Insert,
        Update,
        Delete,
        InsertOrdered,
        UpdateOrdered,
        DeleteOrdered,
    ];
    assert_eq!(bounded, expected.map(Workload::name).into_iter().collect());
    assert!(expected.iter().all(|workload| bounds.of(*workload).is_some_and(|bound| bound.ns > 0.0)));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "its file is gone");
}

#[test]
fn closed_report_reader_ends_the_run() {
    let subject = Faulty { items: Mutex::default(), fault: Fault::None };
    let mut events = 0;
    let once = |_| {
        events += 1;
        if events == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    run(&subject, &config(&[Workload::Get, Workload::Miss]), &Bounds::default(), &|| false, once).unwrap();
    assert_eq!(events, 2);
}
