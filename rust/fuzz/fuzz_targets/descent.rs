//! Records of any codes descend to targets of any values: an error, or records inside the domain.
#![no_main]

use chicle_core::descent::Descent;
use chicle_core::parallel::Cancel;
use chicle_core::table::{Codes, Column, Table};
use chicle_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let (columns, cardinalities) = (input.columns(), input.cardinalities());
    let columns: Vec<Column<'_>> = columns.iter().map(|codes| Column::U8(codes)).collect();
    // Measurements are checked before they come here: finite, and no more than 2^53.
    if columns.is_empty() || input.values.iter().any(|value| value.is_nan() || value.abs() > 9e15) {
        return;
    }
    let owned = columns.iter().map(Codes::copy).collect();
    let Ok(mut descent) = Descent::new(owned, &cardinalities, input.targets(), input.seed, 1 << 24) else { return };
    for _ in 0..2 {
        descent.sweep(0.0, 0.5, &Cancel::default()).expect("not interrupted");
    }
    let made = descent.columns();
    let columns = made.iter().map(Codes::column).collect();
    assert!(Table::new(columns, cardinalities).is_ok(), "codes stay inside the domain");
});
