//! Moment polish: visits to ordinal attributes with the moments of their targets in the loss.
//!
//! Descent stalls with residuals that are tiny in each cell but systematic along an order, and these bias means,
//! correlations and regression coefficients by many standard errors. So after the last sweep each ordinal attribute a
//! is visited once more, with a term for each moment of the residuals R of its targets. With scores z of a (the number
//! of each code, standardised under the records' own 1-way and clipped; on an axis in buckets the bucket's mean) and
//! every other axis b of the target, the rest summed out:
//!
//! - b ordinal: `M = sum over u, v of z_a(u) z_b(v) R[u, v]`, which a record of code v moves by `k = z_b(v)` times D;
//! - b nominal: `M_v = sum over u of z_a(u) R[u, v]` for each v, where k is 1;
//!
//! where `D = z_a(u) - z_a(u0)` for a move from u0 to u. The loss gains `lambda M^2`, so a move also gains
//! `-lambda M k D - lambda k^2 D^2 / 2`. Nothing new is measured: the targets are those that descent fits.
//! `lambda = strength bar W / sqrt(V + sigma^2 |z_a|^2 [|z_b|^2] cells summed out)`, W the weight of a's targets, V the
//! number of records that the moment is of: a moment that is off by one standard error, of sampling and of noise, pays
//! `strength` times the bar of a move by one standard deviation.
//!
//! Squares are scores too: `z_a^2`, less what follows from `z_a`, with `z_b` or a nominal b, and `z_a` with `z_b^2`. They
//! fix coefficients of squares, and cost less than they give.
//!
//! Terms that share scores of a add up to two numbers a record, a pull and a stiffness, so each record still costs one
//! sum over values; and a record is skipped unless its current sum and all that moments could gain exceed the bar. One
//! quarter of the records is visited: that is enough to move what moments need.
//! Cost of a visit: O(cells) for the moments, O(marginals) for a quarter of the records, and O(marginals * values / 16 +
//! values) for those of them that are not skipped: in all about a tenth of a descent. Oracle: `naive::polish`.

use std::sync::Arc;

use super::problem::{Marginal, Offsets, View};
use super::visit::BLOCK;
use crate::query::Axis;
use crate::table::{Codes, Column};

/// Scores are limited to this many standard deviations, so that no tail outweighs all else.
const MOST_SCORE: f64 = 4.0;

/// How hard moments pull, and the noise that they are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Pull {
    /// Of a moment that is off by one standard error, in bars of a move by one standard deviation.
    pub strength: f64,
    /// Standard deviation of the noise in each cell of a target of weight 1, in records.
    pub sigma: f64,
}

/// The scores and the counts of the codes of each attribute.
pub(super) struct Scores {
    /// The scores of each ordinal attribute; empty for others.
    pub of: Vec<Vec<Vec<f64>>>,
    counts: Vec<Vec<f64>>,
}

impl Scores {
    /// Scores by the number that each code of an attribute stands for; none where there are no numbers.
    pub fn new(amounts: &[Option<Vec<f64>>], views: &[View], columns: &[Codes]) -> Self {
        let counts = columns.iter().zip(views).map(|(codes, view)| histogram(codes.column(), view.cardinality));
        let counts: Vec<_> = counts.collect();
        let of = amounts.iter().zip(&counts).map(|(amounts, counts)| match amounts {
            Some(amounts) => scores(amounts, counts),
            None => Vec::new(),
        });
        Self { of: of.collect(), counts }
    }

    /// The mean of one of an attribute's scores in each place of an axis.
    fn along(&self, axis: &Axis, score: &[f64]) -> Vec<f64> {
        let Some(buckets) = &axis.buckets else { return score.to_vec() };
        let mut sums = vec![(0.0, 0.0); axis.size as usize];
        for ((&bucket, z), count) in buckets.iter().zip(score).zip(&self.counts[axis.attribute]) {
            // Codes without records count a little, so that a bucket of them has a mean.
            let count = count + 1e-3;
            let (sum, mass) = &mut sums[bucket as usize];
            (*sum, *mass) = (*sum + count * z, *mass + count);
        }
        sums.into_iter().map(|(sum, mass)| if mass > 0.0 { sum / mass } else { 0.0 }).collect()
    }

