//! Mixtures of product distributions: the model of GEM and RAP (Liu, Vietri and Wu 2021; Aydore et al. 2021).
//!
//! K components of equal weight; in each of them attributes are independent. A cell of a marginal has the probability
//! `1/K sum over k of prod over its attributes of p[value][k]`: a polynomial whose gradient is one too ([`tables`]), for
//! marginals of any order. So a mixture is fitted to noisy tables, or to single cells, by gradient descent (Adam), and
//! it never has a table of the whole domain.
//!
//! The probabilities come from parameters by a [`Link`]: logits by a softmax for each attribute and component; the
//! probabilities themselves, projected on the simplex after each step, as RAP has them in its second version; or a
//! [`network`] that maps K fixed points to logits, GEM's generator. (RAP's first version clips numbers to -1..1. Rows of
//! these are no distributions, and their positive parts have other marginals than those that were fitted.)
//! Layout: value-major, K contiguous `f32` for each value of each attribute.
//!
//! Cost of a step: about 3 K multiplications for each cell that is fitted, and a few passes over the parameters.
//! Answers run over tables in parallel, gradients over blocks of components, so that neither depends on the number of
//! threads. Oracle: `naive`, in `f64`, and differences.

mod adam;
mod link;
#[cfg(test)]
mod naive;
mod network;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{Cancel, zeros};
use crate::random::Random;

use adam::Adam;
use network::Network;
pub use network::Widths;
pub use tables::Table;

/// Steps without a lower loss after which a fit of squares ends.
const PATIENCE: usize = 5;

/// How probabilities come from parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Logits for each value and component, and a softmax for each attribute.
    Softmax,
    /// The parameters themselves, projected on the simplex after each step.
    Projected,
    /// A network of these widths gives the logits.
    Network(Widths),
}

/// What a fit minimises.
#[derive(Debug, Clone)]
pub enum Loss {
    /// `K/2` times the weighted sum of squared errors, a weight for each table. The factor K makes gradients large
    /// beside Adam's epsilon.
    Squares(Vec<f32>),
    /// The mean size of the `most` largest errors that are at least a threshold ([G] section 4).
    Worst {
        /// Smaller errors count nothing.
        threshold: f32,
        /// How many errors count at most.
        most: usize,
    },
}

/// The step of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// How many steps at most.
    pub most: usize,
    /// The learning rate of the first step.
    pub rate: f32,
    /// Whether the rate falls to 0 with the steps, by a cosine.
    pub cosine: bool,
}

/// A mixture of products, with the parameters that it comes from.
#[derive(Debug)]
pub struct Mixture {
    /// The first row of each attribute, and the number of all rows.
    offsets: Vec<usize>,
    components: usize,
    source: Source,
    probabilities: Vec<f32>,
    gradient: Vec<f32>,
    adam: Adam,
}

#[derive(Debug)]
enum Source {
    Softmax(Vec<f32>),
    Projected(Vec<f32>),
    Network(Box<Network>),
    /// Probabilities that were fitted before.
    Fixed,
}

impl Mixture {
    /// A mixture with random parameters: logits, or numbers to project, uniform in -1..1.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] without components; [`Error::OutOfMemory`].
    pub fn new(cardinalities: &[u32], components: usize, link: Link, seed: u64) -> Result<Self> {
        let offsets = offsets(cardinalities);
        let size = sizes(&offsets, components)?;
        let mut random = Random::new([seed, 0x6d69_7874]);
        #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
        let mut uniform = || -> Result<Vec<f32>> {
            let mut drawn = zeros(size)?;
            drawn.fill_with(|| random.unit() as f32 * 2.0 - 1.0);
            Ok(drawn)
        };
        let source = match link {
            Link::Softmax => Source::Softmax(uniform()?),
            Link::Projected => {
                let mut x = uniform()?;
                link::project(&offsets, components, &mut x);
                Source::Projected(x)
            }
            Link::Network(widths) => {
                Source::Network(Box::new(Network::new(widths, components, offsets[cardinalities.len()], seed)?))
            }
        };
        let (probabilities, gradient) = (zeros(size)?, zeros(size)?);
        let mut new = Self { offsets, components, source, probabilities, gradient, adam: Adam::default() };
        new.refresh();
        Ok(new)
    }

