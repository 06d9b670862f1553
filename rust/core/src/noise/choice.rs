//! The exact exponential mechanism: choose one candidate, with probability proportional to `exp(-gap / scale)`.
//!
//! By rejection: draw one uniformly, accept it with probability `exp(-gap / scale)`, otherwise draw again. With
//! `scale = m 2^-f` as the dyadic number it is, `gap / scale = q + r / m` in integers, and the coin is q coins of
//! probability `exp(-1)`, stopped at the first failure, and one of `exp(-r / m)` ([`super::laplace`]).
//! Cost: as many tries as there are candidates, at most, if one of the gaps is 0; a few digits each.

use super::laplace::{exp_minus_fraction, exp_minus_one};
use super::{Draw, Dyadic, Entropy};
use crate::error::{Error, Result};
use crate::parallel::Cancel;

/// Tries between two checks of the cancel flag.
const TRIES: usize = 1 << 16;

/// Choose a position with probability proportional to `exp(-gaps[i] / scale)`.
///
/// # Errors
/// [`Error::ScaleOutOfRange`] for a bad scale; [`Error::InvalidParameter`] if there are no candidates, or no gap
/// of 0, so that it might never end; [`Error::Entropy`]; [`Error::Interrupted`].
///
/// # Panics
/// Never: the drawn number is below a length.
pub fn choose(gaps: &[u64], scale: f64, entropy: Entropy, cancel: &Cancel) -> Result<usize> {
    let scale = Dyadic::new(scale)?;
    if !gaps.contains(&0) || u32::try_from(gaps.len()).is_err() {
        return Err(Error::InvalidParameter("the best of at most 2^32 candidates has a gap of 0".into()));
    }
    let mut digits = entropy.digits(0)?;
    loop {
        cancel.check()?;
        for _ in 0..TRIES {
            let tried = usize::try_from(digits.below(gaps.len() as u64)).expect("below a length");
            if is_kept(gaps[tried], scale, &mut digits) {
                return Ok(tried);
            }
        }
    }
}

/// True with probability `exp(-gap / scale)`.
fn is_kept(gap: u64, scale: Dyadic, source: &mut impl Draw) -> bool {
    // At most 64 + 62 bits.
    let shifted = u128::from(gap) << scale.fraction_bits;
    let (whole, rest) = (shifted / u128::from(scale.mantissa), shifted % u128::from(scale.mantissa));
    let rest = u64::try_from(rest).expect("below the mantissa");
    (0..whole).all(|_| exp_minus_one(source)) && exp_minus_fraction(rest, scale.mantissa, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chi_square(gaps: &[u64], scale: f64) -> f64 {
        let mut counts = vec![0.0; gaps.len()];
        let draws = 40_000;
        for seed in 0..draws {
            counts[choose(gaps, scale, Entropy::TestOnly(seed), &Cancel::default()).unwrap()] += 1.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let weights: Vec<f64> = gaps.iter().map(|&gap| (-(gap as f64) / scale).exp()).collect();
        let sum: f64 = weights.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let expected = |weight: f64| draws as f64 * weight / sum;
        counts.iter().zip(weights).map(|(count, weight)| (count - expected(weight)).powi(2) / expected(weight)).sum()
    }

    #[test]
    fn candidates_are_chosen_as_often_as_they_should() {
        // Seven degrees of freedom at most: beyond 40 once in a million.
        for (gaps, scale) in [
            (vec![0, 0, 0, 0], 1.0),
            (vec![3, 0, 1, 2, 5], 1.7),
            (vec![0, 1_000_000, 2_500_000, 700_001], 1e6),
            (vec![1, 2, 0, 3, 4, 5, 6, 4], 0.9),
            (vec![0, 40], 13.37),
        ] {
            let off = chi_square(&gaps, scale);
            assert!(off < 40.0, "{gaps:?} at {scale}: chi-square {off}");
        }
    }

    #[test]
    fn what_is_far_behind_is_not_chosen() {
        let gaps = [u64::MAX, 0, u64::MAX, 1 << 60];
        for seed in 0..200 {
            assert_eq!(choose(&gaps, 1000.0, Entropy::TestOnly(seed), &Cancel::default()), Ok(1));
        }
    }

    #[test]
    fn there_must_be_a_best_one() {
        for gaps in [vec![], vec![1, 2]] {
            let refused = choose(&gaps, 1.0, Entropy::OperatingSystem, &Cancel::default());
            assert!(matches!(refused, Err(Error::InvalidParameter(_))));
        }
        let refused = choose(&[0], f64::NAN, Entropy::OperatingSystem, &Cancel::default());
        assert!(matches!(refused, Err(Error::ScaleOutOfRange { .. })));
    }
}
