//! Exact noise: the only place in chicle that draws it.
//!
//! Samplers use only integer arithmetic on random digits. A real number is represented by the digits drawn so far
//! ([`uniform`]); more are drawn until the integer outcome is decided. So outcomes follow their distribution
//! exactly, and no floating-point artefact can leak. Random digits come from `ChaCha20` keyed by the operating system.
//!
//! A vector is drawn in chunks. Each chunk gets its own key from the operating system for this call. Nothing is
//! kept between calls, so a forked process repeats nothing, and threads never share a stream.

mod choice;
mod gaussian;
mod laplace;
mod uniform;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Cancel;
pub use choice::choose;
pub use gaussian::RoundedGaussian;
pub use laplace::DiscreteLaplace;

/// Draws that share a key: few enough to spread over threads, many enough that a key costs nearly nothing.
const CHUNK: usize = 1 << 12;

/// The smallest scale that the samplers take: 2^-10, just below 1e-3.
pub const MIN_SCALE: f64 = 1.0 / 1024.0;

/// The largest scale that the samplers take: 2^40, just above 1e12.
pub const MAX_SCALE: f64 = 1_099_511_627_776.0;

/// The source of random digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entropy {
    /// The operating system's generator: the only choice that gives privacy.
    OperatingSystem,
    /// A fixed stream, for tests; a release made with it is not private.
    TestOnly(u64),
}

impl Entropy {
    fn digits(self, chunk: usize) -> Result<Digits> {
        let mut key = [0; 32];
        match self {
            Self::OperatingSystem => {
                getrandom::fill(&mut key).map_err(|error| Error::Entropy(error.to_string()))?;
            }
            Self::TestOnly(seed) => {
                key[..8].copy_from_slice(&seed.to_le_bytes());
                key[8..16].copy_from_slice(&(chunk as u64).to_le_bytes());
            }
        }
        Ok(Digits { stream: ChaCha20Rng::from_seed(key), bits: 0 })
    }
}

/// A source of independent uniform digits.
trait Draw {
    /// A digit in base 2^32.
    fn digit(&mut self) -> u32;

    /// A fair coin.
    fn coin(&mut self) -> bool;

    /// A uniform integer below `bound`, at most 2^32.
    fn below(&mut self, bound: u64) -> u64 {
        if bound.is_power_of_two() && bound <= 2 {
            return u64::from(bound == 2 && self.coin());
        }
        // Lemire (2019): the high half of digit * bound is uniform once the few low halves that are over-represented
        // are drawn again.
        loop {
            let product = u64::from(self.digit()) * bound;
            let low = product & u64::from(u32::MAX);
            if low >= (1 << 32) % bound {
                return product >> 32;
            }
        }
    }
}

/// Digits of a `ChaCha20` stream.
struct Digits {
    stream: ChaCha20Rng,
    /// Bits not yet handed out, above them a one.
    bits: u32,
}

impl Draw for Digits {
    #[inline]
    fn digit(&mut self) -> u32 {
        self.stream.next_u32()
    }

    #[inline]
    fn coin(&mut self) -> bool {
        if self.bits <= 1 {
            // 31 of the 32 bits, marked by a leading one.
            self.bits = self.stream.next_u32() | 1 << 31;
        }
        let coin = self.bits & 1 == 1;
        self.bits >>= 1;
        coin
    }
}

/// An exact sampler of integers.
pub trait Sampler: Sync + Sized {
    /// A sampler of this scale.
    ///
    /// # Errors
    /// [`Error::ScaleOutOfRange`] outside [`MIN_SCALE`]..=[`MAX_SCALE`].
    fn new(scale: f64) -> Result<Self>;

    #[doc(hidden)]
    #[expect(private_interfaces, reason = "digits are drawn in this module only")]
    fn sample(&self, digits: &mut Digits) -> i64;
}

/// Fill `noise` with draws: the first `sizes[0]` of scale `scales[0]`, and so on.
///
/// # Errors
/// [`Error::ScaleOutOfRange`] for a bad scale, before anything is drawn; [`Error::Entropy`]; [`Error::Interrupted`].
///
/// # Panics
/// If the sizes do not add up to the length of `noise`.
pub fn fill<S: Sampler>(
    scales: &[f64],
    sizes: &[usize],
    entropy: Entropy,
    noise: &mut [i64],
    cancel: &Cancel,
) -> Result<()> {
    assert_eq!(scales.len(), sizes.len(), "a size for each scale");
    assert_eq!(sizes.iter().sum::<usize>(), noise.len(), "room for every draw");
    let samplers = scales.iter().map(|&scale| S::new(scale)).collect::<Result<Vec<_>>>()?;
    let mut rest = noise;
    let mut chunks = Vec::new();
    for (sampler, &size) in samplers.iter().zip(sizes) {
        let (part, more) = rest.split_at_mut(size);
        rest = more;
        chunks.extend(part.chunks_mut(CHUNK).map(|chunk| (sampler, chunk)));
    }
    chunks.into_par_iter().enumerate().try_for_each(|(i, (sampler, chunk))| {
        cancel.check()?;
        let mut digits = entropy.digits(i)?;
        chunk.fill_with(|| sampler.sample(&mut digits));
        Ok(())
    })
}

