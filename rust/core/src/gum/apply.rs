//! Count a marginal over the records and carry out a plan: the two passes over all records in a visit.
//!
//! Records are rows with a **weight**: how many copies of the row there are. The weights add up to n, and a row of
//! weight 0 is free. A duplication is then one addition, not a copy of a hundred columns in different places in memory.
//! A row is copied only where one of several copies is rewritten; all such rows are copied at once, column by column.
//! To make that rare, freed records without further copies are rewritten, and the others are removed, as far as the
//! plan has both.
//!
//! Which records of a cell are freed, or copied, is drawn by systematic sampling over the cell's records in row order:
//! with `q` of `N` wanted, records number `floor((k * N + t) / q)` for a random `t < N`: each with the same chance
//! `q / N`. It takes one counter a cell, "records to skip until the next one", so the pass costs little more than
//! counting. Even and odd rows are sampled separately, each with its share of `q`: otherwise a hot cell's counter would
//! wait for itself.
//! Cost: O(records * (1 + attributes / 16) + moves) for each of both passes; O(cells) memory.
//! One thread: a visit takes a millisecond or so, and splitting it would double the tables that it needs.

use super::Marginal;
use super::plan::Plan;
use crate::count::histogram::{NARROW_CELLS, NarrowAxes};
use crate::parallel::Cancel;
use crate::random::Random;
use crate::simd::vectorised;
use crate::table::{Codes, Column};

/// Records whose cell numbers are computed at a time.
const CHUNK: usize = 2048;

/// Copies of the counters: neighbouring records count into different ones.
const LANES: usize = 4;

/// Rows are sampled in this many classes, by row number.
const CLASSES: usize = 2;

/// Counts of a marginal's cells, and among the rows of each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Over all rows.
    pub all: Vec<u32>,
    /// Over the even rows.
    even: Vec<u32>,
}

/// A lane starts this much further than its counters need, so that a cell's copies do not share a cache set.
const LANE_LENGTH: usize = NARROW_CELLS + 272;

/// The records: codes column by column, and the number of copies of each row.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Codes of each attribute.
    pub columns: Vec<Codes>,
    /// Copies of each row.
    pub weights: Vec<u8>,
    /// Where the search for free rows continues.
    cursor: usize,
}

/// Buffers that visits reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    lanes: Vec<u32>,
    sites: Vec<[Site; CLASSES]>,
}

/// The state of one cell's systematic sample: the next record is `stride` or `stride + 1` further.
#[derive(Debug, Clone, Copy, Default)]
struct Site {
    stride: u32,
    rest: u32,
    quota: u32,
    error: u32,
    left: u32,
    /// Place in the list of fates; `COPY` where records are copied.
    fate: u32,
    /// How many of the records still to be freed are rewritten.
    rewrite: u32,
}

const COPY: u32 = u32::MAX;

/// Records to skip if none is wanted: more than exist.
const NEVER: u32 = u32::MAX;

impl Site {
    /// A sample of `quota` of `count` records; with it the number of records before the first.
    fn new(quota: u32, count: u32, random: &mut Random, fate: u32, rewrite: u32) -> (Self, u32) {
        if quota == 0 {
            return (Self::default(), NEVER);
        }
        let t = random.below_u32(count);
        let (stride, rest, error) = (count / quota, count % quota, t % quota);
        (Self { stride, rest, quota, error, left: quota, fate, rewrite }, t / quota)
    }

    /// Records from this one to the next of the sample.
    fn advance(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            return NEVER;
        }
        self.error += self.rest;
        let carry = self.error >= self.quota;
        self.error -= if carry { self.quota } else { 0 };
        self.stride + u32::from(carry)
    }
}

/// The work that a pass over the records leaves.
#[derive(Debug, Default)]
struct Moves {
    /// Row and cell: a record freed there is rewritten to the cell.
    rewrite: Vec<(u32, u32)>,
    /// Rows that should have more copies than a weight can hold.
    spill: Vec<u32>,
    /// Rows whose last copy was removed.
    vacated: Vec<u32>,
}

