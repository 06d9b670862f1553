//! Which tables to count so that every clique can be read off one of them.
//!
//! Counting costs one addition a record for each table, nearly whatever the table's size, so the plan
//! is to count few, larger tables: **blocks**, sets of attributes with a bounded number of cells, each holding many of
//! the asked cliques. All 4,656 pairs of the simulated census need some 1,600 blocks; all triples of 16 binary
//! attributes one.
//!
//! Greedy: the largest clique not yet held starts a block; the block takes in the attribute that completes most cliques
//! for the bits it adds, while it stays small; it holds every clique inside it. A block may grow to a quarter of the
//! records, so that clearing and summing it stays cheap beside counting it; with few records each clique is its own
//! block. A clique of more cells than that is counted alone.
//! Cost: for each block, the cliques that touch its attributes; 4,656 pairs take a few milliseconds.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::layout;

/// Blocks grow no further than this: larger ones are fewer, but leave the second-level cache.
const GROWN_CELLS: usize = 1 << 15;

/// A block of at most one cell for this many records costs little to clear and to sum beside what it costs to count.
const CHEAP_SHARE: usize = 4;

/// A table to count, and the cliques to read off it.
#[derive(Debug, Clone)]
pub struct Block {
    /// Attributes, the last one moving fastest; none of cardinality 1.
    pub attributes: Vec<usize>,
    /// Their cardinalities.
    pub shape: Vec<u32>,
    /// Product of `shape`.
    pub cells: usize,
    /// Cliques held, by their position in the list asked for.
    pub margins: Vec<Margin>,
}

/// A clique inside a block.
#[derive(Debug, Clone)]
pub struct Margin {
    /// Position in the list of cliques.
    pub clique: usize,
    /// Bit `a` set: the block's axis `a` is kept.
    pub kept: u64,
    /// Cardinalities of the kept axes in the clique's own order.
    pub shape: Vec<u32>,
    /// For each of these, its stride in the summed table, whose axes are in block order.
    pub strides: Vec<usize>,
}

/// Blocks for a list of cliques over one domain.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cardinalities of the domain.
    pub cardinalities: Vec<u32>,
    /// The cliques asked for, as attributes in the order asked for.
    pub cliques: Vec<Vec<usize>>,
    /// Cells of each clique.
    pub cells: Vec<usize>,
    /// What to count.
    pub blocks: Vec<Block>,
}

impl Plan {
    /// Plan the counting of `cliques` over about `records` records.
    ///
    /// # Errors
    /// [`Error::TableTooLarge`] for the clique whose table takes the results over `memory_limit` bytes.
    ///
    /// # Panics
    /// If a clique names an attribute twice or one that the domain does not have.
    pub fn new(cardinalities: &[u32], cliques: &[Vec<usize>], records: usize, memory_limit: u64) -> Result<Self> {
        let cells = check_sizes(cardinalities, cliques, memory_limit)?;
        let blocks = cover(cardinalities, cliques, records);
        Ok(Self { cardinalities: cardinalities.to_vec(), cliques: cliques.to_vec(), cells, blocks })
    }

    /// The same for tables that are not kept: `memory_limit` bytes for each of them alone.
    ///
    /// # Errors
    /// [`Error::TableTooLarge`] for the first clique whose own table is larger.
    pub fn for_each(cardinalities: &[u32], cliques: &[Vec<usize>], records: usize, memory_limit: u64) -> Result<Self> {
        for (clique, alone) in cliques.chunks(1).enumerate() {
            check_sizes(cardinalities, alone, memory_limit).map_err(|error| match error {
                Error::TableTooLarge { cells, bytes, limit, .. } => {
                    Error::TableTooLarge { clique, cells, bytes, limit }
                }
                other => other,
            })?;
        }
        Self::new(cardinalities, cliques, records, u64::MAX)
    }
}

/// Cells of each clique, if all results together stay within the limit and each can be numbered by `u32`.
fn check_sizes(cardinalities: &[u32], cliques: &[Vec<usize>], limit: u64) -> Result<Vec<usize>> {
    let mut bytes = 0u128;
    cliques
        .iter()
        .enumerate()
        .map(|(clique, attributes)| {
            let product = attributes
                .iter()
                .try_fold(1u128, |product, &a| product.checked_mul(cardinalities[a].into()))
                .unwrap_or(u128::MAX);
            bytes = bytes.saturating_add(product.saturating_mul(size_of::<i64>() as u128));
            match u32::try_from(product) {
                Ok(cells) if bytes <= u128::from(limit) => Ok(cells as usize),
                _ => Err(Error::TableTooLarge { clique, cells: product, bytes, limit }),
            }
        })
        .collect()
}

