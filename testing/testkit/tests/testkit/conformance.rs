//! The conformance suite's own test: correct stores pass, and each kind of wrong answer is caught.

use std::cell::RefCell;

use testkit::{Contents, Failure, Operations, Problem, Shape, conformance};

/// The misbehaviour of a map.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Honest,
    KeepsDeleted,
    SaysDeletedAlways,
    ForgetsOnUpdate,
    ListsTwice,
    CountsOneMore,
    ClearsNothing,
    ReportsDamage,
}

struct Map {
    contents: RefCell<Contents>,
    habit: Habit,
}

impl Operations for Map {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.contents.borrow().get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let old = self.contents.borrow_mut().insert(key.to_vec(), value.to_vec());
        if old.is_some() && self.habit == Habit::ForgetsOnUpdate {
            self.contents.borrow_mut().remove(key);
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        let was_there = match self.habit {
            Habit::KeepsDeleted => self.contents.borrow().contains_key(key),
            _ => self.contents.borrow_mut().remove(key).is_some(),
        };
        Ok(was_there || self.habit == Habit::SaysDeletedAlways)
    }

    fn clear(&self) -> Result<(), Failure> {
        if self.habit != Habit::ClearsNothing {
            self.contents.borrow_mut().clear();
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.contents.borrow().len() as u64 + u64::from(self.habit == Habit::CountsOneMore))
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        for (key, value) in self.contents.borrow().iter() {
            each(key, value);
            if self.habit == Habit::ListsTwice {
                each(key, value);
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let damage = (self.habit == Habit::ReportsDamage).then(|| "a bit flipped".to_owned());
        Ok(damage.into_iter().collect())
    }
}

fn compared(habit: Habit) -> Result<u64, Problem> {
    let shape = Shape { clears: true, ..Shape::small(200) };
    let open = || -> Box<dyn Operations> { Box::new(Map { contents: RefCell::default(), habit }) };
    conformance(open, &shape, 0..5).map_err(|mismatch| mismatch.problem)
}

#[test]
fn map_conforms() {
    assert_eq!(compared(Habit::Honest), Ok(1000));
}

#[test]
fn every_bad_habit_is_noticed() {
    for habit in [Habit::KeepsDeleted, Habit::SaysDeletedAlways, Habit::ForgetsOnUpdate] {
        assert!(matches!(compared(habit), Err(Problem::Answer(_))));
    }
    assert!(matches!(compared(Habit::ListsTwice), Err(Problem::Duplicate(_))));
    assert!(matches!(compared(Habit::CountsOneMore), Err(Problem::Length { .. })));
    assert!(matches!(compared(Habit::ClearsNothing), Err(Problem::Contents(_))));
    assert!(matches!(compared(Habit::ReportsDamage), Err(Problem::Damage(_))));
}
