//! Count a marginal over the records and carry out a plan: the two passes over all records that a visit costs.
//!
//! Records are rows with a **weight**: how many copies of the row there are; the weights add up to n, and a row of weight 0
//! is free room. A duplication is then one addition, not a copy of a hundred columns, each in another place in memory;
//! rows are copied only where one of several copies is rewritten, and all at once column by column.
//!
//! Which records of a cell are freed, or copied, is drawn by systematic sampling over the cell's records in row order: with
//! `q` of `N` wanted, records number `floor((k * N + t) / q)` for a random `t < N`: each with the same chance `q / N`.
//! It takes one counter a cell, "records to skip until the next one", so the pass costs the same as counting.
//! Cost: O(records * (1 + attributes / 16) + moves) for each of both passes; O(cells) memory.
//! One thread: the passes are short and the counters are shared.

use super::Marginal;
use super::plan::{Plan, VANISH};
use super::random::Stream;
use crate::count::histogram::{NARROW_CELLS, NarrowAxes, vectorised};
use crate::parallel::Cancel;
use crate::table::{Codes, Column};

/// Records whose cell numbers are computed at a time.
const CHUNK: usize = 2048;

/// Copies of the counters: neighbouring records count into different ones.
const LANES: usize = 4;

/// A lane starts this much further than its counters need, so that a cell's copies do not share a cache set.
const LANE_LENGTH: usize = NARROW_CELLS + 272;

/// The records: codes column by column, and how often each row is there.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Codes of each attribute.
    pub columns: Vec<Codes>,
    /// Copies of each row.
    pub weights: Vec<u8>,
    /// Where the search for free room goes on.
    cursor: usize,
}

/// What visits reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    lanes: Vec<u32>,
    sites: Vec<Site>,
}

/// Where the systematic sample of one cell stands: the next record is `stride` or `stride + 1` further.
#[derive(Debug, Clone, Copy, Default)]
struct Site {
    stride: u32,
    rest: u32,
    quota: u32,
    error: u32,
    left: u32,
    /// Place in the list of fates; `COPY` where records are copied.
    fate: u32,
}

const COPY: u32 = u32::MAX;

/// Records to skip where none is wanted: more than there are.
const NEVER: u32 = u32::MAX;

impl Site {
    /// A sample of `quota` of `count` records from the random start `t < count`; with it the records before the first.
    fn new(quota: u32, count: u32, t: u32, fate: u32) -> (Self, u32) {
        let site = Self { stride: count / quota, rest: count % quota, quota, error: t % quota, left: quota, fate };
        (site, t / quota)
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

/// What a pass over the records leaves to be done.
#[derive(Debug, Default)]
struct Moves {
    /// Row and cell: a record freed there is rewritten to the cell.
    rewrite: Vec<(u32, u32)>,
    /// Rows that should have more copies than a weight can say.
    spill: Vec<u32>,
}

impl Rows {
    /// Rows that are there once each.
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
    #[must_use]
    pub fn count(&self, marginal: &Marginal, scratch: &mut Scratch, cancel: &Cancel) -> Vec<u32> {
        const CANCEL_CHECK: usize = 1 << 22;
        let mut counts = vec![0; marginal.cells()];
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
        counts: &[u32],
        plan: &Plan,
        random: &mut Stream,
        scratch: &mut Scratch,
    ) {
        scratch.prepare(counts, plan, random);
        let moves = self.select(marginal, plan, scratch);
        self.rewrite(marginal, &moves);
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
        let skips = &mut scratch.lanes;
        if marginal.cells() <= NARROW_CELLS {
            select_narrow(&columns, &marginal.strides, &mut weights, skips, &mut scratch.sites, &plan.fates, &mut moves);
        } else {
            select_wide(&columns, &marginal.strides, &mut weights, skips, &mut scratch.sites, &plan.fates, &mut moves);
        }
        self.weights = weights;
        moves
    }

    fn rewrite(&mut self, marginal: &Marginal, moves: &Moves) {
        // Rows without a copy left are rewritten where they are, before anybody takes them for free room.
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

    /// Copy rows into free room, each with weight 1; returns where.
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

    /// A row of weight 0, which now has weight 1. There is one, or all weights would be 1 and no row would need room.
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
    fn prepare(&mut self, counts: &[u32], plan: &Plan, random: &mut Stream) {
        self.lanes.resize(self.lanes.len().max(counts.len()).max(NARROW_CELLS), 0);
        self.sites.resize(self.sites.len().max(counts.len()), Site::default());
        let mut fate = 0;
        for (cell, &count) in counts.iter().enumerate() {
            let (quota, place) = match (plan.remove[cell], plan.duplicate[cell]) {
                (0, 0) => {
                    self.lanes[cell] = NEVER;
                    continue;
                }
                (0, copies) => (copies, COPY),
                (freed, _) => {
                    fate += freed;
                    (freed, fate - freed)
                }
            };
            (self.sites[cell], self.lanes[cell]) = Site::new(quota, count, random.below(count), place);
        }
    }
}

/// A record of a sampled row: free or copy as many of its copies as the sample names.
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
            let fate = fates[site.fate as usize];
            site.fate += 1;
            if fate != VANISH {
                moves.rewrite.push((row, fate));
            }
        }
        next = next.saturating_add(site.advance());
    }
    *skip = next.saturating_sub(copies);
}

