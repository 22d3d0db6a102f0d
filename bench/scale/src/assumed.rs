//! Assumptions: machines, and the settings of the three systems.

/// A machine, and the part of it that hikv may use.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// DRAM for stores: 80 % of 256 GiB.
    pub dram_bytes: f64,
    /// Disk for stores: 70 % of 4 TB.
    pub disk_bytes: f64,
    /// Network for recovery: half of 10 Gbit/s.
    pub network_bytes_per_second: f64,
    /// Share of a store's greatest size that is filled.
    pub store_share: f64,
}

/// The machine of the page.
pub const MACHINE: Machine = Machine {
    dram_bytes: 0.8 * 256.0 * (1u64 << 30) as f64,
    disk_bytes: 0.7 * 4e12,
    network_bytes_per_second: 0.5 * 1.25e9,
    store_share: 0.7,
};

/// Bytes of an item on the network, in addition to key and value: a Kafka record, a Cassandra row.
pub const WIRE_BYTES: f64 = 20.0;

/// Kafka: an instance is considered dead after this time (`session.timeout.ms`, default).
pub const SESSION_SECONDS: f64 = 45.0;

/// Cassandra: each machine sends at most this to others (`stream_throughput_outbound`, default 24 MiB/s).
pub const STREAM_BYTES_PER_SECOND: f64 = 24.0 * (1u64 << 20) as f64;

/// Cassandra: tokens of a machine (`num_tokens`, default).
pub const TOKENS: usize = 16;

/// twemproxy: points of a server on the ring.
pub const RING_POINTS: usize = 160;

/// Kafka Streams: partitions per instance, active and standby together.
pub const TASKS_PER_MACHINE: usize = 8;

/// Fleet: servers per machine.
pub const SHARDS_PER_MACHINE: usize = 8;

/// Fleet: an operator or a program begins to restore a lost machine after this time.
pub const REACTION_SECONDS: f64 = 900.0;

/// Process deaths per machine and year.
pub const KILLS_PER_YEAR: f64 = 12.0;

/// Machines lost with their disks, per machine and year.
pub const LOSSES_PER_YEAR: f64 = 1.0 / 3.0;
