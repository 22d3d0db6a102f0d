//! Fields as the pages describe them: bytes of a record, bits of a word.

use crate::format_docs::pages::{Row, table};

/// A table's description of the bytes of a record or of the bits of a word.
pub(crate) struct Fields(Vec<Field>);

struct Field {
    name: String,
    start: u64,
    length: u64,
}

impl Fields {
    /// Returns the bytes that a table describes, which must begin at 0 and have no gaps.
    pub(crate) fn bytes(page: &str, heading: &str, total_bytes: u64) -> Fields {
        Fields::tiling(table(page, heading), "offset", "bytes", total_bytes)
    }

    /// Returns the bits that a table describes, which must be all 64 of a word.
    pub(crate) fn bits(page: &str, heading: &str) -> Fields {
        Fields::tiling(table(page, heading), "bit", "bits", 64)
    }

    fn tiling(rows: Vec<Row>, start: &str, length: &str, total: u64) -> Fields {
        let field = |row: &Row| Field {
            name: row.text("name").to_owned(),
            start: row.number(start),
            length: row.number(length),
        };
        let fields: Vec<Field> = rows.iter().map(field).collect();
        let end = fields.iter().fold(0, |end, field| {
            assert_eq!(field.start, end, "field '{}' does not begin where the one before it ends", field.name);
            field.start + field.length
        });
        assert_eq!(end, total, "the last field '{}' does not end at the end", fields[fields.len() - 1].name);
        Fields(fields)
    }

    /// Checks that the fields have these names, in this order.
    pub(crate) fn named(self, names: &[&str]) -> Fields {
        let found: Vec<&str> = self.0.iter().map(|field| &*field.name).collect();
        assert_eq!(found, names, "the documented names differ from those that this test compares");
        self
    }

    /// Returns the start of a field, in bytes or bits.
    pub(crate) fn start(&self, name: &str) -> u64 {
        self.field(name).start
    }

    /// Returns the length of a field, in bytes or bits.
    pub(crate) fn length(&self, name: &str) -> u64 {
        self.field(name).length
    }

    /// Returns the field's bytes in a record.
    pub(crate) fn slice<'a>(&self, record: &'a [u8], name: &str) -> &'a [u8] {
        let Field { start, length, .. } = self.field(name);
        &record[*start as usize..(start + length) as usize]
    }

    /// Returns the field's bytes in a record as a number.
    pub(crate) fn number(&self, record: &[u8], name: &str) -> u64 {
        let bytes = self.slice(record, name);
        assert!(bytes.len() <= 8, "'{name}' has {} bytes", bytes.len());
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Returns the field's bits in a word.
    pub(crate) fn of_word(&self, word: u64, name: &str) -> u64 {
        let Field { start, length, .. } = self.field(name);
        word << (64 - start - length) >> (64 - length)
    }

    /// Returns the word in which exactly this field's bits are set.
    pub(crate) fn mask(&self, name: &str) -> u64 {
        let Field { start, length, .. } = self.field(name);
        u64::MAX >> (64 - length) << start
    }

    /// Checks that every field named "zero" is zero in this record.
    pub(crate) fn assert_zeroes(&self, record: &[u8]) {
        for field in self.0.iter().filter(|field| field.name == "zero") {
            let bytes = &record[field.start as usize..(field.start + field.length) as usize];
            assert!(bytes.iter().all(|&byte| byte == 0), "the bytes from {} on are not all zero", field.start);
        }
    }

    fn field(&self, name: &str) -> &Field {
        let mut found = self.0.iter().filter(|field| field.name == name);
        let field = found.next().unwrap_or_else(|| panic!("no field '{name}' is documented"));
        assert!(found.next().is_none(), "two fields are called '{name}'");
        field
    }
}
