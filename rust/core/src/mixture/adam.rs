//! Adam (Kingma and Ba 2015): steps by the mean gradient over the root of the mean squared gradient.

use rayon::prelude::*;

const MEAN: f32 = 0.9;
const SQUARE: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// Parameters for each task of a thread.
const CHUNK: usize = 1 << 14;

/// The running averages; empty before the first step.
#[derive(Debug, Default)]
pub(super) struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
}

impl Adam {
    /// Move the parameters against the gradient.
    pub(super) fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        self.mean.resize(parameters.len(), 0.0);
        self.square.resize(parameters.len(), 0.0);
        self.steps += 1;
        let rate = rate / (1.0 - MEAN.powi(self.steps));
        let spread = 1.0 / (1.0 - SQUARE.powi(self.steps));
        let averages = self.mean.par_chunks_mut(CHUNK).zip(self.square.par_chunks_mut(CHUNK));
        let chunks = parameters.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
        chunks.zip(averages).for_each(|((x, g), (m, v))| {
            for (((x, &g), m), v) in x.iter_mut().zip(g).zip(m).zip(v) {
                *m = MEAN * *m + (1.0 - MEAN) * g;
                *v = SQUARE * *v + (1.0 - SQUARE) * g * g;
                *x -= rate * *m / ((*v * spread).sqrt() + EPSILON);
            }
        });
    }
}
