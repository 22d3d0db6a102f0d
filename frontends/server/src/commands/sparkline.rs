//! Character graphs with labels, as Redis draws them.

/// Characters for a third, two thirds and all of a cell.
const FILLINGS: [char; 3] = ['_', 'o', '#'];
/// Below the filled top of a column.
const STEM: char = '|';

/// Draws each sample as a column with its label written downwards below; the largest is `rows` high, the smallest flat.
/// At most `columns` are drawn next to each other.
pub(crate) fn drawn(samples: &[(u64, String)], columns: usize, rows: usize) -> String {
    let values = || samples.iter().map(|(value, _)| *value);
    let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    let steps = (FILLINGS.len() * rows) as u64;
    let step = |value: u64| ((value - low) * steps / (high - low).max(1)).min(steps - 1) as usize;
    let bands = samples.chunks(columns).map(|band| {
        let above = (0..rows).map(|row| line(band, |sample| filling(step(sample.0), rows - 1 - row)));
        let label_rows = band.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
        let below = (0..label_rows).map(|row| line(band, |sample| sample.1.chars().nth(row).unwrap_or(' ')));
        let gap = [line(band, |_| ' ')];
        above.chain(gap).chain(below).collect::<String>()
    });
    bands.collect::<Vec<String>>().join("\n")
}

/// Returns one character per sample.
fn line(band: &[(u64, String)], character: impl Fn(&(u64, String)) -> char) -> String {
    band.iter().map(character).chain(['\n']).collect()
}

/// Returns the cell of a column of `step` steps in the row above `height` others.
fn filling(step: usize, height: usize) -> char {
    match step.checked_sub(height * FILLINGS.len()) {
        None => ' ',
        Some(over) => FILLINGS.get(over).copied().unwrap_or(STEM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(samples: &[(u64, &str)], columns: usize) -> String {
        let samples: Vec<(u64, String)> = samples.iter().map(|(value, label)| (*value, (*label).to_owned())).collect();
        drawn(&samples, columns, 4)
    }

    #[test]
    fn greatest_value_fills_the_height() {
        let drawn = graph(&[(30, "12s"), (10, "9s"), (20, "1m")], 80);
        assert_eq!(drawn, "#  \n| _\n| |\n|_|\n   \n191\n2sm\ns  \n");
    }

    #[test]
    fn constant_samples_are_flat() {
        assert_eq!(graph(&[(7, "1s"), (7, "0s")], 80), "  \n  \n  \n__\n  \n10\nss\n");
    }

    #[test]
    fn more_than_the_columns_go_on_below() {
        assert_eq!(graph(&[(7, "1s"), (7, "0s")], 1), " \n \n \n_\n \n1\ns\n\n \n \n \n_\n \n0\ns\n");
    }
}
