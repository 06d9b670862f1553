//! The optimiser: which potentials to try next. It works on vectors and the loss only, without the tree.
//!
//! Vectors hold a number for each measured value: potentials, marginals under them, target values. See the module's
//! header for the kinds of steps; the acceleration solves a least-squares problem of [`MEMORY`] unknowns by its normal
//! equations.

use std::collections::VecDeque;
use std::ops::Range;

use rayon::prelude::*;

use crate::query::Target;

/// Steps that acceleration combines.
const MEMORY: usize = 12;

/// Vectors that a fit holds, roughly.
pub const VECTORS: usize = 2 * MEMORY + 8;

/// Acceleration may change a potential by at most this.
const FARTHEST: f64 = 1000.0;

/// Relative ridge of the normal equations.
const RIDGE: f64 = 1e-10;

/// Rates are tried down to this share of the rate that always works; below it only rounding is left.
const SLOWEST: f64 = 0.1;

/// A leap must lower the loss by this share of it, or by this much: less is rounding, and need not be found.
const LEAST: f64 = 1e-10;
const LEAST_AT_ALL: f64 = 1e-12;

/// A leap went too far if it raises the loss by this share.
const TOO_FAR: f64 = 1e-4;

/// Steps after a leap in which the loss must fall below what it was.
pub const SETTLING: usize = 40;

/// A step that lowers the loss by at most this share is slow; this many slow steps lead to a leap.
const SLOW: f64 = 1e-6;
const PATIENCE: usize = 20;

/// Limits of leaps: the largest change of a potential, the most usual steps in length, and the relative precision of
/// rates.
const DEEPEST: f64 = 1e5;
const LARGEST: f64 = 1e12;
const FINEST: f64 = 1e-3;

/// A search for a rate between one that changes nothing and one that goes too far.
#[derive(Debug)]
pub struct Leap {
    /// The rate to try next.
    pub rate: f64,
    low: f64,
    high: Option<f64>,
    farthest: f64,
    /// The largest fall of the loss so far.
    fall: f64,
}

/// Where a leap ends.
#[derive(Debug)]
pub enum Landing {
    /// The loss is smaller there.
    Lower,
    /// The loss is about the same.
    Near,
    /// The loss is larger.
    TooFar,
}

/// Potentials, and the last steps that led to them.
#[derive(Debug)]
pub struct Fit {
    /// One for each measured value.
    pub potentials: Vec<f64>,
    /// Half the weighted sum of squared residuals.
    pub loss: f64,
    /// Whether no rate lowers the loss any more.
    pub exhausted: bool,
    marginals: Vec<f64>,
    wanted: Vec<f64>,
    /// Values of each target, and their weight.
    weights: Vec<(Range<usize>, f64)>,
    rate: f64,
    sure_rate: f64,
    /// Slow steps since the last leap was tried.
    slow: usize,
    steps: VecDeque<Step>,
    /// Weighted products of the steps' changes of marginals, in the steps' order.
    products: VecDeque<VecDeque<f64>>,
}

/// How potentials and marginals changed in a step.
#[derive(Debug)]
struct Step {
    potentials: Vec<f64>,
    marginals: Vec<f64>,
}

impl Fit {
    /// Begin with given potentials, or with zeros.
    pub fn new(targets: &[Target], start: Option<&[&[f64]]>, total: f64) -> Self {
        let mut end = 0;
        let weights: Vec<(Range<usize>, f64)> = (targets.iter())
            .map(|target| {
                end += target.values.len();
                (end - target.values.len()..end, target.weight)
            })
            .collect();
        let potentials = start.map_or_else(|| vec![0.0; end], <[_]>::concat);
        assert_eq!(potentials.len(), end, "a potential for each value");
        let sum: f64 = targets.iter().map(|target| target.weight).sum();
        let sure_rate = if targets.is_empty() { 1.0 } else { 1.0 / (total * sum) };
        Self {
            potentials,
            loss: 0.0,
            exhausted: targets.is_empty(),
            marginals: Vec::new(),
            wanted: targets.iter().flat_map(|target| &target.values).copied().collect(),
            weights,
            rate: sure_rate,
            sure_rate,
            slow: 0,
            steps: VecDeque::new(),
            products: VecDeque::new(),
        }
    }

    /// Store the marginals of the first potentials.
    pub fn begin(&mut self, marginals: Vec<f64>) {
        self.loss = self.loss_of(&marginals);
        self.marginals = marginals;
    }

    /// Half the weighted sum of squared residuals.
    pub fn loss_of(&self, marginals: &[f64]) -> f64 {
        let residuals = |range: &Range<usize>| marginals[range.clone()].iter().zip(&self.wanted[range.clone()]);
        let square = |(range, weight): &(Range<usize>, f64)| {
            weight * residuals(range).map(|(have, want)| (have - want) * (have - want)).sum::<f64>()
        };
        ordered_sum(&self.weights, square) / 2.0
    }