impl Rows {
    /// Rows of one copy each.
    #[must_use]
    pub fn new(columns: Vec<Codes>, records: usize) -> Self {
        Self { columns, weights: vec![1; records], cursor: 0 }
    }

    /// Number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.weights.len()
    }

    /// Count the cells of a marginal. After a cancel the counts are useless.
    ///
    /// # Panics
    /// If there are 2^32 rows or more.
    #[must_use]
    pub fn count(&self, marginal: &Marginal, scratch: &mut Scratch, cancel: &Cancel) -> Counts {
        const CANCEL_CHECK: usize = 1 << 22;
        if marginal.attributes.is_empty() {
            let records = u32::try_from(self.records()).expect("fewer than 2^31 rows");
            return Counts { all: vec![records], even: vec![0] };
        }
        let mut counts = Counts { all: vec![0; marginal.cells()], even: vec![0; marginal.cells()] };
        for start in (0..self.records()).step_by(CANCEL_CHECK) {
            if cancel.is_cancelled() {
                break;
            }
            let range = start..self.records().min(start + CANCEL_CHECK);
            let columns = self.columns_of(marginal, range.clone());
            let weights = &self.weights[range];
            if marginal.cells() <= NARROW_CELLS {
                count_narrow(&columns, &marginal.strides, weights, &mut counts, &mut scratch.lanes);
            } else {
                count_wide(&columns, &marginal.strides, weights, &mut counts);
            }
        }
        counts
    }

    /// Carry out a plan made from `counts`.
    pub fn apply(
        &mut self,
        marginal: &Marginal,
        counts: &Counts,
        plan: &Plan,
        random: &mut Random,
        scratch: &mut Scratch,
    ) {
        if plan.is_empty() {
            return;
        }
        scratch.prepare(counts, plan, random);
        let moves = self.select(marginal, plan, scratch);
        self.rewrite(marginal, plan, moves);
    }

    /// The records one by one: no row of weight 0, none above 1.
    pub fn unfold(&mut self) {
        let weights = self.weights.clone();
        let heavy = (0u32..).zip(&weights).filter(|&(_, &weight)| weight > 1);
        let sources: Vec<u32> = heavy.flat_map(|(row, &w)| std::iter::repeat_n(row, usize::from(w) - 1)).collect();
        self.copy_rows(&sources);
        self.weights.fill(1);
    }

    fn columns_of(&self, marginal: &Marginal, range: std::ops::Range<usize>) -> Vec<Column<'_>> {
        marginal.attributes.iter().map(|&a| self.columns[a].column().slice(range.clone())).collect()
    }

    fn select(&mut self, marginal: &Marginal, plan: &Plan, scratch: &mut Scratch) -> Moves {
        let mut weights = std::mem::take(&mut self.weights);
        let columns = self.columns_of(marginal, 0..weights.len());
        let mut moves = Moves::default();
        let (skips, sites, fates) = (&mut scratch.lanes[..], &mut scratch.sites[..], &plan.fates[..]);
        if marginal.cells() <= NARROW_CELLS {
            select_narrow(&columns, &marginal.strides, &mut weights, skips, sites, fates, &mut moves);
        } else {
            let skips = &mut skips[..CLASSES * marginal.cells()];
            select_wide(&columns, &marginal.strides, &mut weights, skips, sites, fates, &mut moves);
        }
        self.weights = weights;
        moves
    }

    fn rewrite(&mut self, marginal: &Marginal, plan: &Plan, mut moves: Moves) {
        // Rows without a copy left are rewritten in place, before they are taken for free rows.
        let (mut in_place, mut split) = (Vec::with_capacity(moves.rewrite.len()), Vec::new());
        for &(row, cell) in &moves.rewrite {
            let weight = &mut self.weights[row as usize];
            if *weight == 0 {
                *weight = 1;
                in_place.push((row, cell));
            } else {
                split.push((row, cell));
            }
        }
        if plan.any_record {
            // Any other freed record would do as well: one whose row is free now needs no copy.
            moves.vacated.retain(|&row| self.weights[row as usize] == 0);
            moves.vacated.truncate(split.len());
            let kept = split.split_off(moves.vacated.len());
            for (&row, (_, cell)) in moves.vacated.iter().zip(std::mem::replace(&mut split, kept)) {
                self.weights[row as usize] = 1;
                in_place.push((row, cell));
            }
        }
        let sources: Vec<u32> = split.iter().map(|&(row, _)| row).chain(moves.spill.iter().copied()).collect();
        let rooms = self.copy_rows(&sources);
        in_place.extend(rooms.iter().zip(&split).map(|(&room, &(_, cell))| (room, cell)));
        for (axis, &attribute) in marginal.attributes.iter().enumerate() {
            let (stride, size) = (marginal.stride(axis), marginal.shape[axis]);
            let code = |cell: u32| cell / stride % size;
            #[expect(clippy::cast_possible_truncation, reason = "codes fit the type of their column")]
            match &mut self.columns[attribute] {
                Codes::U8(codes) => in_place.iter().for_each(|&(row, cell)| codes[row as usize] = code(cell) as u8),
                Codes::U16(codes) => in_place.iter().for_each(|&(row, cell)| codes[row as usize] = code(cell) as u16),
                Codes::U32(codes) => in_place.iter().for_each(|&(row, cell)| codes[row as usize] = code(cell)),
            }
        }
    }

    /// Copy rows into free rows, each with weight 1; returns their positions.
    fn copy_rows(&mut self, sources: &[u32]) -> Vec<u32> {
        let rooms: Vec<u32> = sources.iter().map(|_| self.take_room()).collect();
        if sources.is_empty() {
            return rooms;
        }
        for column in &mut self.columns {
            match column {
                Codes::U8(codes) => copy_codes(codes, sources, &rooms),
                Codes::U16(codes) => copy_codes(codes, sources, &rooms),
                Codes::U32(codes) => copy_codes(codes, sources, &rooms),
            }
        }
        rooms
    }

    /// A row of weight 0, set to weight 1. One exists: otherwise all weights would be 1 and no row would need a free
    /// one.
    fn take_room(&mut self) -> u32 {
        let is_free = |weight: &u8| *weight == 0;
        let behind = self.weights[self.cursor..].iter().position(is_free).map(|i| self.cursor + i);
        let row = behind.or_else(|| self.weights.iter().position(is_free)).expect("as many free rows as extra copies");
        self.weights[row] = 1;
        self.cursor = row;
        u32::try_from(row).expect("fewer than 2^31 rows")
    }
}

