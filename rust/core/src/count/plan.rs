//! Which tables to count so that every query can be read off one of them.
//!
//! To the plan a query is a clique of columns: an attribute's own, or one of its buckets ([`super::buckets`]). Counting
//! costs one addition a record for each table, almost regardless of its size, so the plan is to count few, larger
//! tables: **blocks**, sets of columns with a bounded number of cells, each holding many of the queries' cliques. All
//! 4,656 pairs of the simulated census need some 1,600 blocks; all triples of 16 binary attributes one.
//!
//! Greedy: the largest clique not yet held starts a block; the block takes in the column that completes most cliques
//! for the bits it adds, while it stays small; it holds every clique inside it. A block may grow to a quarter of the
//! records, so that clearing and summing it stays cheap beside counting it; with few records each clique is its own
//! block. A clique of more cells than that is counted alone.
//! Cost: for each block, the cliques that touch its columns; 4,656 pairs take a few milliseconds.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::buckets::{self, Buckets};
use crate::error::{Error, Result};
use crate::layout;
use crate::query::{self, Axis, Query, has_u32_cells};

/// Blocks grow no further than this: larger ones are fewer, but leave the second-level cache.
const GROWN_CELLS: usize = 1 << 15;

/// A block of at most one cell for this many records costs little to clear and to sum beside what it costs to count.
const CHEAP_SHARE: usize = 4;

/// A table to count, and the queries to read off it.
#[derive(Debug, Clone)]
pub struct Block {
    /// Columns, the last one moving fastest; none of size 1.
    pub columns: Vec<usize>,
    /// Their sizes.
    pub shape: Vec<u32>,
    /// Product of `shape`.
    pub cells: usize,
    /// The queries it holds.
    pub margins: Vec<Margin>,
}

/// A query inside a block.
#[derive(Debug, Clone)]
pub struct Margin {
    /// Position of the query in the caller's list.
    pub query: usize,
    /// Bit `a` set: the block's axis `a` is kept.
    pub kept: u64,
    /// Sizes of the kept axes in the clique's own order.
    pub shape: Vec<u32>,
    /// For each of these, its stride in the summed table, whose axes are in block order.
    pub strides: Vec<usize>,
}

/// Blocks for a list of queries over one domain.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cardinalities of the domain.
    pub cardinalities: Vec<u32>,
    /// Cells of each query.
    pub cells: Vec<usize>,
    /// The columns of buckets that queries need, which come after the attributes' own columns.
    pub buckets: Vec<Buckets>,
    /// Sizes of all columns: of the attributes, then of the buckets.
    pub sizes: Vec<u32>,
    /// Records that are counted at a time: all of them, where there are no buckets.
    pub records_per_piece: usize,
    /// What to count.
    pub blocks: Vec<Block>,
}

impl Plan {
    /// Plan the counting of `queries` over about `records` records.
    ///
    /// # Errors
    /// [`Error::TableTooLarge`] for the query whose table takes the results over `memory_limit` bytes.
    ///
    /// # Panics
    /// If the queries are over another domain.
    pub fn new(cardinalities: &[u32], queries: &[Query], records: usize, memory_limit: u64) -> Result<Self> {
        check_sizes(queries, memory_limit)?;
        let cells = |query: &Query| usize::try_from(query.cells()).expect("checked");
        let columns = Columns::new(cardinalities, queries);
        let (buckets, sizes) = (columns.buckets, columns.sizes);
        let records_per_piece = if buckets.is_empty() { usize::MAX } else { buckets::records_per_piece(&buckets) };
        let blocks = cover(&sizes, &columns.cliques, records.min(records_per_piece));
        let cells = queries.iter().map(cells).collect();
        let cardinalities = cardinalities.to_vec();
        Ok(Self { cardinalities, cells, buckets, sizes, records_per_piece, blocks })
    }

