//! The table of counts, printed and in a file.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::kinds::Counts;
use crate::operation::{Operation, Order};

const BEGIN: &str = "<!-- counts: begin -->";
const END: &str = "<!-- counts: end -->";
/// Compilers and memory allocators differ a little; a change that costs more is noticed.
const TOLERANCE: f64 = 0.10;

/// A table with a row for each operation and kind of store.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// Counts of one operation, per key.
struct Row {
    store: &'static str,
    operation: Operation,
    goal: Option<u64>,
    instructions: f64,
    mean_instructions: f64,
    flushes: f64,
    streamed_lines: f64,
    fences: f64,
    locked: f64,
}

impl Row {
    fn is_of(&self, line: &str) -> bool {
        let mut cells = line.split('|').map(str::trim).skip(1);
        cells.next() == Some(self.store) && cells.next() == Some(self.operation.name())
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let goal = self.goal.map_or_else(String::new, |goal| goal.to_string());
        write!(
            f,
            "| {} | {} | {goal} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} |",
            self.store,
            self.operation.name(),
            self.instructions,
            self.mean_instructions,
            self.flushes,
            self.streamed_lines,
            self.fences,
            self.locked
        )
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| store | operation | goal | instructions | mean | flushed lines | streamed lines | fences | locked |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl Table {
    /// Adds the counts of an operation, minus those of the `idle` loop.
    pub(crate) fn add(&mut self, order: Order, operation: Operation, counted: Vec<Counts>, idle: &[Counts]) {
        let keys = operation.items_at_once() as f64;
        let loop_instructions = median(idle, |counts| counts.instructions);
        let a_key = |of: fn(&Counts) -> u64| median(&counted, of) / keys;
        let sum: u64 = counted.iter().map(|counts| counts.instructions).sum();
        self.rows.push(Row {
            store: order.name(),
            operation,
            goal: goal(operation, order),
            instructions: a_key(|counts| counts.instructions) - loop_instructions / keys,
            mean_instructions: (sum as f64 / counted.len() as f64 - loop_instructions) / keys,
            flushes: a_key(|counts| counts.flushes),
            streamed_lines: a_key(Counts::streamed_lines),
            fences: a_key(|counts| counts.fences),
            locked: a_key(|counts| counts.locked),
        });
    }

    /// Replaces the counts in the file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = read(path)?;
        let (before, _, after) = parts(&text).ok_or("the file has no place for the counts")?;
        Ok(fs::write(path, format!("{before}{BEGIN}\n{self}{END}{after}"))?)
    }

    /// Compares instructions and fences with the counts in the file.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Failure> {
        let text = read(path)?;
        let (_, table, _) = parts(&text).ok_or("the file has no counts")?;
        let wrong: Vec<String> = self.rows.iter().filter_map(|row| row.differs_from(table)).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!("{}\n(run `budgets --write` to update the table)", wrong.join("\n")).into())
    }
}

impl Row {
    fn differs_from(&self, table: &str) -> Option<String> {
        let name = format!("{} {}", self.store, self.operation.name());
        let Some(line) = table.lines().find(|line| self.is_of(line)) else {
            return Some(format!("{name}: the table has no such row"));
        };
        let expected = |column: usize| line.split('|').nth(column)?.trim().parse::<f64>().ok();
        let (Some(instructions), Some(fences)) = (expected(4), expected(8)) else {
            return Some(format!("{name}: the row is not a row of counts: {line}"));
        };
        let too_far = |is: f64, was: f64| (is - was).abs() > (was * TOLERANCE).max(0.05);
        if too_far(self.instructions, instructions) {
            return Some(format!("{name}: {:.0} instructions, {instructions:.0} in the table", self.instructions));
        }
        too_far(self.fences, fences).then(|| format!("{name}: {:.2} fences, {fences:.2} in the table", self.fences))
    }
}

/// Returns the maximum instruction count of an operation. Ordered writes may use more, to queue their change for the
/// tree.
fn goal(operation: Operation, order: Order) -> Option<u64> {
    match (operation, order) {
        (Operation::Get | Operation::MultiGet, _) => Some(250),
        (Operation::Miss, _) => Some(150),
        (Operation::Delete | Operation::Batch, Order::Hash) => Some(400),
        (Operation::Update | Operation::Insert, Order::Hash) => Some(800),
        (Operation::Update | Operation::Insert | Operation::Delete, Order::Ordered) => Some(950),
        (Operation::Batch, Order::Ordered) => Some(500),
        (Operation::Transact, _) => Some(5000),
        (Operation::TransactRead, _) => Some(1300),
        (Operation::TakeFirst, _) => Some(6000),
        (Operation::TreeGet, _) => Some(274),
        (Operation::TreeUpdate, _) => Some(796),
        (Operation::GetInto | Operation::Scan | Operation::Nothing, _) => None,
    }
}

/// Returns the median figure.
pub(crate) fn median(operations: &[Counts], of: impl Fn(&Counts) -> u64) -> f64 {
    let mut figures: Vec<u64> = operations.iter().map(of).collect();
    figures.sort_unstable();
    figures.get(figures.len() / 2).map_or(f64::NAN, |&figure| figure as f64)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some((before, table, after))
}
