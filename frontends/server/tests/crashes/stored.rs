//! The collections of a store, read from its items by the rules of `docs/format/collections.md` and not by the server's
//! code, and their invariants.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Catalog, Space, TreeId, database_name};
use engine::{Cursor, Engine, Error, Expiry};
use testkit::Contents;

use crate::streams;

const TREE: &str = "hikv:collections";
/// The databases that scripts use.
const DATABASES: [usize; 2] = [0, 1];

const HASH: u8 = 1;
const SET: u8 = 2;
const LIST: u8 = 3;
const SORTED_SET: u8 = 4;
const STREAM: u8 = 5;

struct Record {
    collection_type: u8,
    id: u64,
    count: u64,
    positions: Option<(u64, u64)>,
    /// Of a stream: the last id, the greatest deleted one, entries added, the last number.
    stream: Option<[u64; 6]>,
    expiry: Expiry,
}

pub(crate) type Elements = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree and a key in it.
type Place = (u32, Vec<u8>);

/// Everything that is stored for collections, and the strings of the databases.
#[derive(Default)]
pub(crate) struct Stored {
    databases: Vec<TreeId>,
    strings: BTreeMap<Place, Vec<u8>>,
    next_id: u64,
    records: BTreeMap<Place, Record>,
    elements: BTreeMap<u64, Elements>,
    dead: BTreeSet<u64>,
    due: BTreeMap<(u64, u64), Place>,
    flushed: BTreeSet<u32>,
    faults: Vec<String>,
}

pub(crate) fn big(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

pub(crate) fn little(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn place_of(bytes: &[u8]) -> Option<Place> {
    let (tree, key) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*tree), key.to_vec()))
}

fn record_of(value: &[u8], expiry: Expiry) -> Option<Record> {
    let (collection_type, rest) = value.split_first()?;
    let number = |at: usize| little(rest.get(at..at + 8)?);
    let is_sound = (HASH..=STREAM).contains(collection_type) && rest.get(..7)? == [0; 7];
    let positions = if *collection_type == LIST { Some((number(23)?, number(31)?)) } else { None };
    let stream = match *collection_type {
        STREAM => Some([number(23)?, number(31)?, number(39)?, number(47)?, number(55)?, number(63)?]),
        _ => None,
    };
    let len_bytes = match *collection_type {
        LIST => 40,
        STREAM => 72,
        _ => 24,
    };
    let (id, count) = (number(7)?, number(15)?);
    let record = Record { collection_type: *collection_type, id, count, positions, stream, expiry };
    (is_sound && value.len() == len_bytes).then_some(record)
}

impl Stored {
    /// Reads the store.
    pub(crate) fn of(engine: &dyn Engine) -> Result<Stored, Error> {
        let (catalog, mut stored) = (Catalog::of(engine), Stored::default());
        let mut tree = None;
        let is_begun = catalog.is_begun()?;
        if is_begun {
            tree = catalog.find(TREE)?.map(|entry| Space::of(entry.id));
            for number in DATABASES {
                let entry = catalog.find(&database_name(number))?;
                stored.databases.push(entry.map_or(TreeId::new(number as u32), |entry| entry.id));
            }
        }
        let (mut cursor, mut items) = (Cursor::default(), Vec::new());
        while !cursor.is_done() {
            let mut each = |raw: &[u8], value: &[u8], expiry| items.push((raw.to_vec(), value.to_vec(), expiry));
            cursor = engine.walk(cursor, &mut each)?;
        }
        for (raw, value, expiry) in items {
            if let Some(row) = tree.and_then(|tree| tree.key_of(&raw)) {
                if stored.add(row, &value, expiry).is_none() {
                    stored.faults.push(format!("row {row:x?} has a wrong form"));
                }
            } else if !is_begun {
                stored.strings.insert((0, raw), value);
            } else {
                let places = stored.databases.iter().map(|id| (id.number(), Space::of(*id)));
                let place = places.filter_map(|(id, space)| Some((id, space.key_of(&raw)?.to_vec()))).next();
                place.map(|place| stored.strings.insert(place, value));
            }
        }
        Ok(stored)
    }

