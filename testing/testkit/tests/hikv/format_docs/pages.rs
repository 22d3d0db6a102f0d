//! The tables of the pages under `docs/format`.

use std::fs;
use std::path::Path;

/// A row of a table: its cells by the names of their columns.
pub(crate) struct Row(Vec<(String, String)>);

impl Row {
    /// Returns the text in a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub(crate) fn text(&self, column: &str) -> &str {
        let cell = self.0.iter().find(|(name, _)| name == column);
        &cell.unwrap_or_else(|| panic!("a table has no column '{column}': {:?}", self.0)).1
    }

    /// Returns the number in a column: decimal with commas, or hexadecimal.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn number(&self, column: &str) -> u64 {
        let text = self.text(column).replace(',', "");
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.unwrap_or_else(|_| panic!("'{text}' in column '{column}' is not a number"))
    }
}

/// Returns the first table under the heading `heading` of `docs/format/<page>.md`.
///
/// # Panics
/// If there is none, or if a row and the head have different numbers of cells.
pub(crate) fn table(page: &str, heading: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format").join(page).with_extension("md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_heading = |line: &&str| line.starts_with('#') && line.trim_start_matches('#').trim() == heading;
    let mut lines = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    let section = lines.by_ref().take_while(|line| !line.starts_with('#'));
    let rows: Vec<&str> =
        section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).collect();
    let [head, _rule, rows @ ..] = &rows[..] else { panic!("{page}.md has no table under '{heading}'") };
    assert!(!rows.is_empty(), "{page}.md has an empty table under '{heading}'");
    rows.iter().map(|row| row_of(head, row)).collect()
}

fn row_of(head: &str, row: &str) -> Row {
    let (names, cells) = (cells(head), cells(row));
    assert_eq!(names.len(), cells.len(), "the row {row} does not fit its head {head}");
    Row(names.into_iter().zip(cells).collect())
}

fn cells(line: &str) -> Vec<String> {
    line.trim().trim_start_matches('|').trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Checks that a table lists fields of these names, in this order.
pub(crate) fn assert_names(rows: &[Row], names: &[&str]) {
    let found: Vec<&str> = rows.iter().map(|row| row.text("name")).collect();
    assert_eq!(found, names, "the documented names differ from those that this test compares");
}
