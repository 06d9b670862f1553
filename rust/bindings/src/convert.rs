//! Between numpy and the kernels: columns of codes, queries and targets in; columns and tables out.

use std::collections::HashMap;
use std::sync::Arc;

use chicle_core::Result;
use chicle_core::query;
use chicle_core::query::Query;
use chicle_core::table::{self, Column};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::Names;

/// A column of codes: one-dimensional, contiguous, `uint8`, `uint16` or `uint32`.
#[derive(FromPyObject)]
pub enum Codes<'py> {
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
}

impl Codes<'_> {
    fn column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            Self::U8(codes) => Column::U8(codes.as_slice()?),
            Self::U16(codes) => Column::U16(codes.as_slice()?),
            Self::U32(codes) => Column::U32(codes.as_slice()?),
        })
    }
}

/// Borrow all columns.
pub fn columns<'a>(codes: &'a [Codes<'_>]) -> PyResult<Vec<Column<'a>>> {
    codes.iter().map(Codes::column).collect()
}

/// Borrow the values of arrays.
pub fn slices<'a, T: Element>(arrays: &'a [PyReadonlyArray1<'_, T>]) -> PyResult<Vec<&'a [T]>> {
    arrays.iter().map(|array| Ok(array.as_slice()?)).collect()
}

/// The axes of a query: positions of attributes, and the bucket of each code if the attribute is in buckets.
pub type Axes<'py> = Vec<(usize, Option<PyReadonlyArray1<'py, u32>>)>;

/// A target: its axes; its values, whose shape gives the sizes of the axes if it has as many; and its weight.
pub type Target<'py> = (Axes<'py>, PyReadonlyArrayDyn<'py, f64>, f64);

/// Makes queries of axes; buckets that several share are copied once.
struct Reader<'a> {
    cardinalities: &'a [u32],
    /// By address and length: the arrays are alive and borrowed, so these identify their content.
    known: HashMap<(*const u32, usize), Arc<[u32]>>,
}

impl<'a> Reader<'a> {
    fn new(cardinalities: &'a [u32]) -> Self {
        Self { cardinalities, known: HashMap::new() }
    }

    fn query(&mut self, axes: &Axes<'_>, sizes: Option<&[usize]>) -> PyResult<Result<Query>> {
        let size_of = |i: usize| sizes.map(|sizes| u32::try_from(sizes[i]).unwrap_or(u32::MAX));
        let mut read = Vec::with_capacity(axes.len());
        for (i, (attribute, buckets)) in axes.iter().enumerate() {
            read.push(match buckets {
                None => {
                    // The check rejects an attribute that does not exist, whatever size it gets here.
                    let cardinality = self.cardinalities.get(*attribute).copied().unwrap_or(0);
                    query::Axis::plain(*attribute, size_of(i).unwrap_or(cardinality))
                }
                Some(buckets) => {
                    let buckets = buckets.as_slice()?;
                    let shared = self.known.entry((buckets.as_ptr(), buckets.len()));
                    query::Axis::in_buckets(*attribute, shared.or_insert_with(|| buckets.into()).clone(), size_of(i))
                }
            });
        }
        Ok(Query::new(read, self.cardinalities))
    }

    fn target(&mut self, (axes, values, weight): &Target<'_>) -> PyResult<Result<query::Target>> {
        let sizes = Some(values.shape()).filter(|shape| shape.len() == axes.len());
        let query = self.query(axes, sizes)?;
        let values = values.as_slice()?.to_vec();
        Ok(query.and_then(|query| query::Target::new(query, values, *weight)))
    }
}

/// Queries of axes, checked against the domain.
pub fn queries(names: &Names, cardinalities: &[u32], all: &[Axes<'_>]) -> PyResult<Vec<Query>> {
    let mut reader = Reader::new(cardinalities);
    all.iter().map(|axes| reader.query(axes, None)?.map_err(|error| names.explain(error))).collect()
}

/// Targets, checked against the domain.
pub fn targets(names: &Names, cardinalities: &[u32], all: &[Target<'_>]) -> PyResult<Vec<query::Target>> {
    let mut reader = Reader::new(cardinalities);
    all.iter().map(|target| reader.target(target)?.map_err(|error| names.explain(error))).collect()
}

/// Hand columns of codes to numpy.
pub fn arrays(py: Python<'_>, columns: Vec<table::Codes>) -> Vec<Bound<'_, PyAny>> {
    let array = |codes: table::Codes| match codes {
        table::Codes::U8(codes) => codes.into_pyarray(py).into_any(),
        table::Codes::U16(codes) => codes.into_pyarray(py).into_any(),
        table::Codes::U32(codes) => codes.into_pyarray(py).into_any(),
    };
    columns.into_iter().map(array).collect()
}

/// Hand flat tables to numpy.
pub fn tables<T: Element>(py: Python<'_>, tables: Vec<Vec<T>>) -> Vec<Bound<'_, PyArray1<T>>> {
    tables.into_iter().map(|table| table.into_pyarray(py)).collect()
}
