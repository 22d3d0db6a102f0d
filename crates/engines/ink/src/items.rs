//! The items of a store, as its readers see them: values with an expiry that a clock decides about.

use engine::{Clock, Damage, Error, Expiry, PriorState, Verify};
use pbtree::{Figures, FreeImmediately, Tree, Value};
use pmem::{Dram, Medium};

use crate::copy::{Copy, check_intact, expiry_of};
use crate::error::from_tree;

/// The items of a tree.
pub(crate) struct Items<M: Medium, D: Dram> {
    tree: Tree<M, D, FreeImmediately>,
    clock: Clock,
    verify: Verify,
}

impl<M: Medium, D: Dram> Items<M, D> {
    pub(crate) fn new(tree: Tree<M, D, FreeImmediately>) -> Items<M, D> {
        Items { tree, clock: Clock::default(), verify: Verify::Nothing }
    }

    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(crate) fn set_verify(&mut self, verify: Verify) {
        self.verify = verify;
    }

    #[inline(always)]
    pub(crate) fn tree(&self) -> &Tree<M, D, FreeImmediately> {
        &self.tree
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the level of checks by reads.
    pub(crate) fn verify(&self) -> Verify {
        self.verify
    }

    /// Returns true if this expiry has passed: the key is absent although there is a value.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
    }

    /// Returns the state of a value for the write that replaces it. The clock is read once, so that the writer's
    /// caller and the hook get the same state.
    pub(crate) fn before(&self, held: Option<&Value<'_>>) -> PriorState {
        match held {
            None => PriorState::Absent,
            Some(value) if self.is_past(expiry_of(value)) => PriorState::Expired,
            Some(_) => PriorState::Present,
        }
    }

    /// Calls `show` with the key's value, expired or not. Absence is checked as the store's `verify` requires.
    pub(crate) fn read_with<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        let is_sure = self.verify >= Verify::Absence;
        let shown = if is_sure { self.tree.get_verified(key, show) } else { self.tree.get(key, show) };
        shown.map_err(from_tree)
    }

    /// Copies the key's value, expired or not; checks it as `verify` requires.
    pub(crate) fn find_verified(&self, key: &[u8], verify: Verify) -> Result<Option<Copy>, Error> {
        let copied = self.read_with(key, |value| {
            if verify > Verify::Nothing {
                check_intact(value)?;
            }
            Ok(Copy::of(value))
        });
        copied?.transpose()
    }

    /// Copies the key's value, unless it has expired.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Copy>, Error> {
        Ok(self.find_verified(key, self.verify)?.filter(|found| !self.is_past(found.expiry)))
    }

    /// Checks the tree and reports its damage.
    pub(crate) fn check(&self, damaged: &mut dyn FnMut(Damage)) -> Result<Figures, Error> {
        let mut on_damage =
            |found: pbtree::Damage| damaged(Damage { offset: found.offset, what: found.what.to_owned() });
        self.tree.check(&mut on_damage).map_err(from_tree)
    }
}
