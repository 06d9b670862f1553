//! Count batches of records as they come.
//!
//! Each pass has to clear and sum the blocks, so batches are gathered until a pass is worth it (see
//! [`Counter::rows_per_pass`]); a batch at least that long is counted without a copy.
//! Cost: as [`super::count`] for each pass; memory for the results and for one gathered batch.

use super::plan::Plan;
use super::{Results, Table};
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::query::Query;
use crate::table::Codes;

/// Memory for gathered batches.
const GATHERED_BYTES: usize = 32 << 20;

/// Gathering more records than this gains nothing; few in tests, to see it happen.
const MAX_GATHERED: usize = if cfg!(test) { 1 << 11 } else { 1 << 20 };

/// Counts of a list of queries over all the records seen so far.
#[derive(Debug, Clone)]
pub struct Counter {
    plan: Plan,
    /// Absent after an interrupted pass, which leaves the counts incomplete.
    results: Option<Results>,
    gathered: Vec<Codes>,
    rows_per_pass: usize,
}

impl Counter {
    /// Start counting `queries` over a domain.
    ///
    /// # Errors
    /// [`Error::TableTooLarge`] for the query whose table takes the results over `memory_limit` bytes.
    pub fn new(cardinalities: &[u32], queries: &[Query], memory_limit: u64) -> Result<Self> {
        let gathered: Vec<_> = cardinalities.iter().map(|&c| Codes::zeros(c, 0)).collect::<Result<_>>()?;
        let row: usize = gathered.iter().map(|codes| codes.column().width()).sum();
        let rows_per_pass = (GATHERED_BYTES / row.max(1)).min(MAX_GATHERED);
        let plan = Plan::new(cardinalities, queries, rows_per_pass, memory_limit)?;
        Ok(Self { results: Some(Results::new(&plan, &plan.blocks)?), plan, gathered, rows_per_pass })
    }

    /// How many codes each attribute of a batch has.
    #[must_use]
    pub fn cardinalities(&self) -> &[u32] {
        &self.plan.cardinalities
    }

    /// Batches are gathered up to this many records before they are counted.
    #[must_use]
    pub fn rows_per_pass(&self) -> usize {
        self.rows_per_pass
    }

    /// Add a batch.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; from then on [`Error::CounterIncomplete`].
    ///
    /// # Panics
    /// If the batch has other attributes than the counter.
    pub fn update(&mut self, batch: &Table<'_>, cancel: &Cancel) -> Result<()> {
        assert_eq!(batch.cardinalities(), self.plan.cardinalities, "a batch over the counter's domain");
        if batch.records() >= self.rows_per_pass {
            self.results = Some(Self::add(self.results.take(), &self.plan, batch, cancel)?);
            return Ok(());
        }
        for (codes, column) in self.gathered.iter_mut().zip(batch.columns()) {
            codes.extend(column);
        }
        if self.gathered.first().is_some_and(|codes| codes.column().len() >= self.rows_per_pass) {
            self.flush(cancel)?;
        }
        Ok(())
    }

    /// The counts of each query over all the records so far.
    ///
    /// # Errors
    /// As [`Counter::update`].
    pub fn result(&mut self, cancel: &Cancel) -> Result<Vec<Vec<i64>>> {
        self.flush(cancel)?;
        let results = self.results.clone().ok_or(Error::CounterIncomplete)?;
        Ok(results.into_tables(&self.plan))
    }

    fn flush(&mut self, cancel: &Cancel) -> Result<()> {
        let columns = self.gathered.iter().map(Codes::column).collect();
        let gathered = Table::checked_before(columns, self.plan.cardinalities.clone());
        self.results = Some(Self::add(self.results.take(), &self.plan, &gathered, cancel)?);
        self.gathered.iter_mut().for_each(Codes::clear);
        Ok(())
    }

    /// Results with a table added; none after an interrupted pass.
    fn add(results: Option<Results>, plan: &Plan, table: &Table<'_>, cancel: &Cancel) -> Result<Results> {
        let mut results = results.ok_or(Error::CounterIncomplete)?;
        results.add(plan, &plan.blocks, table, cancel)?;
        Ok(results)
    }
}
