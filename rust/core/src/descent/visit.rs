//! One visit to one attribute: every record may change its value.
//!
//! The residuals of the attribute's marginals are copied into rows, one row of the attribute's values for each joint
//! value of the others. There are two copies: one exact, and one times weights in 16-bit lanes, which fits the
//! second-level cache. Records come in blocks of 128; windows of blocks, in random order, are treated in two steps:
//!
//! - **Propose**, in parallel over blocks: find the rows of each record; sum its current value over them and skip it
//!   where that is not positive (it is then in no over-full cell; only if that is safe, see [`View::may_skip`], or the
//!   visit is a hasty one);
//!   otherwise sum all values at once by saturating vector additions and take the smallest. Nothing is changed.
//! - **Apply**, in order: compute the gain of each proposal from the exact residuals, and move the record if it is
//!   positive. Proposals that an earlier move of the window made useless are dropped.
//!
//! So 16-bit rounding or saturation can hide a move but never make a wrong one. Every move lowers the loss, and the
//! result is the same for any number of threads.
//! Cost: O(marginals) a record for the skipped, O(marginals * values / 16) for the others; O(marginals) a move.
//!
//! The codes of the next block are fetched ahead: otherwise a visit to one of 80 attributes waits for them. With that, and
//! without a pass of its own for current sums that exclude nothing, a quiet sweep of 100,000 x 80 takes 14 to 20 % less,
//! the first one 4 % (2026-11-19, targets of Prism at epsilon 1); sweeps of 250,000 x 20 take as long as before.
//!
//! A profile of a visit by lines (`perf`, 2026-11-20) had a fifth of the time in the smallest of sixteen sums and in ties,
//! which registers now find without leaving for memory, and a third in moves, whose sums no longer wait for each other.
//! Sampling from releases of Prism, one thread, takes 8 to 34 % less than before, what placing gains not included. What did
//! not help: tables outside and records inside, so that a table stays in the first-level cache (sums in memory cost
//! more than rows from the second level), rows that begin at cache lines, and look-ups of rows in an order that
//! avoids sets of the cache (nothing to 3 %).

use std::sync::Arc;

use rayon::prelude::*;

use super::moments::{Moments, Pulls};
use super::problem::{Incidence, LANES, Marginal, Offsets, View, first_cell};
use super::schedule::strided;
use crate::parallel::Cancel;
use crate::random::{Random, mix};
use crate::simd::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::simd::avx2;
use crate::simd::vectorised;
use crate::table::{Codes, Column};

/// Records whose rows are found at a time.
pub(super) const BLOCK: usize = 128;

/// Records whose sums are kept in registers, side by side, where one register holds all values.
const ABREAST: usize = 8;

/// A weighted residual is limited to this, so that sums of a few do not saturate.
const LIMIT: f32 = 8192.0;

/// The most 16-bit units of a residual of one, at mean weight.
const FINEST: f32 = 16.0;

/// What a visit changes.
pub(super) struct Task {
    pub codes: Codes,
    /// In the order of the view's incidences.
    pub marginals: Vec<Marginal>,
    /// The moments that moves lower too, if there are any.
    pub moments: Option<Moments>,
    pub moves: usize,
}

impl Task {
    /// Total weight of the marginals.
    pub fn weight(&self) -> f64 {
        self.marginals.iter().map(|marginal| marginal.weight).sum()
    }
}

/// How many successive blocks use the same residuals: few if there are few records, so that residuals stay fresh.
pub(super) fn window(blocks: usize) -> usize {
    (blocks / 32).clamp(1, 8)
}

/// How many windows a polish visits: the records of a quarter of them are enough to move what moments need.
pub(super) fn polished(windows: usize) -> usize {
    windows.div_ceil(4)
}

/// What lets a record move.
#[derive(Clone, Copy)]
pub(super) struct Bar {
    /// The gain must exceed the cost of the move so many times.
    pub threshold: f64,
    /// Whether the record must be in over-full cells.
    pub hasty: bool,
}