    /// The number of records in each place of an axis.
    fn counted(&self, axis: &Axis) -> Vec<f64> {
        let mut counted = vec![0.0; axis.size as usize];
        for (code, count) in (0u32..).zip(&self.counts[axis.attribute]) {
            counted[axis.place(code) as usize] += count;
        }
        counted
    }
}

fn histogram(column: Column<'_>, cardinality: usize) -> Vec<f64> {
    let mut counts = vec![0u32; cardinality];
    match column {
        Column::U8(codes) => codes.iter().for_each(|&code| counts[usize::from(code)] += 1),
        Column::U16(codes) => codes.iter().for_each(|&code| counts[usize::from(code)] += 1),
        Column::U32(codes) => codes.iter().for_each(|&code| counts[code as usize] += 1),
    }
    counts.into_iter().map(f64::from).collect()
}

/// The scores of numbers, and of their squares as far as they do not follow from the scores themselves.
fn scores(amounts: &[f64], counts: &[f64]) -> Vec<Vec<f64>> {
    let Some(scores) = standardised(amounts, counts) else { return Vec::new() };
    let total: f64 = counts.iter().sum();
    let mean = |f: &dyn Fn(f64) -> f64| scores.iter().zip(counts).map(|(&z, count)| f(z) * count).sum::<f64>() / total;
    let (first, second, third) = (mean(&|z| z), mean(&|z| z * z), mean(&|z| z * z * z));
    let slope = (third - first * second) / (second - first * first);
    let rest: Vec<f64> = scores.iter().map(|z| z * z - slope * z).collect();
    let squares = standardised(&rest, counts);
    std::iter::once(scores).chain(squares).collect()
}

/// Numbers with mean 0 and variance 1 over the records; those that are not finite, such as missing, become 0.
fn standardised(amounts: &[f64], counts: &[f64]) -> Option<Vec<f64>> {
    let known = || amounts.iter().zip(counts).filter(|(amount, _)| amount.is_finite());
    let total: f64 = known().map(|(_, count)| count).sum();
    let mean = known().map(|(amount, count)| amount * count).sum::<f64>() / total;
    let variance = known().map(|(amount, count)| (amount - mean).powi(2) * count).sum::<f64>() / total;
    let deviation = variance.sqrt();
    // Also where there are no records, or no number that is finite.
    if deviation.is_nan() || deviation <= 1e-12 * mean.abs() {
        return None;
    }
    let score = |amount: &f64| {
        if amount.is_finite() { ((amount - mean) / deviation).clamp(-MOST_SCORE, MOST_SCORE) } else { 0.0 }
    };
    Some(amounts.iter().map(score).collect())
}

/// The moments of one attribute's targets, while it is visited.
pub(super) struct Moments {
    /// Different scores of the attribute's codes: one for each resolution it has among its targets.
    shapes: Vec<Vec<f32>>,
    each: Vec<Moment>,
    tables: Vec<Table>,
    /// Whether moments changed since the tables were filled.
    stale: bool,
}

/// What all moments with one other attribute and one shape add, for each code of it: a pull and half a stiffness.
struct Table {
    other: usize,
    shape: usize,
    of: Vec<[f32; 2]>,
}

/// The moments of one target with one of its other axes.
struct Moment {
    table: usize,
    /// The scores of the visited attribute.
    shape: usize,
    /// The other attribute.
    other: usize,
    factor: Factor,
    /// lambda, and lambda times the moment, of each place.
    stiffness: Vec<f64>,
    pull: Vec<f64>,
}

/// What the code of the other attribute says of a record.
enum Factor {
    /// All are in one place: the factor k of each code.
    Scores(Vec<f32>),
    /// The factor is 1: the place of each code, if it is not the code itself.
    Places(Option<Arc<[u32]>>),
}

impl Factor {
    #[inline]
    fn of(&self, code: u32) -> (usize, f32) {
        match self {
            Self::Scores(scores) => (0, scores[code as usize]),
            Self::Places(None) => (code as usize, 1.0),
            Self::Places(Some(places)) => (places[code as usize] as usize, 1.0),
        }
    }
}

