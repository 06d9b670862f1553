//! The oracle: descent by its definition, one record at a time in floating point, in the kernel's order.

#![expect(clippy::cast_possible_truncation, reason = "codes are below their cardinality; scores as the kernel rounds")]
#![expect(clippy::cast_precision_loss, reason = "small numbers")]
#![expect(clippy::too_many_lines, reason = "the definition, from top to bottom")]

use super::moments::Pull;
use super::problem::View;
use super::schedule::strided;
use super::visit::{BLOCK, Ties, polished, window};
use crate::query::{Axis, Target};
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
pub fn sweep(
    rows: &mut Rows,
    targets: &[Target],
    views: &[View],
    order: &[usize],
    name: [u64; 2],
    noise: f64,
    hasty: bool,
) {
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
        let may_skip = hasty || targets.iter().all(|target| target.query.axes().len() <= 2);
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

/// The moments of one target and one of its other axes, as [`super::moments`] defines them.
struct Moment {
    target: usize,
    other: usize,
    /// The score of each code of the visited attribute.
    own: Vec<f64>,
    /// The factor of each code of the other attribute, and its place among the moments.
    factors: Vec<(f64, usize)>,
    lambda: Vec<f64>,
}

impl Moment {
    /// The moments of these residuals.
    fn values(&self, target: &Target, residual: &[f64], a: usize) -> Vec<f64> {
        let axes = target.query.axes();
        let mut moments = vec![0.0; self.lambda.len()];
        for (cell, residual) in residual.iter().enumerate() {
            let (mut rest, mut z, mut factor) = (cell, 0.0, (0.0, 0));
            for axis in axes.iter().rev() {
                let place = (rest % axis.size as usize) as u32;
                rest /= axis.size as usize;
                // Any code in the place; a place without codes has no residual worth counting.
                let code = |codes: usize| (0..codes).find(|&code| axis.place(code as u32) == place);
                if axis.attribute == a {
                    z = code(self.own.len()).map_or(0.0, |code| self.own[code]);
                } else if axis.attribute == self.other {
                    factor = code(self.factors.len()).map_or((0.0, 0), |code| self.factors[code]);
                }
            }
            moments[factor.1] += z * factor.0 * residual;
        }
        moments
    }
}

/// Numbers with mean 0 and variance 1 over the records, limited to 4.
pub fn standardised(amounts: &[f64], counts: &[f64]) -> Vec<f64> {
    let n: f64 = counts.iter().sum();
    let mean = amounts.iter().zip(counts).map(|(x, c)| x * c).sum::<f64>() / n;
    let variance = amounts.iter().zip(counts).map(|(x, c)| (x - mean).powi(2) * c).sum::<f64>() / n;
    amounts.iter().map(|x| ((x - mean) / variance.sqrt()).clamp(-4.0, 4.0)).collect()
}

/// The scores of numbers: standardised, and their squares without what follows from them.
fn scores_of(amounts: &[f64], counts: &[f64]) -> Vec<Vec<f64>> {
    let z = standardised(amounts, counts);
    let n: f64 = counts.iter().sum();
    let mean = |f: &dyn Fn(f64) -> f64| z.iter().zip(counts).map(|(&z, c)| f(z) * c).sum::<f64>() / n;
    let covariance = mean(&|z| z.powi(3)) - mean(&|z| z) * mean(&|z| z * z);
    let slope = covariance / (mean(&|z| z * z) - mean(&|z| z).powi(2));
    let rest: Vec<f64> = z.iter().map(|z| z * z - slope * z).collect();
    // Two values that occur have no square of their own.
    let several = counts.iter().filter(|&&count| count > 0.0).count() > 2;
    let squares = several.then(|| standardised(&rest, counts));
    std::iter::once(z).chain(squares).collect()
}

/// Scores along an axis: for each code the mean of its bucket, as the kernel rounds it; and their sum of squares.
fn along(axis: &Axis, scores: &[f64], counts: &[f64]) -> (Vec<f64>, f64) {
    let mean = |place: u32| {
        let of_place = || (0..scores.len()).filter(move |&code| axis.place(code as u32) == place);
        let mass: f64 = of_place().map(|code| counts[code] + 1e-3).sum();
        of_place().map(|code| scores[code] * (counts[code] + 1e-3)).sum::<f64>() / mass
    };
    let square = (0..axis.size).map(mean).filter(|mean| mean.is_finite()).map(|mean| mean * mean).sum();
    let means =
        (0..scores.len()).map(|code| if axis.buckets.is_none() { scores[code] } else { mean(axis.place(code as u32)) });
    (means.map(|mean| f64::from(mean as f32)).collect(), square)
}

/// Visit the ordinal attributes in `order` with moments in the loss, at threshold 1.
///
/// Returns how near the nearest decision was: where it is next to nothing, the kernel may round to another.
pub fn polish(
    rows: &mut Rows,
    targets: &[Target],
    views: &[View],
    order: &[usize],
    name: [u64; 2],
    amounts: &[Option<Vec<f64>>],
    pull: Pull,
) -> f64 {
    let counts: Vec<Vec<f64>> = (views.iter().enumerate())
        .map(|(a, view)| {
            let mut counts = vec![0.0; view.cardinality];
            for row in &*rows {
                counts[row[a] as usize] += 1.0;
            }
            counts
        })
        .collect();
    let varied = |a: usize| counts[a].iter().filter(|&&count| count > 0.0).count() > 1;
    let scores: Vec<_> = (amounts.iter().enumerate())
        .map(|(a, amounts)| amounts.as_ref().filter(|_| varied(a)).map_or_else(Vec::new, |x| scores_of(x, &counts[a])))
        .collect();
    let mut nearest = f64::MAX;
    for &a in order {
        if scores[a].is_empty() {
            continue;
        }
        let of_a = |target: &&Target| target.query.attributes().any(|attribute| attribute == a);
        let targets: Vec<Target> = targets.iter().filter(of_a).cloned().collect();
        let weight: f64 = targets.iter().map(|target| target.weight).sum();
        let mut residuals = residuals(rows, &targets);
        let mut moments = Vec::new();
        for (t, target) in targets.iter().enumerate() {
            let axes = target.query.axes();
            let mine = axes.iter().find(|axis| axis.attribute == a).unwrap();
            let others = axes.iter().filter(|axis| axis.attribute != a);
            for (other, (power, own)) in
                others.flat_map(|other| scores[a].iter().enumerate().map(move |own| (other, own)))
            {
                let b = other.attribute;
                let (z, square) = along(mine, own, &counts[a]);
                let summed = target.values.len() as f64 / f64::from(mine.size * other.size);
                let noise = pull.sigma.powi(2) / target.weight * summed * square;
                let lambda = |variance: f64| pull.strength * weight / variance.sqrt();
                let codes = 0..counts[b].len();
                let mut add =
                    |factors, lambda| moments.push(Moment { target: t, other: b, own: z.clone(), factors, lambda });
                for scores in scores[b].iter().take(2 - power) {
                    let (factors, square) = along(other, scores, &counts[b]);
                    let factors = factors.into_iter().map(|z| (z, 0)).collect();
                    add(factors, vec![lambda(rows.len() as f64 + noise * square)]);
                }
                if scores[b].is_empty() {
                    let mut sizes = vec![0.0; other.size as usize];
                    for (cell, value) in target.values.iter().enumerate() {
                        let stride: usize = axes
                            .iter()
                            .skip_while(|axis| axis.attribute != b)
                            .skip(1)
                            .map(|axis| axis.size as usize)
                            .product();
                        sizes[cell / stride % other.size as usize] += value;
                    }
                    let factors = codes.map(|code| (1.0, other.place(code as u32) as usize)).collect();
                    add(factors, sizes.iter().map(|size: &f64| lambda(size.max(1.0) + noise)).collect());
                }
            }
        }
        if moments.is_empty() {
            continue;
        }
        let values = |residuals: &[Vec<f64>]| -> Vec<Vec<f64>> {
            moments.iter().map(|m| m.values(&targets[m.target], &residuals[m.target], a)).collect()
        };
        // The loss of moving a record to `value`, with its cost.
        let judge = |residuals: &[Vec<f64>], moved: &[Vec<f64>], row: &[u32], value: u32| {
            let mut loss = 0.0;
            for (target, residual) in targets.iter().zip(residuals) {
                let (old, new) = (cell(target, row, a, row[a]), cell(target, row, a, value));
                loss += if old == new { 0.0 } else { target.weight * (residual[new] - residual[old] + 1.0) };
            }
            for (moment, values) in moments.iter().zip(moved) {
                let (k, place) = moment.factors[row[moment.other] as usize];
                let change = k * (moment.own[value as usize] - moment.own[row[a] as usize]);
                loss += moment.lambda[place] * change * (values[place] + 0.5 * change);
            }
            loss
        };
        let bar = if views[a].has_buckets { 0.0 } else { weight };
        // The current sum, and what moments could gain at most.
        let hope = |residuals: &[Vec<f64>], moved: &[Vec<f64>], row: &[u32]| {
            let own = targets.iter().zip(residuals).map(|(t, r)| t.weight * r[cell(t, row, a, row[a])]).sum::<f64>();
            let mut shapes: Vec<(&Vec<f64>, f64, f64)> = Vec::new();
            for (moment, values) in moments.iter().zip(moved) {
                let (k, place) = moment.factors[row[moment.other] as usize];
                let (pull, stiffness) = (moment.lambda[place] * values[place] * k, moment.lambda[place] * k * k);
                match shapes.iter_mut().find(|(z, ..)| **z == moment.own) {
                    Some((_, p, s)) => (*p, *s) = (*p + pull, *s + stiffness),
                    None => shapes.push((&moment.own, pull, stiffness)),
                }
            }
            own + shapes.iter().map(|(_, p, s)| if *s > 0.0 { p * p / (2.0 * s) } else { 0.0 }).sum::<f64>()
        };
        let mut random = Random::new([name[0], name[1], a as u64]);
        let key = random.bits();
        let blocks = rows.len().div_ceil(BLOCK);
        let length = window(blocks) * BLOCK;
        let windows = rows.len().div_ceil(length);
        for number in strided(windows, &mut random).take(polished(windows)) {
            let moved = values(&residuals);
            let mut proposals = Vec::new();
            let end = rows.len().min((number + 1) * length);
            for (r, row) in rows.iter().enumerate().take(end).skip(number * length) {
                let spare = hope(&residuals, &moved, row) - bar;
                nearest = if spare == 0.0 { nearest } else { nearest.min(spare.abs()) };
                if spare <= 0.0 {
                    continue;
                }
                let ties = Ties::new(key, r, views[a].pieces);
                let losses: Vec<f64> =
                    (0..views[a].cardinality).map(|value| judge(&residuals, &moved, row, value as u32)).collect();
                let turn = |value: usize| ties.turn(value, losses.len());
                let others = (0..losses.len()).filter(|&value| value != row[a] as usize);
                let best = others.min_by(|&u, &v| losses[u].total_cmp(&losses[v]).then(turn(u).cmp(&turn(v)))).unwrap();
                let near = losses.iter().map(|loss| (loss - losses[best]).abs()).filter(|&d| d > 0.0);
                nearest = near.fold(nearest, f64::min).min(losses[best].abs());
                if losses[best] < 0.0 {
                    proposals.push((r, best as u32));
                }
            }
            for (r, value) in proposals {
                let loss = judge(&residuals, &values(&residuals), &rows[r], value);
                nearest = nearest.min(loss.abs());
                if loss < 0.0 {
                    for (target, residual) in targets.iter().zip(&mut residuals) {
                        residual[cell(target, &rows[r], a, rows[r][a])] -= 1.0;
                        residual[cell(target, &rows[r], a, value)] += 1.0;
                    }
                    rows[r][a] = value;
                }
            }
        }
    }
    nearest
}
