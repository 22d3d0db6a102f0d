//! Unions, intersections and differences of sorted sets, and of sets, whose members have the score 1.

use std::collections::HashMap;

use super::super::{counts, members};
use super::{arguments, replies};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::layout::hashed;
use crate::keyspace::collections::sorted_set::{Scored, SortedSet, score_of};
use crate::keyspace::collections::{Collection, CollectionType};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions![zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore,];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of a member are combined.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// As in Redis, the sum of both infinities is 0, and the lesser or greater of a number and NaN is the number.
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(one + other),
            Aggregate::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Aggregate::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

fn number_or_zero(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

/// One of the keys.
struct Input<'a> {
    /// A set or sorted set; `None` if the key does not exist.
    found: Option<Collection<'a>>,
    weight: f64,
}

impl<'a> Input<'a> {
    fn of(call: &Call<'a>, index: usize) -> Result<Input<'a>, Refusal> {
        let found = call.found(index)?;
        let is_accepted = match &found {
            Some(found) => matches!(found.collection_type(), CollectionType::Set | CollectionType::SortedSet),
            None => !call.store().contains(call.key(index))?,
        };
        if is_accepted { Ok(Input { found, weight: 1.0 }) } else { Err(FixedError::WrongType.into()) }
    }

    fn len(&self) -> u64 {
        self.found.as_ref().map_or(0, Collection::len)
    }

    /// Calls `each` with all members, in no order.
    fn each(
        &self,
        gathered: &mut Gathered,
        mut each: impl FnMut(&[u8], f64, &mut Gathered) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(found) = &self.found else { return Ok(()) };
        let is_sorted = found.collection_type() == CollectionType::SortedSet;
        members::each(found, gathered, |member, value, gathered| {
            each(member, if is_sorted { score_of(value)? } else { 1.0 }, gathered)
        })
    }

    /// Returns all members, in no order.
    fn members(&self, gathered: &mut Gathered) -> Result<Vec<Scored>, Refusal> {
        let mut members = Vec::new();
        self.each(gathered, |member, score, gathered| {
            gathered.add(member.len() + size_of::<Scored>())?;
            members.push((member.to_vec(), score));
            Ok(())
        })?;
        Ok(members)
    }

    fn score(&self, member: &[u8]) -> Result<Option<f64>, Refusal> {
        let Some(found) = &self.found else { return Ok(None) };
        match found.collection_type() {
            CollectionType::SortedSet => SortedSet::of(found.clone()).score(member),
            _ => Ok(found.contains(&hashed(member))?.then_some(1.0)),
        }
    }
}

/// A parsed request.
struct Query<'a> {
    operation: Operation,
    inputs: Vec<Input<'a>>,
    aggregate: Aggregate,
    has_scores: bool,
    /// Of ZINTERCARD; 0 if there is none.
    limit: u64,
}

impl<'a> Query<'a> {
    /// Parses the number of keys at `index`, the keys and the options.
    fn parse(call: &Call<'a>, index: usize, operation: Operation) -> Result<Query<'a>, Refusal> {
        let (command, count) = (call.entry.command.name, call.integer(index)?);
        if count < 1 {
            return Err(Refusal::Message(format!("at least 1 input key is needed for '{command}' command")));
        }
        let end = usize::try_from(count).ok().and_then(|count| count.checked_add(index + 1));
        let end = end.filter(|end| *end <= call.request.len()).ok_or(Refusal::Syntax)?;
        let inputs = (index + 1..end).map(|key| Input::of(call, key)).collect::<Result<_, _>>()?;
        let mut query = Query { operation, inputs, aggregate: Aggregate::Sum, has_scores: false, limit: 0 };
        query.parse_options(call, end)?;
        if operation != Operation::Difference {
            query.inputs.sort_by_key(Input::len);
        }
        Ok(query)
    }

    fn parse_options(&mut self, call: &Call<'_>, mut index: usize) -> Result<(), Refusal> {
        let counts_only = call.entry.command.name == "zintercard";
        let combines = self.operation != Operation::Difference && !counts_only;
        let stores = call.entry.command.name.ends_with("store");
        while index < call.request.len() {
            let following_count = call.request.len() - index - 1;
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"weights" if combines && following_count >= self.inputs.len() => {
                    for input in &mut self.inputs {
                        index += 1;
                        input.weight = arguments::number(call.argument(index)).ok_or(FixedError::Weight)?;
                    }
                }
                b"aggregate" if combines && following_count >= 1 => {
                    index += 1;
                    self.aggregate = match call.argument(index).to_ascii_lowercase().as_slice() {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Min,
                        b"max" => Aggregate::Max,
                        _ => return Err(Refusal::Syntax),
                    };
                }
                b"withscores" if !stores && !counts_only => self.has_scores = true,
                b"limit" if counts_only && following_count >= 1 => {
                    index += 1;
                    self.limit = counts::at_least(0, call.argument(index), FixedError::NegativeLimit)?;
                }
                _ => return Err(Refusal::Syntax),
            }
            index += 1;
        }
        Ok(())
    }

