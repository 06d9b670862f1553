//! Vector instructions from plain safe code: the compiler writes them, the machine is asked which it has.

#![allow(clippy::inline_always, reason = "these take on the target features of their callers")]
#![expect(clippy::inline_always, reason = "these take on the target features of their callers")]

/// Compile a function twice, for AVX2 and for the build's own target, and call the one this machine can run.
macro_rules! vectorised {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        fn $name($($arg: $type),*) {
            #[inline(always)]
            fn portable($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    portable($($arg),*);
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature the function is compiled for was just detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            #[allow(unreachable_code, reason = "reached on other machines")]
            portable($($arg),*);
        }
    };
}

pub(crate) use vectorised;

/// Sixteen 16-bit integers in one register. With AVX2 they are one; the compiler keeps plain arrays of them in memory.
pub(crate) trait Lanes: Copy {
    /// Copies of the largest value.
    const MAX: Self;
    /// Zeros.
    const ZERO: Self;
    /// Read from memory.
    fn load(from: &[i16; 16]) -> Self;
    /// As memory has them.
    fn array(self) -> [i16; 16];
    /// Sums that stop at the ends of the range.
    fn saturating_add(self, other: Self) -> Self;
    /// The smaller of each two.
    fn min(self, other: Self) -> Self;
}

impl Lanes for [i16; 16] {
    const MAX: Self = [i16::MAX; 16];
    const ZERO: Self = [0; 16];

    #[inline(always)]
    fn load(from: &[i16; 16]) -> Self {
        *from
    }

    #[inline(always)]
    fn array(self) -> [i16; 16] {
        self
    }

    #[inline(always)]
    fn saturating_add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].saturating_add(other[i]))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].min(other[i]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    //! Lanes of machines that have AVX2.

    use std::arch::x86_64::{__m256i, _mm256_adds_epi16, _mm256_min_epi16};

    /// Only to be used in functions compiled for AVX2, and called only where it was detected.
    #[derive(Clone, Copy)]
    pub(crate) struct Register(__m256i);

    /// Same size, and any bits are valid in both.
    const fn register(lanes: [i16; 16]) -> __m256i {
        // SAFETY: plain data of 32 bytes on both sides.
        unsafe { std::mem::transmute(lanes) }
    }

    impl super::Lanes for Register {
        const MAX: Self = Self(register([i16::MAX; 16]));
        const ZERO: Self = Self(register([0; 16]));

        #[inline(always)]
        fn load(from: &[i16; 16]) -> Self {
            Self(register(*from))
        }

        #[inline(always)]
        fn array(self) -> [i16; 16] {
            // SAFETY: plain data of 32 bytes on both sides.
            unsafe { std::mem::transmute(self.0) }
        }

        #[inline(always)]
        fn saturating_add(self, other: Self) -> Self {
            debug_assert!(is_x86_feature_detected!("avx2"));
            // SAFETY: the type's own rule; see its comment.
            Self(unsafe { _mm256_adds_epi16(self.0, other.0) })
        }

        #[inline(always)]
        fn min(self, other: Self) -> Self {
            debug_assert!(is_x86_feature_detected!("avx2"));
            // SAFETY: the type's own rule; see its comment.
            Self(unsafe { _mm256_min_epi16(self.0, other.0) })
        }
    }
}