fn copy_codes<C: Copy>(codes: &mut [C], sources: &[u32], rooms: &[u32]) {
    for (&source, &room) in sources.iter().zip(rooms) {
        codes[room as usize] = codes[source as usize];
    }
}

impl Scratch {
    /// Set up the samples of all cells that take part.
    fn prepare(&mut self, counts: &Counts, plan: &Plan, random: &mut Random) {
        let cells = counts.all.len();
        self.lanes.resize(self.lanes.len().max(CLASSES * cells.max(NARROW_CELLS)), 0);
        self.sites.resize(self.sites.len().max(cells), [Site::default(); CLASSES]);
        let (even_skips, odd_skips) = self.lanes.split_at_mut(cells.max(NARROW_CELLS));
        let mut fate = 0;
        for (cell, (&count, &even)) in counts.all.iter().zip(&counts.even).enumerate() {
            let (freed, copies, rewrite) = (plan.remove[cell], plan.duplicate[cell], plan.rewrite[cell]);
            let quota = freed.max(copies);
            if quota == 0 {
                (even_skips[cell], odd_skips[cell]) = (NEVER, NEVER);
                continue;
            }
            let start = if freed == 0 { COPY } else { fate };
            fate += rewrite;
            // Both classes get their shares of the quota and of the rewritten records, right on average.
            let share = split(quota, even, count, random);
            let rewritten = split(rewrite, share, quota, random);
            let [even_site, odd_site] = &mut self.sites[cell];
            (*even_site, even_skips[cell]) = Site::new(share, even, random, start, rewritten);
            let start = if freed == 0 { COPY } else { start + rewritten };
            (*odd_site, odd_skips[cell]) = Site::new(quota - share, count - even, random, start, rewrite - rewritten);
        }
    }
}