    /// A mixture of given probabilities, which only answers.
    ///
    /// # Errors
    /// [`Error::WrongValues`] if there is another number of them than K for each value.
    pub fn of_probabilities(cardinalities: &[u32], components: usize, probabilities: Vec<f32>) -> Result<Self> {
        let offsets = offsets(cardinalities);
        let size = sizes(&offsets, components)?;
        if probabilities.len() != size {
            return Err(Error::WrongValues { values: probabilities.len(), cells: size as u128 });
        }
        let (source, gradient, adam) = (Source::Fixed, Vec::new(), Adam::default());
        Ok(Self { offsets, components, source, probabilities, gradient, adam })
    }

    /// A table to answer or to fit: for each of its axes an attribute, and one of its codes if the axis is that alone.
    ///
    /// # Errors
    /// [`Error::NoSuchAttribute`]; [`Error::AttributeTwice`]; [`Error::InvalidParameter`] for a code that is not there.
    pub fn table(&self, axes: &[(usize, Option<u32>)]) -> Result<Table> {
        let attributes = self.offsets.len() - 1;
        let mut rows: Vec<Range<usize>> = Vec::with_capacity(axes.len());
        for (i, &(attribute, code)) in axes.iter().enumerate() {
            if attribute >= attributes {
                return Err(Error::NoSuchAttribute { attribute, attributes });
            }
            if axes[..i].iter().any(|&(other, _)| other == attribute) {
                return Err(Error::AttributeTwice { attribute });
            }
            let all = self.offsets[attribute]..self.offsets[attribute + 1];
            rows.push(match code {
                None => all,
                Some(code) if all.start + (code as usize) < all.end => {
                    let row = all.start + code as usize;
                    row..row + 1
                }
                Some(_) => return Err(Error::InvalidParameter("an axis asks for a code that is not there".into())),
            });
        }
        Ok(Table::new(rows))
    }

    /// The probabilities of the cells of tables, end to end.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Interrupted`].
    pub fn answers(&self, tables: &[Table], cancel: &Cancel) -> Result<Vec<f32>> {
        tables::answers(&self.probabilities, self.components, tables, cancel)
    }

    /// Fit the parameters to the targets of tables, end to end; the loss before each step.
    ///
    /// A fit of squares ends when the loss has not fallen for some steps, one of the worst errors when none is above
    /// the threshold.
    ///
    /// # Errors
    /// [`Error::WrongValues`]; [`Error::InvalidParameter`] for a mixture of given probabilities;
    /// [`Error::OutOfMemory`]; [`Error::Interrupted`].
    pub fn fit(
        &mut self,
        tables: &[Table],
        targets: &[f32],
        loss: &Loss,
        steps: Steps,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        let cells: usize = tables.iter().map(Table::cells).sum();
        if targets.len() != cells {
            return Err(Error::WrongValues { values: targets.len(), cells: cells as u128 });
        }
        if let Loss::Squares(weights) = loss
            && weights.len() != tables.len()
        {
            return Err(Error::WrongValues { values: weights.len(), cells: tables.len() as u128 });
        }
        if matches!(self.source, Source::Fixed) {
            return Err(Error::InvalidParameter("this mixture has probabilities only, no parameters to fit".into()));
        }
        let mut losses = Vec::new();
        let (mut best, mut idle) = (f64::INFINITY, 0);
        for step in 0..steps.most {
            cancel.check()?;
            let mut errors = self.answers(tables, cancel)?;
            errors.iter_mut().zip(targets).for_each(|(answer, target)| *answer -= target);
            let value = loss.differentiate(&mut errors, tables, self.components);
            let Some(value) = value else { break };
            losses.push(value);
            if matches!(loss, Loss::Squares(_)) {
                idle = if value < best * (1.0 - 1e-7) { 0 } else { idle + 1 };
                best = best.min(value);
                if idle > PATIENCE && !steps.cosine {
                    break;
                }
            }
            tables::gradient(&self.probabilities, self.components, tables, &errors, &mut self.gradient, cancel)?;
            self.step(steps.rate_at(step));
        }
        Ok(losses)
    }

    /// Begin Adam's averages anew.
    pub fn reset(&mut self) {
        self.adam = Adam::default();
    }

