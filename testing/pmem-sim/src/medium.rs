//! The simulated region as a medium: each call changes memory and the pending state under one lock, and then counts
//! as a step.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{
    Acknowledge, Bytes, Canary, Durability, LINE_BYTES, Level, Medium, MediumError, Offset, Persist, Residency, Space,
    Span, Taken, Ticket, lines,
};

use crate::agent::Agent;
use crate::memory::REGION_BYTES_MAX;
use crate::model::Model;
use crate::pages::{Line, PAGE_BYTES, Page, Pages, patched};
use crate::sim::{Sim, State, StepKind};

// SAFETY: the memory is reserved for `REGION_BYTES_MAX` bytes, aligned to pages, readable and writable, and lives
// as long as any handle; `len_bytes` only grows, up to that limit; every store below goes to it immediately.
unsafe impl Bytes for Sim {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len_bytes(&self) -> u64 {
        self.0.len_bytes.load(Ordering::Acquire)
    }

    fn is_writable(&self) -> bool {
        !self.0.is_frozen.load(Ordering::Acquire)
    }

    fn store(&self, at: Offset, word: u64, _ordering: Ordering) {
        self.store_step(at, word, StepKind::Store);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.assert_thawed();
        let mut state = self.0.state.lock();
        let found = self.word(at).load(Ordering::Acquire);
        if found == current {
            self.put_word(&mut state, at, new);
        }
        drop(state);
        self.step(StepKind::CompareExchange);
        if found == current { Ok(found) } else { Err(found) }
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        self.copy(at, bytes);
        self.step(StepKind::Write);
    }

    /// Changes the memory that programs see, and nothing that survives a crash.
    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        if self.is_writable() {
            return Err(MediumError::ReadOnly);
        }
        self.check(at.span(bytes.len() as u64))?;
        let mut state = self.0.state.lock();
        lines(at.span(bytes.len() as u64)).for_each(|line| state.used.note(line));
        drop(state);
        // SAFETY: the bytes are in the region (just checked), and only the caller uses it.
        unsafe { self.base().as_ptr().add(at.0 as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        assert!(at.0.is_multiple_of(16), "offset {:#x} is not aligned to 16 bytes", at.0);
        let mut bytes = parts.concat();
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        self.copy(at, &bytes);
        self.start_flush(at.span(bytes.len() as u64));
        self.step(StepKind::Stream);
    }
}

impl Persist for Sim {
    fn durability(&self) -> Durability {
        Durability::Power
    }

    fn flush(&self, span: Span) {
        self.start_flush(span);
        self.step(StepKind::Flush);
    }

    fn order(&self) {
        let mut state = self.0.state.lock();
        let State { durable, pending, .. } = &mut *state;
        pending.ordered(Agent::current(), durable_mut(durable));
        drop(state);
        self.step(StepKind::Order);
    }

    fn publish(&self, words: &[(Offset, u64)], _key: u64) -> Taken {
        if self.model() == Model::Span {
            self.log_publish(words);
            self.step(StepKind::PublishLogged);
        }
        let Some((&(at, last), before)) = words.split_last() else { panic!("nothing is published") };
        before.iter().for_each(|&(at, word)| self.store_step(at, word, StepKind::PublishWord));
        self.store_step(at, last, StepKind::PublishLast);
        if self.model() == Model::Line {
            self.flush(at.span(8));
        }
        Taken::Yes
    }

    fn commit_published(&self, at: Offset, _key: u64) -> Ticket {
        match self.model() {
            Model::Span => self.step(StepKind::Flush),
            _ => self.flush(at.span(8)),
        }
        self.commit(Level::Strongest)
    }

    fn commit(&self, _level: Level) -> Ticket {
        let mut state = self.0.state.lock();
        let State { durable, pending, .. } = &mut *state;
        let ticket = pending.committed(Agent::current(), durable_mut(durable));
        drop(state);
        self.step(StepKind::Commit);
        ticket
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.step(StepKind::WaitBegin);
        let mut state = self.0.state.lock();
        let State { durable, pending, .. } = &mut *state;
        pending.waited(ticket, durable_mut(durable));
        drop(state);
        self.step(StepKind::WaitEnd);
        Ok(())
    }
}

impl Acknowledge for Sim {}

impl Residency for Sim {}

impl Space for Sim {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        let grown = self.try_grow(to_bytes);
        self.step(StepKind::Grow);
        grown
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        let discarded_bytes = self.try_discard(span);
        self.step(StepKind::Discard);
        discarded_bytes
    }

    fn allocate(&self, span: Span) -> Result<(), MediumError> {
        let backed = self.try_back(span);
        self.step(StepKind::Back);
        backed
    }

    fn allocated_bytes(&self) -> Option<u64> {
        Some(self.len_bytes() - self.0.state.lock().holes.len() as u64 * PAGE_BYTES)
    }
}

impl Medium for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn yield_to_scheduler(&self) {
        self.0.breath_count.fetch_add(1, Ordering::Relaxed);
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.0.canary.get() == Some(&canary)
    }
}

/// Images that share the durable pages keep theirs: a changed page is copied.
fn durable_mut(durable: &mut Arc<Pages>) -> &mut Pages {
    Arc::make_mut(durable)
}

impl Sim {
    fn store_step(&self, at: Offset, word: u64, kind: StepKind) {
        self.put_word(&mut self.0.state.lock(), at, word);
        self.step(kind);
    }