/// `amount * part / whole`, rounded at random to be right on average.
fn split(amount: u32, part: u32, whole: u32, random: &mut Random) -> u32 {
    let product = u64::from(amount) * u64::from(part) + u64::from(random.below_u32(whole));
    u32::try_from(product / u64::from(whole)).expect("at most the amount")
}

/// Skip a row, or act on it if the sample of its cell selects one of its copies.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the body of the pass")]
fn visit<const CLASS: usize>(
    row: usize,
    weight: &mut u8,
    skip: &mut u32,
    cell: usize,
    sites: &mut [[Site; CLASSES]],
    fates: &[u32],
    moves: &mut Moves,
) {
    let copies = u32::from(*weight);
    if *skip < copies {
        hit(row, weight, skip, &mut sites[cell][CLASS], fates, moves);
    } else {
        *skip -= copies;
    }
}

/// Act on a sampled row: free or duplicate as many of its copies as the sample selects.
#[inline(never)]
fn hit(row: usize, weight: &mut u8, skip: &mut u32, site: &mut Site, fates: &[u32], moves: &mut Moves) {
    let copies = u32::from(*weight);
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^31 rows")]
    let row = row as u32;
    let mut next = *skip;
    while next < copies {
        if site.fate == COPY {
            if *weight == u8::MAX {
                moves.spill.push(row);
            } else {
                *weight += 1;
            }
        } else {
            *weight -= 1;
            // Rewrite the last copy if any is to be rewritten; another one only if all that are left must be.
            if site.rewrite == site.left || (site.rewrite > 0 && *weight == 0) {
                moves.rewrite.push((row, fates[site.fate as usize]));
                site.fate += 1;
                site.rewrite -= 1;
            } else if *weight == 0 {
                moves.vacated.push(row);
            }
        }
        next = next.saturating_add(site.advance());
    }
    *skip = next.saturating_sub(copies);
}

