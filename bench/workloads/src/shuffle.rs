//! A random order of the numbers below a limit, without a table of them.

/// Four rounds make a Feistel network a good pseudo-random permutation.
const ROUNDS: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// A fixed permutation of `0..limit`: a Feistel network on the next even number of bits, repeated until the result is
/// below the limit.
#[derive(Clone, Copy)]
pub(crate) struct Shuffle {
    limit: u64,
    half_bits: u32,
}

impl Shuffle {
    /// Creates a permutation of `0..limit`.
    pub(crate) fn new(limit: u64) -> Shuffle {
        let bits = u64::BITS - limit.saturating_sub(1).leading_zeros();
        Shuffle { limit, half_bits: bits.div_ceil(2).max(1) }
    }

    /// Returns the image of `number`, which is below the limit.
    pub(crate) fn at(self, number: u64) -> u64 {
        debug_assert!(number < self.limit);
        let mut image = self.network(number);
        while image >= self.limit {
            image = self.network(image);
        }
        image
    }

    fn network(self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (left, right) = ROUNDS.iter().fold((number >> self.half_bits, number & mask), |(left, right), round| {
            (right, left ^ ((right ^ round).wrapping_mul(ROUNDS[0] | 1) >> 32) & mask)
        });
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for limit in [1, 2, 3, 4, 5, 17, 255, 256, 257, 10_000] {
            let mut images: Vec<u64> = (0..limit).map(|number| Shuffle::new(limit).at(number)).collect();
            images.sort_unstable();
            assert!(images.into_iter().eq(0..limit), "not a permutation of 0..{limit}");
        }
    }

    #[test]
    fn neighbours_are_thrown_far_apart() {
        let shuffle = Shuffle::new(1_000_000);
        let near = (0..10_000).filter(|&number| shuffle.at(number).abs_diff(shuffle.at(number + 1)) < 10_000).count();
        assert!(near < 400, "{near} of 10,000 neighbours stay within 1 %");
    }
}