    fn put_word(&self, state: &mut State, at: Offset, word: u64) {
        self.assert_thawed();
        // The bounds and the alignment are checked before anything is recorded.
        state.assert_backed(at.span(8));
        let before = self.word(at).load(Ordering::Relaxed);
        if before != word {
            let line = at.line();
            let mut content = self.line_now(line);
            content[((at.0 - line.0) / 8) as usize] = word;
            self.put_line(state, line, content);
        }
    }

    fn copy(&self, at: Offset, bytes: &[u8]) {
        self.assert_within(at, bytes.len() as u64);
        self.assert_thawed();
        let mut state = self.0.state.lock();
        state.assert_backed(at.span(bytes.len() as u64));
        for line in lines(at.span(bytes.len() as u64)) {
            let before = self.line_now(line);
            let content = patched(before, line, at, bytes);
            if before != content {
                self.put_line(&mut state, line, content);
            }
        }
    }

    /// Stores the words of `content` that differ. A store of the same value changes no crash image.
    fn put_line(&self, state: &mut State, line: Offset, content: Line) {
        let State { durable, pending, used, .. } = state;
        pending.stored(line, content, durable);
        used.note(line);
        for (unit, &word) in content.iter().enumerate() {
            let place = self.word(line.plus(unit as u64 * 8));
            if place.load(Ordering::Relaxed) != word {
                place.store(word, Ordering::Release);
            }
        }
    }

    /// An empty span touches no line, and appends nothing to a log, as on the media that this one stands for.
    fn start_flush(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        if span.len_bytes > 0 {
            let mut state = self.0.state.lock();
            state.pending.flushed(Agent::current(), &[(span.start, &self.bytes_now(span))]);
        }
    }

    fn log_publish(&self, words: &[(Offset, u64)]) {
        let words: Vec<(Offset, [u8; 8])> = words.iter().map(|&(at, word)| (at, word.to_ne_bytes())).collect();
        let pieces: Vec<(Offset, &[u8])> = words.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect();
        self.0.state.lock().pending.flushed(Agent::current(), &pieces);
    }

    /// Copies the bytes of a non-empty span, word by word, because other threads may store to adjacent words.
    fn bytes_now(&self, span: Span) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(span.len_bytes.next_multiple_of(LINE_BYTES) as usize + LINE_BYTES as usize);
        lines(span).for_each(|line| bytes.extend_from_slice(self.line_now(line).map(u64::to_ne_bytes).as_flattened()));
        bytes.drain(..(span.start.0 - span.start.line().0) as usize);
        bytes.truncate(span.len_bytes as usize);
        bytes
    }

    fn try_discard(&self, span: Span) -> u64 {
        self.assert_thawed();
        self.assert_within(span.start, span.len_bytes);
        let end = span.start.0 + span.len_bytes;
        let mut state = self.0.state.lock();
        let State { durable, pending, holes, used, .. } = &mut *state;
        let pages = span.start.0.next_multiple_of(PAGE_BYTES)..end - end % PAGE_BYTES;
        for page in pages.clone().step_by(PAGE_BYTES as usize) {
            pending.discarded(Offset(page), &GARBAGE, durable_mut(durable));
            (page..page + PAGE_BYTES)
                .step_by(8)
                .for_each(|at| self.word(Offset(at)).store(GARBAGE_WORD, Ordering::Release));
            Arc::make_mut(holes).insert(page);
            used.note(Offset(page));
        }
        pages.end.saturating_sub(pages.start)
    }

    fn try_back(&self, span: Span) -> Result<(), MediumError> {
        self.assert_thawed();
        self.assert_within(span.start, span.len_bytes);
        let mut state = self.0.state.lock();
        let touched: Vec<u64> = state.holes_in(span).collect();
        if touched.is_empty() {
            return Ok(());
        }
        if state.growth_count_max == 0 {
            return Err(MediumError::Full { wanted_bytes: self.len_bytes() });
        }
        let holes = Arc::make_mut(&mut state.holes);
        touched.iter().for_each(|page| _ = holes.remove(page));
        Ok(())
    }

    fn try_grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.assert_thawed();
        let mut state = self.0.state.lock();
        if to_bytes <= self.len_bytes() {
            return Ok(());
        }
        if to_bytes > REGION_BYTES_MAX {
            return Err(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes: REGION_BYTES_MAX });
        }
        let refused = state.growth_error.unwrap_or(MediumError::Full { wanted_bytes: to_bytes });
        let left = state.growth_count_max.checked_sub(1).ok_or(refused)?;
        state.growth_count_max = left;
        self.0.len_bytes.store(to_bytes.next_multiple_of(LINE_BYTES), Ordering::Release);
        Ok(())
    }
}

impl State {
    /// Returns the pages without space that `span` touches.
    fn holes_in(&self, span: Span) -> impl Iterator<Item = u64> {
        let first = span.start.0 - span.start.0 % PAGE_BYTES;
        self.holes.range(first..span.start.0 + span.len_bytes).copied()
    }

    /// Panics on a store to a page without space. On a full file system, such a store ends in a signal.
    fn assert_backed(&self, span: Span) {
        let hole = self.holes_in(span).next();
        assert!(hole.is_none(), "a store to the page at {:#x}, whose space was given back", hole.unwrap_or_default());
    }
}

/// The content of freed pages. A file system shows zeros, or the old content; programs must not rely on either.
const GARBAGE_WORD: u64 = 0x6A5B_A6E0_6A5B_A6E1;
const GARBAGE: Page = [[GARBAGE_WORD; 8]; (PAGE_BYTES / LINE_BYTES) as usize];