vectorised! {
    fn count_narrow(columns: &[Column<'_>], strides: &[usize], weights: &[u8], counts: &mut [u32], lanes: &mut Vec<u32>) {
        let axes = NarrowAxes::new(columns, strides);
        lanes.resize(lanes.len().max(LANES * LANE_LENGTH), 0);
        let mut numbers = [0; CHUNK];
        let (cells, mut rest) = (counts.len(), &mut lanes[..]);
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
            for (&number, &weight) in others.iter().zip(other_weights) {
                lanes[0][usize::from(number)] += u32::from(weight);
            }
        }
        for lane in lanes {
            counts.iter_mut().zip(lane.iter()).for_each(|(sum, count)| *sum += count);
        }
    }
}

vectorised! {
    fn count_wide(columns: &[Column<'_>], strides: &[usize], weights: &[u8], counts: &mut [u32]) {
        let mut numbers = [0; CHUNK];
        for (chunk, weights) in weights.chunks(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            number_wide(columns, strides, chunk * CHUNK, numbers);
            for (&number, &weight) in numbers.iter().zip(weights) {
                counts[number as usize] += u32::from(weight);
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
        sites: &mut [Site],
        fates: &[u32],
        moves: &mut Moves,
    ) {
        let axes = NarrowAxes::new(columns, strides);
        let skips: &mut [u32; NARROW_CELLS] = skips.first_chunk_mut().expect("at least so many");
        let mut numbers = [0u16; CHUNK];
        for (chunk, weights) in weights.chunks_mut(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            axes.number(chunk * CHUNK, numbers);
            for (i, (&number, weight)) in numbers.iter().zip(weights).enumerate() {
                let cell = usize::from(number);
                let skip = &mut skips[cell];
                let copies = u32::from(*weight);
                if *skip < copies {
                    hit(chunk * CHUNK + i, weight, skip, &mut sites[cell], fates, moves);
                } else {
                    *skip -= copies;
                }
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
        sites: &mut [Site],
        fates: &[u32],
        moves: &mut Moves,
    ) {
        let mut numbers = [0u32; CHUNK];
        for (chunk, weights) in weights.chunks_mut(CHUNK).enumerate() {
            let numbers = &mut numbers[..weights.len()];
            number_wide(columns, strides, chunk * CHUNK, numbers);
            for (i, (&number, weight)) in numbers.iter().zip(weights).enumerate() {
                let cell = number as usize;
                let skip = &mut skips[cell];
                let copies = u32::from(*weight);
                if *skip < copies {
                    hit(chunk * CHUNK + i, weight, skip, &mut sites[cell], fates, moves);
                } else {
                    *skip -= copies;
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