    /// Potentials by acceleration from the last steps, if there are any.
    pub fn accelerated(&self) -> Option<Vec<f64>> {
        let share = self.shares()?;
        let mut next = self.potentials.clone();
        self.for_each_target(&mut next, |range, weight, next| {
            for (i, value) in range.clone().zip(next.iter_mut()) {
                *value -= self.rate * weight * (self.marginals[i] - self.wanted[i]);
            }
            for (step, share) in self.steps.iter().zip(&share) {
                let (potentials, marginals) = (&step.potentials[range.clone()], &step.marginals[range.clone()]);
                for ((value, potential), marginal) in next.iter_mut().zip(potentials).zip(marginals) {
                    *value -= share * (potential - self.rate * weight * marginal);
                }
            }
        });
        // Cells that it sends to zero would take many steps to come back.
        let far = next.par_iter().zip(&self.potentials).any(|(next, now)| (next - now).abs() > FARTHEST);
        (!far).then_some(next)
    }

    /// Potentials after one step of mirror descent, unless the rate is so small that only rounding is left.
    pub fn descended(&self) -> Option<Vec<f64>> {
        (self.rate >= SLOWEST * self.sure_rate).then(|| self.moved(self.rate))
    }

    /// Potentials some way down the gradient.
    fn moved(&self, rate: f64) -> Vec<f64> {
        let mut next = self.potentials.clone();
        self.for_each_target(&mut next, |range, weight, next| {
            for (i, value) in range.zip(next) {
                *value -= rate * weight * (self.marginals[i] - self.wanted[i]);
            }
        });
        next
    }

    /// Whether enough steps have been slow that a leap is due.
    pub fn is_slow(&self) -> bool {
        self.slow >= PATIENCE
    }

    /// Look for a rate far above the usual one.
    pub fn leap(&mut self) -> Leap {
        self.slow = 0;
        let gradient = |(range, weight): &(Range<usize>, f64)| {
            range.clone().map(|i| (weight * (self.marginals[i] - self.wanted[i])).abs()).fold(0.0, f64::max)
        };
        let steepest = self.weights.iter().map(gradient).fold(f64::MIN_POSITIVE, f64::max);
        // Where all gradients are rounding, no rate is large enough.
        let farthest = (DEEPEST / steepest).min(LARGEST * self.sure_rate);
        Leap { rate: 4.0 * self.sure_rate, low: 0.0, high: None, farthest, fall: self.least() }
    }

    /// The potentials that a leap tries next, if there are any left.
    pub fn leapt(&self, leap: &Leap) -> Option<Vec<f64>> {
        let narrow = leap.high.is_some_and(|high| high - leap.low < FINEST * high);
        (leap.rate <= leap.farthest && !narrow).then(|| self.moved(leap.rate))
    }

    /// Where the leap has landed; it tries another rate next.
    pub fn lands(&self, leap: &mut Leap, marginals: &[f64]) -> Landing {
        let change = self.change_of(marginals);
        // Cells that are not quite optimal yet drift, and raise the loss a little long before empty cells come back.
        let too_far = change > TOO_FAR * self.loss + LEAST_AT_ALL;
        if too_far {
            leap.high = Some(leap.rate);
        } else {
            leap.low = leap.rate;
        }
        leap.rate = leap.high.map_or(4.0 * leap.rate, |high| f64::midpoint(leap.low, high));
        match change {
            _ if too_far => Landing::TooFar,
            _ if -change > leap.fall => {
                leap.fall = -change;
                Landing::Lower
            }
            _ => Landing::Near,
        }
    }

    /// The least fall that counts.
    fn least(&self) -> f64 {
        LEAST * self.loss + LEAST_AT_ALL
    }

    /// Restart from given potentials, which may be worse.
    pub fn elsewhere(&self, potentials: Vec<f64>, marginals: Vec<f64>) -> Self {
        let (wanted, weights) = (self.wanted.clone(), self.weights.clone());
        Self {
            loss: self.loss_of(&marginals),
            potentials,
            marginals,
            wanted,
            weights,
            exhausted: false,
            rate: self.sure_rate,
            sure_rate: self.sure_rate,
            slow: 0,
            steps: VecDeque::new(),
            products: VecDeque::new(),
        }
    }

    /// Whether the loss is below that of another fit.
    pub fn is_below(&self, other: &Self) -> bool {
        other.change_of(&self.marginals) < -other.least()
    }

    /// The change of the loss, from the differences: subtracting two near losses would leave little but rounding.
    pub fn change_of(&self, marginals: &[f64]) -> f64 {
        let change = |(range, weight): &(Range<usize>, f64)| {
            let square = |i: usize| {
                let (old, new) = (self.marginals[i], marginals[i]);
                (new - old) * ((new - self.wanted[i]) + (old - self.wanted[i]))
            };
            weight * range.clone().map(square).sum::<f64>()
        };
        ordered_sum(&self.weights, change) / 2.0
    }

