//! GEM's generator ([G] section 4): a network that maps fixed points to the logits of a mixture of products.
//!
//! K points z are drawn once from a normal distribution. Two blocks turn h into `concat(relu(norm(h W + b)), h)`, and a
//! last layer gives the logits. `norm` is batch normalisation over the K points in training mode, with a scale and a
//! shift for each unit. So the components are tied: a step that moves one moves the others.
//!
//! Cost: six products of matrices a step, of K times the widths: .5 to 3 billion multiplications with GEM's widths,
//! by `matrixmultiply`. They are cut into blocks of rows that do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::zeros;
use crate::random::Random;

/// Rows of a product of matrices for each task of a thread.
const ROWS: usize = 64;

/// Added to the variance of a unit.
const EPSILON: f32 = 1e-5;

const BLOCKS: usize = 2;

/// The sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Of the fixed points.
    pub embedding: usize,
    /// Of each block.
    pub hidden: usize,
}

/// A layer's place in the vector of all parameters.
#[derive(Debug, Clone)]
struct Layer {
    inputs: usize,
    outputs: usize,
    weights: Range<usize>,
    bias: Range<usize>,
    /// Scale and shift of the normalisation; the last layer has none.
    norm: Option<(Range<usize>, Range<usize>)>,
}

/// What a block's backward pass needs of its forward pass.
#[derive(Debug, Default)]
struct Passed {
    /// The input.
    input: Vec<f32>,
    /// The normalised units.
    normal: Vec<f32>,
    /// One over the standard deviation of each unit.
    inverse: Vec<f32>,
    /// Whether a unit is above 0.
    open: Vec<bool>,
}

/// The network, with the state of its last forward pass.
#[derive(Debug)]
pub(super) struct Network {
    points: usize,
    parameters: Vec<f32>,
    layers: Vec<Layer>,
    fixed: Vec<f32>,
    passed: Vec<Passed>,
    /// The input of the last layer.
    top: Vec<f32>,
}

impl Network {
    /// A network with random weights, uniform in plus or minus one over the root of the inputs.
    pub(super) fn new(widths: Widths, points: usize, outputs: usize, seed: u64) -> Result<Self> {
        let Widths { embedding, hidden } = widths;
        if embedding == 0 || hidden == 0 {
            return Err(Error::InvalidParameter("a network needs widths of at least 1".into()));
        }
        let mut end = 0;
        let mut place = |length: usize| {
            end += length;
            end - length..end
        };
        let mut layers = Vec::new();
        for block in 0..=BLOCKS {
            let inputs = embedding + block * hidden;
            let outputs = if block < BLOCKS { hidden } else { outputs };
            layers.push(Layer {
                inputs,
                outputs,
                weights: place(inputs * outputs),
                bias: place(outputs),
                norm: (block < BLOCKS).then(|| (place(outputs), place(outputs))),
            });
        }
        let mut parameters: Vec<f32> = zeros(end)?;
        let mut random = Random::new([seed, 0x6e65_7477]);
        for layer in &layers {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any number will do")]
            let mut draw = || (random.unit() * 2.0 - 1.0) as f32 / (layer.inputs as f32).sqrt();
            parameters[layer.weights.start..layer.bias.end].fill_with(&mut draw);
            if let Some((scale, _)) = &layer.norm {
                parameters[scale.clone()].fill(1.0);
            }
        }
        let mut fixed = zeros(points * embedding)?;
        fixed.fill_with(|| normal(&mut random));
        let passed = (0..BLOCKS).map(|_| Passed::default()).collect();
        Ok(Self { points, parameters, layers, fixed, passed, top: Vec::new() })
    }

