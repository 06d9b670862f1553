//! The oracle: descent by its definition, one record at a time in floating point, in the kernel's order.

use super::problem::View;
use super::schedule::strided;
use super::visit::{BLOCK, Ties, window};
use crate::query::Target;
use crate::random::Random;

/// Records as rows of codes.
pub type Rows = Vec<Vec<u32>>;

/// Cell of a target that a record is in, with attribute `a` set to `value`.
fn cell(target: &Target, row: &[u32], a: usize, value: u32) -> usize {
    target.query.axes().iter().fold(0, |cell, axis| {
        let code = if axis.attribute == a { value } else { row[axis.attribute] };
        cell * axis.size as usize + axis.place(code) as usize
    })
}

/// Counts minus targets.
pub fn residuals(rows: &Rows, targets: &[Target]) -> Vec<Vec<f64>> {
    let one = |target: &Target| {
        let mut residual: Vec<f64> = target.values.iter().map(|value| -value).collect();
        for row in rows {
            residual[cell(target, row, usize::MAX, 0)] += 1.0;
        }
        residual
    };
    targets.iter().map(one).collect()
}

/// Visit the attributes in `order`, at threshold 1.
pub fn sweep(rows: &mut Rows, targets: &[Target], views: &[View], order: &[usize], name: [u64; 2], noise: f64) {
    for &a in order {
        let of_a = |target: &&Target| target.query.attributes().any(|attribute| attribute == a);
        let targets: Vec<Target> = targets.iter().filter(of_a).cloned().collect();
        let bar = 1.0 + noise * (2.0 / targets.iter().map(|target| target.weight).sum::<f64>()).sqrt();
        // The gain of moving a record to `value`, less its cost; and the sum at the record's own value.
        let judge = |residuals: &[Vec<f64>], row: &[u32], value: u32| {
            let (mut gain, mut cost, mut own) = (0.0, 0.0, 0.0);
            for (target, residual) in targets.iter().zip(residuals) {
                let (old, new) = (cell(target, row, a, row[a]), cell(target, row, a, value));
                own += target.weight * residual[old];
                if old != new {
                    gain += target.weight * (residual[old] - residual[new]);
                    cost += target.weight;
                }
            }
            (gain - bar * cost, own)
        };
        let mut random = Random::new([name[0], name[1], a as u64]);
        let key = random.bits();
        let blocks = rows.len().div_ceil(BLOCK);
        let length = window(blocks) * BLOCK;
        let may_skip = targets.iter().all(|target| target.query.axes().len() <= 2);
        let mut residuals = residuals(rows, &targets);
        for number in strided(rows.len().div_ceil(length), &mut random) {
            let mut proposals = Vec::new();
            let end = rows.len().min((number + 1) * length);
            for (r, row) in rows.iter().enumerate().take(end).skip(number * length) {
                let ties = Ties::new(key, r, views[a].pieces);
                let values = 0..u32::try_from(views[a].cardinality).unwrap();
                let gain = |&value: &u32| judge(&residuals, row, value).0;
                let better = values.filter(|value| *value != row[a] && gain(value) > 0.0);
                let rank = |value: u32| ties.rank(value as usize, views[a].width);
                let best = better.max_by(|&u, &v| gain(&u).total_cmp(&gain(&v)).then(rank(v).cmp(&rank(u))));
                let (_, own) = judge(&residuals, row, 0);
                proposals.extend(best.filter(|_| !may_skip || own > 0.0).map(|best| (r, best)));
            }
            for (r, value) in proposals {
                if judge(&residuals, &rows[r], value).0 > 0.0 {
                    for (target, residual) in targets.iter().zip(&mut residuals) {
                        residual[cell(target, &rows[r], a, rows[r][a])] -= 1.0;
                        residual[cell(target, &rows[r], a, value)] += 1.0;
                    }
                    rows[r][a] = value;
                }
            }
        }
    }
}
