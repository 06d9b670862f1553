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
    /// The smallest lane.
    fn smallest(self) -> i16;
    /// The least rank of the lanes that hold `wanted`, the largest number if none does. The rank of a lane is its place,
    /// counted from `first` on, with the bits of `flip` flipped.
    fn rank(self, wanted: i16, first: u16, flip: u16) -> u16;
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

    #[inline(always)]
    fn smallest(self) -> i16 {
        self.iter().fold(i16::MAX, |least, &lane| least.min(lane))
    }

    #[inline(always)]
    fn rank(self, wanted: i16, first: u16, flip: u16) -> u16 {
        let ranks = self.iter().zip(first..).map(|(&lane, place)| if lane == wanted { place ^ flip } else { u16::MAX });
        ranks.fold(u16::MAX, u16::min)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    //! Lanes of machines that have AVX2. Only to be used in functions compiled for it, called only where it was
    //! detected.

    use std::arch::x86_64::{
        __m128i, __m256i, _mm_adds_epi16, _mm_cmpeq_epi16, _mm_cvtsi128_si32, _mm_min_epi16, _mm_minpos_epu16,
        _mm_or_si128, _mm_set1_epi16, _mm_xor_si128, _mm256_adds_epi16, _mm256_cmpeq_epi16, _mm256_min_epi16,
        _mm256_or_si256, _mm256_set1_epi16, _mm256_xor_si256,
    };

    /// The smallest of eight lanes without sign.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the lower half is the number")]
    fn least(lanes: __m128i) -> u16 {
        // SAFETY: the module's own rule.
        unsafe { _mm_cvtsi128_si32(_mm_minpos_epu16(lanes)) as u16 }
    }

    #[inline(always)]
    fn least_of_8(lanes: __m128i) -> u16 {
        least(lanes)
    }

    #[inline(always)]
    fn least_of_16(lanes: __m256i) -> u16 {
        // SAFETY: plain data of the same size on both sides.
        let [low, high] = unsafe { std::mem::transmute::<__m256i, [__m128i; 2]>(lanes) };
        least(low).min(least(high))
    }

    /// Integers to and from a register of the same size, in which any bits are valid.
    macro_rules! lanes {
        ($name:ident, $register:ty, $count:literal, $padded:literal, $least:ident,
            $add:ident, $min:ident, $equal:ident, $or:ident, $xor:ident, $all:ident) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $name($register);

            impl $name {
                #[inline(always)]
                const fn new(lanes: [i16; $padded]) -> Self {
                    // SAFETY: plain data of the same size on both sides.
                    Self(unsafe { std::mem::transmute::<[i16; $padded], $register>(lanes) })
                }

                /// The place of each lane.
                const PLACES: Self = Self::new({
                    let (mut places, mut i, mut place) = ([0; $padded], 0, 0i16);
                    while i < $padded {
                        places[i] = place;
                        (i, place) = (i + 1, place + 1);
                    }
                    places
                });

                /// All bits of the lanes that only fill the register.
                const PADDING: Self = Self::new({
                    let (mut bits, mut i) = ([0; $padded], $count);
                    while i < $padded {
                        bits[i] = -1;
                        i += 1;
                    }
                    bits
                });
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

                #[inline(always)]
                #[expect(clippy::cast_possible_wrap, reason = "bits")]
                fn smallest(self) -> i16 {
                    const SIGN: u16 = 1 << 15;
                    debug_assert!(is_x86_feature_detected!("avx2"));
                    // SAFETY: the module's own rule.
                    let unsigned = unsafe { $or($xor(self.0, $all(SIGN as i16)), Self::PADDING.0) };
                    ($least(unsigned) ^ SIGN) as i16
                }

                #[inline(always)]
                #[expect(clippy::cast_possible_wrap, reason = "bits")]
                fn rank(self, wanted: i16, first: u16, flip: u16) -> u16 {
                    debug_assert!(is_x86_feature_detected!("avx2"));
                    debug_assert!(first % $count == 0);
                    // SAFETY: the module's own rule.
                    unsafe {
                        let ranks = $xor(Self::PLACES.0, $all((first ^ flip) as i16));
                        let misses = $xor($equal(self.0, $all(wanted)), $all(-1));
                        $least($or($or(ranks, misses), Self::PADDING.0))
                    }
                }
            }
        };
    }

    lanes!(
        Four,
        __m128i,
        4,
        8,
        least_of_8,
        _mm_adds_epi16,
        _mm_min_epi16,
        _mm_cmpeq_epi16,
        _mm_or_si128,
        _mm_xor_si128,
        _mm_set1_epi16
    );
    lanes!(
        Eight,
        __m128i,
        8,
        8,
        least_of_8,
        _mm_adds_epi16,
        _mm_min_epi16,
        _mm_cmpeq_epi16,
        _mm_or_si128,
        _mm_xor_si128,
        _mm_set1_epi16
    );
    lanes!(
        Sixteen,
        __m256i,
        16,
        16,
        least_of_16,
        _mm256_adds_epi16,
        _mm256_min_epi16,
        _mm256_cmpeq_epi16,
        _mm256_or_si256,
        _mm256_xor_si256,
        _mm256_set1_epi16
    );
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::Lanes;
    use super::avx2::{Eight, Four, Sixteen};

    /// Whether lanes of registers give what arrays of them give.
    fn agree<R: Lanes, const N: usize>(lanes: [i16; N], wanted: i16, block: u16, flip: u16) -> bool {
        let (ours, naive) = (R::load(&lanes), <[i16; N]>::load(&lanes));
        let first = block * u16::try_from(N).expect("few");
        assert_eq!(ours.array().as_ref(), &naive);
        assert_eq!(ours.saturating_add(ours).array().as_ref(), &naive.saturating_add(naive));
        assert_eq!(ours.min(R::ZERO).array().as_ref(), &Lanes::min(naive, [0; N]));
        ours.smallest() == naive.smallest() && ours.rank(wanted, first, flip) == naive.rank(wanted, first, flip)
    }

    proptest! {
        #[test]
        fn registers_are_arrays(
            lanes in prop::array::uniform16(prop_oneof![-3i16..3, any::<i16>()]),
            wanted in -3i16..3,
            block in 0u16..8,
            flip in 0u16..128,
        ) {
            if is_x86_feature_detected!("avx2") {
                let [four, eight] = [&lanes[..4], &lanes[..8]];
                prop_assert!(agree::<Sixteen, 16>(lanes, wanted, block, flip));
                prop_assert!(agree::<Eight, 8>(eight.try_into().unwrap(), wanted, block, flip));
                prop_assert!(agree::<Four, 4>(four.try_into().unwrap(), wanted, block, flip));
            }
        }
    }
}
