//! Queries of a table: one vocabulary for all kernels.
//!
//! An [`Axis`] is an attribute, code by code or in buckets. A [`Query`] is a list of axes: its table has a cell for
//! each joint value of them, in row-major order, the last axis moving fastest. A [`Target`] is a query with the values
//! that its table should have, and their weight.
//!
//! A query is checked when it is made, so kernels need not check it again. Counting takes any query; the kernels that
//! move records or fit a model need each attribute on one axis ([`Query::check_distinct`]), and some take no buckets
//! ([`Query::clique`]). Cost: only the check of the buckets, once for each axis.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::layout;

/// One attribute of a table, code by code or in buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Position of the attribute in the domain.
    pub attribute: usize,
    /// The bucket of each code, or `None` if each code is its own bucket.
    pub buckets: Option<Arc<[u32]>>,
    /// Number of buckets, or of codes; buckets may be empty.
    pub size: u32,
}

impl Axis {
    /// An attribute code by code.
    #[must_use]
    pub fn plain(attribute: usize, cardinality: u32) -> Self {
        Self { attribute, buckets: None, size: cardinality }
    }

    /// An attribute in buckets: `size` of them, or one more than the largest bucket number.
    #[must_use]
    pub fn in_buckets(attribute: usize, buckets: Arc<[u32]>, size: Option<u32>) -> Self {
        let size = size.unwrap_or_else(|| buckets.iter().max().map_or(0, |most| most.saturating_add(1)));
        Self { attribute, buckets: Some(buckets), size }
    }

    /// The position of a code on the axis.
    ///
    /// # Panics
    /// If the attribute has no such code.
    #[must_use]
    pub fn place(&self, code: u32) -> u32 {
        self.buckets.as_ref().map_or(code, |buckets| buckets[code as usize])
    }

    fn check(&self, cardinalities: &[u32]) -> Result<()> {
        let attribute = self.attribute;
        let Some(&cardinality) = cardinalities.get(attribute) else {
            return Err(Error::NoSuchAttribute { attribute, attributes: cardinalities.len() });
        };
        let fits = match &self.buckets {
            None => self.size == cardinality,
            // By value: a maximum over references does not vectorise.
            Some(buckets) => {
                buckets.len() == cardinality as usize && buckets.iter().copied().max().is_none_or(|b| b < self.size)
            }
        };
        if fits { Ok(()) } else { Err(Error::WrongAxis { attribute, cardinality, size: self.size }) }
    }
}

/// The axes of a table, known to fit the domain. By default none: the table is the number of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    axes: Vec<Axis>,
    shape: Vec<u32>,
    cells: u128,
}

impl Default for Query {
    fn default() -> Self {
        Self { axes: Vec::new(), shape: Vec::new(), cells: 1 }
    }
}

impl Query {
    /// Check axes against the cardinalities of the domain.
    ///
    /// # Errors [`Error::NoSuchAttribute`]; [`Error::WrongAxis`] for buckets or sizes that do not fit the attribute;
    /// [`Error::AttributeTwice`] where two axes are the same. An attribute may be on two axes through different
    /// buckets.
    pub fn new(axes: Vec<Axis>, cardinalities: &[u32]) -> Result<Self> {
        for (i, axis) in axes.iter().enumerate() {
            axis.check(cardinalities)?;
            if axes[..i].contains(axis) {
                return Err(Error::AttributeTwice { attribute: axis.attribute });
            }
        }
        let shape: Vec<u32> = axes.iter().map(|axis| axis.size).collect();
        let cells = shape.iter().fold(1, |product: u128, &size| product.saturating_mul(size.into()));
        Ok(Self { axes, shape, cells })
    }

    /// The marginal of a clique: each of its attributes code by code.
    ///
    /// # Errors
    /// As [`Query::new`].
    pub fn marginal(clique: &[usize], cardinalities: &[u32]) -> Result<Self> {
        // The check rejects an attribute that does not exist, whatever size it gets here.
        let axis = |&attribute: &usize| Axis::plain(attribute, cardinalities.get(attribute).copied().unwrap_or(0));
        Self::new(clique.iter().map(axis).collect(), cardinalities)
    }

