//! A distribution as weights on points, which multiplicative updates fit to measured answers.
//!
//! The points are all cells of a small domain, or the distinct rows of a public table ([`points`]). Weights add up to 1.
//! All updates multiply the weights of the points that a measured cell or table holds, so the distribution stays the
//! one of largest entropy, relative to where it began, among those with the same answers.
//!
//! - [`Reweight::mwem`] is the round of Hardt, Ligett and `McSherry`: `A(x) *= exp(q(x) (a - q(A)) / 2)` for the newest
//!   cell, then for the past cells, in random order, whose error is at least half of the newest one's.
//! - [`Reweight::pep`] is entropy projection ([G] section 5): the past cell of largest error, again and again,
//!   `A(x) *= exp(lambda q(x))` with `lambda = log(a (1 - q) / ((1 - a) q))`, after which it is exact.
//! - [`Reweight::fit`] is iterative proportional fitting of whole tables: each cell moves to within its tolerance of what
//!   was measured. A tolerance of some standard deviations leaves alone what noise explains (a soft threshold).
//!
//! A cell of the domain is a box, and so is what two cells share; only boxes are summed, never the whole vector. A
//! projection changes the answer of another cell by what both share, so answers are kept up to date by boxes of boxes.
//! Cost: `mwem` one sum for each cell that was told; `pep` the same, and a smaller box for each cell and step; `fit` two
//! passes over the points for each table and sweep. Sums run in an order that does not depend on the threads.
//! Oracle: [`naive`].

pub mod naive;
pub mod points;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::query::{Query, Target};
use crate::random::Random;
use crate::table::Codes;
use points::{Points, Region};

/// Shares that a projection aims at, and starts from, stay this far from 0 and 1.
const CLIP: f64 = 1e-6;

/// A share of the weight that is as good as none.
const FULL: f64 = 1e-12;

/// A step of [`Reweight::fit`] multiplies by at most this, so that a few points never take all the weight at once.
const MOST_FACTOR: f64 = 1e3;

/// And by at least this: a weight never becomes 0, from which nothing could raise it.
const LEAST_FACTOR: f64 = 1e-3;

/// The codes that some attributes have in a cell of the domain, by attribute.
pub type Cell = Vec<(usize, u32)>;

/// Weights on points, and the cells whose answers were told.
#[derive(Debug)]
pub struct Reweight {
    points: Points,
    weights: Vec<f64>,
    told: Vec<Region>,
}

