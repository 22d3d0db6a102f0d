//! The three systems: where each puts its partitions.

use fastrand::Rng;

use crate::assumed::{RING_POINTS, SHARDS_PER_MACHINE, TASKS_PER_MACHINE, TOKENS};
use crate::cluster::{Cluster, Partition};

/// A system of many machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Kafka Streams, one standby replica: two copies, and the changelog in Kafka.
    Streams,
    /// Cassandra, replication factor 3, random tokens.
    Cassandra,
    /// `hikv serve` behind a proxy, without copies.
    Fleet,
}

impl System {
    /// All systems, in the order of the page.
    pub const ALL: [Self; 3] = [Self::Streams, Self::Cassandra, Self::Fleet];

    /// Returns the name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Streams => "Kafka Streams",
            Self::Cassandra => "Cassandra",
            Self::Fleet => "fleet",
        }
    }

    /// Returns the number of copies of an item in hikv stores.
    #[must_use]
    pub fn copies(self) -> usize {
        match self {
            Self::Streams => 2,
            Self::Cassandra => 3,
            Self::Fleet => 1,
        }
    }

    /// Returns the fewest machines on which each copy has a machine of its own.
    #[must_use]
    pub fn machines_min(self) -> usize {
        self.copies() + 1
    }

    /// Places the partitions on `machines` machines.
    #[must_use]
    pub fn place(self, machines: usize) -> Cluster {
        match self {
            Self::Streams => streams(machines),
            Self::Cassandra => ring(machines, &mut Rng::with_seed(7)),
            Self::Fleet => shards(machines, &mut Rng::with_seed(7)),
        }
    }
}

/// Partitions of equal size, because a hash of the key assigns items. Each instance has as many as any other, and its
/// standby copies are spread over other instances.
fn streams(machines: usize) -> Cluster {
    let count = machines * TASKS_PER_MACHINE / 2;
    let partition = |number: usize| {
        let active = number % machines;
        let standby = (active + 1 + number / machines % (machines - 1)) % machines;
        Partition { share: 1.0 / count as f64, homes: vec![active, standby] }
    };
    Cluster { machines, partitions: (0..count).map(partition).collect() }
}

/// Ranges between random tokens. Each belongs to the next three distinct machines of the ring.
fn ring(machines: usize, rng: &mut Rng) -> Cluster {
    let tokens = points(machines, TOKENS, rng);
    let homes = |from: usize| {
        let mut homes = Vec::new();
        for step in 0.. {
            let (_, machine) = tokens[(from + step) % tokens.len()];
            if !homes.contains(&machine) {
                homes.push(machine);
            }
            if homes.len() == System::Cassandra.copies() {
                return homes;
            }
        }
        unreachable!("the ring has more machines than copies");
    };
    let shares = gaps(&tokens);
    Cluster {
        machines,
        partitions: (0..tokens.len()).map(|at| Partition { share: shares[at], homes: homes(at) }).collect(),
    }
}

/// Shards of a ring with many points each. A shard is on one machine, with other shards.
fn shards(machines: usize, rng: &mut Rng) -> Cluster {
    let count = machines * SHARDS_PER_MACHINE;
    let points = points(count, RING_POINTS, rng);
    let mut partitions: Vec<Partition> =
        (0..count).map(|shard| Partition { share: 0.0, homes: vec![shard / SHARDS_PER_MACHINE] }).collect();
    for ((_, shard), share) in points.iter().zip(gaps(&points)) {
        partitions[*shard].share += share;
    }
    Cluster { machines, partitions }
}

/// Draws `each` points for each of `owners`, in the order of the ring.
fn points(owners: usize, each: usize, rng: &mut Rng) -> Vec<(u64, usize)> {
    let mut points: Vec<(u64, usize)> = (0..owners * each).map(|number| (rng.u64(..), number / each)).collect();
    points.sort_unstable();
    points
}

/// Returns the share of the ring that ends at each point.
fn gaps(points: &[(u64, usize)]) -> Vec<f64> {
    let before = |at: usize| points[(at + points.len() - 1) % points.len()].0;
    (0..points.len()).map(|at| points[at].0.wrapping_sub(before(at)) as f64 / 2f64.powi(64)).collect()
}