    /// The axes, in order.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The size of each axis.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// Cells of the table; `u128::MAX` where the number overflows.
    #[must_use]
    pub fn cells(&self) -> u128 {
        self.cells
    }

    /// The attribute of each axis.
    #[must_use]
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.axes.iter().map(|axis| axis.attribute)
    }

    /// Whether no attribute is in buckets.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.axes.iter().all(|axis| axis.buckets.is_none())
    }

    /// The attributes of a query without buckets.
    ///
    /// # Errors
    /// [`Error::InBuckets`] for the first attribute in buckets.
    pub fn clique(&self) -> Result<Vec<usize>> {
        match self.axes.iter().find(|axis| axis.buckets.is_some()) {
            Some(axis) => Err(Error::InBuckets { attribute: axis.attribute }),
            None => Ok(self.attributes().collect()),
        }
    }

    /// Check that no attribute is on two axes.
    ///
    /// # Errors
    /// [`Error::AttributeTwice`].
    pub fn check_distinct(&self) -> Result<()> {
        let twice = (1..self.axes.len()).find(|&i| self.attributes().take(i).any(|a| a == self.axes[i].attribute));
        twice.map_or(Ok(()), |i| Err(Error::AttributeTwice { attribute: self.axes[i].attribute }))
    }

    /// For each joint code of the query's attributes, taken in the order `attributes`, its cell in the query's table.
    ///
    /// `None` where both tables have the same layout. Each attribute is on one axis, and the table over `attributes`
    /// has fewer than 2^32 cells.
    #[expect(clippy::cast_possible_truncation, reason = "the table has fewer than 2^32 cells")]
    pub(crate) fn places(&self, attributes: &[usize], cardinalities: &[u32]) -> Option<Vec<u32>> {
        let alike = |axis: &Axis| {
            let cardinality = cardinalities[axis.attribute];
            axis.size == cardinality && (0..cardinality).all(|code| axis.place(code) == code)
        };
        if self.attributes().eq(attributes.iter().copied()) && self.axes.iter().all(alike) {
            return None;
        }
        let strides = layout::strides(&self.shape);
        let mut places = vec![0];
        for &attribute in attributes {
            let number = self.attributes().position(|a| a == attribute).expect("both have the same attributes");
            let step = |code: u32| strides[number] as u32 * self.axes[number].place(code);
            let steps: Vec<u32> = (0..cardinalities[attribute]).map(step).collect();
            places = places.iter().flat_map(|&place: &u32| steps.iter().map(move |step| place + step)).collect();
        }
        Some(places)
    }
}

/// A query with the values that its table should have.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) query: Query,
    /// One for each cell; may be negative or fractional.
    pub(crate) values: Vec<f64>,
    /// Weight of its squared residuals.
    pub(crate) weight: f64,
}

impl Target {
    /// Values for each cell of a query, in row-major order, and the weight of their squared residuals.
    ///
    /// # Errors
    /// [`Error::WrongValues`] unless there is one value for each cell.
    pub fn new(query: Query, values: Vec<f64>, weight: f64) -> Result<Self> {
        if values.len() as u128 != query.cells {
            return Err(Error::WrongValues { values: values.len(), cells: query.cells });
        }
        Ok(Self { query, values, weight })
    }
}

/// Reject the first query that takes the memory of all queries so far over `limit` bytes, or whose cells the kernel
/// cannot number. `bytes` gives the memory of a query, `is_numbered` whether its cells can be numbered.
pub(crate) fn check_memory<'a>(
    queries: impl IntoIterator<Item = &'a Query>,
    limit: u64,
    bytes: impl Fn(&Query) -> u128,
    is_numbered: impl Fn(&Query) -> bool,
) -> Result<()> {
    let mut sum = 0u128;
    for (number, query) in queries.into_iter().enumerate() {
        sum = sum.saturating_add(bytes(query));
        if sum > limit.into() || !is_numbered(query) {
            return Err(Error::TableTooLarge { query: number, cells: query.cells, bytes: sum, limit });
        }
    }
    Ok(())
}

