//! Putting several keys at once (paper, section 6: future work).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 room for all items, which are written and flushed | free space |
//! | 2 they are ordered, together | free space |
//! | 3 each key: bucket, ticket, entry with FRESH | some keys' new items, others' old ones; nobody has acted on the new ones |
//! | 4 one commit, waited for | all new items |
//! | 5 marks off (unless the caller is going to wait itself), tickets filled; then, unpinned, the callback is told of keys that had expired | |
//!
//! So a group costs two fences, not two a key. It is not one step: for that there are batches.

use arrayvec::ArrayVec;
use pmem::{Dram, Level, Medium, Waited};

use crate::canary;
use crate::read::GROUP_COUNT;
use crate::write::publish::{Committed, Pending, Prepared, Target};
use crate::{HiKv, Memory};
use engine::{Answer, Before, Engine, Error, Expiry};
use items::NewItem;

/// A key with its item, written and not published.
struct Keyed<'a, D: Dram> {
    signature: u64,
    key: &'a [u8],
    new: Prepared<'a, D>,
}

type Group<T> = ArrayVec<T, GROUP_COUNT>;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Puts at most [`GROUP_COUNT`] items.
    pub(crate) fn put_group(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let mut expired = Group::new();
        let published = {
            let _pin = epoch::pin();
            let Ok(prepared) = self.prepare_group(items) else {
                return self.put_each(items);
            };
            self.publish_group(prepared, &mut expired)
        };
        expired.into_iter().for_each(|key| self.expired_hook.tell(key));
        published?.into_iter().try_for_each(|Keyed { signature, key, new }| {
            self.publish_waiting(epoch::pin(), Target::any(signature, key), Some(new)).map(drop)
        })
    }

    /// Where there is no room for all at once, there may be for one after the other.
    #[cold]
    fn put_each(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Steps 1 and 2.
    fn prepare_group<'a>(&'a self, items: &[(&'a [u8], &[u8])]) -> Result<Group<Keyed<'a, D>>, Error> {
        let signatures: Group<_> = items.iter().map(|(key, _)| self.hasher.signature(key)).collect();
        let aims: Group<_> = signatures.iter().map(|&signature| self.index.aim(&self.medium, signature)).collect();
        let mut prepared = Group::new();
        for (&(key, value), aim) in items.iter().zip(&aims) {
            let new = self.prepare(&NewItem { key, value, expiry: Expiry::NEVER })?;
            self.prefetch_old(aim);
            prepared.push(Keyed { signature: aim.signature(), key, new });
        }
        if !self.medium.breaks(canary::ITEM_NOT_ORDERED) {
            self.medium.order();
        }
        Ok(prepared)
    }

    /// Steps 3 to 5. Those that found a full queue come back. Where one fails, those before it are put. Keys that had expired
    /// go to `expired`.
    fn publish_group<'a>(
        &'a self,
        prepared: Group<Keyed<'a, D>>,
        expired: &mut Group<&'a [u8]>,
    ) -> Result<Group<Keyed<'a, D>>, Error> {
        let (mut pending, mut waiting, mut failure) = (Group::new(), Group::new(), None);
        for prepared in prepared {
            // One key's items are published in their order.
            let must_wait = waiting.iter().any(|late: &Keyed<'_, D>| late.key == prepared.key);
            match if must_wait { Ok(Err(prepared)) } else { self.enter_one_of_many(prepared) } {
                Ok(Ok(published)) => pending.push(published),
                Ok(Err(late)) => waiting.push(late),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.settle_group(pending, expired)?;
        failure.map_or(Ok(waiting), Err)
    }

    /// Steps 4 and 5. Where 4 fails the items are published all the same, and the order follows.
    fn settle_group<'a>(&'a self, pending: Group<Pending<'a, 'a>>, expired: &mut Group<&'a [u8]>) -> Result<(), Error> {
        let commit = || self.medium.acknowledge(self.medium.commit(Level::Strongest));
        let is_early = self.medium.breaks(canary::SETTLED_BEFORE_COMMIT);
        let waited = if is_early { Ok(Waited::Durable) } else { commit() };
        for pending in pending {
            if self.before(pending.old_expiry) == Before::Expired {
                expired.push(pending.written.key);
            }
            match waited {
                Ok(Waited::Durable) => self.settle(pending)?,
                _ => self.tell(pending.ticket, pending.written),
            }
        }
        let _ = if is_early { commit() } else { waited }?;
        Ok(())
    }

    /// Step 3 for one key, which comes back if its queue is full.
    fn enter_one_of_many<'a>(&'a self, prepared: Keyed<'a, D>) -> Result<Result<Pending<'a, 'a>, Keyed<'a, D>>, Error> {
        let Keyed { signature, key, new } = prepared;
        match self.enter(Target::any(signature, key), Some(new), Committed::Together)? {
            Answer::Done(Some(pending)) => Ok(Ok(pending)),
            Answer::QueueFull(Some(new)) => Ok(Err(Keyed { signature, key, new })),
            _ => unreachable!("a put expects nothing, and its item comes back"),
        }
    }
}