vectorised! {
    fn count_narrow(columns: &[Column<'_>], strides: &[usize], weights: &[u8], counts: &mut Counts, lanes: &mut Vec<u32>) {
        let axes = NarrowAxes::new(columns, strides);
        lanes.resize(lanes.len().max(LANES * LANE_LENGTH), 0);
        let mut numbers = [0; CHUNK];
        let (cells, mut rest) = (counts.all.len(), &mut lanes[..]);
        let mut lanes: [&mut [u32; NARROW_CELLS]; LANES] = std::array::from_fn(|_| {
            let (lane, others) = std::mem::take(&mut rest).split_at_mut(LANE_LENGTH);
            rest = others;
            lane[..cells].fill(0);
            lane.first_chunk_mut().expect("longer than its counters")
        });
        for (chunk, weights) in weights.chunks(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            axes.number(chunk * CHUNK, numbers);
            let (groups, others) = numbers.as_chunks::<LANES>();
            let (weights, other_weights) = weights.as_chunks::<LANES>();
            for (group, weights) in groups.iter().zip(weights) {
                for ((lane, &number), &weight) in lanes.iter_mut().zip(group).zip(weights) {
                    lane[usize::from(number)] += u32::from(weight);
                }
            }
            for ((lane, &number), &weight) in lanes.iter_mut().zip(others).zip(other_weights) {
                lane[usize::from(number)] += u32::from(weight);
            }
        }
        let [a, b, c, d] = lanes;
        for cell in 0..cells {
            counts.even[cell] += a[cell] + c[cell];
            counts.all[cell] += a[cell] + b[cell] + c[cell] + d[cell];
        }
    }
}

vectorised! {
    fn count_wide(columns: &[Column<'_>], strides: &[usize], weights: &[u8], counts: &mut Counts) {
        let mut numbers = [0; CHUNK];
        for (chunk, weights) in weights.chunks(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            number_wide(columns, strides, chunk * CHUNK, numbers);
            for (row, (&number, &weight)) in numbers.iter().zip(weights).enumerate() {
                counts.all[number as usize] += u32::from(weight);
                counts.even[number as usize] += if row % CLASSES == 0 { u32::from(weight) } else { 0 };
            }
        }
    }
}

vectorised! {
    fn select_narrow(
        columns: &[Column<'_>],
        strides: &[usize],
        weights: &mut [u8],
        skips: &mut [u32],
        sites: &mut [[Site; CLASSES]],
        fates: &[u32],
        moves: &mut Moves,
    ) {
        let axes = NarrowAxes::new(columns, strides);
        let (even, odd) = skips.split_at_mut(NARROW_CELLS);
        let even: &mut [u32; NARROW_CELLS] = even.first_chunk_mut().expect("at least so many");
        let odd: &mut [u32; NARROW_CELLS] = odd.first_chunk_mut().expect("at least so many");
        let mut numbers = [0u16; CHUNK];
        for (chunk, weights) in weights.chunks_mut(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            axes.number(chunk * CHUNK, numbers);
            let (number_pairs, last_number) = numbers.as_chunks::<CLASSES>();
            let (weight_pairs, last_weight) = weights.as_chunks_mut::<CLASSES>();
            let mut row = chunk * CHUNK;
            for (&[a, b], [v, w]) in number_pairs.iter().zip(weight_pairs) {
                let (a, b) = (usize::from(a), usize::from(b));
                visit::<0>(row, v, &mut even[a], a, sites, fates, moves);
                visit::<1>(row + 1, w, &mut odd[b], b, sites, fates, moves);
                row += CLASSES;
            }
            for (&a, v) in last_number.iter().zip(last_weight) {
                visit::<0>(row, v, &mut even[usize::from(a)], usize::from(a), sites, fates, moves);
            }
        }
    }
}

vectorised! {
    fn select_wide(
        columns: &[Column<'_>],
        strides: &[usize],
        weights: &mut [u8],
        skips: &mut [u32],
        sites: &mut [[Site; CLASSES]],
        fates: &[u32],
        moves: &mut Moves,
    ) {
        let (even, odd) = skips.split_at_mut(skips.len() / CLASSES);
        let mut numbers = [0u32; CHUNK];
        for (chunk, weights) in weights.chunks_mut(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            number_wide(columns, strides, chunk * CHUNK, numbers);
            for (row, (&number, weight)) in (chunk * CHUNK..).zip(numbers.iter().zip(weights)) {
                let cell = number as usize;
                if row % CLASSES == 0 {
                    visit::<0>(row, weight, &mut even[cell], cell, sites, fates, moves);
                } else {
                    visit::<1>(row, weight, &mut odd[cell], cell, sites, fates, moves);
                }
            }
        }
    }
}

/// The cell numbers of the records from `start` on, of a table of any size.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn number_wide(columns: &[Column<'_>], strides: &[usize], start: usize, numbers: &mut [u32]) {
    #[inline(always)]
    fn add<C: Copy + Into<u32>>(codes: &[C], stride: u32, numbers: &mut [u32]) {
        for (number, &code) in numbers.iter_mut().zip(codes) {
            *number += stride * code.into();
        }
    }
    numbers.fill(0);
    for (column, &stride) in columns.iter().zip(strides) {
        let stride = u32::try_from(stride).expect("cells are numbered by u32");
        match column {
            Column::U8(codes) => add(&codes[start..], stride, numbers),
            Column::U16(codes) => add(&codes[start..], stride, numbers),
            Column::U32(codes) => add(&codes[start..], stride, numbers),
        }
    }
}
