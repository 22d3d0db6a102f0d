//! The choice of crash images to check when there are more than the budget allows.

use std::collections::HashSet;
use std::fmt;

use fastrand::Rng;

/// The outcome of each part.
pub(crate) type Choice = Vec<usize>;

/// Returns at most `budget` distinct choices of one outcome per part. Returns all of them if there are so few.
/// Otherwise: the least, the most, every part (the first ones first) against the other parts, and a random mix.
pub(crate) fn choices(outcome_counts: &[usize], budget: usize, seed: u64) -> Vec<Choice> {
    let total = outcome_counts.iter().try_fold(1usize, |product, &count| product.checked_mul(count));
    match total {
        Some(total) if total <= budget => (0..total).map(|number| digits(number, outcome_counts)).collect(),
        _ => sample(outcome_counts, budget, &mut Rng::with_seed(seed)),
    }
}

/// As many as fit on one or two lines of a terminal.
const SHOWN_PARTS_MAX: usize = 12;

/// Prints the pending parts that survived, each with its outcome and the number of outcomes. Long lists are cut.
pub(crate) fn write_survivors<P>(
    f: &mut fmt::Formatter<'_>,
    kind: &str,
    survivors: impl ExactSizeIterator<Item = (P, usize, usize)>,
    name: impl Fn(&mut fmt::Formatter<'_>, P) -> fmt::Result,
) -> fmt::Result {
    let count = survivors.len();
    if count == 0 {
        return f.write_str("nothing was pending");
    }
    write!(f, "pending {kind} kept:")?;
    for (part, outcome, outcome_count) in survivors.take(SHOWN_PARTS_MAX) {
        f.write_str(" ")?;
        name(f, part)?;
        write!(f, " ({outcome}/{})", outcome_count - 1)?;
    }
    match count.checked_sub(SHOWN_PARTS_MAX) {
        Some(hidden) if hidden > 0 => write!(f, " and {hidden} more"),
        _ => Ok(()),
    }
}

/// Returns `number` in the mixed radix of `outcome_counts`.
fn digits(mut number: usize, outcome_counts: &[usize]) -> Choice {
    let digit = |&count: &usize| {
        let digit = number % count;
        number /= count;
        digit
    };
    outcome_counts.iter().map(digit).collect()
}

fn sample(outcome_counts: &[usize], budget: usize, rng: &mut Rng) -> Vec<Choice> {
    // A quarter of the budget is kept for mixes, if there are several parts.
    let pointed_budget = if outcome_counts.len() > 1 { budget - budget / 4 } else { budget };
    let mut known = HashSet::new();
    let mut sampled: Vec<Choice> = pointed(outcome_counts, rng.fork())
        .filter(|choice| known.insert(choice.clone()))
        .take(pointed_budget)
        .collect();
    // Mixes repeat when few are left; twice the budget in attempts is enough.
    for _ in 0..2 * budget {
        if sampled.len() == budget {
            break;
        }
        let choice = mix(outcome_counts, rng);
        if known.insert(choice.clone()) {
            sampled.push(choice);
        }
    }
    sampled
}

/// The least, the most, and for each part: only it, all except it, and one outcome in between against either.
fn pointed(outcome_counts: &[usize], mut rng: Rng) -> impl Iterator<Item = Choice> {
    let least: Choice = vec![0; outcome_counts.len()];
    let most: Choice = outcome_counts.iter().map(|count| count - 1).collect();
    let with = |base: &Choice, part: usize, outcome: usize| {
        let mut choice = base.clone();
        choice[part] = outcome;
        choice
    };
    let ends = [least.clone(), most.clone()];
    let single = (0..outcome_counts.len()).flat_map(move |part| {
        let between = rng.usize(..outcome_counts[part]);
        [(&least, most[part]), (&most, 0), (&least, between), (&most, between)]
            .map(|(base, outcome)| with(base, part, outcome))
    });
    ends.into_iter().chain(single)
}

/// Chooses each part independently: none in two cases of five, all in two, anything in one.
fn mix(outcome_counts: &[usize], rng: &mut Rng) -> Choice {
    let outcome = |&count: &usize| match rng.u8(..5) {
        0 | 1 => 0,
        2 | 3 => count - 1,
        _ => rng.usize(..count),
    };
    outcome_counts.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_product_is_exhausted() {
        let all = choices(&[2, 3, 4], 24, 1);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 24);
        assert_eq!(choices(&[], 1, 1), [Vec::<usize>::new()], "nothing pending: one image");
    }

    #[test]
    fn large_product_is_sampled_within_budget() {
        let outcome_counts = [5; 40];
        for budget in [2, 3, 50, 400] {
            let sampled = choices(&outcome_counts, budget, 7);
            assert_eq!(sampled.iter().collect::<HashSet<_>>().len(), budget);
            assert_eq!(sampled[..2], [vec![0; 40], vec![4; 40]]);
            assert!(sampled.iter().flatten().all(|&outcome| outcome < 5));
        }
        assert_eq!(choices(&outcome_counts, 50, 7), choices(&outcome_counts, 50, 7), "the same seed, the same choices");
    }

    #[test]
    fn missing_part_is_noticed_within_budget() {
        let sampled = choices(&[3; 10], 100, 7);
        for part in 0..10 {
            let against = |base: usize, outcome: usize| -> Choice {
                (0..10).map(|other| if other == part { outcome } else { base }).collect()
            };
            assert!(sampled.contains(&against(0, 2)) && sampled.contains(&against(2, 0)), "part {part}");
        }
    }
}