    /// Returns the members of the result, in their order.
    fn members(&self, call: &Call<'_>) -> Result<Vec<Scored>, Refusal> {
        let mut gathered = Gathered::of(call);
        let mut members = match self.operation {
            Operation::Union => self.union(&mut gathered)?,
            Operation::Intersection => self.intersection(&mut gathered, u64::MAX)?,
            Operation::Difference => self.difference(&mut gathered)?,
        };
        members.sort_by(|one, other| (one.1 + 0.0).total_cmp(&(other.1 + 0.0)).then_with(|| one.0.cmp(&other.0)));
        Ok(members)
    }

    fn union(&self, gathered: &mut Gathered) -> Result<Vec<Scored>, Refusal> {
        let mut scores: HashMap<Vec<u8>, f64> = HashMap::new();
        for input in &self.inputs {
            input.each(gathered, |member, score, gathered| {
                let score = number_or_zero(input.weight * score);
                match scores.get_mut(member) {
                    Some(sum) => *sum = self.aggregate.of(*sum, score),
                    None => {
                        gathered.add(member.len() + size_of::<Scored>())?;
                        scores.insert(member.to_vec(), score);
                    }
                }
                Ok(())
            })?;
        }
        Ok(scores.into_iter().collect())
    }

    /// Returns at most `limit` members.
    fn intersection(&self, gathered: &mut Gathered, limit: u64) -> Result<Vec<Scored>, Refusal> {
        let Some((smallest, others)) = self.inputs.split_first() else { return Ok(Vec::new()) };
        let mut members = Vec::new();
        'members: for (member, score) in smallest.members(gathered)? {
            if members.len() as u64 >= limit {
                break;
            }
            let mut sum = number_or_zero(smallest.weight * score);
            for other in others {
                let Some(score) = other.score(&member)? else { continue 'members };
                sum = self.aggregate.of(sum, other.weight * score);
            }
            members.push((member, sum));
        }
        Ok(members)
    }

    fn difference(&self, gathered: &mut Gathered) -> Result<Vec<Scored>, Refusal> {
        let Some((first, others)) = self.inputs.split_first() else { return Ok(Vec::new()) };
        let mut members = Vec::new();
        'members: for (member, score) in first.members(gathered)? {
            for other in others {
                if other.score(&member)?.is_some() {
                    continue 'members;
                }
            }
            members.push((member, score));
        }
        Ok(members)
    }
}

fn answer(call: &mut Call<'_>, operation: Operation) -> Result<(), Refusal> {
    let query = Query::parse(call, 1, operation)?;
    let members = query.members(call)?;
    replies::answer(call, &members, query.has_scores);
    Ok(())
}

fn store(call: &mut Call<'_>, operation: Operation, event: &'static str) -> Result<(), Refusal> {
    let members = Query::parse(call, 2, operation)?.members(call)?;
    replies::store(call, &members, event)
}

fn zunion(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Union)
}

fn zinter(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Intersection)
}

fn zdiff(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Difference)
}

fn zunionstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Union, "zunionstore")
}

fn zinterstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Intersection, "zinterstore")
}

fn zdiffstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Difference, "zdiffstore")
}

fn zintercard(call: &mut Call<'_>) -> Result<(), Refusal> {
    let query = Query::parse(call, 1, Operation::Intersection)?;
    let limit = if query.limit == 0 { u64::MAX } else { query.limit };
    let count = query.intersection(&mut Gathered::of(call), limit)?.len();
    call.reply.integer(count as i64);
    Ok(())
}