    /// The probabilities: K for each value of each attribute.
    #[must_use]
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities
    }

    /// All parameters; none for a mixture of given probabilities.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        match &self.source {
            Source::Softmax(x) | Source::Projected(x) => x,
            Source::Network(network) => network.parameters(),
            Source::Fixed => &[],
        }
    }

    /// Take on parameters.
    ///
    /// # Errors
    /// [`Error::WrongValues`] if there is another number of them.
    pub fn set_parameters(&mut self, parameters: &[f32]) -> Result<()> {
        let own = match &mut self.source {
            Source::Softmax(x) | Source::Projected(x) => x.as_mut_slice(),
            Source::Network(network) => network.parameters_mut(),
            Source::Fixed => &mut [],
        };
        if own.len() != parameters.len() {
            return Err(Error::WrongValues { values: parameters.len(), cells: own.len() as u128 });
        }
        own.copy_from_slice(parameters);
        self.refresh();
        Ok(())
    }

    /// A step of Adam down the gradient of the loss in the probabilities.
    fn step(&mut self, rate: f32) {
        let Self { offsets, components, source, probabilities, gradient, adam } = self;
        match source {
            Source::Softmax(x) => {
                link::softmax_gradient(offsets, *components, probabilities, gradient);
                adam.step(x, gradient, rate);
            }
            Source::Projected(x) => {
                adam.step(x, gradient, rate);
                link::project(offsets, *components, x);
            }
            Source::Network(network) => {
                link::softmax_gradient(offsets, *components, probabilities, gradient);
                let gradient = network.backward(gradient);
                adam.step(network.parameters_mut(), &gradient, rate);
            }
            Source::Fixed => {}
        }
        self.refresh();
    }

    /// Bring the probabilities up to date with the parameters.
    fn refresh(&mut self) {
        let Self { offsets, components, source, probabilities, .. } = self;
        match source {
            Source::Softmax(x) => link::softmax(offsets, *components, x, probabilities),
            Source::Projected(x) => probabilities.copy_from_slice(x),
            Source::Network(network) => {
                network.forward(probabilities);
                link::softmax_in_place(offsets, *components, probabilities);
            }
            Source::Fixed => {}
        }
    }
}

impl Loss {
    /// The loss of errors, which become its gradient in the answers; `None` where nothing is left to fit.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn differentiate(&self, errors: &mut [f32], tables: &[Table], components: usize) -> Option<f64> {
        match self {
            Self::Squares(weights) => {
                let (mut loss, mut rest) = (0.0, errors);
                for (table, &weight) in tables.iter().zip(weights) {
                    let (own, others) = rest.split_at_mut(table.cells());
                    loss += f64::from(weight) / 2.0 * own.iter().map(|&e| f64::from(e) * f64::from(e)).sum::<f64>();
                    for e in own.iter_mut() {
                        *e *= weight * components as f32;
                    }
                    rest = others;
                }
                Some(loss)
            }
            Self::Worst { threshold, most } => {
                let mut worst: Vec<usize> = (0..errors.len()).filter(|&i| errors[i].abs() >= *threshold).collect();
                worst.sort_by(|&i, &j| errors[j].abs().total_cmp(&errors[i].abs()).then(i.cmp(&j)));
                worst.truncate(*most);
                let share = 1.0 / worst.len() as f32;
                let signs: Vec<f32> = worst.iter().map(|&i| errors[i].signum() * share).collect();
                let loss = worst.iter().map(|&i| f64::from(errors[i].abs())).sum::<f64>() / worst.len() as f64;
                errors.fill(0.0);
                worst.iter().zip(signs).for_each(|(&i, sign)| errors[i] = sign);
                (!worst.is_empty()).then_some(loss)
            }
        }
    }
}

impl Steps {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn rate_at(&self, step: usize) -> f32 {
        let turn = std::f32::consts::PI * step as f32 / self.most.max(1) as f32;
        if self.cosine { self.rate * (0.5 + 0.5 * turn.cos()) } else { self.rate }
    }
}

fn offsets(cardinalities: &[u32]) -> Vec<usize> {
    let ends = cardinalities.iter().scan(0, |end, &cardinality| {
        *end += cardinality as usize;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

fn sizes(offsets: &[usize], components: usize) -> Result<usize> {
    if components == 0 {
        return Err(Error::InvalidParameter("a mixture needs at least one component".into()));
    }
    let rows = offsets[offsets.len() - 1];
    rows.checked_mul(components).ok_or(Error::OutOfMemory { bytes: usize::MAX })
}
