//! Mixtures of products, some steps at a time.

use std::num::NonZero;

use chicle_core::mixture as kernel;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::Names;
use crate::handle::Handle;

/// A table as Python gives it: for each axis the position of an attribute, and its code if the axis is that alone.
type Axes = Vec<(usize, Option<u32>)>;

/// A mixture of products that is fitted to tables, or to single cells.
#[pyclass(module = "chicle._core", frozen)]
pub struct Mixture {
    handle: Handle<kernel::Mixture>,
}

impl Mixture {
    fn tables(&self, py: Python<'_>, asked: &[Axes]) -> PyResult<Vec<kernel::Table>> {
        self.handle.with(py, |mixture, _| asked.iter().map(|axes| mixture.table(axes)).collect())
    }
}

#[pymethods]
impl Mixture {
    /// With random parameters; `link` is "softmax", "projected", or "network" with its widths.
    #[new]
    #[pyo3(signature = (attributes, cardinalities, components, link, widths, seed, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        components: usize,
        link: &str,
        widths: (usize, usize),
        seed: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let (embedding, hidden) = widths;
        let link = match link {
            "softmax" => kernel::Link::Softmax,
            "projected" => kernel::Link::Projected,
            "network" => kernel::Link::Network(kernel::Widths { embedding, hidden }),
            _ => return Err(PyValueError::new_err("link must be \"softmax\", \"projected\" or \"network\"")),
        };
        let names = Names::new(attributes, std::iter::empty());
        let make = |_: &_| kernel::Mixture::new(&cardinalities, components, link, seed);
        Ok(Self { handle: Handle::new(py, threads, names, make)? })
    }

    /// Of given probabilities, which only answers.
    #[staticmethod]
    #[pyo3(signature = (attributes, cardinalities, components, probabilities, threads=None))]
    fn of_probabilities(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        components: usize,
        probabilities: PyReadonlyArray1<'_, f32>,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names::new(attributes, std::iter::empty());
        let probabilities = probabilities.as_slice()?.to_vec();
        let make = |_: &_| kernel::Mixture::of_probabilities(&cardinalities, components, probabilities);
        Ok(Self { handle: Handle::new(py, threads, names, make)? })
    }

    /// The probabilities of the cells of tables, end to end.
    fn answers<'py>(&self, py: Python<'py>, tables: Vec<Axes>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let tables = self.tables(py, &tables)?;
        Ok(self.handle.with(py, |mixture, cancel| mixture.answers(&tables, cancel))?.into_pyarray(py))
    }

    /// Up to that many steps down the weighted squared errors; the loss before each.
    #[pyo3(signature = (tables, targets, weights, steps, rate, cosine))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn fit_squares(
        &self,
        py: Python<'_>,
        tables: Vec<Axes>,
        targets: PyReadonlyArray1<'_, f32>,
        weights: Vec<f32>,
        steps: usize,
        rate: f32,
        cosine: bool,
    ) -> PyResult<Vec<f64>> {
        let tables = self.tables(py, &tables)?;
        let (targets, steps) = (targets.as_slice()?, kernel::Steps { most: steps, rate, cosine });
        let loss = kernel::Loss::Squares(weights);
        self.handle.with(py, |mixture, cancel| mixture.fit(&tables, targets, &loss, steps, cancel))
    }

    /// Up to that many steps down the mean of the `most` worst errors above a threshold; the loss before each.
    #[pyo3(signature = (tables, targets, threshold, most, steps, rate, cosine))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn fit_worst(
        &self,
        py: Python<'_>,
        tables: Vec<Axes>,
        targets: PyReadonlyArray1<'_, f32>,
        threshold: f32,
        most: usize,
        steps: usize,
        rate: f32,
        cosine: bool,
    ) -> PyResult<Vec<f64>> {
        let tables = self.tables(py, &tables)?;
        let (targets, steps) = (targets.as_slice()?, kernel::Steps { most: steps, rate, cosine });
        let loss = kernel::Loss::Worst { threshold, most };
        self.handle.with(py, |mixture, cancel| mixture.fit(&tables, targets, &loss, steps, cancel))
    }

    /// Begin Adam's averages anew.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |mixture, _| {
            mixture.reset();
            Ok(())
        })
    }

    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(self.handle.with(py, |mixture, _| Ok(mixture.probabilities().to_vec()))?.into_pyarray(py))
    }

    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(self.handle.with(py, |mixture, _| Ok(mixture.parameters().to_vec()))?.into_pyarray(py))
    }

    fn set_parameters(&self, py: Python<'_>, parameters: PyReadonlyArray1<'_, f32>) -> PyResult<()> {
        let parameters = parameters.as_slice()?;
        self.handle.with(py, |mixture, _| mixture.set_parameters(parameters))
    }
}
