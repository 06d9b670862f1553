//! Apportionment, given parents and alone.

#![expect(clippy::cast_precision_loss, reason = "small tables")]

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::parallel;

/// How often each pair of a parent's and a child's code occurs.
fn counts(parent: &Codes, child: &Codes, shape: (usize, usize)) -> Vec<f64> {
    let mut counts = vec![0.0; shape.0 * shape.1];
    for r in 0..child.column().len() {
        counts[parent.column().code(r) as usize * shape.1 + child.column().code(r) as usize] += 1.0;
    }
    counts
}

/// Each row is apportioned: within one of its share of the records that are there.
fn assert_apportioned(counts: &[f64], weights: &[f64], cardinality: usize) {
    for (counts, weights) in counts.chunks(cardinality).zip(weights.chunks(cardinality)) {
        let (records, total) = (counts.iter().sum::<f64>(), weights.iter().sum::<f64>());
        for (&count, &weight) in counts.iter().zip(weights) {
            let expected = if total > 0.0 { weight / total } else { 1.0 / cardinality as f64 } * records;
            assert!((count - expected).abs() < 1.0 + 1e-6, "{count} is not {expected}");
            assert!(total == 0.0 || weight > 0.0 || count == 0.0, "a code without weight");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn columns_are_apportioned(
        (a, b) in prop_oneof![(1usize..9, 1usize..9), (1usize..4, 250usize..300), (250usize..300, 1usize..4)],
        records in 0usize..3000,
        empty in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new([seed]);
        let mut weights = |n: usize| -> Vec<f64> {
            (0..n).map(|i| if empty >> (i % 64) & 1 == 1 { 0.0 } else { random.unit() }).collect()
        };
        let (alone, given) = (weights(a), weights(a * b));
        let laws = [
            Law { cardinality: u32::try_from(b).unwrap(), parent: Some(1), weights: &given },
            Law { cardinality: u32::try_from(a).unwrap(), parent: None, weights: &alone },
        ];
        let columns = draw(&laws, records, seed, &Cancel::default()).unwrap();
        let together = counts(&columns[1], &columns[0], (a, b));
        assert_apportioned(&together, &given, b);
        let parents: Vec<f64> = together.chunks(b).map(|row| row.iter().sum()).collect();
        assert_apportioned(&parents, &alone, a);
    }
}

#[test]
fn rounding_is_right_on_average() {
    let weights = [0.3, 1.1, 0.0, 1.6];
    let law = Law { cardinality: 4, parent: None, weights: &weights };
    let mut sums = [0.0; 4];
    for seed in 0..4000 {
        let codes = draw(std::slice::from_ref(&law), 2, seed, &Cancel::default()).unwrap().remove(0);
        (0..2).for_each(|r| sums[codes.column().code(r) as usize] += 1.0);
    }
    for (sum, weight) in sums.iter().zip(weights) {
        let expected = 8000.0 * weight / 3.0;
        assert!((sum - expected).abs() <= 6.0 * f64::sqrt(expected), "{sum} is not about {expected}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let ones = vec![1.0; 70_000 * 3];
    let law = |cardinality: u32, parent: Option<usize>, rows: usize| Law {
        cardinality,
        parent,
        weights: &ones[..cardinality as usize * rows],
    };
    let laws =
        [law(3, Some(2), 300), law(70_000, None, 1), law(300, Some(3), 9), law(9, None, 1), law(3, Some(1), 70_000)];
    let run = |threads| {
        let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
        let columns = pool.install(|| draw(&laws, 5000, 3, &Cancel::default())).unwrap();
        columns.iter().map(|c| (0..5000).map(|r| c.column().code(r)).collect()).collect::<Vec<Vec<u32>>>()
    };
    let expected = run(1);
    for threads in [2, 8] {
        assert_eq!(run(threads), expected);
    }
    let moved = (0..9u32).any(|code| expected[3].windows(2).any(|pair| pair == [code, code]));
    assert!(moved && !expected[3].is_sorted(), "the places are shuffled");
}

#[test]
fn circles_and_interrupts_are_errors() {
    let law = |parent| Law { cardinality: 1, parent: Some(parent), weights: &[1.0] };
    let error = draw(&[law(1), law(0)], 5, 0, &Cancel::default()).unwrap_err();
    assert_eq!(error, Error::InvalidParameter("parents form a circle".into()));
    let cancel = Cancel::default();
    cancel.cancel();
    let law = Law { cardinality: 1, parent: None, weights: &[1.0] };
    assert_eq!(draw(&[law], 5, 0, &cancel).unwrap_err(), Error::Interrupted);
}