    /// The same for tables that are not kept: `memory_limit` bytes for each of them alone.
    ///
    /// # Errors
    /// [`Error::TableTooLarge`] for the first query whose own table is larger.
    pub fn for_each(cardinalities: &[u32], queries: &[Query], records: usize, memory_limit: u64) -> Result<Self> {
        for (number, alone) in queries.chunks(1).enumerate() {
            check_sizes(alone, memory_limit).map_err(|error| match error {
                Error::TableTooLarge { cells, bytes, limit, .. } => {
                    Error::TableTooLarge { query: number, cells, bytes, limit }
                }
                other => other,
            })?;
        }
        Self::new(cardinalities, queries, records, u64::MAX)
    }
}

/// Reject results that take more than the limit in total, and tables whose cells `u32` cannot number.
fn check_sizes(queries: &[Query], limit: u64) -> Result<()> {
    query::check_memory(queries, limit, |query| query.cells().saturating_mul(size_of::<i64>() as u128), has_u32_cells)
}

/// The queries as cliques of columns: those of the attributes, and one for each different bucketing.
struct Columns {
    buckets: Vec<Buckets>,
    sizes: Vec<u32>,
    cliques: Vec<Vec<usize>>,
}

impl Columns {
    fn new(cardinalities: &[u32], queries: &[Query]) -> Self {
        let mut columns = Self { buckets: Vec::new(), sizes: cardinalities.to_vec(), cliques: Vec::new() };
        // For each attribute the axes that have a column, and its number. Axes that share a bucket array compare in
        // O(1).
        let mut known: Vec<Vec<(&Axis, usize)>> = vec![Vec::new(); cardinalities.len()];
        for query in queries {
            let mut clique = Vec::with_capacity(query.axes().len());
            for axis in query.axes() {
                let Some(of) = &axis.buckets else {
                    clique.push(axis.attribute);
                    continue;
                };
                let same = known[axis.attribute].iter().find(|(other, _)| *other == axis).map(|&(_, column)| column);
                clique.push(same.unwrap_or_else(|| {
                    let column = columns.sizes.len();
                    columns.sizes.push(axis.size);
                    columns.buckets.push(Buckets::new(axis.attribute, of, axis.size));
                    known[axis.attribute].push((axis, column));
                    column
                }));
            }
            columns.cliques.push(clique);
        }
        columns
    }
}

fn cover(sizes: &[u32], cliques: &[Vec<usize>], records: usize) -> Vec<Block> {
    let mut positions: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
    for (position, clique) in cliques.iter().enumerate() {
        let mut set: Vec<usize> = clique.iter().copied().filter(|&a| sizes[a] > 1).collect();
        set.sort_unstable();
        positions.entry(set).or_default().push(position);
    }
    let total = positions.remove(&Vec::new());
    let size = |set: &[usize]| layout::cells(set.iter().map(|&a| sizes[a])).expect("checked");
    let mut sets: Vec<(Vec<usize>, Vec<usize>)> = positions.into_iter().collect();
    sets.sort_by_cached_key(|(set, _)| (Reverse(size(set)), set.clone()));

    let cheap = records / CHEAP_SHARE;
    let mut cover = Cover::new(sizes, sets.iter().map(|(set, _)| set.clone()).collect());
    let mut blocks = Vec::new();
    for (seed, (set, _)) in sets.iter().enumerate() {
        if cover.held[seed] {
            continue;
        }
        let (columns, held) =
            if size(set) > cheap { (set.clone(), vec![seed]) } else { cover.grow(seed, cheap.min(GROWN_CELLS)) };
        let asked = held.iter().flat_map(|&s| sets[s].1.iter().copied());
        blocks.push(block(sizes, cliques, columns, asked));
    }
    blocks.extend(total.map(|asked| block(sizes, cliques, Vec::new(), asked.into_iter())));
    blocks
}

