//! The number of machines for a number of items, and the times and bytes of a recovery.

use crate::assumed::{MACHINE, REACTION_SECONDS, SESSION_SECONDS, STREAM_BYTES_PER_SECOND, WIRE_BYTES};
use crate::cluster::Cluster;
use crate::measured::{
    INDEX_BYTES, ITEM_BYTES, OPENING_SECONDS, OPENING_SECONDS_PER_ITEM, ORDER_BYTES, PUTS_PER_SECOND, REGION_BYTES,
    STORE_BYTES_MAX, TABLES_SHARE,
};
use crate::systems::System;

/// Memory of a machine's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Whole stores are in memory.
    Whole,
    /// Index and order are in memory, items on the disk.
    Limited,
}

impl Memory {
    /// Returns how many items a machine can store.
    #[must_use]
    pub fn items_max(self) -> f64 {
        let on_disk = MACHINE.disk_bytes / REGION_BYTES.value;
        let in_memory = match self {
            Self::Whole => MACHINE.dram_bytes / REGION_BYTES.value,
            Self::Limited => MACHINE.dram_bytes * TABLES_SHARE.value / (INDEX_BYTES.value + ORDER_BYTES.value),
        };
        on_disk.min(in_memory)
    }
}

/// The resource that takes the longest in a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The network of the machine that receives.
    Network,
    /// The puts of its stores.
    Puts,
    /// The throttled streams of the machines that send.
    Streams,
}

/// A system of as many machines as its items need.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The system.
    pub system: System,
    /// All items, without copies.
    pub items: f64,
    /// Its partitions, on the fewest machines of which the fullest has space.
    pub cluster: Cluster,
}

impl Plan {
    /// Finds the number of machines.
    #[must_use]
    pub fn new(system: System, memory: Memory, items: f64) -> Self {
        let needed =
            |unevenness: f64| (items * system.copies() as f64 * unevenness / memory.items_max()).ceil() as usize;
        let mut machines = needed(1.0).max(system.machines_min());
        loop {
            let cluster = system.place(machines);
            let plan = Self { system, items, cluster };
            if plan.items_of_fullest() <= memory.items_max() {
                return plan;
            }
            machines = needed(plan.cluster.unevenness()).max(machines + 1);
        }
    }

    /// Returns the items on an average machine.
    #[must_use]
    pub fn items_of_mean(&self) -> f64 {
        self.items * self.system.copies() as f64 / self.cluster.machines as f64
    }

    /// Returns the items on the fullest machine.
    #[must_use]
    pub fn items_of_fullest(&self) -> f64 {
        self.items_of_mean() * self.cluster.unevenness()
    }

    /// Returns the stores of a machine: of a fleet one per shard, of others as many as the greatest size of a store
    /// requires.
    #[must_use]
    pub fn stores(&self) -> f64 {
        let by_size =
            (self.items_of_fullest() * REGION_BYTES.value / (STORE_BYTES_MAX.value * MACHINE.store_share)).ceil();
        match self.system {
            System::Fleet => by_size.max(crate::assumed::SHARDS_PER_MACHINE as f64),
            System::Streams | System::Cassandra => by_size,
        }
    }

    /// Returns the seconds from the start of a killed process to its first answer.
    #[must_use]
    pub fn opening_seconds(&self) -> f64 {
        OPENING_SECONDS.value + OPENING_SECONDS_PER_ITEM.value * self.items_of_mean() / self.stores()
    }

    /// Returns the bytes of an item on the network: a fleet copies files.
    #[must_use]
    pub fn wire_bytes(&self) -> f64 {
        match self.system {
            System::Fleet => REGION_BYTES.value,
            System::Streams | System::Cassandra => ITEM_BYTES.value + WIRE_BYTES,
        }
    }

    /// Returns the seconds to bring items to one empty machine, and the resource that decides.
    #[must_use]
    pub fn filling(&self, items: f64) -> (f64, Bottleneck) {
        let network = (items * self.wire_bytes() / MACHINE.network_bytes_per_second, Bottleneck::Network);
        let puts = match self.system {
            System::Fleet => 0.0,
            System::Streams | System::Cassandra => items / (PUTS_PER_SECOND.value * self.stores()),
        };
        let streams = match self.system {
            System::Cassandra => items * self.wire_bytes() / (STREAM_BYTES_PER_SECOND * self.cluster.sources(0) as f64),
            System::Streams | System::Fleet => 0.0,
        };
        [network, (puts, Bottleneck::Puts), (streams, Bottleneck::Streams)]
            .into_iter()
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .expect("there are three resources")
    }

    /// Returns the seconds until an empty machine has the items of a lost one.
    #[must_use]
    pub fn refill_seconds(&self) -> f64 {
        let filling = self.filling(self.items_of_mean()).0;
        match self.system {
            System::Streams => SESSION_SECONDS + filling,
            System::Cassandra => REACTION_SECONDS + filling,
            System::Fleet => REACTION_SECONDS + filling + self.opening_seconds(),
        }
    }

    /// Returns the seconds until the keys of a lost machine are served again, where no other machine is down.
    #[must_use]
    pub fn outage_seconds(&self) -> f64 {
        match self.system {
            System::Streams => SESSION_SECONDS,
            System::Cassandra => 0.0,
            System::Fleet => self.refill_seconds(),
        }
    }

    /// Returns the seconds in which keys of a killed process are not served, where no other machine is down.
    #[must_use]
    pub fn pause_seconds(&self) -> f64 {
        match self.system {
            System::Streams => self.opening_seconds().min(SESSION_SECONDS),
            System::Cassandra => 0.0,
            System::Fleet => self.opening_seconds(),
        }
    }
}