    pub(super) fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    pub(super) fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Write the logits: K for each value.
    pub(super) fn forward(&mut self, logits: &mut [f32]) {
        let k = self.points;
        let mut input = self.fixed.clone();
        for (layer, passed) in self.layers.iter().zip(&mut self.passed) {
            let mut units = vec![0.0; k * layer.outputs];
            let weights = &self.parameters[layer.weights.clone()];
            multiply(&mut units, rows(&input, layer.inputs), rows(weights, layer.outputs), layer.inputs);
            let (scale, shift) = layer.norm.clone().expect("a block has a norm");
            let (scale, shift) = (&self.parameters[scale], &self.parameters[shift]);
            // The bias moves the mean, which the norm takes away again.
            passed.inverse = normalise(&mut units, layer.outputs);
            let width = layer.outputs + layer.inputs;
            let mut output = vec![0.0; k * width];
            passed.open = vec![false; units.len()];
            let lines = output.par_chunks_exact_mut(width).zip(units.par_chunks_exact(layer.outputs));
            let opened = passed.open.par_chunks_exact_mut(layer.outputs);
            lines.zip(opened).zip(input.par_chunks_exact(layer.inputs)).for_each(|(((out, units), open), input)| {
                for (i, &unit) in units.iter().enumerate() {
                    let value = unit * scale[i] + shift[i];
                    open[i] = value > 0.0;
                    out[i] = value.max(0.0);
                }
                out[units.len()..].copy_from_slice(input);
            });
            passed.normal = units;
            passed.input = std::mem::replace(&mut input, output);
        }
        self.top = input;
        let last = &self.layers[BLOCKS];
        let weights = &self.parameters[last.weights.clone()];
        multiply(logits, columns(weights, last.outputs), columns(&self.top, last.inputs), last.inputs);
        let bias = &self.parameters[last.bias.clone()];
        logits.par_chunks_exact_mut(k).zip(bias).for_each(|(row, bias)| row.iter_mut().for_each(|x| *x += bias));
    }

    /// The gradient in all parameters, given that in the logits of the last forward pass.
    pub(super) fn backward(&self, logits: &[f32]) -> Vec<f32> {
        let k = self.points;
        let mut gradient = vec![0.0; self.parameters.len()];
        let last = &self.layers[BLOCKS];
        multiply(&mut gradient[last.weights.clone()], columns(&self.top, last.inputs), columns(logits, k), k);
        for (g, row) in gradient[last.bias.clone()].iter_mut().zip(logits.chunks_exact(k)) {
            *g = row.iter().sum();
        }
        let mut above = vec![0.0; k * last.inputs];
        let weights = &self.parameters[last.weights.clone()];
        multiply(&mut above, columns(logits, k), columns(weights, last.outputs), last.outputs);
        for (layer, passed) in self.layers[..BLOCKS].iter().zip(&self.passed).rev() {
            let (width, outputs) = (layer.outputs + layer.inputs, layer.outputs);
            let (scale, shift) = layer.norm.clone().expect("a block has a norm");
            // Of the units after the norm's scale and shift.
            let mut units = vec![0.0; k * outputs];
            units
                .chunks_exact_mut(outputs)
                .zip(above.chunks_exact(width))
                .zip(passed.open.chunks_exact(outputs))
                .for_each(|((units, above), open)| {
                    for i in 0..outputs {
                        units[i] = if open[i] { above[i] } else { 0.0 };
                    }
                });
            let (of_scale, of_shift) = sums(&units, &passed.normal, outputs);
            let scales = &self.parameters[scale.clone()];
            normalised_gradient(&mut units, passed, scales, &of_scale, &of_shift);
            gradient[scale].copy_from_slice(&of_scale);
            gradient[shift].copy_from_slice(&of_shift);
            multiply(
                &mut gradient[layer.weights.clone()],
                columns(&passed.input, layer.inputs),
                rows(&units, outputs),
                k,
            );
            if layer.inputs > self.layers[0].inputs {
                let mut below = vec![0.0; k * layer.inputs];
                let weights = &self.parameters[layer.weights.clone()];
                multiply(&mut below, rows(&units, outputs), columns(weights, outputs), outputs);
                for (below, above) in below.chunks_exact_mut(layer.inputs).zip(above.chunks_exact(width)) {
                    below.iter_mut().zip(&above[outputs..]).for_each(|(x, y)| *x += y);
                }
                above = below;
            }
        }
        gradient
    }
}

