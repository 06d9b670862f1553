//! Scales and gaps of any kind: an error, or draws that end.
#![no_main]

use chicle_core::noise::{DiscreteLaplace, Entropy, RoundedGaussian, choose, fill};
use chicle_core::parallel::Cancel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<f64>, Vec<u64>, f64, u64)| {
    let (scales, gaps, scale, seed) = input;
    let scales = &scales[..scales.len().min(8)];
    let sizes = vec![3; scales.len()];
    let mut noise = vec![0; 3 * scales.len()];
    let (entropy, cancel) = (Entropy::TestOnly(seed), Cancel::default());
    let gaussian = fill::<RoundedGaussian>(scales, &sizes, entropy, &mut noise, &cancel);
    let laplace = fill::<DiscreteLaplace>(scales, &sizes, entropy, &mut noise, &cancel);
    assert_eq!(gaussian.is_ok(), laplace.is_ok());
    // At least one gap must be 0, as the bindings make them: the best candidate's.
    let least = gaps.iter().copied().min().unwrap_or(0);
    let gaps: Vec<u64> = gaps.iter().map(|gap| gap - least).collect();
    if let Ok(chosen) = choose(&gaps, scale, entropy, &cancel) {
        assert!(chosen < gaps.len());
    }
});
