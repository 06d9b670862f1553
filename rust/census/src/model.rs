//! From a rule to its table: the log-linear model of `rule.rs`, one distribution per context.
//!
//! A context is one class of each parent. Its parents first allow a run of codes (the frame: one code
//! for functions and general codes, a part of the domain for detailed codes), then weigh them.
//! Pseudo-random effects are hashes of the attribute's name, so the population's laws are the same
//! for every seed.
//! Cost: O(contexts * codes * parents) time, 8 bytes per context and allowed code.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "codes, classes and their products are far below 2^24"
)]

use std::ops::Range;

use chicle_core::random::mix;

use super::draw::Table;
use super::rule::{Base, Classes, Drawn, Effect, Term};

/// Offset of an attribute that does not apply; larger than any context number.
const NOT_APPLICABLE: u32 = 1 << 24;

impl Classes {
    fn count(self, cardinality: u16) -> u32 {
        match self {
            Self::Each => cardinality.into(),
            Self::Cuts(cuts) => cuts.len() as u32 + 1,
            Self::Bands(bands) => bands.into(),
            Self::Only(..) => 1,
        }
    }

    /// The class of a code; none where the question does not apply.
    fn of(self, code: u16, cardinality: u16) -> Option<u32> {
        match self {
            Self::Each => Some(code.into()),
            Self::Cuts(cuts) => Some(cuts.partition_point(|&cut| cut <= code) as u32),
            Self::Bands(bands) => Some(u32::from(code) * u32::from(bands) / u32::from(cardinality)),
            Self::Only(start, end) => (start..end).contains(&code).then_some(0),
        }
    }
}

/// A parent's codes as classes.
pub(super) struct Lens {
    class: Vec<Option<u32>>,
    /// Number of classes.
    pub count: u32,
    /// Rank of each class among those in which the question applies.
    rank: Vec<Option<u32>>,
}

impl Lens {
    /// The view of `term` on a parent; the other `terms` may exclude codes of the same parent.
    fn new(term: &Term, cardinality: u16, terms: &[Term]) -> Self {
        let class_of = |term: &Term, code| term.classes.of(code, cardinality);
        let class: Vec<_> = (0..cardinality).map(|code| class_of(term, code)).collect();
        let count = term.classes.count(cardinality);
        let mut applies = vec![false; count as usize];
        for (code, class) in (0..).zip(&class) {
            let mut same_parent = terms.iter().filter(|other| other.parent == term.parent);
            if let Some(class) = class
                && same_parent.all(|other| class_of(other, code).is_some())
            {
                applies[*class as usize] = true;
            }
        }
        let mut ranks = 0..;
        let rank = applies.iter().map(|&applies| if applies { ranks.next() } else { None }).collect();
        Self { class, count, rank }
    }

    /// What each code of the parent adds to the context number.
    pub(super) fn offsets(&self, stride: u32) -> Vec<u32> {
        let offset = |class: &Option<u32>| class.map_or(NOT_APPLICABLE, |class| class * stride);
        self.class.iter().map(offset).collect()
    }

    /// Class position from -1 to 1.
    fn position(&self, class: u32) -> f64 {
        if self.count < 2 { 0.0 } else { 2.0 * f64::from(class) / f64::from(self.count - 1) - 1.0 }
    }

    /// Rank of a class that applies, and how many do.
    fn rank(&self, class: u32) -> (u32, u32) {
        (self.rank[class as usize].unwrap_or(0), self.rank.iter().flatten().count() as u32)
    }
}

/// One rule, seen as distributions.
pub(super) struct Model<'a> {
    salt: u64,
    drawn: &'a Drawn,
    /// One per term.
    pub lenses: Vec<Lens>,
    /// Codes that occur where the question applies; 0 is kept free if it may not apply.
    codes: Range<u16>,
    /// The runs of codes that classes own, for each term that says [`Effect::Within`].
    runs: Vec<Vec<Range<u16>>>,
}

impl<'a> Model<'a> {
    /// The model of an attribute of this cardinality, given those of its parents by name.
    pub(super) fn new(salt: u64, cardinality: u16, drawn: &'a Drawn, parent_cardinality: impl Fn(&str) -> u16) -> Self {
        let terms = &drawn.terms;
        let lens = |term: &Term| Lens::new(term, parent_cardinality(term.parent), terms);
        let lenses: Vec<Lens> = terms.iter().map(lens).collect();
        let conditional = terms.iter().any(|term| matches!(term.classes, Classes::Only(..)));
        let codes = u16::from(conditional)..cardinality;
        let runs_of = |(term, lens): (&Term, &Lens)| match term.effect {
            Effect::Within(skew) => runs(&codes, skew, lens.rank(0).1),
            _ => Vec::new(),
        };
        let runs = terms.iter().zip(&lenses).map(runs_of).collect();
        Self { salt, drawn, lenses, codes, runs }
    }

    /// A distribution for every context and, if the question may not apply, a last one for that.
    pub(super) fn table(&self) -> Table {
        let contexts: u32 = self.lenses.iter().map(|lens| lens.count).product();
        assert!(contexts < NOT_APPLICABLE, "too many contexts");
        let mut table = Table::from_weights((0..contexts).map(|context| {
            let mut rest = context;
            let mut digit = |lens: &Lens| {
                let class = rest % lens.count;
                rest /= lens.count;
                class
            };
            let classes: Vec<u32> = self.lenses.iter().map(&mut digit).collect();
            let frame = self.frame(&classes);
            let weight = |code| self.weight(context, &classes, &frame, code);
            (frame.start, frame.clone().map(weight).collect())
        }));
        if self.codes.start == 1 {
            table.push(0, &[1.0]);
        }
        table
    }