/// A scale as an exact number: `mantissa * 2^-fraction_bits`, with a mantissa of 53 bits.
#[derive(Debug, Clone, Copy)]
struct Dyadic {
    mantissa: u64,
    fraction_bits: u32,
}

impl Dyadic {
    fn new(scale: f64) -> Result<Self> {
        if !(MIN_SCALE..=MAX_SCALE).contains(&scale) {
            return Err(Error::ScaleOutOfRange { least: "2^-10", most: "2^40" });
        }
        let bits = scale.to_bits();
        let exponent = u32::try_from(bits >> 52).expect("a positive number");
        Ok(Self { mantissa: (bits & ((1 << 52) - 1)) | 1 << 52, fraction_bits: 1075 - exponent })
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "numbers below 2^53")]
mod tests {
    use super::*;

    fn draw<S: Sampler>(scale: f64, size: usize, entropy: Entropy) -> Vec<i64> {
        let mut noise = vec![0; size];
        fill::<S>(&[scale], &[size], entropy, &mut noise, &Cancel::default()).unwrap();
        noise
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "a dyadic number is exact")]
    fn a_scale_is_taken_exactly() {
        for scale in [MIN_SCALE, 1e-3, 0.1, 1.0, 3.7, 1e12, MAX_SCALE] {
            let Dyadic { mantissa, fraction_bits } = Dyadic::new(scale).unwrap();
            assert!((1 << 52..1 << 53).contains(&mantissa));
            assert_eq!(mantissa as f64 / f64::from(fraction_bits).exp2(), scale);
        }
        for scale in [0.0, -1.0, 1e-4, 2e12, f64::INFINITY, f64::NAN] {
            assert!(Dyadic::new(scale).is_err(), "{scale}");
        }
    }

    #[test]
    fn a_test_stream_repeats_and_the_system_does_not() {
        let size = 3 * CHUNK + 5;
        let test = Entropy::TestOnly(7);
        assert_eq!(draw::<RoundedGaussian>(9.0, size, test), draw::<RoundedGaussian>(9.0, size, test));
        assert_ne!(draw::<RoundedGaussian>(9.0, size, test), draw::<RoundedGaussian>(9.0, size, Entropy::TestOnly(8)));
        let system = Entropy::OperatingSystem;
        assert_ne!(draw::<DiscreteLaplace>(9.0, size, system), draw::<DiscreteLaplace>(9.0, size, system));
    }

    #[test]
    fn a_test_stream_is_the_same_for_any_number_of_threads() {
        let with = |threads: usize| {
            let pool = crate::parallel::pool(threads.try_into().unwrap()).unwrap();
            pool.install(|| draw::<RoundedGaussian>(2.5, 50_000, Entropy::TestOnly(1)))
        };
        assert_eq!(with(1), with(2));
        assert_eq!(with(1), with(8));
    }

    #[test]
    fn no_two_chunks_share_a_stream() {
        let noise = draw::<RoundedGaussian>(1e9, 8 * CHUNK, Entropy::OperatingSystem);
        let mut chunks: Vec<&[i64]> = noise.chunks(CHUNK).map(|chunk| &chunk[..4]).collect();
        chunks.sort_unstable();
        chunks.dedup();
        assert_eq!(chunks.len(), 8);
    }

    #[test]
    fn integers_below_a_bound_are_uniform() {
        let mut digits = Entropy::TestOnly(3).digits(0).unwrap();
        for bound in [1u64, 2, 4, 6, 10] {
            let mut counts = vec![0f64; usize::try_from(bound).unwrap()];
            let draws = 60_000;
            for _ in 0..draws {
                counts[usize::try_from(digits.below(bound)).unwrap()] += 1.0;
            }
            let expected = f64::from(draws) / bound as f64;
            let chi2: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
            assert!(chi2 < 45.0, "bound {bound}: chi-square {chi2}");
        }
    }

    #[test]
    fn scales_go_with_their_sizes() {
        let mut noise = vec![0; 30_000];
        let sizes = [10_000, 0, 20_000];
        fill::<RoundedGaussian>(&[1.0, 5.0, 1e6], &sizes, Entropy::TestOnly(2), &mut noise, &Cancel::default())
            .unwrap();
        assert!(noise[..10_000].iter().all(|x| x.abs() < 12));
        assert!(noise[10_000..].iter().filter(|x| x.abs() > 1000).count() > 19_900);
    }
}
