//! The record that answers weighted queries best: the oracle that `DualQuery` and `FEM` ask ([G] section 3).
//!
//! A query is a cell of some attributes; a record that lies in it gains the query's weight, which may be negative. A
//! cost may be put on each code of each attribute. The best of all records is hard to find in general (it is an integer
//! program), so each record is the best of several coordinate ascents: start from a random record with up to three
//! random queries of positive weight made true, then set one attribute after another to its best code given all others,
//! until a round over the attributes changes nothing. Measured against an integer program on the queries of real
//! rounds it was optimal each time.
//!
//! Queries are indexed by their codes, and each keeps how many of its codes the record misses, so an attribute costs the
//! queries that name it: a round over all attributes is O(the codes of all queries). Each record and start has a
//! random stream of its own, so threads change nothing. Oracle: [`naive`], which tries every record.

pub mod naive;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::random::Random;

/// A query that starts are made to satisfy: this many at most.
const SATISFIED: usize = 3;

/// Rounds over the attributes at most; the gain rises strictly, so ties are all that could go on for ever.
const MOST_ROUNDS: usize = 100;

/// Cells with weights, ready to be asked for the best record.
#[derive(Debug)]
pub struct Response {
    cardinalities: Vec<u32>,
    /// Where the codes of each attribute begin among all codes.
    begins: Vec<usize>,
    /// For each query the positions of its codes among all codes.
    queries: Vec<Vec<u32>>,
    weights: Vec<f64>,
    /// For each code the queries that name it.
    named: Vec<Vec<u32>>,
    /// The queries of positive weight.
    positive: Vec<u32>,
}

impl Response {
    /// Queries and their weights; equal queries count as one, with the sum of their weights.
    ///
    /// # Errors
    /// [`Error::NoSuchAttribute`], [`Error::AttributeTwice`] and [`Error::CodeOutOfDomain`] for what is no cell;
    /// [`Error::InvalidParameter`] unless each query has a finite weight.
    pub fn new(cardinalities: Vec<u32>, cells: &[Vec<(usize, u32)>], weights: &[f64]) -> Result<Self> {
        if cells.len() != weights.len() || !weights.iter().all(|weight| weight.is_finite()) {
            return Err(Error::InvalidParameter("each query needs a finite weight".into()));
        }
        let mut begins = vec![0];
        for &size in &cardinalities {
            begins.push(begins[begins.len() - 1] + size as usize);
        }
        if u32::try_from(begins[cardinalities.len()]).is_err() {
            return Err(Error::InvalidParameter("all attributes together have 2^32 codes or more".into()));
        }
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        let (mut queries, mut sums): (Vec<Vec<u32>>, Vec<f64>) = (Vec::new(), Vec::new());
        for (cell, weight) in cells.iter().zip(weights) {
            let codes = positions(cell, &cardinalities, &begins)?;
            let next = queries.len();
            let place = *places.entry(codes.clone()).or_insert(next);
            if place == next {
                queries.push(codes);
                sums.push(0.0);
            }
            sums[place] += weight;
        }
        let mut named = vec![Vec::new(); begins[cardinalities.len()]];
        for (query, codes) in (0u32..).zip(&queries) {
            for &code in codes {
                named[code as usize].push(query);
            }
        }
        let positive = (0u32..).zip(&sums).filter(|(_, weight)| **weight > 0.0).map(|(query, _)| query).collect();
        Ok(Self { cardinalities, begins, queries, weights: sums, named, positive })
    }