impl Reweight {
    /// Weights on points: those that are given, or even ones.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for weights that are not as many as the points, or no numbers from 0 on with a
    /// positive sum; [`Error::OutOfMemory`].
    pub fn new(points: Points, weights: Option<&[f64]>) -> Result<Self> {
        let mut weights = match weights {
            Some(given) => given.to_vec(),
            None => points.even()?,
        };
        if weights.len() != points.len() || !weights.iter().all(|weight| *weight >= 0.0) {
            return Err(Error::InvalidParameter("each point needs a weight of at least 0".into()));
        }
        let total = points::total(&weights);
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::InvalidParameter("the weights of the points need a positive, finite sum".into()));
        }
        // Weights of an earlier kernel stay as they are, to the last bit.
        if (total - 1.0).abs() > FULL {
            weights.par_iter_mut().for_each(|weight| *weight /= total);
        }
        Ok(Self { points, weights, told: Vec::new() })
    }

    /// The weights, which add up to 1.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Remember a cell; later updates take an answer for each cell that was told, in order.
    ///
    /// # Errors
    /// [`Error::NoSuchAttribute`], [`Error::AttributeTwice`] and [`Error::CodeOutOfDomain`] for what is no cell.
    pub fn tell(&mut self, cell: Cell) -> Result<()> {
        let region = self.points.region(cell)?;
        self.told.push(region);
        Ok(())
    }

    /// The share of the weight in each cell that was told.
    #[must_use]
    pub fn answers(&self) -> Vec<f64> {
        self.told.par_iter().with_max_len(1).map(|region| self.points.sum(&self.weights, region)).collect()
    }

    /// The table of each query, in shares.
    ///
    /// # Errors
    /// [`Error::AttributeTwice`] for a query that has an attribute on two axes; [`Error::TableTooLarge`] where tables
    /// take more than `limit` bytes; [`Error::Interrupted`].
    pub fn tables(&self, queries: &[Query], limit: u64, cancel: &Cancel) -> Result<Vec<Vec<f64>>> {
        self.points.tables(&self.weights, queries, limit, cancel)
    }

    /// One round of MWEM, given a measured share for each cell that was told; the last one is the newest.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] unless there is an answer for each cell.
    pub fn mwem(&mut self, measured: &[f64], seed: u64) -> Result<()> {
        self.check(measured)?;
        let Some(newest) = measured.len().checked_sub(1) else { return Ok(()) };
        let errors: Vec<f64> = measured.iter().zip(self.answers()).map(|(a, q)| a - q).collect();
        let mut past: Vec<usize> = (0..newest).filter(|&i| errors[i].abs() >= errors[newest].abs() / 2.0).collect();
        Random::new([seed, newest as u64]).shuffle(&mut past);
        for cell in std::iter::once(newest).chain(past) {
            self.points.scale(&mut self.weights, &self.told[cell], (errors[cell] / 2.0).exp());
        }
        self.normalise();
        Ok(())
    }

    /// Up to `steps` projections on the cell of largest error, given a measured share for each cell that was told; the
    /// largest error that is left.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] unless there is an answer for each cell; [`Error::Interrupted`].
    pub fn pep(&mut self, measured: &[f64], steps: usize, cancel: &Cancel) -> Result<f64> {
        self.check(measured)?;
        let mut answers = self.answers();
        // The weights add up to this: all are divided by it once, in the end.
        let mut total = 1.0;
        for _ in 0..steps {
            cancel.check()?;
            // A cell that has all the weight, or none, cannot be moved.
            let moves = |answer: f64| answer > FULL && answer < 1.0 - FULL;
            let error = |i: &usize| if moves(answers[*i]) { (measured[*i] - answers[*i]).abs() } else { 0.0 };
            let Some(worst) = (0..measured.len()).max_by(|i, j| error(i).total_cmp(&error(j)).then(j.cmp(i))) else {
                break;
            };
            let (a, q) = (measured[worst].clamp(CLIP, 1.0 - CLIP), answers[worst].clamp(CLIP, 1.0 - CLIP));
            let factor = a * (1.0 - q) / ((1.0 - a) * q);
            if (factor - 1.0).abs() < f64::EPSILON || !moves(answers[worst]) {
                break;
            }
            let region = &self.told[worst];
            let shared = self.told.par_iter().map(|other| self.points.shared(&self.weights, other, region));
            let shared: Vec<f64> = shared.collect();
            let grown = 1.0 + (factor - 1.0) * answers[worst];
            for (answer, shared) in answers.iter_mut().zip(shared) {
                *answer = (*answer + (factor - 1.0) * shared / total) / grown;
            }
            self.points.scale(&mut self.weights, region, factor);
            total *= grown;
        }
        self.normalise();
        Ok(measured.iter().zip(answers).map(|(a, q)| (a - q).abs()).fold(0.0, f64::max))
    }

    /// Up to `sweeps` sweeps over whole tables of shares, in order, each cell moved to within `tolerances` of its
    /// table's value; the largest distance beyond the tolerance that the last sweep met.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] unless there is a tolerance for each table; [`Error::AttributeTwice`];
    /// [`Error::Interrupted`].
    pub fn fit(&mut self, targets: &[Target], tolerances: &[f64], sweeps: usize, cancel: &Cancel) -> Result<f64> {
        if targets.len() != tolerances.len() {
            return Err(Error::InvalidParameter("each table needs a tolerance".into()));
        }
        let mut worst = 0.0;
        for _ in 0..sweeps {
            worst = 0.0;
            for (target, &tolerance) in targets.iter().zip(tolerances) {
                cancel.check()?;
                let beyond = self
                    .points
                    .rescale(&mut self.weights, &target.query, |answers| factors(answers, &target.values, tolerance))?;
                worst = f64::max(worst, beyond);
            }
            if worst == 0.0 {
                break;
            }
        }
        self.normalise();
        Ok(worst)
    }

    /// That many records, apportioned to the weights and put in random order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn draw(&self, records: usize, seed: u64) -> Result<Vec<Codes>> {
        self.points.draw(&self.weights, records, &mut Random::new([seed]))
    }

    fn check(&self, measured: &[f64]) -> Result<()> {
        if measured.len() == self.told.len() && measured.iter().all(|share| share.is_finite()) {
            return Ok(());
        }
        Err(Error::InvalidParameter("each cell that was told needs a finite answer".into()))
    }

    fn normalise(&mut self) {
        let total = points::total(&self.weights);
        self.weights.par_iter_mut().for_each(|weight| *weight /= total);
    }
}

/// What to multiply each cell of a table by, and how far the worst one is beyond the tolerance.
fn factors(answers: &[f64], wanted: &[f64], tolerance: f64) -> (Vec<f64>, f64) {
    let mut worst = 0.0;
    let factor = |(&answer, &wanted): (&f64, &f64)| {
        let apart = wanted - answer;
        let beyond = (apart.abs() - tolerance).max(0.0);
        if beyond == 0.0 || answer <= 0.0 {
            return 1.0;
        }
        worst = f64::max(worst, beyond);
        (1.0 + beyond.copysign(apart) / answer).clamp(LEAST_FACTOR, MOST_FACTOR)
    };
    let mut factors: Vec<f64> = answers.iter().zip(wanted).map(factor).collect();
    // The weights go on adding up to 1.
    let total: f64 = answers.iter().zip(&factors).map(|(answer, factor)| answer * factor).sum();
    for factor in &mut factors {
        *factor /= total;
    }
    (factors, worst)
}
