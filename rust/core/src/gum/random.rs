//! Random bits for the record kernels: a counter hashed with a key, so that each visit of a marginal has its own stream.
//!
//! Wyrand: one multiplication a draw. Not for noise: that comes from [`crate::noise`].

/// A stream of random bits.
#[derive(Debug, Clone)]
pub struct Stream(u64);

impl Stream {
    /// The stream that belongs to a seed, a round and a marginal.
    #[must_use]
    pub fn new(seed: u64, round: u64, marginal: u64) -> Self {
        Self(mix(mix(mix(seed) ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ marginal))
    }

    /// 64 random bits.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// A number in `0..bound`; its bias, of `bound / 2^64`, is out of sight.
    #[expect(clippy::cast_possible_truncation, reason = "below the bound")]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u32
    }

    /// A real number in `[0, 1)`.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Put values into random order.
    ///
    /// # Panics
    /// If there are 2^32 values or more.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            let bound = u32::try_from(i + 1).expect("fewer than 2^32 values");
            values.swap(i, self.below(bound) as usize);
        }
    }
}

/// The finaliser of splitmix64: every bit of the result depends on every bit of `z`.
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut random = Stream::new(1, 2, 3);
        let mut counts = [0_i32; 5];
        (0..100_000).for_each(|_| counts[random.below(5) as usize] += 1);
        // Six standard deviations are 760.
        assert!(counts.iter().all(|count| (count - 20_000).abs() < 760), "{counts:?}");
        let mean = (0..100_000).map(|_| random.unit()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.006, "{mean}");
    }

    #[test]
    fn every_order_comes_up() {
        let mut random = Stream::new(0, 0, 0);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..200 {
            let mut values = [1, 2, 3];
            random.shuffle(&mut values);
            seen.insert(values);
        }
        assert_eq!(seen.len(), 6);
    }
}