    /// How many codes all attributes have together: the length of `costs`.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.named.len()
    }

    /// What a record gains: the weights of the queries that it lies in, less the costs of its codes.
    ///
    /// # Panics
    /// If the record has other attributes.
    #[must_use]
    pub fn gain(&self, record: &[u32], costs: &[f64]) -> f64 {
        let holds = |&code: &u32| self.attribute_has(record, code);
        let weights = self.queries.iter().zip(&self.weights).filter(|(codes, _)| codes.iter().all(holds));
        let cost = |(a, &code): (usize, &u32)| costs.get(self.begins[a] + code as usize).copied().unwrap_or(0.0);
        weights.map(|(_, weight)| weight).sum::<f64>() - record.iter().enumerate().map(cost).sum::<f64>()
    }

    /// The best record that `starts` ascents find, for each of several records with costs of their own.
    ///
    /// Costs of one record are one number for each code of each attribute, attribute after attribute, drawn from an
    /// exponential distribution of mean `scale`; there are none if it is 0.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for no starts, or a scale below 0; [`Error::Interrupted`].
    pub fn records(
        &self,
        records: usize,
        starts: usize,
        scale: f64,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>> {
        if starts == 0 || !(scale >= 0.0 && scale.is_finite()) {
            return Err(Error::InvalidParameter(
                "a response needs at least one start and a scale of at least 0".into(),
            ));
        }
        let one = |record: usize| {
            cancel.check()?;
            let mut random = Random::new([seed, record as u64]);
            let costs = if scale > 0.0 { self.exponential(scale, &mut random) } else { Vec::new() };
            let ascents = (0..starts).into_par_iter().map(|start| {
                let mut random = Random::new([seed, record as u64, start as u64]);
                let found = self.ascend(self.start(&mut random), &costs, &mut random);
                (self.gain(&found, &costs), found)
            });
            let found: Vec<(f64, Vec<u32>)> = ascents.collect();
            // The first of the best.
            let best = found.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
            Ok(best.map(|(_, record)| record).unwrap_or_default())
        };
        (0..records).into_par_iter().with_max_len(1).map(one).collect()
    }

    fn exponential(&self, scale: f64, random: &mut Random) -> Vec<f64> {
        (0..self.codes()).map(|_| -scale * (1.0 - random.unit()).ln()).collect()
    }

    /// A random record, with some queries of positive weight made true.
    fn start(&self, random: &mut Random) -> Vec<u32> {
        let mut record: Vec<u32> = self.cardinalities.iter().map(|&size| random.below_u32(size)).collect();
        if !self.positive.is_empty() {
            for _ in 0..SATISFIED {
                let query = self.positive[random.below(self.positive.len())];
                self.queries[query as usize].iter().for_each(|&code| self.set(&mut record, code));
            }
        }
        record
    }

    /// Set one attribute after another to its best code, until nothing changes.
    fn ascend(&self, mut record: Vec<u32>, costs: &[f64], random: &mut Random) -> Vec<u32> {
        let not_held = |codes: &Vec<u32>| codes.iter().filter(|&&code| !self.attribute_has(&record, code)).count();
        let mut misses: Vec<usize> = self.queries.iter().map(not_held).collect();
        let mut order: Vec<usize> = (0..record.len()).collect();
        random.shuffle(&mut order);
        for _ in 0..MOST_ROUNDS {
            let mut changed = false;
            for &a in &order {
                let now = self.begins[a] + record[a] as usize;
                let gain = |code: usize| {
                    // What a query misses apart from this attribute.
                    let elsewhere = |query: u32| misses[query as usize] - usize::from(code != now);
                    let held = self.named[code].iter().filter(|&&query| elsewhere(query) == 0);
                    let weights: f64 = held.map(|&query| self.weights[query as usize]).sum();
                    weights - costs.get(code).copied().unwrap_or(0.0)
                };
                let (mut best, mut most) = (now, gain(now));
                for code in self.begins[a]..self.begins[a + 1] {
                    let here = gain(code);
                    if here > most {
                        (best, most) = (code, here);
                    }
                }
                if best != now {
                    for &query in &self.named[now] {
                        misses[query as usize] += 1;
                    }
                    for &query in &self.named[best] {
                        misses[query as usize] -= 1;
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "below the cardinality")]
                    let code = (best - self.begins[a]) as u32;
                    record[a] = code;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        record
    }

    fn attribute_of(&self, code: u32) -> usize {
        self.begins.partition_point(|&begin| begin <= code as usize) - 1
    }

    fn attribute_has(&self, record: &[u32], code: u32) -> bool {
        let a = self.attribute_of(code);
        self.begins[a] + record[a] as usize == code as usize
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the cardinality")]
    fn set(&self, record: &mut [u32], code: u32) {
        let a = self.attribute_of(code);
        record[a] = (code as usize - self.begins[a]) as u32;
    }
}

/// The positions of a cell's codes among all codes, in order.
#[expect(clippy::cast_possible_truncation, reason = "checked when the response was made")]
fn positions(cell: &[(usize, u32)], cardinalities: &[u32], begins: &[usize]) -> Result<Vec<u32>> {
    let mut sorted = cell.to_vec();
    sorted.sort_unstable();
    for (i, &(attribute, code)) in sorted.iter().enumerate() {
        let Some(&cardinality) = cardinalities.get(attribute) else {
            return Err(Error::NoSuchAttribute { attribute, attributes: cardinalities.len() });
        };
        if code >= cardinality {
            return Err(Error::CodeOutOfDomain { attribute, cardinality });
        }
        if i > 0 && sorted[i - 1].0 == attribute {
            return Err(Error::AttributeTwice { attribute });
        }
    }
    Ok(sorted.iter().map(|&(attribute, code)| (begins[attribute] + code as usize) as u32).collect())
}
