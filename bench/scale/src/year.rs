//! Years of failures: processes that die and machines that are lost, at random moments from a seed.

use fastrand::Rng;

use crate::assumed::{KILLS_PER_YEAR, LOSSES_PER_YEAR, SESSION_SECONDS};
use crate::plan::Plan;
use crate::systems::System;

const YEAR_SECONDS: f64 = 365.25 * 86_400.0;

/// The failures of some years, as means of one year.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Year {
    /// Processes that died.
    pub kills: f64,
    /// Machines that were lost.
    pub losses: f64,
    /// Seconds in which a key was not served, as the mean of all keys.
    pub unserved_seconds: f64,
    /// Bytes on the network to fill replaced machines.
    pub network_bytes: f64,
    /// Partitions of which every copy in a store was lost.
    pub lost_partitions: f64,
}

/// A machine's state.
#[derive(Clone, Copy, Default)]
struct Machine {
    /// When it serves again.
    down_until: f64,
    /// When it has its items again; past unless the machine was lost.
    empty_until: f64,
}

/// Simulates `years` years.
#[must_use]
pub fn simulate(plan: &Plan, years: u32, seed: u64) -> Year {
    let mut rng = Rng::with_seed(seed);
    let end = f64::from(years) * YEAR_SECONDS;
    let rate = plan.cluster.machines as f64 * (KILLS_PER_YEAR + LOSSES_PER_YEAR) / YEAR_SECONDS;
    let (opening, refill, sent) =
        (plan.opening_seconds(), plan.refill_seconds(), plan.items_of_mean() * plan.wire_bytes());
    let held = plan.cluster.by_machine();
    let mut machines = vec![Machine::default(); plan.cluster.machines];
    let mut total = Year::default();
    let mut now = 0.0;
    loop {
        now -= (1.0 - rng.f64()).ln() / rate;
        if now >= end {
            break;
        }
        let failed = rng.usize(..machines.len());
        let is_loss = rng.f64() * (KILLS_PER_YEAR + LOSSES_PER_YEAR) < LOSSES_PER_YEAR;
        let before = machines[failed];
        let back = now + if is_loss { refill } else { opening };
        machines[failed].down_until = before.down_until.max(back);
        if is_loss {
            machines[failed].empty_until = back;
            total.losses += 1.0;
            total.network_bytes += sent;
        } else {
            total.kills += 1.0;
        }
        for &number in &held[failed] {
            let partition = &plan.cluster.partitions[number];
            let others: Vec<Machine> =
                partition.homes.iter().filter(|&&home| home != failed).map(|&home| machines[home]).collect();
            let seconds = match plan.system {
                System::Streams if partition.homes[0] != failed => 0.0,
                // The standby takes over once the session has ended and the standby itself is there.
                System::Streams => (others[0].down_until - now).max(SESSION_SECONDS).min(back - now),
                System::Cassandra => majority_gone(now, before, machines[failed], &others),
                System::Fleet => machines[failed].down_until - before.down_until.max(now),
            };
            total.unserved_seconds += seconds * partition.share;
            if is_loss && others.iter().all(|other| other.empty_until > now) {
                total.lost_partitions += 1.0;
            }
        }
    }
    let years = f64::from(years);
    Year {
        kills: total.kills / years,
        losses: total.losses / years,
        unserved_seconds: total.unserved_seconds / years,
        network_bytes: total.network_bytes / years,
        lost_partitions: total.lost_partitions / years,
    }
}

/// Returns the seconds that a failure adds to the time in which two of three copies are down.
fn majority_gone(now: f64, before: Machine, after: Machine, others: &[Machine]) -> f64 {
    let until = |failed: Machine| {
        let mut ends: Vec<f64> = others.iter().chain([&failed]).map(|machine| machine.down_until.max(now)).collect();
        ends.sort_by(f64::total_cmp);
        // The last but one to come back makes two of three.
        ends[ends.len() - 2]
    };
    until(after) - until(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(until: f64) -> Machine {
        Machine { down_until: until, empty_until: 0.0 }
    }

    #[test]
    fn one_of_three_down_is_served() {
        assert_eq!(majority_gone(10.0, down(0.0), down(50.0), &[down(0.0), down(9.0)]), 0.0);
    }

    #[test]
    fn second_outage_waits_for_first_repair() {
        assert_eq!(majority_gone(10.0, down(0.0), down(50.0), &[down(30.0), down(0.0)]), 20.0);
    }

    #[test]
    fn third_outage_adds_only_later_time() {
        assert_eq!(majority_gone(10.0, down(0.0), down(50.0), &[down(30.0), down(40.0)]), 10.0);
    }
}
