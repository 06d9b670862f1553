//! Tables of any values are made to agree: an error, or finite tables.
#![no_main]

use chicle_core::parallel::Cancel;
use chicle_core::project::{Problem, Projection, Rule};
use chicle_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let cardinalities = input.cardinalities();
    // Measurements are checked before they come here: finite, and no more than 2^53.
    if input.values.iter().any(|value| value.is_nan() || value.abs() > 9e15) {
        return;
    }
    let rules = [Rule::Joint, Rule::NormSub, Rule::NormCut, Rule::NormMul, Rule::BasePos, Rule::None];
    let rule = rules[(input.seed % 6) as usize];
    let (cancel, targets) = (Cancel::default(), input.targets());
    let problem = Problem { cardinalities: &cardinalities, targets, total: None, rule, memory_limit: 1 << 24 };
    let Ok(mut projection) = Projection::new(problem, &cancel) else { return };
    for _ in 0..3 {
        assert!(!projection.sweep(&cancel).expect("not interrupted").is_nan());
    }
    for table in projection.tables(&cancel).expect("not interrupted") {
        assert!(table.iter().all(|cell| cell.is_finite()));
    }
});