/// Visit `view`'s attribute once.
pub(super) fn visit(
    view: &View,
    task: &mut Task,
    columns: &[Codes],
    Bar { threshold, hasty }: Bar,
    stream: [u64; 3],
    alone: bool,
    cancel: &Cancel,
) {
    let records = task.codes.column().len();
    let mut working = Working::new(view, &task.marginals, threshold);
    let mut random = Random::new(stream);
    let key = random.bits();
    let blocks = records.div_ceil(BLOCK);
    let window = window(blocks);
    let mut proposals: Vec<Proposals> = (0..window).map(|_| Proposals::default()).collect();
    let windows = blocks.div_ceil(window);
    let visited = if task.moments.is_some() { polished(windows) } else { windows };
    for number in strided(windows, &mut random).take(visited) {
        if cancel.is_cancelled() {
            break;
        }
        if let Some(moments) = &mut task.moments {
            moments.refresh();
        }
        let codes = task.codes.column();
        let may_skip = hasty || view.may_skip;
        let job = Job { view, working: &working, columns, codes, moments: task.moments.as_ref(), may_skip, key };
        let first = number * window;
        let proposals = &mut proposals[..window.min(blocks - first)];
        if alone {
            proposals.par_iter_mut().enumerate().for_each(|(i, found)| job.propose(first + i, found));
        } else {
            for (i, found) in proposals.iter_mut().enumerate() {
                job.propose(first + i, found);
            }
        }
        for found in proposals {
            let degree = view.incidences.len();
            for (&(record, to), rows) in found.moves.iter().zip(found.rows.chunks_exact(degree)) {
                let record = record as usize;
                let from = task.codes.column().code(record);
                let rise = task.moments.as_ref().map_or(0.0, |moments| moments.rise(columns, record, from, to));
                let moved = if view.has_buckets {
                    working.shift_if_better::<true>(rows, from, to, threshold, rise)
                } else {
                    working.shift_if_better::<false>(rows, from, to, threshold, rise)
                };
                if moved {
                    if let Some(moments) = &mut task.moments {
                        moments.shift(columns, record, from, to);
                    }
                    set(&mut task.codes, record, to);
                    task.moves += 1;
                }
            }
        }
    }
    working.write_back(view, &mut task.marginals);
}

/// The copies of the residuals, a row of the attribute's values for each joint value of the others.
struct Working {
    /// Exact, in fixed point; for the codes of one bucket, the first code holds the residual.
    exact: Vec<i32>,
    /// Times weights, rounded.
    lanes: Vec<i16>,
    /// The parameters of each incidence.
    terms: Vec<Term>,
    /// By how much a sum must exceed the smallest to be proposed, in 16-bit units.
    gap: i32,
    /// What a move costs where there are no buckets, in fixed-point units.
    cost: f64,
    /// Fixed-point units of a record.
    one: f64,
    /// 16-bit units of a residual of one record and weight 1.
    scale: f32,
}

/// An incidence as moves need it.
struct Term {
    weight: f64,
    /// Fixed-point units of a record.
    one: i32,
    /// 16-bit units of one fixed-point unit.
    unit: f32,
    buckets: Option<Buckets>,
}

/// The buckets of an attribute's codes.
struct Buckets {
    /// The bucket of each code, and the first code of that bucket.
    of: Arc<[u32]>,
    first: Vec<u32>,
    /// The codes in order of their buckets, and where each bucket starts among them.
    codes: Vec<u32>,
    starts: Vec<usize>,
}

impl Buckets {
    fn new(of: &Arc<[u32]>, size: u32) -> Self {
        let mut codes: Vec<u32> = (0u32..).zip(&**of).map(|(code, _)| code).collect();
        codes.sort_by_key(|&code| of[code as usize]);
        let starts: Vec<usize> =
            (0..=size).map(|bucket| codes.partition_point(|&code| of[code as usize] < bucket)).collect();
        let first = of.iter().map(|&bucket| codes[starts[bucket as usize]]).collect();
        Self { of: Arc::clone(of), first, codes, starts }
    }

    /// Write a lane for every code in the bucket of `code`.
    #[inline]
    fn fill(&self, row: &mut [i16], code: u32, lane: i16) {
        let bucket = self.of[code as usize] as usize;
        let codes = &self.codes[self.starts[bucket]..self.starts[bucket + 1]];
        let [first, last] = [codes[0], codes[codes.len() - 1]].map(|code| code as usize);
        if last - first < codes.len() {
            row[first..=last].fill(lane);
        } else {
            for &other in codes {
                row[other as usize] = lane;
            }
        }
    }
}

