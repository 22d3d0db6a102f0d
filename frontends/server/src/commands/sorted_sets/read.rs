//! Commands on single members, counts, and members without order.

use super::super::members;
use super::arguments::sorted_set;
use super::{arguments, replies};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::{Scored, score_of};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions![zcard, zcount, zlexcount, zmscore, zrandmember, zrank, zrevrank, zscan, zscore,];

fn zcard(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = sorted_set(call, 1)?.map_or(0, |set| set.len());
    call.reply.integer(count as i64);
    Ok(())
}

fn zscore(call: &mut Call<'_>) -> Result<(), Refusal> {
    let score = sorted_set(call, 1)?.map_or(Ok(None), |set| set.score(call.argument(2)))?;
    answer_score(call, score);
    Ok(())
}

fn zmscore(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (set, mut scores) = (sorted_set(call, 1)?, Vec::new());
    for member in call.request.arguments().skip(1) {
        scores.push(set.as_ref().map_or(Ok(None), |set| set.score(member))?);
    }
    call.reply.array(scores.len());
    scores.into_iter().for_each(|score| answer_score(call, score));
    Ok(())
}

fn answer_score(call: &mut Call<'_>, score: Option<f64>) {
    match score {
        Some(score) => call.reply.double(score),
        None => call.reply.null_bulk(),
    }
}

fn zcount(call: &mut Call<'_>) -> Result<(), Refusal> {
    let range = arguments::scores(call.argument(2), call.argument(3))?;
    let count = sorted_set(call, 1)?.map_or(Ok(0), |set| range.count(call, &set))?;
    call.reply.integer(count as i64);
    Ok(())
}

fn zlexcount(call: &mut Call<'_>) -> Result<(), Refusal> {
    let range = arguments::members(call.argument(2), call.argument(3))?;
    let count = sorted_set(call, 1)?.map_or(Ok(0), |set| range.count(call, &set))?;
    call.reply.integer(count as i64);
    Ok(())
}

fn zrank(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer_rank(call, false)
}

fn zrevrank(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer_rank(call, true)
}

fn answer_rank(call: &mut Call<'_>, is_reverse: bool) -> Result<(), Refusal> {
    let set = sorted_set(call, 1)?;
    let rank = set.as_ref().map_or(Ok(None), |set| set.rank(call.argument(2)))?;
    let count = set.map_or(0, |set| set.len());
    match rank {
        Some(rank) => call.reply.integer(if is_reverse { count.saturating_sub(1 + rank) } else { rank } as i64),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

fn zscan(call: &mut Call<'_>) -> Result<(), Refusal> {
    members::scan(call, CollectionType::SortedSet)
}

fn zrandmember(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 2 {
        let found = call.collection(1, CollectionType::SortedSet)?;
        match found.map_or(Ok(None), |found| members::random(&found))? {
            Some((member, _)) => call.reply.bulk(&member),
            None => call.reply.null_bulk(),
        }
        return Ok(());
    }
    let has_scores = call.request.len() == 4 && call.argument(3).eq_ignore_ascii_case(b"withscores");
    let count = members::random_count(call, if has_scores { 2 } else { 1 })?;
    if call.request.len() > 3 && !has_scores {
        return Err(Refusal::Syntax);
    }
    let found = call.collection(1, CollectionType::SortedSet)?;
    let chosen = found.map_or(Ok(Vec::new()), |found| members::some(call, &found, count))?;
    let chosen = chosen.into_iter().map(|(member, value)| Ok((member, score_of(&value)?)));
    let chosen = chosen.collect::<Result<Vec<Scored>, Refusal>>()?;
    replies::answer(call, &chosen, has_scores);
    Ok(())
}
