//! The oracle: every point is looked at for every cell, and weights are renormalised after each step.

use super::{CLIP, Cell, LEAST_FACTOR, MOST_FACTOR};
use crate::query::{Query, Target};
use crate::random::Random;

/// The points of a domain, as rows of codes in row-major order.
#[must_use]
pub fn all_rows(cardinalities: &[u32]) -> Vec<Vec<u32>> {
    cardinalities.iter().fold(vec![vec![]], |rows, &size| {
        let longer = |row: &Vec<u32>| (0..size).map(|code| [&row[..], &[code]].concat()).collect::<Vec<_>>();
        rows.iter().flat_map(longer).collect()
    })
}

fn in_cell(row: &[u32], cell: &Cell) -> bool {
    cell.iter().all(|&(attribute, code)| row[attribute] == code)
}

fn place(row: &[u32], query: &Query) -> usize {
    query.axes().iter().fold(0, |place, axis| place * axis.size as usize + axis.place(row[axis.attribute]) as usize)
}

fn normalise(weights: &mut [f64]) {
    let total: f64 = weights.iter().sum();
    for weight in weights.iter_mut() {
        *weight /= total;
    }
}

/// The weight of a cell.
#[must_use]
pub fn answer(rows: &[Vec<u32>], weights: &[f64], cell: &Cell) -> f64 {
    rows.iter().zip(weights).filter(|(row, _)| in_cell(row, cell)).map(|(_, weight)| weight).sum()
}

/// The table of a query.
///
/// # Panics
/// If it has more cells than a vector.
#[must_use]
pub fn table(rows: &[Vec<u32>], weights: &[f64], query: &Query) -> Vec<f64> {
    let mut table = vec![0.0; usize::try_from(query.cells()).unwrap()];
    rows.iter().zip(weights).for_each(|(row, weight)| table[place(row, query)] += weight);
    table
}

fn multiply(rows: &[Vec<u32>], weights: &mut [f64], cell: &Cell, factor: f64) {
    rows.iter().zip(weights).filter(|(row, _)| in_cell(row, cell)).for_each(|(_, weight)| *weight *= factor);
}

/// [`super::Reweight::mwem`].
pub fn mwem(rows: &[Vec<u32>], weights: &mut [f64], cells: &[Cell], measured: &[f64], seed: u64) {
    let errors: Vec<f64> = cells.iter().zip(measured).map(|(cell, a)| a - answer(rows, weights, cell)).collect();
    let newest = cells.len() - 1;
    let mut past: Vec<usize> = (0..newest).filter(|&i| 2.0 * errors[i].abs() >= errors[newest].abs()).collect();
    Random::new([seed, newest as u64]).shuffle(&mut past);
    past.insert(0, newest);
    for i in past {
        multiply(rows, weights, &cells[i], (errors[i] / 2.0).exp());
        normalise(weights);
    }
}

/// [`super::Reweight::pep`].
pub fn pep(rows: &[Vec<u32>], weights: &mut [f64], cells: &[Cell], measured: &[f64], steps: usize) {
    for _ in 0..steps {
        let answers: Vec<f64> = cells.iter().map(|cell| answer(rows, weights, cell)).collect();
        let mut worst = 0;
        for i in 1..cells.len() {
            if (measured[i] - answers[i]).abs() > (measured[worst] - answers[worst]).abs() + 1e-13 {
                worst = i;
            }
        }
        let (a, q) = (measured[worst].clamp(CLIP, 1.0 - CLIP), answers[worst].clamp(CLIP, 1.0 - CLIP));
        multiply(rows, weights, &cells[worst], a * (1.0 - q) / ((1.0 - a) * q));
        normalise(weights);
    }
}

/// [`super::Reweight::fit`].
pub fn fit(rows: &[Vec<u32>], weights: &mut [f64], targets: &[Target], tolerances: &[f64], sweeps: usize) {
    for _ in 0..sweeps {
        for (target, tolerance) in targets.iter().zip(tolerances) {
            let answers = table(rows, weights, &target.query);
            for (row, weight) in rows.iter().zip(weights.iter_mut()) {
                let cell = place(row, &target.query);
                let (have, want) = (answers[cell], target.values[cell]);
                let goal = have.clamp(want - tolerance, want + tolerance);
                if have > 0.0 && (want - have).abs() > *tolerance {
                    *weight *= (goal / have).clamp(LEAST_FACTOR, MOST_FACTOR);
                }
            }
            normalise(weights);
        }
    }
}