fn cover(cardinalities: &[u32], cliques: &[Vec<usize>], records: usize) -> Vec<Block> {
    let mut positions: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
    for (position, clique) in cliques.iter().enumerate() {
        let mut set: Vec<usize> = clique.iter().copied().filter(|&a| cardinalities[a] > 1).collect();
        set.sort_unstable();
        positions.entry(set).or_default().push(position);
    }
    let total = positions.remove(&Vec::new());
    let size = |set: &[usize]| layout::cells(set.iter().map(|&a| cardinalities[a])).expect("checked");
    let mut sets: Vec<(Vec<usize>, Vec<usize>)> = positions.into_iter().collect();
    sets.sort_by_cached_key(|(set, _)| (Reverse(size(set)), set.clone()));

    let cheap = records / CHEAP_SHARE;
    let mut cover = Cover::new(cardinalities, sets.iter().map(|(set, _)| set.clone()).collect());
    let mut blocks = Vec::new();
    for (seed, (set, _)) in sets.iter().enumerate() {
        if cover.held[seed] {
            continue;
        }
        let (attributes, held) =
            if size(set) > cheap { (set.clone(), vec![seed]) } else { cover.grow(seed, cheap.min(GROWN_CELLS)) };
        let asked = held.iter().flat_map(|&s| sets[s].1.iter().copied());
        blocks.push(block(cardinalities, cliques, attributes, asked));
    }
    blocks.extend(total.map(|asked| block(cardinalities, cliques, Vec::new(), asked.into_iter())));
    blocks
}

/// The state of the greedy cover: which sets are held already, and for the block at hand how much of each is missing.
struct Cover<'a> {
    cardinalities: &'a [u32],
    sets: Vec<Vec<usize>>,
    /// For each attribute, the sets that contain it.
    containing: Vec<Vec<usize>>,
    held: Vec<bool>,
}

impl<'a> Cover<'a> {
    fn new(cardinalities: &'a [u32], sets: Vec<Vec<usize>>) -> Self {
        let mut containing = vec![Vec::new(); cardinalities.len()];
        for (s, set) in sets.iter().enumerate() {
            for &a in set {
                containing[a].push(s);
            }
        }
        let held = vec![false; sets.len()];
        Self { cardinalities, sets, containing, held }
    }

    /// Grow a block from the set `seed` up to `limit` cells; returns its attributes and the sets it newly holds.
    fn grow(&mut self, seed: usize, limit: usize) -> (Vec<usize>, Vec<usize>) {
        let mut inside = vec![false; self.cardinalities.len()];
        let mut missing: HashMap<usize, usize> = HashMap::new();
        let mut gain = vec![0u32; self.cardinalities.len()];
        let mut attributes = Vec::new();
        let mut cells = 1;
        let mut held = Vec::new();
        let mut queue = self.sets[seed].clone();
        loop {
            for a in queue.drain(..) {
                inside[a] = true;
                gain[a] = 0;
                cells *= self.cardinalities[a] as usize;
                attributes.push(a);
                for &s in self.containing[a].iter().filter(|&&s| !self.held[s]) {
                    let left = missing.entry(s).or_insert(self.sets[s].len());
                    *left -= 1;
                    match left {
                        0 => held.push(s),
                        1 => {
                            let last = self.sets[s].iter().find(|&&b| !inside[b]);
                            gain[*last.expect("one attribute is missing")] += 1;
                        }
                        _ => {}
                    }
                }
            }
            let value = |a: usize| f64::from(gain[a]) / f64::from(self.cardinalities[a]).log2();
            let best = (0..gain.len())
                .filter(|&a| gain[a] > 0 && cells * self.cardinalities[a] as usize <= limit)
                .max_by(|&a, &b| value(a).total_cmp(&value(b)).then(b.cmp(&a)));
            match best {
                Some(a) => queue.push(a),
                None => break,
            }
        }
        for &s in &held {
            self.held[s] = true;
        }
        (attributes, held)
    }
}

/// Lay a block out: as its one clique asks, or the largest attribute last, so that summing an axis out adds the longest
/// runs.
fn block(
    cardinalities: &[u32],
    cliques: &[Vec<usize>],
    mut attributes: Vec<usize>,
    asked: impl Iterator<Item = usize>,
) -> Block {
    let asked: Vec<usize> = asked.collect();
    match asked[..] {
        [clique] if cliques[clique].len() == attributes.len() => attributes.clone_from(&cliques[clique]),
        _ => attributes.sort_by_key(|&a| (cardinalities[a], a)),
    }
    let shape: Vec<u32> = attributes.iter().map(|&a| cardinalities[a]).collect();
    let margins = asked
        .into_iter()
        .map(|clique| {
            let kept: Vec<bool> = attributes.iter().map(|a| cliques[clique].contains(a)).collect();
            let kept_shape: Vec<u32> = shape.iter().zip(&kept).filter(|(_, k)| **k).map(|(&c, _)| c).collect();
            let kept_attributes: Vec<usize> =
                attributes.iter().zip(&kept).filter(|(_, k)| **k).map(|(&a, _)| a).collect();
            let kept_strides = layout::strides(&kept_shape);
            let axes: Vec<usize> =
                cliques[clique].iter().filter_map(|a| kept_attributes.iter().position(|b| a == b)).collect();
            Margin {
                clique,
                kept: kept.iter().rev().fold(0, |bits, &k| bits << 1 | u64::from(k)),
                shape: axes.iter().map(|&axis| kept_shape[axis]).collect(),
                strides: axes.iter().map(|&axis| kept_strides[axis]).collect(),
            }
        })
        .collect();
    Block { cells: layout::cells(shape.iter().copied()).expect("checked"), attributes, shape, margins }
}