/// What the moments add to the sums of a block of records: for each shape, a pull and half a stiffness.
pub(super) type Pulls = Vec<[[f32; BLOCK]; 2]>;

impl Moments {
    /// The moments of an attribute's targets, if it has scores and any target has another axis.
    ///
    /// `bar` is what a move must gain for each unit of weight.
    pub fn new(
        attribute: usize,
        view: &View,
        marginals: &[Marginal],
        scores: &Scores,
        pull: Pull,
        bar: f64,
    ) -> Option<Self> {
        let unit = pull.strength * bar * marginals.iter().map(|marginal| marginal.weight).sum::<f64>();
        let mut found = Self { shapes: Vec::new(), each: Vec::new(), tables: Vec::new(), stale: true };
        for (incidence, marginal) in view.incidences.iter().zip(marginals) {
            let axes = marginal.query.axes();
            let own = &axes[incidence.axis];
            for (power, score) in scores.of[attribute].iter().enumerate() {
                let places = scores.along(own, score);
                let shape = found.shape((0..view.cardinality).map(|code| {
                    #[expect(clippy::cast_possible_truncation, reason = "a cardinality, and scores of a few units")]
                    let z = places[own.place(code as u32) as usize] as f32;
                    z
                }));
                for (i, other) in axes.iter().enumerate().filter(|&(i, _)| i != incidence.axis) {
                    let (moments, left) = contract(marginal, incidence.axis, i, &places);
                    let summed = marginal.residual.len() / (own.size as usize * other.size as usize);
                    #[expect(clippy::cast_precision_loss, reason = "a number of cells")]
                    let noise = pull.sigma * pull.sigma / marginal.weight * summed as f64 * square(&places);
                    let mut add = |factor, variances: &mut dyn Iterator<Item = f64>, moments: &[f64]| {
                        let stiffness: Vec<f64> = variances.map(|variance| unit / variance.sqrt()).collect();
                        let pull = stiffness.iter().zip(moments).map(|(lambda, moment)| lambda * moment).collect();
                        let table = found.table(other.attribute, shape, scores.counts[other.attribute].len());
                        found.each.push(Moment { table, shape, other: other.attribute, factor, stiffness, pull });
                    };
                    let counted = scores.counted(other);
                    if scores.of[other.attribute].is_empty() {
                        // The target's own margin; counts are what residuals exceed it by.
                        let mut sizes = counted.iter().zip(left).map(|(count, left)| (count - left).max(1.0) + noise);
                        add(Factor::Places(other.buckets.clone()), &mut sizes, &moments);
                    }
                    // A square meets a score, but not a square.
                    for score in &scores.of[other.attribute][..scores.of[other.attribute].len().min(2 - power)] {
                        let along = scores.along(other, score);
                        let moment = moments.iter().zip(&along).map(|(m, z)| m * z).sum::<f64>();
                        let variance = counted.iter().sum::<f64>() + noise * square(&along);
                        let codes = 0..scores.of[other.attribute][0].len();
                        #[expect(clippy::cast_possible_truncation, reason = "a cardinality, and scores of a few units")]
                        let factors = codes.map(|code| along[other.place(code as u32) as usize] as f32).collect();
                        add(Factor::Scores(factors), &mut std::iter::once(variance), &[moment]);
                    }
                }
            }
        }
        (!found.each.is_empty()).then_some(found)
    }

    /// The place of a shape among those known; it is added if it is new.
    fn shape(&mut self, scores: impl Iterator<Item = f32>) -> usize {
        let scores: Vec<f32> = scores.collect();
        let known = self.shapes.iter().position(|shape| *shape == scores);
        known.unwrap_or_else(|| {
            self.shapes.push(scores);
            self.shapes.len() - 1
        })
    }

    /// The place of the table of an attribute and a shape; it is added if it is new.
    fn table(&mut self, other: usize, shape: usize, cardinality: usize) -> usize {
        let known = self.tables.iter().position(|table| table.other == other && table.shape == shape);
        known.unwrap_or_else(|| {
            self.tables.push(Table { other, shape, of: vec![[0.0; 2]; cardinality] });
            self.tables.len() - 1
        })
    }

