//! The exact discrete Laplace: an integer `y` with probability proportional to `exp(-|y| / b)`.
//!
//! After Canonne, Kamath and Steinke (2020), algorithm 2. `b = m 2^-f` is taken as the dyadic number it is. With `u`
//! uniform below `m`, kept with probability `exp(-u/m)`, and `v` geometric with ratio `exp(-1)`, `u + m v` is geometric
//! with ratio `exp(-1/m)`; cutting its last `f` bits off makes the ratio `exp(-1/b)`. A sign makes it two-sided, and
//! one of the two zeros is drawn again.
//! Cost: about a dozen digits a draw.

use super::uniform::{Uniform, falling_run_is_even};
use super::{Digits, Draw, Dyadic, Sampler};
use crate::error::Result;

/// Draws integers with probability proportional to `exp(-|y| / scale)`.
#[derive(Debug, Clone, Copy)]
pub struct DiscreteLaplace(Dyadic);

impl Sampler for DiscreteLaplace {
    fn new(scale: f64) -> Result<Self> {
        Dyadic::new(scale).map(Self)
    }

    #[expect(private_interfaces, reason = "digits are drawn in this module only")]
    fn sample(&self, digits: &mut Digits) -> i64 {
        loop {
            let magnitude = geometric(self.0, digits);
            let negative = digits.coin();
            if negative && magnitude == 0 {
                continue;
            }
            return if negative { -magnitude } else { magnitude };
        }
    }
}

/// `y >= 0` with probability proportional to `exp(-y / scale)`.
fn geometric(scale: Dyadic, source: &mut impl Draw) -> i64 {
    let u = loop {
        let u = below_mantissa(scale.mantissa, source);
        if exp_minus_fraction(u, scale.mantissa, source) {
            break u;
        }
    };
    let mut v = 0u64;
    while exp_minus_one(source) {
        v += 1;
    }
    let y = (u128::from(u) + u128::from(scale.mantissa) * u128::from(v)) >> scale.fraction_bits;
    // 2^63 is never reached in practice, and clamping there is post-processing.
    i64::try_from(y).unwrap_or(i64::MAX)
}

/// A uniform integer below `mantissa`, which has 53 bits.
fn below_mantissa(mantissa: u64, source: &mut impl Draw) -> u64 {
    loop {
        let bits = u64::from(source.digit()) << 21 | u64::from(source.digit() >> 11);
        if bits < mantissa {
            return bits;
        }
    }
}

/// True with probability exp(-numerator / denominator), for a fraction below 1.
pub(super) fn exp_minus_fraction(numerator: u64, denominator: u64, source: &mut impl Draw) -> bool {
    let mut u = Uniform::new(source);
    !u.below_fraction(0, numerator, denominator, source) || !falling_run_is_even(&mut u, source)
}

/// True with probability exp(-1): the first number of the run is below 1 in any case.
pub(super) fn exp_minus_one(source: &mut impl Draw) -> bool {
    let mut u = Uniform::new(source);
    !falling_run_is_even(&mut u, source)
}