impl Term {
    fn new(incidence: &Incidence, marginal: &Marginal, unit: f32) -> Self {
        let axis = &marginal.query.axes()[incidence.axis];
        let buckets = axis.buckets.as_ref().map(|of| Buckets::new(of, axis.size));
        Self { weight: marginal.weight, one: marginal.one, unit, buckets }
    }

    /// Where in a row the exact residual of a code is. Buckets are looked at only if `BUCKETS`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "moves spend their time here")]
    fn place<const BUCKETS: bool>(&self, code: u32) -> u32 {
        match &self.buckets {
            Some(buckets) if BUCKETS => buckets.first[code as usize],
            _ => code,
        }
    }
}

impl Working {
    fn new(view: &View, marginals: &[Marginal], threshold: f64) -> Self {
        let units = units(marginals);
        let triples = view.incidences.iter().zip(marginals).zip(&units);
        let terms: Vec<Term> = triples.map(|((i, marginal), &unit)| Term::new(i, marginal, unit)).collect();
        let mut exact = vec![0; view.length];
        let mut lanes = vec![i16::MAX; view.length];
        let row = view.row();
        for ((incidence, marginal), &unit) in view.incidences.iter().zip(marginals).zip(&units) {
            let stride = marginal.strides[incidence.axis];
            let range = incidence.first..incidence.first + incidence.rows * row;
            let rows = exact[range.clone()].chunks_exact_mut(row).zip(lanes[range].chunks_exact_mut(row));
            for (r, (exact, lanes)) in rows.enumerate() {
                let cells = &marginal.residual[first_cell(marginal, incidence.axis, r)..];
                let exact = &mut exact[..view.cardinality];
                match &marginal.query.axes()[incidence.axis].buckets {
                    None => exact.iter_mut().zip(cells.iter().step_by(stride)).for_each(|(to, &from)| *to = from),
                    Some(of) => exact.iter_mut().zip(&**of).for_each(|(to, &b)| *to = cells[b as usize * stride]),
                }
                lanes.iter_mut().zip(exact).for_each(|(lane, residual)| *lane = quantise(*residual, unit));
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let in_units = |weight: f64| (threshold * weight).clamp(0.0, f64::from(LIMIT)).floor() as i16;
        let whole = |term: &Term| f64::from(term.unit) * f64::from(term.one);
        if let Some(first) = view.penalty {
            for (from, lanes) in (0u32..).zip(lanes[first..].chunks_exact_mut(row)) {
                for (to, lane) in (0u32..).zip(&mut lanes[..view.cardinality]) {
                    let changes = terms.iter().filter(|term| term.place::<true>(from) != term.place::<true>(to));
                    *lane = in_units(changes.map(whole).sum());
                }
            }
        }
        let gap = if view.has_buckets { 0 } else { in_units(terms.iter().map(whole).sum()).into() };
        let first = &terms[0];
        let one = f64::from(first.one);
        #[expect(clippy::cast_possible_truncation, reason = "an approximation")]
        let scale = (f64::from(first.unit) * one / first.weight) as f32;
        let cost = terms.iter().map(|term| term.weight * f64::from(term.one)).sum();
        Self { exact, lanes, terms, gap, cost, one, scale }
    }

    /// Write the residuals back to the marginals.
    fn write_back(&self, view: &View, marginals: &mut [Marginal]) {
        let row = view.row();
        for ((incidence, marginal), term) in view.incidences.iter().zip(marginals).zip(&self.terms) {
            let stride = marginal.strides[incidence.axis];
            for (r, exact) in self.exact[incidence.first..].chunks_exact(row).take(incidence.rows).enumerate() {
                let first = first_cell(marginal, incidence.axis, r);
                let cells = marginal.residual[first..].iter_mut().step_by(stride);
                match &term.buckets {
                    None => cells.zip(&exact[..view.cardinality]).for_each(|(to, &from)| *to = from),
                    Some(buckets) => {
                        for (to, codes) in cells.zip(buckets.starts.windows(2)) {
                            if let Some(&code) = buckets.codes[codes[0]..codes[1]].first() {
                                *to = exact[code as usize];
                            }
                        }
                    }
                }
            }
        }
    }

    /// Move a record with these rows from one code to another if the exact loss falls, by more than moments raise it;
    /// returns whether it moved.
    #[inline]
    fn shift_if_better<const BUCKETS: bool>(
        &mut self,
        rows: &[u32],
        from: u32,
        to: u32,
        threshold: f64,
        rise: f64,
    ) -> bool {
        // Several sums, since each waits for its last addition.
        let (mut gains, mut cost) = ([-rise * self.one, 0.0, 0.0, 0.0], if BUCKETS { 0.0 } else { self.cost });
        for (terms, rows) in self.terms.chunks(gains.len()).zip(rows.chunks(gains.len())) {
            for ((gain, term), &start) in gains.iter_mut().zip(terms).zip(rows) {
                let places = [from, to].map(|code| term.place::<BUCKETS>(code));
                let [old, new] = places.map(|place| f64::from(self.exact[(start + place) as usize]));
                *gain += term.weight * (old - new);
                if BUCKETS {
                    cost += if places[0] == places[1] { 0.0 } else { term.weight * f64::from(term.one) };
                }
            }
        }
        let better = gains.iter().sum::<f64>() > threshold * cost;
        if better {
            self.shift::<BUCKETS>(rows, from, to);
        }
        better
    }

    #[inline]
    fn shift<const BUCKETS: bool>(&mut self, rows: &[u32], from: u32, to: u32) {
        for (term, &start) in self.terms.iter().zip(rows) {
            let places = [from, to].map(|code| term.place::<BUCKETS>(code));
            if BUCKETS && places[0] == places[1] {
                continue;
            }
            for ((place, code), change) in places.into_iter().zip([from, to]).zip([-term.one, term.one]) {
                let residual = &mut self.exact[(start + place) as usize];
                *residual += change;
                let lane = quantise(*residual, term.unit);
                match &term.buckets {
                    Some(buckets) if BUCKETS => buckets.fill(&mut self.lanes[start as usize..], code, lane),
                    _ => self.lanes[(start + code) as usize] = lane,
                }
            }
        }
    }
}

/// 16-bit units of one fixed-point unit in each marginal: as fine as sums without saturation allow, within limits; for
/// marginals of equal weight one record is a power of two, and whole numbers are summed exactly.
fn units(marginals: &[Marginal]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "weights are ratios")]
    let weights: Vec<f32> = marginals.iter().map(|marginal| marginal.weight as f32).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few marginals, powers of two, and a bound")]
    let per_unit = {
        let mean = weights.iter().sum::<f32>() / weights.len() as f32;
        let largest = |marginal: &Marginal| {
            let largest = marginal.residual.iter().fold(0, |most, residual| most.max(residual.unsigned_abs()));
            largest as f32 / marginal.one as f32
        };
        let reach: f32 = marginals.iter().zip(&weights).map(|(marginal, w)| w / mean * largest(marginal)).sum();
        let mut record = FINEST;
        while record > 1.0 && record * reach > LIMIT {
            record /= 2.0;
        }
        move |marginal: &Marginal, weight: f32| weight / mean * (record / marginal.one as f32)
    };
    marginals.iter().zip(weights).map(|(marginal, weight)| per_unit(marginal, weight)).collect()
}