    /// Bring the tables up to date.
    #[expect(clippy::cast_possible_truncation, reason = "an approximation, and cardinalities")]
    pub fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.tables.iter_mut().for_each(|table| table.of.fill([0.0; 2]));
        for moment in &self.each {
            for (code, [pull, stiffness]) in (0u32..).zip(&mut self.tables[moment.table].of) {
                let (place, factor) = moment.factor.of(code);
                *pull += moment.pull[place] as f32 * factor;
                *stiffness += 0.5 * moment.stiffness[place] as f32 * factor * factor;
            }
        }
    }

    /// The scores of the attribute's codes, for each shape.
    pub fn shapes(&self) -> &[Vec<f32>] {
        &self.shapes
    }

    /// Fill the pulls of the records from `start` on, in units of `scale`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    pub fn pulls(&self, columns: &[Codes], start: usize, length: usize, scale: f32, pulls: &mut Pulls) {
        pulls.clear();
        pulls.resize(self.shapes.len(), [[0.0; BLOCK]; 2]);
        for table in &self.tables {
            let [pulls, stiffnesses] = &mut pulls[table.shape];
            let mut codes = [0; BLOCK];
            Offsets::Factor(1).add(columns[table.other].column(), start, &mut codes[..length]);
            for ((&code, pull), stiffness) in codes[..length].iter().zip(pulls).zip(stiffnesses) {
                let [p, s] = table.of[code as usize];
                (*pull, *stiffness) = (*pull + p, *stiffness + s);
            }
        }
        for pulls in pulls.iter_mut().flatten() {
            for pull in pulls {
                *pull *= scale;
            }
        }
    }

    /// By how much the moments' part of the loss rises, in halves, if a record changes its code.
    pub fn rise(&self, columns: &[Codes], record: usize, from: u32, to: u32) -> f64 {
        let rise = |moment: &Moment| {
            let (place, factor) = moment.factor.of(columns[moment.other].column().code(record));
            let change = f64::from(factor) * self.change(moment, from, to);
            change * (moment.pull[place] + 0.5 * moment.stiffness[place] * change)
        };
        self.each.iter().map(rise).sum()
    }

    /// Take note that a record changed its code.
    pub fn shift(&mut self, columns: &[Codes], record: usize, from: u32, to: u32) {
        for i in 0..self.each.len() {
            let change = self.change(&self.each[i], from, to);
            let moment = &mut self.each[i];
            let (place, factor) = moment.factor.of(columns[moment.other].column().code(record));
            moment.pull[place] += moment.stiffness[place] * f64::from(factor) * change;
        }
        self.stale = true;
    }

    #[inline]
    fn change(&self, moment: &Moment, from: u32, to: u32) -> f64 {
        let shape = &self.shapes[moment.shape];
        f64::from(shape[to as usize]) - f64::from(shape[from as usize])
    }
}

fn square(scores: &[f64]) -> f64 {
    scores.iter().map(|z| z * z).sum()
}

/// For each place of axis `other`: the residuals times the scores of axis `own`, summed; and the residuals summed.
fn contract(marginal: &Marginal, own: usize, other: usize, scores: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let axes = marginal.query.axes();
    // The cells of all other axes, at the first place of these two.
    let mut rest = vec![0];
    for (i, axis) in axes.iter().enumerate().filter(|&(i, _)| i != own && i != other) {
        let places = |cell: usize| (0..axis.size as usize).map(move |place| cell + place * marginal.strides[i]);
        rest = rest.into_iter().flat_map(places).collect();
    }
    let one = f64::from(marginal.one);
    let of_place = |place: usize| {
        let (mut moment, mut sum) = (0.0, 0.0);
        for cell in &rest {
            let cells = marginal.residual[cell + place * marginal.strides[other]..].iter();
            for (residual, z) in cells.step_by(marginal.strides[own]).zip(scores) {
                let residual = f64::from(*residual) / one;
                (moment, sum) = (moment + z * residual, sum + residual);
            }
        }
        (moment, sum)
    };
    (0..axes[other].size as usize).map(of_place).unzip()
}
