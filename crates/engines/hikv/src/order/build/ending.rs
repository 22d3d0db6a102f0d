//! Early ends of a build, or of the tree that it made.

use epoch::Grace;
use pmem::Medium;

use super::{Build, Builder, Stage};
use crate::memory::Memory;
use crate::order::queues::Queues;
use crate::order::tree::{Phase, Tree};
use crate::snapshots::Disposal;
use engine::{Error, WantedThreads};

impl<D: Memory> Builder<D> {
    /// Drops the build of this number because of `failure`. The failure of an earlier build does not affect the present
    /// one.
    pub(super) fn abort_build<M: Medium>(
        &self,
        tree: &Tree<D>,
        disposal: Disposal<'_, M, D>,
        number: u64,
        failure: Error,
    ) {
        let mut build = self.build.lock();
        if build.number == number {
            abort(&mut build, tree, disposal, failure);
        }
    }

    /// Drops a tree that did not take a change because of `failure`, unless another thread has dropped the tree since.
    /// The change is at its queue's head, so no other tree was built in between.
    pub(in crate::order) fn abort_tree<M: Medium>(&self, tree: &Tree<D>, disposal: Disposal<'_, M, D>, failure: Error) {
        let mut build = self.build.lock();
        if tree.phase() != Phase::Off {
            abort(&mut build, tree, disposal, failure);
        }
    }

    /// Drops an unfinished build. No thread works on it.
    pub(in crate::order) fn give_up<M: Medium>(&self, tree: &Tree<D>, disposal: Disposal<'_, M, D>) {
        let mut build = self.build.lock();
        if build.is_asked_for() {
            build.abandon(Stage::Idle);
            tree.discard(disposal);
        }
    }

    /// Drops tree and build until [`Builder::resume`].
    pub(in crate::order) fn suspend<M: Medium>(&self, tree: &Tree<D>, disposal: Disposal<'_, M, D>) {
        let mut build = self.build.lock();
        let (others, resumes) = match build.stage {
            Stage::Suspended(count, resumes) => (count, resumes),
            _ => (0, build.is_asked_for() || tree.phase() == Phase::Ready),
        };
        build.abandon(Stage::Suspended(others + 1, resumes));
        tree.discard(disposal);
    }

    /// Starts the build again, if there was one and no other thread suspends it.
    pub(in crate::order) fn resume(&self, queues: &Queues) {
        let mut build = self.build.lock();
        build.stage = match build.stage {
            Stage::Suspended(1, true) => Stage::Settling(Grace::start()),
            Stage::Suspended(1, false) => Stage::Idle,
            Stage::Suspended(count, resumes) => Stage::Suspended(count - 1, resumes),
            _ => unreachable!("only a suspended build is resumed"),
        };
        queues.ask(WantedThreads::All);
    }
}

fn abort<M: Medium, D: Memory>(build: &mut Build<D>, tree: &Tree<D>, disposal: Disposal<'_, M, D>, failure: Error) {
    build.abandon(Stage::Idle);
    build.failure = Some(failure);
    tree.discard(disposal);
}

#[cfg(test)]
mod tests {
    use pmem_sim::{Model, Sim};

    use crate::Parameters;
    use crate::{HiKv, Ordered};
    use engine::prelude::*;
    use engine::{Error, OrderState, Progress};
    use pmem_os::HostDram;

    const REGION_BYTES: u64 = 16 << 20;

    /// A clear that finds no space calls the steps of a build that it has suspended, until they are idle.
    #[test]
    fn suspended_build_has_no_work() {
        let store = store_of_100_keys();
        store.request_order().unwrap();
        let (order, source) = (store.writer().order(), store.writer().source());
        for _ in 0..2 {
            order.suspend(store.writer().disposal());
            assert_eq!(order.step(source).unwrap(), Progress::Idle);
        }
        order.resume();
        assert_eq!(order.step(source).unwrap(), Progress::Idle);
        order.resume();
        assert_eq!(order.step(source).unwrap(), Progress::More);
    }

    fn store_of_100_keys() -> HiKv<Sim, HostDram> {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
        let medium = Sim::new(REGION_BYTES, Model::Line);
        let store = HiKv::format(medium, HostDram, &parameters).unwrap().keeping_order(Ordered::new(1, HostDram));
        (0..100u32).for_each(|number| store.put(&number.to_be_bytes(), b"value").unwrap());
        store
    }

    /// Every key is deleted while a part of a build is under way, and the next build is requested before that part
    /// fails.
    #[test]
    fn earlier_build_failure_does_not_end_next() {
        let store = store_of_100_keys();
        store.request_order().unwrap();
        let number = store.writer().order().builder.build.lock().number;
        store.clear().unwrap();
        let failure = || Error::Corrupt { offset: 64, what: "an item is damaged" };
        store.writer().order().builder.abort_build(
            &store.writer().order().tree,
            store.writer().disposal(),
            number,
            failure(),
        );
        assert_eq!(store.stats().order.unwrap().state, OrderState::Building);
        store.request_order().unwrap();
        let number = store.writer().order().builder.build.lock().number;
        store.writer().order().builder.abort_build(
            &store.writer().order().tree,
            store.writer().disposal(),
            number,
            failure(),
        );
        assert!(matches!(store.request_order(), Err(Error::Corrupt { offset: 64, .. })));
    }
}