#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "clamped; an approximation")]
fn quantise(residual: i32, unit: f32) -> i16 {
    // Added to 1.5 * 2^23, a number is rounded to a whole one, which the last bits then hold.
    const ROUND: f32 = 12_582_912.0;
    ((residual as f32 * unit).clamp(-LIMIT, LIMIT) + ROUND).to_bits() as i16
}

/// The data that proposing reads.
struct Job<'a> {
    view: &'a View,
    working: &'a Working,
    columns: &'a [Codes],
    codes: Column<'a>,
    moments: Option<&'a Moments>,
    may_skip: bool,
    key: u64,
}

/// Moves to try in one block.
#[derive(Default)]
struct Proposals {
    /// Record and value.
    moves: Vec<(u32, u32)>,
    /// Where the rows of each of them start in the working copy.
    rows: Vec<u32>,
    /// The same for all records of the block, incidence by incidence.
    scratch: Vec<[u32; BLOCK]>,
    /// What moments add for the records of the block.
    pulls: Pulls,
}

impl Proposals {
    #[inline]
    fn add(&mut self, record: usize, k: usize, to: usize, degree: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^31 records, and a cardinality")]
        self.moves.push((record as u32, to as u32));
        self.rows.extend(self.scratch[..degree].iter().map(|rows| rows[k]));
    }
}

