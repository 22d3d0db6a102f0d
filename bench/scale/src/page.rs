//! The page that shows the tables.

use std::fs;
use std::io;

use crate::tables::{self, Table};

const END: &str = "<!-- end -->";

/// Returns the page with each table replaced by the present one.
///
/// # Errors
///
/// The name of a table for which the page has no place.
pub fn updated(page: &str) -> Result<String, String> {
    tables::all().iter().try_fold(page.to_string(), |page, table| replaced(&page, table))
}

fn replaced(page: &str, table: &Table) -> Result<String, String> {
    let begin = format!("<!-- scale: {} -->\n", table.name);
    let place = || {
        let (before, rest) = page.split_once(&begin)?;
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{begin}\n{}\n{END}{after}", table.text))
    };
    place().ok_or_else(|| format!("no place for the table {}", table.name))
}

/// Writes the tables into the page.
///
/// # Errors
///
/// A page that cannot be read or written, or that has no place for a table.
pub fn write(path: &str) -> io::Result<()> {
    let page = updated(&fs::read_to_string(path)?).map_err(io::Error::other)?;
    fs::write(path, page)
}