/// Give each unit mean 0 and variance 1 over the points; return one over its standard deviation.
fn normalise(units: &mut [f32], width: usize) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let share = 1.0 / (units.len() / width) as f32;
    let mut mean = vec![0.0; width];
    for row in units.chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x * share);
    }
    let mut inverse = vec![0.0; width];
    for row in units.chunks_exact_mut(width) {
        for ((x, mean), variance) in row.iter_mut().zip(&mean).zip(&mut inverse) {
            *x -= mean;
            *variance += *x * *x * share;
        }
    }
    for x in &mut inverse {
        *x = 1.0 / (*x + EPSILON).sqrt();
    }
    for row in units.chunks_exact_mut(width) {
        row.iter_mut().zip(&inverse).for_each(|(x, inverse)| *x *= inverse);
    }
    inverse
}

/// For each unit the sum of the gradient times the normalised unit, and of the gradient.
fn sums(gradient: &[f32], normal: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut products, mut plain) = (vec![0.0; width], vec![0.0; width]);
    for (g, x) in gradient.chunks_exact(width).zip(normal.chunks_exact(width)) {
        for i in 0..width {
            products[i] += g[i] * x[i];
            plain[i] += g[i];
        }
    }
    (products, plain)
}

/// Replace the gradient after the norm by that before it.
fn normalised_gradient(units: &mut [f32], passed: &Passed, scale: &[f32], of_scale: &[f32], of_shift: &[f32]) {
    let width = scale.len();
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let share = 1.0 / (units.len() / width) as f32;
    for (g, x) in units.chunks_exact_mut(width).zip(passed.normal.chunks_exact(width)) {
        for i in 0..width {
            g[i] = scale[i] * passed.inverse[i] * (g[i] - share * of_shift[i] - x[i] * share * of_scale[i]);
        }
    }
}

/// A matrix to multiply: its values, and how far the next row and the next column are.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    values: &'a [f32],
    row: usize,
    column: usize,
}

/// A matrix in rows of some length.
fn rows(values: &[f32], length: usize) -> Matrix<'_> {
    Matrix { values, row: length, column: 1 }
}

/// The transpose of a matrix in rows of some length.
fn columns(values: &[f32], length: usize) -> Matrix<'_> {
    Matrix { values, row: 1, column: length }
}

/// Write the product of two matrices, in rows.
///
/// # Panics
/// If the matrices are smaller than the product needs.
fn multiply(out: &mut [f32], a: Matrix<'_>, b: Matrix<'_>, inner: usize) {
    let (m, n) = (a.values.len() / inner, b.values.len() / inner);
    assert_eq!(out.len(), m * n, "the product of {m} x {inner} and {inner} x {n}");
    assert_eq!((a.values.len(), b.values.len()), (m * inner, inner * n), "whole matrices");
    #[expect(clippy::cast_possible_wrap, reason = "lengths of slices")]
    let [a_row, a_column, b_row, b_column, width] = [a.row, a.column, b.row, b.column, n].map(|step| step as isize);
    out.par_chunks_mut(ROWS * n).enumerate().for_each(|(block, out)| {
        let first = &a.values[block * ROWS * a.row..];
        // SAFETY: `out` has `out.len() / n` rows of `n`. The rows of `a` from `block * ROWS` on and all of `b` lie in
        // their slices: both have as many values as rows times columns, dense in either order.
        unsafe {
            matrixmultiply::sgemm(
                out.len() / n,
                inner,
                n,
                1.0,
                first.as_ptr(),
                a_row,
                a_column,
                b.values.as_ptr(),
                b_row,
                b_column,
                0.0,
                out.as_mut_ptr(),
                width,
                1,
            );
        }
    });
}

/// A standard normal number (Box and Muller).
#[expect(clippy::cast_possible_truncation, reason = "post-processing: any number will do")]
fn normal(random: &mut Random) -> f32 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    (radius * (std::f64::consts::TAU * random.unit()).cos()) as f32
}