impl Job<'_> {
    fn propose(&self, block: usize, found: &mut Proposals) {
        found.moves.clear();
        found.rows.clear();
        if let Some(moments) = self.moments {
            return propose_by_moments(self, moments, block, found);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature the function is compiled for was just detected.
            return unsafe { propose_avx2(self, block, found) };
        }
        self.propose_with::<[i16; 4], [i16; 8], [i16; LANES]>(block, found);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_with<L4: Lanes, L8: Lanes, L16: Lanes>(&self, block: usize, found: &mut Proposals) {
        let vectors = self.view.width / LANES;
        match vectors {
            _ if self.view.width == L4::COUNT => self.propose_short::<L4>(block, found),
            _ if self.view.width == L8::COUNT => self.propose_short::<L8>(block, found),
            1 => self.propose_short::<L16>(block, found),
            2 => self.propose_long::<L16, 2>(block, found),
            3 => self.propose_long::<L16, 3>(block, found),
            4 => self.propose_long::<L16, 4>(block, found),
            5 => self.propose_long::<L16, 5>(block, found),
            6 => self.propose_long::<L16, 6>(block, found),
            7 => self.propose_long::<L16, 7>(block, found),
            8 => self.propose_long::<L16, 8>(block, found),
            _ => unreachable!("rows of one to eight vectors, or pieces of them"),
        }
    }

    /// Proposals where a row is one vector: all values of some records are summed side by side in registers.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_short<L: Lanes>(&self, block: usize, found: &mut Proposals) {
        let start = block * BLOCK;
        let length = BLOCK.min(self.codes.len() - start);
        let own = self.find_rows(start, length, &mut found.scratch);
        let lanes = &self.working.lanes[..];
        let floor = if self.may_skip { 0 } else { i32::MIN };
        for first in (0..length).step_by(ABREAST) {
            let mut sums = [L::ZERO; ABREAST];
            for rows in &found.scratch {
                for (sum, &row) in sums.iter_mut().zip(&rows[first..first + ABREAST]) {
                    *sum = sum.saturating_add(L::load(&lanes[row as usize..]));
                }
            }
            for (k, sums) in (first..length).zip(sums) {
                let current = i32::from(sums.array().as_ref()[own[k] as usize]);
                let smallest = sums.smallest();
                if current > floor && i32::from(smallest) < current - self.working.gap {
                    // Lanes without a value hold the largest number, and are never the smallest below the current one.
                    let to = Ties::new(self.key, start + k, 1).lane([sums], smallest);
                    found.add(start + k, k, to, self.view.incidences.len());
                }
            }
        }
    }

    /// Proposals where rows are longer. Where records may be skipped, or a row has pieces, the current value is summed
    /// first.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_long<L: Lanes, const VECTORS: usize>(&self, block: usize, found: &mut Proposals) {
        let start = block * BLOCK;
        let length = BLOCK.min(self.codes.len() - start);
        let own = self.find_rows(start, length, &mut found.scratch);
        let lanes = &self.working.lanes[..];
        let mut candidates: [u8; BLOCK] = std::array::from_fn(|k| u8::try_from(k).unwrap_or(0));
        let (mut count, mut current) = (length, None);
        if self.may_skip || self.view.pieces > 1 {
            let mut sums = [0i32; BLOCK];
            for rows in &found.scratch {
                for ((sum, &row), &code) in sums.iter_mut().zip(rows).zip(&own) {
                    *sum += i32::from(lanes[(row + code) as usize]);
                }
            }
            let floor = if self.may_skip { 0 } else { i32::MIN };
            count = 0;
            for (k, &sum) in (0u8..).zip(&sums[..length]) {
                candidates[count % BLOCK] = k;
                count += usize::from(sum > floor);
            }
            current = Some(sums);
        }
        for &k in &candidates[..count] {
            let k = usize::from(k % 128);
            let current = current.as_ref().map(|sums| sums[k]);
            if let Some(to) = self.best::<L, VECTORS>(&found.scratch, k, own[k], current, start + k) {
                found.add(start + k, k, to, self.view.incidences.len());
            }
        }
    }

    /// Fill the rows of a block, and return its codes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn find_rows(&self, start: usize, length: usize, scratch: &mut Vec<[u32; BLOCK]>) -> [u32; BLOCK] {
        let mut own = [0u32; BLOCK];
        Offsets::Factor(1).add(self.codes, start, &mut own[..length]);
        scratch.clear();
        #[expect(clippy::cast_possible_truncation, reason = "working copies have fewer than 2^32 lanes")]
        for incidence in &self.view.incidences {
            let mut rows = [incidence.first as u32; BLOCK];
            for (attribute, offsets) in &incidence.others {
                let column = self.columns[*attribute].column();
                offsets.add(column, start, &mut rows[..length]);
                column.prefetch(start + BLOCK);
            }
            scratch.push(rows);
        }
        if let Some(first) = self.view.penalty {
            #[expect(clippy::cast_possible_truncation, reason = "working copies have fewer than 2^32 lanes")]
            let (first, row) = (first as u32, self.view.row() as u32);
            scratch.push(own.map(|code| first + code * row));
        }
        own
    }

    /// The value with the smallest sum, if it is smaller than the current one by more than the gap. Rows of one piece
    /// tell the current sum, too.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn best<L: Lanes, const VECTORS: usize>(
        &self,
        rows: &[[u32; BLOCK]],
        k: usize,
        own: u32,
        current: Option<i32>,
        record: usize,
    ) -> Option<usize> {
        let ties = Ties::new(self.key, record, self.view.pieces);
        let mut best = None;
        let mut least = current.map(|current| current - self.working.gap);
        for i in 0..self.view.pieces {
            let piece = ties.piece(i) * VECTORS * LANES;
            let mut sums = [L::ZERO; VECTORS];
            for rows in rows {
                let first = rows[k] as usize + piece;
                let row = self.working.lanes[first..first + VECTORS * LANES].chunks_exact(LANES);
                for (sum, lanes) in sums.iter_mut().zip(row) {
                    *sum = sum.saturating_add(L::load(lanes));
                }
            }
            let smallest = sums.iter().fold(L::MAX, |least, &sum| least.min(sum)).smallest();
            let own = own as usize;
            let most = least.unwrap_or_else(|| {
                i32::from(sums[own / LANES % VECTORS].array().as_ref()[own % LANES]) - self.working.gap
            });
            if i32::from(smallest) < most {
                least = Some(smallest.into());
                best = Some(piece + ties.lane(sums, smallest));
            }
        }
        best.filter(|&to| to < self.view.cardinality)
    }
}

