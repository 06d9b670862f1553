//! The kernel against the oracle.

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::parallel;

/// A domain, cells of up to three attributes, and their weights.
/// Cardinalities, queries by attribute and code, and their weights.
type Drawn = (Vec<u32>, Vec<Vec<(usize, u32)>>, Vec<f64>);

fn problem() -> impl Strategy<Value = Drawn> {
    prop::collection::vec(1u32..5, 1..6).prop_flat_map(|domain| {
        let attributes: Vec<usize> = (0..domain.len()).collect();
        let sizes = domain.clone();
        let cell = (prop::sample::subsequence(attributes, 0..=domain.len().min(3)), any::<u64>()).prop_map(
            move |(clique, seed)| {
                let mut random = Random::new([seed]);
                clique.into_iter().rev().map(|a| (a, random.below_u32(sizes[a]))).collect::<Vec<_>>()
            },
        );
        let queries = prop::collection::vec((cell, -3.0..3.0f64), 0..30);
        (Just(domain), queries).prop_map(|(domain, queries)| {
            let (cells, weights) = queries.into_iter().unzip();
            (domain, cells, weights)
        })
    })
}

proptest! {
    #[test]
    fn no_record_is_better_and_the_gain_is_what_it_says((domain, cells, weights) in problem(), scale in prop_oneof![Just(0.0), 0.1..2.0f64], seed in any::<u64>()) {
        let response = Response::new(domain.clone(), &cells, &weights).unwrap();
        let costs = if scale > 0.0 { response.exponential(scale, &mut Random::new([seed, 0])) } else { Vec::new() };
        let [record] = &response.records(1, 40, scale, seed, &Cancel::default()).unwrap()[..] else { panic!() };
        let best = naive::best_gain(&domain, &cells, &weights, &costs);
        let gain = response.gain(record, &costs);
        let lies_in = |cell: &Vec<(usize, u32)>| cell.iter().all(|&(a, code)| record[a] == code);
        let mut begin = 0;
        let mut own: f64 = cells.iter().zip(&weights).filter(|(cell, _)| lies_in(cell)).map(|(_, w)| w).sum();
        for (&code, &size) in record.iter().zip(&domain) {
            own -= costs.get(begin + code as usize).copied().unwrap_or(0.0);
            begin += size as usize;
        }
        prop_assert!((gain - own).abs() < 1e-9);
        prop_assert!(gain <= best + 1e-9);
        // Forty ascents over at most 1,024 records: each ends where no single attribute can be bettered.
        for a in 0..domain.len() {
            for code in 0..domain[a] {
                let mut other = record.clone();
                other[a] = code;
                prop_assert!(response.gain(&other, &costs) <= gain + 1e-9);
            }
        }
    }
}

#[test]
fn ascents_find_the_best_of_all_records() {
    let mut found = 0;
    for seed in 0..200 {
        let mut random = Random::new([seed]);
        let domain = vec![3, 4, 2, 5, 3, 2];
        let cell = |random: &mut Random| {
            let mut attributes: Vec<usize> = (0..domain.len()).collect();
            random.shuffle(&mut attributes);
            attributes[..3].iter().map(|&a| (a, random.below_u32(domain[a]))).collect::<Vec<_>>()
        };
        let cells: Vec<_> = (0..50).map(|_| cell(&mut random)).collect();
        let weights: Vec<f64> = (0..50).map(|_| if random.unit() < 0.7 { 1.0 } else { -1.0 }).collect();
        let response = Response::new(domain.clone(), &cells, &weights).unwrap();
        let record = &response.records(1, 20, 0.0, seed, &Cancel::default()).unwrap()[0];
        found += u32::from(response.gain(record, &[]) > naive::best_gain(&domain, &cells, &weights, &[]) - 1e-9);
    }
    assert!(found >= 198, "the best in {found} of 200");
}

#[test]
fn threads_change_nothing() {
    let cells = vec![vec![(0, 1), (2, 3)], vec![(1, 0)], vec![(0, 2), (1, 1), (2, 0)], vec![(1, 0)]];
    let response = Response::new(vec![5, 3, 7], &cells, &[1.0, -0.5, 2.0, 0.25]).unwrap();
    let draw = |threads| {
        let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
        pool.install(|| response.records(50, 8, 0.7, 11, &Cancel::default()).unwrap())
    };
    let one = draw(1);
    assert!(one.iter().any(|record| record != &one[0]), "costs differ by record");
    for threads in [2, 8] {
        assert_eq!(draw(threads), one);
    }
}

#[test]
fn equal_queries_count_as_one() {
    let cells = vec![vec![(0, 1), (1, 1)], vec![(1, 1), (0, 1)]];
    let response = Response::new(vec![2, 2], &cells, &[1.0, -3.0]).unwrap();
    assert_eq!((response.queries.len(), response.weights[0], response.positive.len()), (1, -2.0, 0));
}

#[test]
fn what_is_no_cell_is_named() {
    let refused = |cells: &[Vec<(usize, u32)>], weights: &[f64]| Response::new(vec![2, 3], cells, weights).unwrap_err();
    assert_eq!(refused(&[vec![(2, 0)]], &[1.0]), Error::NoSuchAttribute { attribute: 2, attributes: 2 });
    assert_eq!(refused(&[vec![(1, 3)]], &[1.0]), Error::CodeOutOfDomain { attribute: 1, cardinality: 3 });
    assert_eq!(refused(&[vec![(1, 0), (1, 2)]], &[1.0]), Error::AttributeTwice { attribute: 1 });
    assert!(matches!(refused(&[vec![(1, 0)]], &[]), Error::InvalidParameter(_)));
    assert!(matches!(refused(&[vec![(1, 0)]], &[f64::NAN]), Error::InvalidParameter(_)));
    let response = Response::new(vec![2], &[], &[]).unwrap();
    assert!(matches!(response.records(1, 0, 0.0, 0, &Cancel::default()), Err(Error::InvalidParameter(_))));
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(response.records(1, 1, 0.0, 0, &cancel), Err(Error::Interrupted));
}
