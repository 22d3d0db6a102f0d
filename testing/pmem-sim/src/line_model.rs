//! Memory behind a cache: after a crash, each line shows any content from the last surely durable one on.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use pmem::{Offset, Ticket, lines};

use crate::agent::Agent;
use crate::model::{CrashModel, Part};
use crate::pages::{Line, PAGE_BYTES, Page, Pages};

/// The pending lines, and the write-backs that are under way, by agent.
#[derive(Clone, Default)]
pub(crate) struct LineModel {
    pending: BTreeMap<Offset, History>,
    in_flight: HashMap<Agent, Vec<Flushed>>,
    store_count: u64,
}

/// The contents of one line, in the order in which it had them.
#[derive(Clone)]
struct History {
    /// The first is surely durable; programs load the last.
    contents: Vec<Line>,
    /// Number of contents that were dropped before the first.
    dropped_count: u64,
    /// The latest store to the line, by the model's count of stores.
    newest: u64,
}

/// A line whose write-back has started, with the content that a fence makes the least to survive.
#[derive(Clone)]
struct Flushed {
    line: Offset,
    content_number: u64,
}

impl History {
    /// Adds a copy of one or more units; returns the number of contents that it adds: prefixes of the units,
    /// suffixes, and all.
    fn copy(&mut self, content: Line) -> u64 {
        let before = *self.contents.last().expect("a history holds the durable content");
        let changed: Vec<usize> = (0..content.len()).filter(|&unit| before[unit] != content[unit]).collect();
        let partly = |units: &[usize]| {
            units.iter().fold(before, |mut line, &unit| {
                line[unit] = content[unit];
                line
            })
        };
        let cuts = 1..changed.len();
        self.contents.extend(cuts.clone().map(|cut| partly(&changed[..cut])));
        self.contents.extend(cuts.clone().map(|cut| partly(&changed[cut..])));
        self.contents.push(content);
        2 * cuts.len() as u64 + 1
    }

    fn last_number(&self) -> u64 {
        self.dropped_count + self.contents.len() as u64 - 1
    }

    /// Drops the contents before content `number`. Returns true if nothing is pending any more.
    fn settle(&mut self, number: u64) -> bool {
        let settled_count = number.saturating_sub(self.dropped_count);
        self.contents.drain(..settled_count as usize);
        self.dropped_count += settled_count;
        self.contents.len() == 1
    }
}

impl LineModel {
    /// Returns a hash of all contents of the pending lines, and so of everything that a power loss may leave of
    /// them.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.pending.iter().for_each(|(at, history)| (at.0, &history.contents).hash(&mut hasher));
        hasher.finish()
    }

    fn fence(&mut self, agent: Agent, durable: &mut Pages) {
        for flushed in self.in_flight.remove(&agent).unwrap_or_default() {
            // Another agent's fence may have settled the line, and it may have a new history: numbers start at the
            // count of stores, so an old number never reaches into a younger history.
            let Some(history) = self.pending.get_mut(&flushed.line) else { continue };
            let is_settled = history.settle(flushed.content_number);
            durable.set_line(flushed.line, history.contents[0]);
            if is_settled {
                self.pending.remove(&flushed.line);
            }
        }
    }
}

impl CrashModel for LineModel {
    fn stored(&mut self, line: Offset, content: Line, durable: &Pages) {
        let dropped_count = self.store_count;
        let history = self.pending.entry(line).or_insert_with(|| History {
            contents: vec![durable.line(line)],
            dropped_count,
            newest: 0,
        });
        self.store_count += history.copy(content);
        history.newest = self.store_count;
    }

    fn flushed(&mut self, agent: Agent, pieces: &[(Offset, &[u8])]) {
        let under_way = self.in_flight.entry(agent).or_default();
        for line in pieces.iter().flat_map(|(at, bytes)| lines(at.span(bytes.len() as u64))) {
            if let Some(history) = self.pending.get(&line) {
                under_way.push(Flushed { line, content_number: history.last_number() });
            }
        }
    }

    /// Discards immediately: no fence holds a file system back, and images from before the call show the line's
    /// earlier contents.
    fn discarded(&mut self, page: Offset, garbage: &Page, durable: &mut Pages) {
        for (line, content) in lines(page.span(PAGE_BYTES)).zip(garbage) {
            self.pending.remove(&line);
            durable.set_line(line, *content);
        }
    }

    fn ordered(&mut self, agent: Agent, durable: &mut Pages) {
        self.fence(agent, durable);
    }

    fn committed(&mut self, agent: Agent, durable: &mut Pages) -> Ticket {
        self.fence(agent, durable);
        Ticket::default()
    }

    fn waited(&mut self, _ticket: Ticket, _durable: &mut Pages) {}

    /// The cache keeps its content; no thread is left to complete a write-back by a fence.
    fn killed(&self) -> Option<LineModel> {
        let left = || LineModel { in_flight: HashMap::new(), ..self.clone() };
        (!self.pending.is_empty()).then(left)
    }

    fn parts(&self) -> Vec<Part> {
        let mut newest_first: Vec<_> = self.pending.iter().collect();
        newest_first.sort_by_key(|(_, history)| std::cmp::Reverse(history.newest));
        let part = |(&at, history): (&Offset, &History)| Part { at, outcome_count: history.contents.len() };
        newest_first.into_iter().map(part).collect()
    }

    fn survivors(&self, parts: &[Part], kept: &[usize], _durable: &Pages) -> Vec<(Offset, Line)> {
        let kept = parts.iter().zip(kept).filter(|&(_, &outcome)| outcome > 0);
        kept.map(|(part, &outcome)| (part.at, self.pending[&part.at].contents[outcome])).collect()
    }
}
