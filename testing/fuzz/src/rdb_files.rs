//! Files `dump.rdb`.

use rdb::{Entry, Error, FileReader, FileWriter, Kind, Part};

/// The maximum length of a string, so that no input is slow only because of its length.
const STRING_BYTES_MAX: u64 = 1 << 20;

/// The maximum length of all strings of a file: small ones may be compressed.
const ALL_BYTES_MAX: usize = 16 << 20;

type Contents = Vec<(Entry, Vec<Part>)>;

/// A file is read to its end, and the same is read once it is written again; or it is refused.
pub fn rdb_files(data: &[u8]) {
    let Ok(contents) = read(data) else { return };
    let mut writer = FileWriter::new(Vec::new(), &[("redis-bits", "64")]).expect("memory takes it");
    for (entry, parts) in &contents {
        let kind = entry.kind().expect("the others were skipped");
        writer.begin(entry.db, &entry.key, kind, entry.expires_at_ms).expect("memory takes it");
        writer.write(&encoded(kind, parts)).expect("memory takes it");
    }
    let written = writer.finish().expect("memory takes it");
    let again = read(&written).expect("its own files can be read");
    let shown = |contents: &Contents| -> Vec<_> {
        let each =
            contents.iter().map(|(entry, parts)| (entry.db, entry.key.clone(), entry.expires_at_ms, parts.clone()));
        each.collect()
    };
    assert_eq!(shown(&again), shown(&contents));
}

/// Reads all keys, except those whose values can only be skipped.
fn read(data: &[u8]) -> Result<Contents, Error> {
    let (mut reader, mut contents, mut all_bytes) = (FileReader::new(data, STRING_BYTES_MAX)?, Contents::new(), 0);
    while let Some(entry) = reader.next_entry()? {
        if entry.kind().is_none() {
            reader.skip(&entry)?;
            continue;
        }
        let mut parts = Vec::new();
        reader.value(&entry, |part| {
            all_bytes += len_bytes(&part);
            if all_bytes > ALL_BYTES_MAX {
                return Err(Error::NoDump);
            }
            parts.push(part);
            Ok(())
        })?;
        contents.push((entry, parts));
    }
    Ok(contents)
}

fn len_bytes(part: &Part) -> usize {
    size_of::<Part>()
        + match part {
            Part::String(string) | Part::Element(string) | Part::Member(string) | Part::Scored(string, _) => {
                string.len()
            }
            Part::Field(field, value) => field.len() + value.len(),
        }
}

fn encoded(kind: Kind, parts: &[Part]) -> Vec<u8> {
    let mut value = Vec::new();
    if kind != Kind::String {
        rdb::put_length(&mut value, parts.len() as u64);
    }
    for part in parts {
        match part {
            Part::String(string) | Part::Element(string) | Part::Member(string) => rdb::put_string(&mut value, string),
            Part::Field(field, of_field) => {
                rdb::put_string(&mut value, field);
                rdb::put_string(&mut value, of_field);
            }
            Part::Scored(member, score) => {
                rdb::put_string(&mut value, member);
                rdb::put_score(&mut value, *score);
            }
        }
    }
    value
}
