//! The rates of hikv and its rivals: read from the table in `docs/benchmarks.md`, shown as the README's table and as
//! a plot.

use super::svg::{Drawing, Text};
use crate::failure::Failure;

/// The cells of the comparison that are shown, each with a title for readers.
const SHOWN: [(&str, &str); 5] = [
    ("power:put:1", "durable put, 1 writer"),
    ("power:put:4", "durable put, 4 writers"),
    ("power:put:16", "durable put, 16 writers"),
    ("buffered:put:1", "buffered put, 1 writer"),
    ("buffered:get:1", "get, 1 reader"),
];
const SYSTEMS: [&str; 4] = ["hikv", "RocksDB", "LMDB", "redb"];

/// A row of the table: its title, and operations per second of each of [`SYSTEMS`].
pub(super) struct Rates {
    title: &'static str,
    per_second: [u64; SYSTEMS.len()],
}

/// Finds the rows of [`SHOWN`] in a page whose table has a column for each system and cells such as `12,114; 130`.
pub(super) fn read(page: &str) -> Result<Vec<Rates>, Failure> {
    let header =
        page.lines().find(|line| line.starts_with("| cell |")).ok_or("docs/benchmarks.md: no table of cells")?;
    let names: Vec<&str> = columns(header).collect();
    let row = |&(cell, title): &(&str, &'static str)| {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{cell}` |")));
        let cells: Vec<&str> = columns(line.ok_or(format!("docs/benchmarks.md: no row for {cell}"))?).collect();
        let rate_of = |system: &str| {
            let column = names.iter().position(|&name| name == system)?;
            cells.get(column)?.split(';').next()?.replace(',', "").parse().ok()
        };
        let mut per_second = [0; SYSTEMS.len()];
        for (rate, system) in per_second.iter_mut().zip(SYSTEMS) {
            *rate = rate_of(system).ok_or(format!("docs/benchmarks.md: no rate of {system} at {cell}"))?;
        }
        Ok(Rates { title, per_second })
    };
    SHOWN.iter().map(row).collect()
}

fn columns(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches('|').split('|').map(str::trim)
}

/// Formats a rate in thousands per second: one decimal below 100, commas from 1,000 on.
fn thousands(per_second: u64) -> String {
    let (tenths, whole) = ((per_second + 50) / 100, (per_second + 500) / 1_000);
    match tenths {
        0..1_000 => format!("{}.{}", tenths / 10, tenths % 10),
        _ if whole < 1_000 => whole.to_string(),
        _ => format!("{},{:03}", whole / 1_000, whole % 1_000),
    }
}

/// Formats the table of the README.
pub(super) fn table(rates: &[Rates]) -> String {
    let line = |title: &str, cells: &[String]| format!("| {title} | {} |\n", cells.join(" | "));
    let head = line("K ops/s", &SYSTEMS.map(str::to_owned));
    let rule = format!("|{}\n", "---|".repeat(SYSTEMS.len() + 1));
    let rows = rates.iter().map(|row| line(row.title, &row.per_second.map(thousands)));
    [head, rule].into_iter().chain(rows).collect()
}

const WIDTH: u32 = 720;
const LEFT: u32 = 80;
const BARS_WIDTH: u32 = 520;
const BAR_HEIGHT: u32 = 16;
const GROUP_HEIGHT: u32 = 26 + SYSTEMS.len() as u32 * (BAR_HEIGHT + 3);
const TOP: u32 = 40;

/// Draws a group of bars for each row, each group on its own scale.
pub(super) fn plot(rates: &[Rates]) -> String {
    let height = TOP + rates.len() as u32 * GROUP_HEIGHT + 24;
    let mut drawing = Drawing::new(WIDTH, height, "hikv alongside RocksDB, LMDB and redb");
    drawing.text(
        20,
        26,
        Text::Title,
        "Thousands of operations per second (longer is faster; each group has its own scale)",
    );
    for (number, row) in rates.iter().enumerate() {
        let top = TOP + number as u32 * GROUP_HEIGHT;
        drawing.text(20, top + 16, Text::Strong, row.title);
        let most = row.per_second.into_iter().max().unwrap_or(1).max(1);
        for (place, (system, rate)) in SYSTEMS.into_iter().zip(row.per_second).enumerate() {
            let y = top + 24 + place as u32 * (BAR_HEIGHT + 3);
            let width = (rate * u64::from(BARS_WIDTH) / most).max(1) as u32;
            drawing.text(20, y + 12, Text::Plain, system);
            drawing.bar(LEFT, y, (width, BAR_HEIGHT), if place == 0 { "#1f6f8b" } else { "#b8c4cc" });
            drawing.text(LEFT + width + 6, y + 12, Text::Plain, &thousands(rate));
        }
    }
    drawing.text(
        20,
        height - 10,
        Text::Plain,
        "1 M items, keys of 16 bytes, values of 256; ext4, two cores: docs/benchmarks.md",
    );
    drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lacking: &str) -> String {
        let rows = SHOWN.iter().filter(|(cell, _)| *cell != lacking);
        let rows = rows.map(|(cell, _)| format!("| `{cell}` | 1,234,567; 1 | 99,949; 2 | 99,950 | 7 |\n"));
        format!("Words\n\n| cell | hikv | RocksDB | LMDB | redb |\n|---|---|---|---|---|\n{}", rows.collect::<String>())
    }

    #[test]
    fn table_shows_each_rate_in_thousands() {
        let table = table(&read(&page("")).unwrap());
        assert_eq!(table.lines().count(), SHOWN.len() + 2);
        assert!(table.ends_with("| get, 1 reader | 1,235 | 99.9 | 100 | 0.0 |\n"), "{table}");
    }

    #[test]
    fn missing_rates_are_named() {
        let error = |page: String| read(&page).err().expect("an error");
        assert!(error(page("power:put:4")).contains("no row for power:put:4"));
        assert!(error(page("").replace("redb", "other")).contains("no rate of redb"));
        assert!(error(String::new()).contains("no table of cells"));
    }
}