/// The state of the greedy cover: which sets are held already, and how much of each the current block still lacks.
struct Cover<'a> {
    sizes: &'a [u32],
    sets: Vec<Vec<usize>>,
    /// For each column, the sets that contain it.
    containing: Vec<Vec<usize>>,
    held: Vec<bool>,
}

impl<'a> Cover<'a> {
    fn new(sizes: &'a [u32], sets: Vec<Vec<usize>>) -> Self {
        let mut containing = vec![Vec::new(); sizes.len()];
        for (s, set) in sets.iter().enumerate() {
            for &a in set {
                containing[a].push(s);
            }
        }
        let held = vec![false; sets.len()];
        Self { sizes, sets, containing, held }
    }

    /// Grow a block from the set `seed` up to `limit` cells; returns its columns and the sets it newly holds.
    fn grow(&mut self, seed: usize, limit: usize) -> (Vec<usize>, Vec<usize>) {
        let mut inside = vec![false; self.sizes.len()];
        let mut missing: HashMap<usize, usize> = HashMap::new();
        let mut gain = vec![0u32; self.sizes.len()];
        let mut columns = Vec::new();
        let mut cells = 1;
        let mut held = Vec::new();
        let mut queue = self.sets[seed].clone();
        loop {
            for a in queue.drain(..) {
                inside[a] = true;
                gain[a] = 0;
                cells *= self.sizes[a] as usize;
                columns.push(a);
                for &s in self.containing[a].iter().filter(|&&s| !self.held[s]) {
                    let left = missing.entry(s).or_insert(self.sets[s].len());
                    *left -= 1;
                    match left {
                        0 => held.push(s),
                        1 => {
                            let last = self.sets[s].iter().find(|&&b| !inside[b]);
                            gain[*last.expect("one column is missing")] += 1;
                        }
                        _ => {}
                    }
                }
            }
            let value = |a: usize| f64::from(gain[a]) / f64::from(self.sizes[a]).log2();
            let best = (0..gain.len())
                .filter(|&a| gain[a] > 0 && cells * self.sizes[a] as usize <= limit)
                .max_by(|&a, &b| value(a).total_cmp(&value(b)).then(b.cmp(&a)));
            match best {
                Some(a) => queue.push(a),
                None => break,
            }
        }
        for &s in &held {
            self.held[s] = true;
        }
        (columns, held)
    }
}

/// Lay a block out: as its one clique asks, or the largest column last, so that summing an axis out adds the longest
/// runs.
fn block(sizes: &[u32], cliques: &[Vec<usize>], mut columns: Vec<usize>, asked: impl Iterator<Item = usize>) -> Block {
    let asked: Vec<usize> = asked.collect();
    match asked[..] {
        [clique] if cliques[clique].len() == columns.len() => columns.clone_from(&cliques[clique]),
        _ => columns.sort_by_key(|&a| (sizes[a], a)),
    }
    let shape: Vec<u32> = columns.iter().map(|&a| sizes[a]).collect();
    let margins = asked
        .into_iter()
        .map(|clique| {
            let kept: Vec<bool> = columns.iter().map(|a| cliques[clique].contains(a)).collect();
            let kept_shape: Vec<u32> = shape.iter().zip(&kept).filter(|(_, k)| **k).map(|(&c, _)| c).collect();
            let kept_columns: Vec<usize> = columns.iter().zip(&kept).filter(|(_, k)| **k).map(|(&a, _)| a).collect();
            let kept_strides = layout::strides(&kept_shape);
            let axes: Vec<usize> =
                cliques[clique].iter().filter_map(|a| kept_columns.iter().position(|b| a == b)).collect();
            Margin {
                query: clique,
                kept: kept.iter().rev().fold(0, |bits, &k| bits << 1 | u64::from(k)),
                shape: axes.iter().map(|&axis| kept_shape[axis]).collect(),
                strides: axes.iter().map(|&axis| kept_strides[axis]).collect(),
            }
        })
        .collect();
    Block { cells: layout::cells(shape.iter().copied()).expect("checked"), columns, shape, margins }
}
