//! Reproducible random numbers for post-processing. Noise that protects people comes from [`crate::noise`] instead.
//!
//! A stream is named by its purpose, such as (seed, sweep, attribute), and never by the thread that draws from it, so
//! results do not depend on the number of threads. The generator is splitmix64 (Steele, Lea and Flood 2014).

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a name; streams of different names are unrelated.
    #[must_use]
    pub fn new<const PARTS: usize>(name: [u64; PARTS]) -> Self {
        Self(name.into_iter().fold(0x9e37_79b9_7f4a_7c15, |state, part| mix(state ^ mix(part.wrapping_add(state)))))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`, which is at least 1; uniform to within `n / 2^64`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the high half of a product is below its factor")]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// As [`Random::below`], in 32 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below the bound")]
    pub fn below_u32(&mut self, n: u32) -> u32 {
        self.below(n as usize) as u32
    }

    /// A number in `0..1`.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Put the items in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The finaliser of splitmix64: every bit of the result depends on every bit of `z`.
#[inline]
#[must_use]
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_repeat() {
        let draw = |name: [u64; 2]| Random::new(name).bits();
        assert_eq!(draw([1, 2]), draw([1, 2]));
        let drawn = [draw([1, 2]), draw([2, 1]), draw([0, 0]), draw([0, 1]), Random::new([0]).bits()];
        let distinct: std::collections::BTreeSet<_> = drawn.into_iter().collect();
        assert_eq!(distinct.len(), drawn.len());
    }

    #[test]
    fn numbers_are_uniform() {
        let mut random = Random::new([7]);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10)] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 40.0, "{chi2}");
        let mean = (0..100_000).map(|_| random.unit()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.006, "{mean}");
    }

    #[test]
    fn a_shuffle_keeps_the_items_and_moves_them() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::new([3]).shuffle(&mut items);
        assert!(items.iter().zip(0..).filter(|&(&item, i)| item == i).count() < 20);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
    }
}
