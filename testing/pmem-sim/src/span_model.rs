//! A log with memory before it: only flushed bytes survive, as a prefix in log order.

use std::collections::{BTreeMap, VecDeque};

use pmem::{Offset, Ticket, lines};

use crate::agent::Agent;
use crate::model::{CrashModel, Part};
use crate::pages::{Line, Page, Pages, patched};

/// The records that are not surely durable.
#[derive(Default)]
pub(crate) struct SpanModel {
    log: VecDeque<Record>,
    /// Number of records that were appended before the first of `log`.
    durable_count: u64,
}

/// Pieces with their content at the flush. A torn record does not count: it survives completely or not at all.
type Record = Vec<(Offset, Vec<u8>)>;

impl CrashModel for SpanModel {
    fn stored(&mut self, _line: Offset, _content: Line, _durable: &Pages) {}

    fn flushed(&mut self, _agent: Agent, pieces: &[(Offset, &[u8])]) {
        self.log.push_back(pieces.iter().map(|&(at, bytes)| (at, bytes.to_vec())).collect());
    }

    /// Appends the garbage at its position in the log.
    fn discarded(&mut self, page: Offset, garbage: &Page, _durable: &mut Pages) {
        let bytes = garbage.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect();
        self.log.push_back(vec![(page, bytes)]);
    }

    fn ordered(&mut self, _agent: Agent, _durable: &mut Pages) {}

    fn committed(&mut self, _agent: Agent, _durable: &mut Pages) -> Ticket {
        Ticket(self.durable_count + self.log.len() as u64)
    }

    fn waited(&mut self, ticket: Ticket, durable: &mut Pages) {
        let settled_count = ticket.0.saturating_sub(self.durable_count);
        for (line, content) in self.replayed(settled_count as usize, durable) {
            durable.set_line(line, content);
        }
        self.log.drain(..settled_count as usize);
        self.durable_count += settled_count;
    }

    fn parts(&self) -> Vec<Part> {
        let part = |first: &Record| Part { at: first[0].0, outcome_count: self.log.len() + 1 };
        self.log.front().map(part).into_iter().collect()
    }

    fn survivors(&self, _parts: &[Part], kept: &[usize], durable: &Pages) -> Vec<(Offset, Line)> {
        self.replayed(kept.first().copied().unwrap_or(0), durable).into_iter().collect()
    }
}

impl SpanModel {
    /// Returns the lines that the first `record_count` records touch, with the content after them.
    fn replayed(&self, record_count: usize, durable: &Pages) -> BTreeMap<Offset, Line> {
        let mut changed = BTreeMap::new();
        for (at, bytes) in self.log.iter().take(record_count).flatten() {
            for line in lines(at.span(bytes.len() as u64)) {
                let content = changed.entry(line).or_insert_with(|| durable.line(line));
                *content = patched(*content, line, *at, bytes);
            }
        }
        changed
    }
}
