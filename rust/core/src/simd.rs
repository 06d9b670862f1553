//! Vector instructions from plain safe code: the compiler generates them, and the CPU is checked at run time.

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

/// Ask for the cache line at a place of a slice, and the one after it; nothing happens past the end.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], place: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(ahead) = slice.get(place..) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = ahead.as_ptr().cast::<i8>();
        // SAFETY: a hint, which reads nothing and is allowed for any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(first);
            _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, place);
}

/// A few 16-bit integers in one register. With AVX2 they are one; the compiler keeps plain arrays of them in memory.
pub(crate) trait Lanes: Copy {
    /// The lanes as an array.
    type Array: AsRef<[i16]>;
    /// Number of lanes.
    const COUNT: usize;
    /// Copies of the largest value.
    const MAX: Self;
    /// Zeros.
    const ZERO: Self;
    /// Read the first lanes from memory.
    fn load(from: &[i16]) -> Self;
    /// Write all lanes to memory.
    fn array(self) -> Self::Array;
    /// Saturating sums.
    fn saturating_add(self, other: Self) -> Self;
    /// Lane-wise minima.
    fn min(self, other: Self) -> Self;
}

impl<const N: usize> Lanes for [i16; N] {
    type Array = Self;
    const COUNT: usize = N;
    const MAX: Self = [i16::MAX; N];
    const ZERO: Self = [0; N];

    #[inline(always)]
    fn load(from: &[i16]) -> Self {
        *from.first_chunk().expect("as many as there are lanes")
    }

    #[inline(always)]
    fn array(self) -> Self {
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
    //! Lanes of machines that have AVX2. Only to be used in functions compiled for it, called only where it was
    //! detected.

    use std::arch::x86_64::{__m128i, __m256i, _mm_adds_epi16, _mm_min_epi16, _mm256_adds_epi16, _mm256_min_epi16};

    /// Integers to and from a register of the same size, in which any bits are valid.
    macro_rules! lanes {
        ($name:ident, $register:ty, $count:literal, $padded:literal, $add:ident, $min:ident) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $name($register);

            impl $name {
                #[inline(always)]
                const fn new(lanes: [i16; $padded]) -> Self {
                    // SAFETY: plain data of the same size on both sides.
                    Self(unsafe { std::mem::transmute::<[i16; $padded], $register>(lanes) })
                }
            }

            impl super::Lanes for $name {
                type Array = [i16; $count];
                const COUNT: usize = $count;
                const MAX: Self = Self::new([i16::MAX; $padded]);
                const ZERO: Self = Self::new([0; $padded]);

                #[inline(always)]
                fn load(from: &[i16]) -> Self {
                    let from: &[i16; $count] = from.first_chunk().expect("as many as there are lanes");
                    let mut lanes = [0; $padded];
                    lanes[..$count].copy_from_slice(from);
                    Self::new(lanes)
                }

                #[inline(always)]
                fn array(self) -> [i16; $count] {
                    // SAFETY: plain data of the same size on both sides.
                    let lanes = unsafe { std::mem::transmute::<$register, [i16; $padded]>(self.0) };
                    *lanes.first_chunk().expect("no more lanes than the register has")
                }

                #[inline(always)]
                fn saturating_add(self, other: Self) -> Self {
                    debug_assert!(is_x86_feature_detected!("avx2"));
                    // SAFETY: the module's own rule.
                    Self(unsafe { $add(self.0, other.0) })
                }

                #[inline(always)]
                fn min(self, other: Self) -> Self {
                    debug_assert!(is_x86_feature_detected!("avx2"));
                    // SAFETY: the module's own rule.
                    Self(unsafe { $min(self.0, other.0) })
                }
            }
        };
    }

    lanes!(Four, __m128i, 4, 8, _mm_adds_epi16, _mm_min_epi16);
    lanes!(Eight, __m128i, 8, 8, _mm_adds_epi16, _mm_min_epi16);
    lanes!(Sixteen, __m256i, 16, 16, _mm256_adds_epi16, _mm256_min_epi16);
}