    /// Number, effect, lens and class of each term.
    fn views<'b>(&'b self, classes: &'b [u32]) -> impl Iterator<Item = (usize, Effect, &'b Lens, u32)> {
        let views = self.drawn.terms.iter().zip(&self.lenses).zip(classes).enumerate();
        views.map(|(t, ((term, lens), &class))| (t, term.effect, lens, class))
    }

    /// The run of codes that the classes allow.
    fn frame(&self, classes: &[u32]) -> Range<u16> {
        let Range { start, end } = self.codes;
        let width = u32::from(end - start);
        let mut frame = start..end;
        let mut sum = None;
        for (t, effect, lens, class) in self.views(classes) {
            let (rank, of) = lens.rank(class);
            let place = start + (rank * width / of) as u16;
            match effect {
                Effect::Within(_) => frame = self.runs[t][rank as usize].clone(),
                Effect::Band => frame = place..place + 1,
                Effect::Near => frame = place..(place + 3).min(end),
                Effect::Lookup => {
                    let code = start + (mix(self.salt ^ u64::from(class)) % u64::from(width)) as u16;
                    frame = code..code + 1;
                }
                Effect::Add(numbers) => *sum.get_or_insert(0) += numbers[class as usize],
                _ => {}
            }
        }
        sum.map_or(frame, |code| code..code + 1)
    }

    fn hash(&self, term: u64, class: u32, code: u16) -> u64 {
        mix(self.salt ^ mix((term << 48) | (u64::from(class) << 16) | u64::from(code)))
    }

    fn weight(&self, context: u32, classes: &[u32], frame: &Range<u16>, code: u16) -> f64 {
        let rank = code - frame.start;
        let position = f64::from(rank) / (frame.len().max(2) - 1) as f64;
        let slope = 2.0 * position - 1.0;
        let mut weight = base_weight(self.drawn.base, rank, position, frame.len());
        let mut tilt = 0.0;
        let mut largest = u16::MAX;
        for (t, effect, lens, class) in self.views(classes) {
            let noise = |code| normal(self.hash(t as u64, class, code));
            match effect {
                Effect::Scatter(s) => tilt += s * noise(code),
                Effect::Shift(s) => tilt += s * noise(0) * slope,
                Effect::Trend(s) => tilt += s * lens.position(class) * slope,
                Effect::Hump(s) => tilt += s * (1.0 - 2.0 * lens.position(class).abs()) * slope,
                Effect::Odds(factors) if rank > 0 => weight *= factors[class as usize],
                Effect::Cap(caps) => largest = largest.min(caps[class as usize]),
                Effect::AtMost(lag) => largest = largest.min((class as u16).saturating_sub(lag)),
                _ => {}
            }
        }
        if self.drawn.cross > 0.0 {
            tilt += self.drawn.cross * normal(self.hash(u64::MAX, context, code));
        }
        if code > largest.max(frame.start) { 0.0 } else { weight * tilt.exp() }
    }
}

fn base_weight(base: Base, rank: u16, position: f64, codes: usize) -> f64 {
    let zipf = |exponent: f64| (1.0 + f64::from(rank)).powf(-exponent);
    let bell = |mode: f64, width: f64| (-0.5 * ((position - mode) / width).powi(2)).exp();
    match base {
        Base::Zipf(exponent) => zipf(exponent),
        Base::Rare(share) if rank == 0 => 1.0 - share,
        Base::Rare(share) => {
            let total: f64 = (2..=codes).map(|rank| 1.0 / rank as f64).sum();
            share * zipf(1.0) / total
        }
        Base::Bell(mode, width) => bell(mode, width),
        Base::Heaped(mode, width) => {
            let round = if rank.is_multiple_of(10) {
                5.0
            } else if rank.is_multiple_of(5) {
                3.0
            } else {
                1.0
            };
            round * bell(mode, width)
        }
        Base::Weights(weights) => weights[usize::from(rank)],
    }
}

/// `codes` cut into `classes` runs of at least one code, of lengths near Zipf of exponent `skew`.
fn runs(codes: &Range<u16>, skew: f64, classes: u32) -> Vec<Range<u16>> {
    let spare = f64::from(codes.end - codes.start) - f64::from(classes);
    assert!(spare >= 0.0, "a detailed attribute needs a code for each general code");
    let weights: Vec<f64> = (1..=classes).map(|rank| f64::from(rank).powf(-skew)).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut start = codes.start;
    (0..)
        .zip(&weights)
        .map(|(class, weight)| {
            sum += weight;
            let end = codes.start + class + 1 + whole(spare * sum / total);
            let run = start..end;
            start = end;
            run
        })
        .collect()
}

#[allow(clippy::cast_sign_loss, reason = "codes are not negative")]
fn whole(x: f64) -> u16 {
    x.round() as u16
}

/// A nearly normal deviate of variance 1: the sum of four uniform ones, without a transcendental.
fn normal(hash: u64) -> f64 {
    let sum: f64 = [0, 16, 32, 48].map(|shift| f64::from((hash >> shift) as u16)).iter().sum();
    (sum / 65_536.0 - 2.0) * 3.0_f64.sqrt()
}