    /// Whether the loss falls by at least half of what the gradient promises.
    pub fn is_enough(&self, marginals: &[f64]) -> bool {
        let fall = |(range, weight): &(Range<usize>, f64)| {
            let gain = |i: usize| (self.marginals[i] - self.wanted[i]) * (self.marginals[i] - marginals[i]);
            weight * range.clone().map(gain).sum::<f64>()
        };
        let promised = ordered_sum(&self.weights, fall);
        let change = self.change_of(marginals);
        change < 0.0 && change <= -promised / 2.0
    }

    /// Try a smaller rate.
    pub fn slow_down(&mut self) {
        self.rate /= 4.0;
    }

    /// Forget the last steps: acceleration from them does not help.
    pub fn forget(&mut self) {
        self.steps.clear();
        self.products.clear();
    }

    /// Restart from here, with a rate that worked.
    pub fn begin_again(&mut self, rate: f64) {
        self.forget();
        self.rate = rate;
    }

    /// Accept the new potentials.
    pub fn accept(&mut self, potentials: Vec<f64>, marginals: Vec<f64>) {
        if self.steps.is_empty() {
            // The rate worked, and may have been too small.
            self.rate *= 2.0;
        }
        let change = |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(new, old)| new - old).collect();
        let step =
            Step { potentials: change(&potentials, &self.potentials), marginals: change(&marginals, &self.marginals) };
        if self.steps.len() == MEMORY {
            self.steps.pop_front();
            self.products.pop_front();
            for row in &mut self.products {
                row.pop_front();
            }
        }
        self.steps.push_back(step);
        let last = self.products_with(&self.steps[self.steps.len() - 1].marginals);
        self.products.iter_mut().zip(&last).for_each(|(row, product)| row.push_back(*product));
        self.products.push_back(last.into());
        // Never above, although rounding may make it so.
        let loss = self.loss_of(&marginals).min(self.loss);
        self.slow = if self.loss - loss <= SLOW * loss { self.slow + 1 } else { 0 };
        self.loss = loss;
        (self.potentials, self.marginals) = (potentials, marginals);
    }

    /// How much of each remembered step to undo, so that the residuals become smallest.
    fn shares(&self) -> Option<Vec<f64>> {
        if self.steps.is_empty() {
            return None;
        }
        let residuals: Vec<f64> = self.marginals.iter().zip(&self.wanted).map(|(have, want)| have - want).collect();
        let mut rows: Vec<Vec<f64>> = self.products.iter().map(|row| row.iter().copied().collect()).collect();
        for (i, row) in rows.iter_mut().enumerate() {
            row[i] += RIDGE * row[i] + f64::MIN_POSITIVE;
        }
        solve(rows, self.products_with(&residuals))
    }

    /// Weighted products of a vector with the changes of marginals of each step.
    fn products_with(&self, vector: &[f64]) -> Vec<f64> {
        let of_target = |(range, weight): &(Range<usize>, f64)| -> Vec<f64> {
            let part = &vector[range.clone()];
            let product = |step: &Step| weight * dot(part, &step.marginals[range.clone()]);
            self.steps.iter().map(product).collect()
        };
        let parts: Vec<Vec<f64>> = self.weights.par_iter().map(of_target).collect();
        (0..self.steps.len()).map(|i| parts.iter().map(|part| part[i]).sum()).collect()
    }

    /// Change the values of each target.
    fn for_each_target(&self, values: &mut [f64], change: impl Fn(Range<usize>, f64, &mut [f64]) + Sync) {
        let mut rest = values;
        let mut parts = Vec::with_capacity(self.weights.len());
        for (range, weight) in &self.weights {
            let (part, others) = rest.split_at_mut(range.len());
            parts.push((range.clone(), *weight, part));
            rest = others;
        }
        parts.into_par_iter().for_each(|(range, weight, part)| change(range, weight, part));
    }
}

/// The sum over targets, in their order.
fn ordered_sum(weights: &[(Range<usize>, f64)], of: impl Fn(&(Range<usize>, f64)) -> f64 + Sync + Send) -> f64 {
    weights.par_iter().map(of).collect::<Vec<f64>>().iter().sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    crate::margin::join(lanes) + rest
}

/// Solve a positive definite system by Cholesky's decomposition; `None` if rounding has made it indefinite.
fn solve(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for i in 0..size {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| rows[i][k] * rows[j][k]).sum();
            let rest = rows[i][j] - inner;
            rows[i][j] = if i == j { Some(rest).filter(|rest| *rest > 0.0)?.sqrt() } else { rest / rows[j][j] };
        }
    }
    for i in 0..size {
        let known: f64 = (0..i).map(|k| rows[i][k] * right[k]).sum();
        right[i] = (right[i] - known) / rows[i][i];
    }
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|k| rows[k][i] * right[k]).sum();
        right[i] = (right[i] - known) / rows[i][i];
    }
    right.iter().all(|share| share.is_finite()).then_some(right)
}
