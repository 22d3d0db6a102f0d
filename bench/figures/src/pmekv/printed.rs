//! The paper's tables 1 to 4, in operations per second. The times in table 1 are those of one thread, and follow from
//! the rate.

use super::claims::{A_THREADS, B_THREADS, INSERT, INSERT_THREADS};
use crate::paper::Printed;

const fn row(workload: &'static str, system: &'static str, rates: &'static [f64]) -> Printed {
    Printed { workload, system, rates }
}

/// One thread.
pub(super) const TABLE_1: &[Printed] = &[
    row(INSERT, "pmekv-m", &[4830.0]),
    row(INSERT, "pmekv-nvm", &[4765.0]),
    row(INSERT, "pmekv-fs", &[3571.0]),
    row(INSERT, "redis", &[4500.0]),
    row(INSERT, "mongodb", &[1364.0]),
    row(INSERT, "memcached", &[1818.0]),
    row(INSERT, "pmem-kv", &[4539.0]),
    row(INSERT, "pmem-redis", &[4603.0]),
];

/// 2, 4, 8 and 16 threads.
pub(super) const TABLE_2: &[Printed] = &[
    row(INSERT_THREADS, "pmekv-m", &[5586.0, 6015.0, 6517.0, 5789.0]),
    row(INSERT_THREADS, "pmekv-nvm", &[5451.0, 6113.0, 7143.0, 6172.0]),
    row(INSERT_THREADS, "pmekv-fs", &[3728.0, 4452.0, 4912.0, 4018.0]),
    row(INSERT_THREADS, "redis", &[5649.0, 6037.0, 6944.0, 6012.0]),
    row(INSERT_THREADS, "mongodb", &[1808.0, 2409.0, 2493.0, 2770.0]),
    row(INSERT_THREADS, "memcached", &[1960.0, 2481.0, 2174.0, 2247.0]),
    row(INSERT_THREADS, "pmem-kv", &[5397.0, 6064.0, 6915.0, 5873.0]),
    row(INSERT_THREADS, "pmem-redis", &[5702.0, 6057.0, 6995.0, 6112.0]),
];

/// 1, 2, 4, 8 and 16 threads.
pub(super) const TABLE_3: &[Printed] = &[
    row(A_THREADS, "pmekv-m", &[8196.0, 8771.0, 9345.0, 10_989.0, 9528.0]),
    row(A_THREADS, "pmekv-nvm", &[7863.0, 9233.0, 9708.0, 11_069.0, 10_526.0]),
    row(A_THREADS, "pmekv-fs", &[6992.0, 7756.0, 8564.0, 9046.0, 8633.0]),
    row(A_THREADS, "redis", &[5714.0, 8124.0, 9618.0, 10_894.0, 9523.0]),
    row(A_THREADS, "mongodb", &[1262.0, 1893.0, 2183.0, 2717.0, 2409.0]),
    row(A_THREADS, "memcached", &[1890.0, 2145.0, 2906.0, 2597.0, 2369.0]),
    row(A_THREADS, "pmem-kv", &[7455.0, 8530.0, 9434.0, 9503.0, 9148.0]),
    row(A_THREADS, "pmem-redis", &[7514.0, 8823.0, 9673.0, 11_014.0, 9749.0]),
];

/// The same threads as in table 3.
pub(super) const TABLE_4: &[Printed] = &[
    row(B_THREADS, "pmekv-m", &[11_928.0, 12_522.0, 12_904.0, 11_869.0, 10_204.0]),
    row(B_THREADS, "pmekv-nvm", &[10_869.0, 12_157.0, 12_987.0, 11_363.0, 10_869.0]),
    row(B_THREADS, "pmekv-fs", &[8345.0, 9539.0, 9185.0, 8923.0, 8725.0]),
    row(B_THREADS, "redis", &[6451.0, 7936.0, 9708.0, 9433.0, 8547.0]),
    row(B_THREADS, "mongodb", &[1615.0, 1965.0, 2403.0, 2439.0, 2652.0]),
    row(B_THREADS, "memcached", &[1700.0, 1488.0, 2695.0, 2525.0, 2004.0]),
    row(B_THREADS, "pmem-kv", &[10_154.0, 10_538.0, 11_293.0, 10_481.0, 9588.0]),
    row(B_THREADS, "pmem-redis", &[10_358.0, 11_254.0, 12_036.0, 10_879.0, 10_258.0]),
];
