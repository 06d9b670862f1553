//! A uniform real number in [0, 1), of which only the digits drawn so far are known.

use std::cmp::Ordering;

use super::Draw;

/// Digits in base 2^32, most significant first; those not drawn yet are independent and uniform.
pub(super) struct Uniform {
    first: u32,
    second: Option<u32>,
    /// Almost always empty.
    tail: Vec<u32>,
}

impl Uniform {
    pub(super) fn new(source: &mut impl Draw) -> Self {
        Self { first: source.digit(), second: None, tail: Vec::new() }
    }

    /// A digit, drawn if necessary.
    pub(super) fn digit(&mut self, place: usize, source: &mut impl Draw) -> u32 {
        match place {
            0 => self.first,
            1 => *self.second.get_or_insert_with(|| source.digit()),
            _ => {
                self.digit(1, source);
                while self.tail.len() < place - 1 {
                    self.tail.push(source.digit());
                }
                self.tail[place - 2]
            }
        }
    }

    /// Whether this number is below another, drawing digits of both until they differ.
    #[inline]
    pub(super) fn below(&mut self, other: &mut Self, source: &mut impl Draw) -> bool {
        if self.first != other.first {
            return self.first < other.first;
        }
        let mut place = 1;
        loop {
            let mine = self.digit(place, source);
            match mine.cmp(&other.digit(place, source)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => place += 1,
            }
        }
    }

    /// Whether this number is below one half: its first bit.
    pub(super) fn below_half(&self) -> bool {
        self.first < 1 << 31
    }

    /// Whether this number, without its first `skip` digits, is below `numerator / denominator`, a fraction below 1.
    ///
    /// The digits of the fraction come by long division; the first that differs decides.
    pub(super) fn below_fraction(
        &mut self,
        skip: usize,
        numerator: u64,
        denominator: u64,
        source: &mut impl Draw,
    ) -> bool {
        debug_assert!(numerator < denominator);
        let (mut remainder, denominator) = (u128::from(numerator), u128::from(denominator));
        let mut place = skip;
        while remainder > 0 {
            remainder <<= 32;
            match u128::from(self.digit(place, source)).cmp(&(remainder / denominator)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => remainder %= denominator,
            }
            place += 1;
        }
        // The fraction ended: whatever digits follow, the number is at least as large.
        false
    }
}

/// True with probability `exp(-x)` for a number `x`.
///
/// Von Neumann (1951): in a sequence `x > u1 > u2 > ...` of uniform numbers that falls for just `n` steps, `n` is at
/// least `m` with probability `x^m / m!`, and so even with probability `1 - x + x^2/2! - ... = exp(-x)`.
pub(super) fn falling_run_is_even(x: &mut Uniform, source: &mut impl Draw) -> bool {
    let mut u = Uniform::new(source);
    if !u.below(x, source) {
        return true;
    }
    let mut even = false;
    loop {
        let mut next = Uniform::new(source);
        if !next.below(&mut u, source) {
            return even;
        }
        u = next;
        even = !even;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Digits from a script, then zeros.
    pub(crate) struct Script(VecDeque<u32>);

    impl Script {
        pub(crate) fn new(digits: &[u32]) -> Self {
            Self(digits.iter().copied().collect())
        }
    }

    impl Draw for Script {
        fn digit(&mut self) -> u32 {
            self.0.pop_front().unwrap_or(0)
        }

        fn coin(&mut self) -> bool {
            self.digit() & 1 == 1
        }
    }

    #[test]
    fn ties_draw_more_digits() {
        let mut source = Script::new(&[5, 5, 9, 9, 2, 3]);
        let (mut a, mut b) = (Uniform::new(&mut source), Uniform::new(&mut source));
        assert!(a.below(&mut b, &mut source));
        assert!(!b.below(&mut a, &mut source), "the digits drawn are kept");
        assert_eq!([a.digit(0, &mut source), a.digit(1, &mut source), a.digit(2, &mut source)], [5, 9, 2]);
    }

    #[test]
    fn fractions_are_compared_by_long_division() {
        let below = |digits: &[u32], numerator, denominator| {
            let mut source = Script::new(digits);
            Uniform::new(&mut source).below_fraction(0, numerator, denominator, &mut source)
        };
        // A third is 0x55555555 in every place.
        assert!(below(&[0x5555_5554], 1, 3));
        assert!(below(&[0x5555_5555, 0x5555_5555, 0x5555_5554], 1, 3));
        assert!(!below(&[0x5555_5555, 0x5555_5556], 1, 3));
        // A half ends after one place, and a number that starts so is not below it.
        assert!(!below(&[0x8000_0000], 1, 2));
        assert!(below(&[0x7fff_ffff], 1, 2));
        assert!(!below(&[0], 0, 2));
    }
}
