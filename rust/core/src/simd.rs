//! Vector instructions from plain safe code: the compiler writes them, the machine is asked which it has.

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
