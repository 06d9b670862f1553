//! The softmax of each attribute and component, and its gradient; and the projection on the simplex.
//!
//! Attributes are independent of each other: they are the tasks of the threads.

use rayon::prelude::*;

/// The probabilities of logits.
pub(super) fn softmax(offsets: &[usize], components: usize, logits: &[f32], probabilities: &mut [f32]) {
    probabilities.copy_from_slice(logits);
    softmax_in_place(offsets, components, probabilities);
}

/// Replace logits by their probabilities.
pub(super) fn softmax_in_place(offsets: &[usize], components: usize, values: &mut [f32]) {
    attributes(offsets, components, values).into_par_iter().for_each(|rows| {
        let mut most = rows[..components].to_vec();
        for row in rows.chunks_exact(components) {
            most.iter_mut().zip(row).for_each(|(most, &x)| *most = most.max(x));
        }
        let mut sum = vec![0.0; components];
        for row in rows.chunks_exact_mut(components) {
            for ((x, most), sum) in row.iter_mut().zip(&most).zip(&mut sum) {
                *x = (*x - most).exp();
                *sum += *x;
            }
        }
        for row in rows.chunks_exact_mut(components) {
            row.iter_mut().zip(&sum).for_each(|(x, sum)| *x /= sum);
        }
    });
}

/// Replace the gradient in the probabilities by that in the logits: `p (g - sum of p g)`.
pub(super) fn softmax_gradient(offsets: &[usize], components: usize, probabilities: &[f32], gradient: &mut [f32]) {
    attributes(offsets, components, gradient).into_par_iter().zip(offsets).for_each(|(rows, &first)| {
        let own = &probabilities[first * components..][..rows.len()];
        let mut sum = vec![0.0; components];
        for (row, p) in rows.chunks_exact(components).zip(own.chunks_exact(components)) {
            for ((&g, &p), sum) in row.iter().zip(p).zip(&mut sum) {
                *sum += g * p;
            }
        }
        for (row, p) in rows.chunks_exact_mut(components).zip(own.chunks_exact(components)) {
            for ((g, &p), sum) in row.iter_mut().zip(p).zip(&sum) {
                *g = p * (*g - sum);
            }
        }
    });
}

/// Replace the numbers of each attribute and component by the nearest shares: not negative, and 1 in all.
///
/// All that stay above 0 are lowered, or raised, by one amount (Duchi et al. 2008).
pub(super) fn project(offsets: &[usize], components: usize, values: &mut [f32]) {
    attributes(offsets, components, values).into_par_iter().for_each(|rows| {
        let mut falling = Vec::with_capacity(rows.len() / components);
        for component in 0..components {
            falling.clear();
            falling.extend(rows[component..].iter().step_by(components).copied());
            falling.sort_unstable_by(|x, y| y.total_cmp(x));
            let (mut sum, mut number, mut shift) = (-1.0, 0.0, 0.0);
            for &x in &falling {
                sum += x;
                number += 1.0;
                if x <= sum / number {
                    break;
                }
                shift = sum / number;
            }
            rows[component..].iter_mut().step_by(components).for_each(|x| *x = (*x - shift).max(0.0));
        }
    });
}

/// The rows of each attribute.
fn attributes<'a>(offsets: &[usize], components: usize, mut values: &'a mut [f32]) -> Vec<&'a mut [f32]> {
    let mut found = Vec::with_capacity(offsets.len());
    for pair in offsets.windows(2) {
        let (own, rest) = values.split_at_mut((pair[1] - pair[0]) * components);
        found.push(own);
        values = rest;
    }
    found
}
