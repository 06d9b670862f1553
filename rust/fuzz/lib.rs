//! Inputs of kernels as a fuzzer makes them: anything that the bindings could hand over, kept small.

use std::sync::Arc;

use arbitrary::Arbitrary;
use chicle_core::query::{Axis, Query, Target};

/// Most cells of a table; larger ones are legal, but slow.
const MOST_CELLS: u128 = 1 << 14;

/// Some attributes, the codes of some records, and queries about them, most of them wrong at first.
#[derive(Arbitrary, Debug)]
pub struct Input {
    pub cardinalities: Vec<u8>,
    pub codes: Vec<Vec<u8>>,
    pub queries: Vec<Vec<Asked>>,
    pub values: Vec<f64>,
    pub seed: u64,
}

/// One axis of a query.
#[derive(Arbitrary, Debug)]
pub struct Asked {
    pub attribute: u8,
    pub buckets: Option<Vec<u8>>,
    pub size: Option<u8>,
}

impl Input {
    /// The cardinalities as the kernels take them.
    #[must_use]
    pub fn cardinalities(&self) -> Vec<u32> {
        self.cardinalities.iter().take(6).map(|&size| u32::from(size)).collect()
    }

    /// Columns, one for each attribute; codes may be out of the domain, and lengths may differ.
    #[must_use]
    pub fn columns(&self) -> Vec<Vec<u8>> {
        let columns = self.cardinalities.len().min(6);
        (0..columns).map(|i| self.codes.get(i).cloned().unwrap_or_default()).collect()
    }

    /// The queries that the kernels accept, of tables that are not too large.
    #[must_use]
    pub fn queries(&self) -> Vec<Query> {
        let cardinalities = self.cardinalities();
        let axis = |asked: &Asked| {
            let attribute = usize::from(asked.attribute) % 8;
            match &asked.buckets {
                None => Axis::plain(attribute, cardinalities.get(attribute).copied().unwrap_or(0)),
                Some(buckets) => {
                    let buckets: Arc<[u32]> = buckets.iter().map(|&bucket| u32::from(bucket)).collect();
                    Axis::in_buckets(attribute, buckets, asked.size.map(u32::from))
                }
            }
        };
        let asked = self.queries.iter().take(6).map(|axes| axes.iter().take(4).map(axis).collect());
        asked
            .filter_map(|axes| Query::new(axes, &cardinalities).ok())
            .filter(|query| query.cells() <= MOST_CELLS)
            .collect()
    }

    /// Targets of these queries, of any values whatever.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let mut values = self.values.iter().copied().cycle();
        let mut next = |cells: u128| -> Vec<f64> {
            (0..cells).map(|_| values.next().unwrap_or(1.0)).collect()
        };
        self.queries()
            .into_iter()
            .filter_map(|query| {
                let cells = query.cells();
                Target::new(query, next(cells), 1.0).ok()
            })
            .collect()
    }
}