vectorised! {
    /// Proposals where moments add to the sums.
    ///
    /// A record is skipped unless its current sum, and all that its moments could gain, exceed what a move must gain.
    fn propose_by_moments(job: &Job<'_>, moments: &Moments, block: usize, found: &mut Proposals) {
        let start = block * BLOCK;
        let length = BLOCK.min(job.codes.len() - start);
        let own = job.find_rows(start, length, &mut found.scratch);
        moments.pulls(job.columns, start, length, job.working.scale, &mut found.pulls);
        let view = job.view;
        let mut lanes = vec![0i16; view.row()];
        let mut sums = vec![0f32; view.row()];
        let mut current = [0i32; BLOCK];
        for rows in &found.scratch {
            for ((sum, &row), &code) in current.iter_mut().zip(rows).zip(&own) {
                *sum += i32::from(job.working.lanes[(row + code) as usize]);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a few thousand units at most")]
        let (gap, mut hopes) = (job.working.gap as f32, current.map(|sum| sum as f32));
        for [pulls, stiffnesses] in &found.pulls {
            for ((hope, pull), stiffness) in hopes.iter_mut().zip(pulls).zip(stiffnesses) {
                *hope += if *stiffness > 0.0 { pull * pull / (4.0 * stiffness) } else { 0.0 };
            }
        }
        for k in (0..length).filter(|&k| hopes[k] > gap) {
            lanes.fill(0);
            for rows in &found.scratch {
                let row = &job.working.lanes[rows[k] as usize..][..view.row()];
                lanes.iter_mut().zip(row).for_each(|(sum, &lane)| *sum = sum.saturating_add(lane));
            }
            sums.iter_mut().zip(&lanes).for_each(|(sum, &lane)| *sum = f32::from(lane));
            let code = own[k] as usize;
            for (shape, [pull, stiffness]) in moments.shapes().iter().zip(&found.pulls) {
                let (at, pull, stiffness) = (shape[code], pull[k], stiffness[k]);
                for (sum, z) in sums.iter_mut().zip(shape) {
                    let change = z - at;
                    *sum += change * (pull + stiffness * change);
                }
            }
            let most = sums[code] - gap;
            let values = &sums[..view.cardinality];
            let mut least = [f32::MAX; 8];
            let eights = values.chunks_exact(8);
            let few = eights.remainder();
            for eight in eights {
                for (least, &sum) in least.iter_mut().zip(eight) {
                    *least = if sum < *least { sum } else { *least };
                }
            }
            let smallest = least.iter().chain(few).fold(f32::MAX, |least, &sum| least.min(sum));
            if smallest < most {
                let to = Ties::new(job.key, start + k, view.pieces).first(values, smallest);
                found.add(start + k, k, to, view.incidences.len());
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn propose_avx2(job: &Job<'_>, block: usize, found: &mut Proposals) {
    job.propose_with::<avx2::Four, avx2::Eight, avx2::Sixteen>(block, found);
}

/// Breaks ties between equally good values: a different order for every record, so that no value is favoured.
#[derive(Clone, Copy)]
pub(super) struct Ties {
    rotation: usize,
    pieces: usize,
    flip: u16,
}

impl Ties {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "bits of a hash")]
    pub fn new(key: u64, record: usize, pieces: usize) -> Self {
        let bits = mix(key.wrapping_add(record as u64));
        let rotation = if pieces == 1 { 0 } else { (bits >> 32) as usize % pieces };
        Self { rotation, pieces, flip: bits as u16 & 127 }
    }

    /// The piece at position `i` of the order.
    #[inline]
    fn piece(self, i: usize) -> usize {
        let piece = self.rotation + i;
        if piece >= self.pieces { piece - self.pieces } else { piece }
    }

    /// The lane of the sum `wanted` that comes first.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    #[expect(clippy::cast_possible_truncation, reason = "at most 128 lanes")]
    fn lane<L: Lanes, const N: usize>(self, sums: [L; N], wanted: i16) -> usize {
        let mut first = u16::MAX;
        for (i, sums) in sums.into_iter().enumerate() {
            first = first.min(sums.rank(wanted, (i * L::COUNT) as u16, self.flip));
        }
        (first ^ self.flip).into()
    }

    /// The first value whose sum is `wanted`, from a different one on for every record.
    #[inline]
    fn first(self, sums: &[f32], wanted: f32) -> usize {
        let from = usize::from(self.flip) % sums.len();
        let (before, after) = sums.split_at(from);
        #[expect(clippy::float_cmp, reason = "it is one of them")]
        let is = |sum: &f32| *sum == wanted;
        let found = after.iter().position(is).map(|place| place + from);
        found.or_else(|| before.iter().position(is)).expect("it is one of them")
    }

    /// The rank of a value among equals where moments count.
    #[cfg(test)]
    pub fn turn(self, value: usize, values: usize) -> usize {
        (value + values - usize::from(self.flip) % values) % values
    }

    /// The rank of a value among equals; the oracle's form of the above.
    #[cfg(test)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 128 lanes")]
    pub fn rank(self, value: usize, width: usize) -> (usize, u16) {
        let piece = (value / width + self.pieces - self.rotation) % self.pieces;
        (piece, (value % width) as u16 ^ self.flip)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the type was chosen for the cardinality")]
fn set(codes: &mut Codes, record: usize, code: u32) {
    match codes {
        Codes::U8(codes) => codes[record] = code as u8,
        Codes::U16(codes) => codes[record] = code as u16,
        Codes::U32(codes) => codes[record] = code,
    }
}
