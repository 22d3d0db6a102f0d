//! A store in which each key is a pair of keys of another store, kept equal by batches and conditions.
//!
//! A reader or writer reads both keys, and uses the result only if neither has changed since, which a conditional batch
//! checks. A contention test ([`crate::contend`]) on these keys therefore shows whether conditions on two keys are
//! judged at one moment, that of the batch.

use engine::{BatchOp, Condition, Engine, Error, Version};

use crate::subject::{Failure, Operations};

/// The store of pairs; see the module's head.
pub struct Paired<'a>(pub &'a dyn Engine);

/// A key's value and its version.
type Held = Option<(Version, Vec<u8>)>;

/// The two keys of a pair.
struct Pair([Vec<u8>; 2]);

impl Pair {
    fn of(key: &[u8]) -> Pair {
        Pair([b'a', b'b'].map(|which| [&[which], key].concat()))
    }

    fn ops<'a>(&'a self, value: Option<&'a [u8]>) -> [BatchOp<'a>; 2] {
        self.0.each_ref().map(|key| match value {
            Some(value) => BatchOp::Put { key, value },
            None => BatchOp::Delete { key },
        })
    }
}

impl Paired<'_> {
    fn held(&self, key: &[u8]) -> Result<Held, Failure> {
        let mut held = None;
        self.0.get(key, &mut |witness, _, value| held = Some((witness.version(key, value), value.to_vec())))?;
        Ok(held)
    }

    /// Returns the value of both keys at one moment; `change` decides whether they change at that moment, and to which
    /// value.
    ///
    /// # Errors
    /// If the two keys hold different values.
    fn at_once<'v>(
        &self,
        key: &[u8],
        change: impl Fn(Option<&[u8]>) -> Option<Option<&'v [u8]>>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let pair = Pair::of(key);
        loop {
            let [first, second] = [self.held(&pair.0[0])?, self.held(&pair.0[1])?];
            let value = |held: &Held| held.as_ref().map(|(_, value)| value.clone());
            let version = |held: &Held| held.as_ref().map(|(version, _)| *version);
            let condition = |i: usize, held| Condition { key: &pair.0[i], required: version(held).into() };
            let conditions = [condition(0, &first), condition(1, &second)];
            let ops = change(value(&first).as_deref()).map(|new| pair.ops(new));
            match self.0.write_batch_if(&conditions, ops.as_ref().map_or(&[], |ops| &ops[..])) {
                Ok(()) if value(&first) == value(&second) => return Ok(value(&first)),
                Ok(()) => return Err(Failure::Other("two keys that are written at once differ at one moment".into())),
                Err(Error::ConditionFailed { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Operations for Paired<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.at_once(key, |_| None)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.0.write_batch(&Pair::of(key).ops(Some(value)))?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.at_once(key, |_| Some(None))?.is_some())
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let held = self.at_once(key, |held| (held == expected).then_some(new))?;
        Ok(held.as_deref() == expected)
    }

    fn clear(&self) -> Result<(), Failure> {
        Ok(self.0.clear()?)
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.0.len()? / 2)
    }

    fn for_each(&self, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err(Failure::Other("pairs can only be looked up".into()))
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}