/// Whether the cells of a table can be numbered by `u32`.
pub(crate) fn has_u32_cells(query: &Query) -> bool {
    u32::try_from(query.cells).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_without_axes_has_one_cell() {
        let query = Query::new(vec![], &[]).unwrap();
        assert_eq!((query.cells(), query.shape()), (1, &[][..]));
        assert_eq!(query, Query::default());
    }

    #[test]
    fn the_largest_bucket_tells_the_size() {
        let axis = Axis::in_buckets(1, [0, 4, 1].into(), None);
        assert_eq!((axis.size, axis.place(1)), (5, 4));
        let query = Query::new(vec![Axis::plain(0, 2), axis], &[2, 3]).unwrap();
        assert_eq!((query.cells(), query.shape()), (10, &[2, 5][..]));
        assert_eq!(query.clique(), Err(Error::InBuckets { attribute: 1 }));
    }

    #[test]
    fn axes_must_fit_the_domain() {
        let refused = |axis| Query::new(vec![axis], &[2, 3]).unwrap_err();
        assert_eq!(refused(Axis::plain(2, 3)), Error::NoSuchAttribute { attribute: 2, attributes: 2 });
        let wrong = |size| Error::WrongAxis { attribute: 1, cardinality: 3, size };
        assert_eq!(refused(Axis::plain(1, 4)), wrong(4));
        assert_eq!(refused(Axis::in_buckets(1, [0, 1].into(), None)), wrong(2));
        assert_eq!(refused(Axis::in_buckets(1, [0, 1, 2].into(), Some(2))), wrong(2));
        assert_eq!(refused(Axis::in_buckets(1, [0, u32::MAX, 2].into(), None)), wrong(u32::MAX));
        assert_eq!(Query::marginal(&[5], &[2, 3]), Err(Error::NoSuchAttribute { attribute: 5, attributes: 2 }));
    }

    #[test]
    fn an_attribute_is_on_two_axes_only_in_different_buckets() {
        let twice = Error::AttributeTwice { attribute: 0 };
        assert_eq!(Query::marginal(&[0, 1, 0], &[2, 3]).unwrap_err(), twice);
        let coarse = Axis::in_buckets(0, [0, 0].into(), None);
        assert_eq!(Query::new(vec![coarse.clone(), coarse.clone()], &[2, 3]).unwrap_err(), twice);
        let query = Query::new(vec![Axis::plain(0, 2), coarse], &[2, 3]).unwrap();
        assert_eq!(query.check_distinct(), Err(twice));
        assert_eq!(Query::marginal(&[1, 0], &[2, 3]).unwrap().check_distinct(), Ok(()));
    }

    #[test]
    fn cells_saturate() {
        let query = Query::marginal(&[0, 1, 2, 3, 4], &[u32::MAX; 5]).unwrap();
        assert_eq!(query.cells(), u128::MAX);
        assert!(!has_u32_cells(&query));
    }

    #[test]
    fn a_target_has_a_value_for_each_cell() {
        let query = || Query::marginal(&[0], &[3]).unwrap();
        assert!(Target::new(query(), vec![0.0; 3], 1.0).is_ok());
        assert_eq!(Target::new(query(), vec![0.0; 2], 1.0).unwrap_err(), Error::WrongValues { values: 2, cells: 3 });
    }

    #[test]
    fn places_follow_order_and_buckets() {
        let domain = [2, 3];
        assert_eq!(Query::marginal(&[0, 1], &domain).unwrap().places(&[0, 1], &domain), None);
        let turned = Query::marginal(&[1, 0], &domain).unwrap();
        assert_eq!(turned.places(&[0, 1], &domain).unwrap(), [0, 2, 4, 1, 3, 5]);
        let coarse = Axis::in_buckets(1, [1, 0, 1].into(), None);
        let query = Query::new(vec![Axis::plain(0, 2), coarse], &domain).unwrap();
        assert_eq!(query.places(&[0, 1], &domain).unwrap(), [1, 0, 1, 3, 2, 3]);
    }
}
