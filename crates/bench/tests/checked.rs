//! Every workload on a store that is right, and on twins each broken in one way: their wrong results must be counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::{Config, Event, Persists, Row, Subject, Workload, run};
use hikv::Error;

/// How a twin is broken.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// Reads answer with the value of another key.
    OtherValue,
    /// Reads miss the last byte.
    CutValue,
    /// Reads find nothing.
    LostKeys,
    /// Reads of absent keys find something, and so do deletes.
    GhostKeys,
    /// Deletes say that nothing was there.
    LostDeletes,
    /// Scans leave out the key that they begin with.
    LateScans,
    /// Scans end after two items.
    ShortScans,
    /// Scans go on from their second item to their fourth, and then to their third.
    UnorderedScans,
}

struct Twin {
    items: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fault: Fault,
}

impl Twin {
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

impl Twin {
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

impl Subject for Twin {
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
        records: 500,
        pass: Duration::from_millis(5),
        threads: 2,
        key_bytes: 24,
        plan: None,
        keeps_order: false,
        shared_bytes: 9,
        value_bytes: 32,
    }
}

fn rows(fault: Fault, workloads: &[Workload]) -> (Vec<Row>, Twin) {
    let twin = Twin { items: Mutex::default(), fault };
    let mut rows = Vec::new();
    let keep = |event| {
        match event {
            Event::Loaded { records, .. } => assert_eq!(records, 500),
            Event::Measured(row) => rows.push(row),
        }
        ControlFlow::Continue(())
    };
    run(&twin, &config(workloads), &|| false, keep).unwrap();
    (rows, twin)
}

#[test]
fn a_right_store_has_no_errors_and_keeps_its_records() {
    let (rows, twin) = rows(Fault::None, &Workload::ALL);
    assert!(rows.iter().map(|row| row.workload).eq(Workload::ALL.map(Workload::name)));
    for row in rows {
        assert_eq!(row.errors, 0, "{row}");
        assert_eq!(row.queued_count, (row.workload != "rebuild").then_some(3), "{row}");
        assert!(row.ops_per_sec > 0.0 && row.p50_us > 0.0 && row.p50_us <= row.p999_us, "{row}");
    }
    assert_eq!(twin.items.lock().unwrap().len(), 500, "what the workloads added or removed is put right");
}

#[test]
fn records_that_run_out_end_the_pass_early() {
    let (rows, _) = rows(Fault::None, &[Workload::Insert, Workload::Delete]);
    for row in rows {
        assert_eq!((row.ops_per_sec * row.seconds).round(), 500.0, "{row}");
    }
}

#[test]
fn every_fault_is_counted() {
    use Workload::*;
    let caught: &[(Fault, &[Workload])] = &[
        (
            Fault::OtherValue,
            &[Get, GetOwned, GetWith, MultiGet, Rebuild, Scan, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF],
        ),
        (Fault::CutValue, &[Get, GetOwned, GetWith, MultiGet, Rebuild, Scan, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF]),
        (Fault::LostKeys, &[Get, GetOwned, GetWith, MultiGet, Rebuild, Scan, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF]),
        (Fault::GhostKeys, &[Miss]),
        (Fault::LostDeletes, &[Delete, DeleteOrdered]),
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
fn a_stop_ends_a_pass_and_its_workload_is_not_reported() {
    let twin = Twin { items: Mutex::default(), fault: Fault::None };
    let config = Config { pass: Duration::MAX, ..config(&[Workload::Get]) };
    let loaded = AtomicBool::new(false);
    let mut events = 0;
    let count = |_| {
        events += 1;
        loaded.store(true, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    run(&twin, &config, &|| loaded.load(Ordering::Relaxed), count).unwrap();
    assert_eq!(events, 1);
}

#[test]
fn the_reader_of_the_report_may_end_the_run() {
    let twin = Twin { items: Mutex::default(), fault: Fault::None };
    let mut events = 0;
    let once = |_| {
        events += 1;
        if events == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    run(&twin, &config(&[Workload::Get, Workload::Miss]), &|| false, once).unwrap();
    assert_eq!(events, 2);
}