    /// Adds a row of the tree; returns `None` if it has a wrong form.
    fn add(&mut self, row: &[u8], value: &[u8], expiry: Expiry) -> Option<()> {
        let (kind, rest) = row.split_first()?;
        match kind {
            0 if rest.is_empty() => self.next_id = little(value)?,
            1 => _ = self.records.insert(place_of(rest)?, record_of(value, expiry)?),
            2 => {
                let (id, element) = rest.split_first_chunk::<8>()?;
                self.elements.entry(u64::from_be_bytes(*id)).or_default().insert(element.to_vec(), value.to_vec());
            }
            3 if value.is_empty() => _ = self.dead.insert(big(rest)?),
            4 => {
                let (ms, id) = rest.split_first_chunk::<8>()?;
                self.due.insert((u64::from_be_bytes(*ms), big(id)?), place_of(value)?);
            }
            5 if value.is_empty() => _ = self.flushed.insert(u32::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        }
        Some(())
    }

    /// Returns the strings, the elements of collections and their expiries, as a client sees them.
    pub(crate) fn contents(&self) -> Contents {
        let mut contents = Contents::new();
        let number_of = |tree: u32| self.databases.iter().position(|id| id.number() == tree);
        let shown = |number: usize, key: &[u8]| {
            if number == 0 { key.to_vec() } else { [format!("{number}:").as_bytes(), key].concat() }
        };
        for ((tree, key), value) in &self.strings {
            let number = if self.databases.is_empty() { Some(0) } else { number_of(*tree) };
            contents.extend(number.map(|number| (shown(number, key), value.clone())));
        }
        for ((tree, key), record) in &self.records {
            let Some(number) = number_of(*tree) else { continue };
            let key = shown(number, key);
            for (element, value) in self.elements.get(&record.id).into_iter().flatten() {
                let (name, value) = match record.collection_type {
                    HASH | SET => (element.get(4..).unwrap_or_default().to_vec(), value.clone()),
                    LIST => {
                        let first = record.positions.map_or(0, |(first, _)| first);
                        let index = big(element).unwrap_or_default().wrapping_sub(first);
                        (format!("{index:04}").into_bytes(), value.clone())
                    }
                    STREAM => streams::shown(element, value),
                    _ if element.first() == Some(&0) => {
                        let score = little(value).map(f64::from_bits);
                        (element.get(5..).unwrap_or_default().to_vec(), format!("{score:?}").into_bytes())
                    }
                    _ => continue,
                };
                let kind = b"?hslzt"[usize::from(record.collection_type)];
                contents.insert([&[kind, b':'], &key[..], b":", &name].concat(), value);
            }
            if let Some(state) = record.stream {
                contents.insert([b"t:", &key[..]].concat(), format!("{state:?}").into_bytes());
            }
            if !record.expiry.is_never() {
                contents.insert([b"x:", &key[..]].concat(), record.expiry.ms().to_string().into_bytes());
            }
        }
        contents
    }

    /// Returns the rows of dead collections, and the elements of none; there are none after the background has run.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let ids: BTreeSet<u64> = self.records.values().map(|record| record.id).collect();
        let orphans = self.elements.keys().filter(|id| !ids.contains(id)).map(|id| format!("elements of {id}"));
        let dead = self.dead.iter().map(|id| format!("row 03 of {id}"));
        let flushed = self.flushed.iter().map(|tree| format!("row 05 of {tree}"));
        let due = self.due.keys().filter(|(_, id)| !ids.contains(id)).map(|(ms, id)| format!("row 04 of {id} at {ms}"));
        orphans.chain(dead).chain(flushed).chain(due).collect()
    }

    /// Returns what contradicts the invariants.
    pub(crate) fn faults(mut self) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        let mut known: BTreeSet<u64> = self.dead.iter().copied().chain(self.due.keys().map(|(_, id)| *id)).collect();
        for (place, record) in &self.records {
            let name = format!("{}/{}", place.0, place.1.escape_ascii());
            if record.id >= self.next_id {
                faults.push(format!("{name} has the id {}, the next is {}", record.id, self.next_id));
            }
            if self.dead.contains(&record.id) || !known.insert(record.id) && !self.is_due(place, record) {
                faults.push(format!("{name} has the id of another collection"));
            }
            let is_of_database = self.databases.iter().any(|id| id.number() == place.0);
            if !is_of_database && !self.flushed.contains(&place.0) {
                faults.push(format!("{name} is a record of no database"));
            }
            if is_of_database && self.strings.contains_key(place) {
                faults.push(format!("{name} is also a string"));
            }
            if !record.expiry.is_never() && !self.is_due(place, record) {
                faults.push(format!("{name} expires and has no row for it"));
            }
            let none = Elements::new();
            let wrong = wrong_elements(record, self.elements.get(&record.id).unwrap_or(&none));
            faults.extend(wrong.into_iter().map(|wrong| format!("{name}: {wrong}")));
        }
        let orphans = self.elements.keys().filter(|id| !known.contains(id));
        faults.extend(orphans.map(|id| format!("elements with the id {id} belong to nothing")));
        faults
    }

    fn is_due(&self, place: &Place, record: &Record) -> bool {
        self.due.get(&(record.expiry.ms(), record.id)) == Some(place)
    }
}

fn wrong_elements(record: &Record, elements: &Elements) -> Vec<String> {
    if let Some(state) = record.stream {
        return streams::wrong_elements(record.count, state, elements);
    }
    let mut wrong = Vec::new();
    let by_member = |(element, _): &(&Vec<u8>, &Vec<u8>)| record.collection_type != SORTED_SET || element[0] == 0;
    let count = elements.iter().filter(by_member).count() as u64;
    if count != record.count || count == 0 {
        wrong.push(format!("it has {count} elements, and its record says {}", record.count));
    }
    if let Some((first, end)) = record.positions {
        let positions: Option<Vec<u64>> = elements.keys().map(|element| big(element)).collect();
        if positions != Some((first..end).collect()) {
            wrong.push(format!("its elements are not those from {first} to {end}"));
        }
    }
    if record.collection_type == SORTED_SET {
        let split = |kind: u8| elements.iter().filter(move |(element, _)| element[0] == kind);
        let members = split(0).map(|(element, value)| (element[5..].to_vec(), score_order(value)));
        let scores = split(1).map(|(element, _)| (element[9..].to_vec(), element[1..9].to_vec()));
        let (mut members, mut scores): (Vec<_>, Vec<_>) = (members.collect(), scores.collect());
        members.sort();
        scores.sort();
        if members != scores {
            wrong.push("it has other members by score than by member".to_owned());
        }
    }
    wrong
}

/// Returns a stored score as the order of scores has it.
fn score_order(value: &[u8]) -> Vec<u8> {
    let bits = little(value).unwrap_or_default();
    let order = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    order.to_be_bytes().to_vec()
}
