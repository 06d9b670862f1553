//! The language of the attribute list: how one attribute depends on others.
//!
//! Every drawn attribute is a log-linear model: the probability of code v, given its parents, is
//! proportional to `base(v) * exp(sum of the parents' tilts of v)` on the codes the parents allow.
//! A parent is seen through classes of its codes (age through life stages, say) and acts by one
//! effect; exact functions and general codes are the case in which one code is allowed.

use std::ops::Range;

/// Who shares one draw.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// Everyone under one roof.
    Household,
    /// The head and the relatives; lodgers, servants and inmates each stand alone.
    Family,
    /// Each person.
    Person,
}

/// A relative in the same household, whose value may be copied.
#[derive(Clone, Copy)]
pub(super) enum Link {
    Father,
    Mother,
}

/// What the household roster (`roster.rs`) knows about a row. Lines count from 1; 0 is nobody.
#[derive(Clone, Copy)]
pub(super) enum Field {
    Sex,
    Age,
    MaritalStatus,
    Relation,
    Quarters,
    Size,
    HeadAge,
    Children,
    ChildrenUnder5,
    EldestChild,
    YoungestChild,
    Siblings,
    MotherLine,
    FatherLine,
    Generations,
    HouseholdType,
}

/// Weights before any parent's effect. Positions run from 0 (first code) to 1 (last).
#[derive(Clone, Copy)]
pub(super) enum Base {
    /// 1 / rank^s: a heavy first code and a long tail; 0 is uniform.
    Zipf(f64),
    /// A flag: share p on the codes after the first, as Zipf(1).
    Rare(f64),
    /// Normal in the position: mode, standard deviation.
    Bell(f64, f64),
    /// Normal amounts, which people round: fives and tens stand out.
    Heaped(f64, f64),
    /// One weight per code that can occur.
    Weights(&'static [f64]),
}

/// How codes of a parent are grouped.
#[derive(Clone, Copy)]
pub(super) enum Classes {
    Each,
    /// A class ends before each of these codes.
    Cuts(&'static [u16]),
    /// This many runs of equal length.
    Bands(u16),
    /// Only codes in this range; outside it the attribute does not apply and takes code 0.
    Only(u16, u16),
}

/// What a class of the parent does to the attribute.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Each (class, code) has its own pseudo-random log weight of this standard deviation.
    Scatter(f64),
    /// Higher classes favour higher codes: log weights up to this at the corners.
    Trend(f64),
    /// Classes in the middle favour higher codes, the first and last lower ones.
    Hump(f64),
    /// Each class favours low or high codes at random, with this standard deviation.
    Shift(f64),
    /// Odds of all codes after the first are multiplied by the class's factor.
    Odds(&'static [f64]),
    /// The largest code allowed in each class.
    Cap(&'static [u16]),
    /// Codes are at most class number minus this.
    AtMost(u16),
    /// A detailed code: each class owns a run of codes; run lengths follow Zipf of this exponent.
    Within(f64),
    /// A general code: runs of classes share one code.
    Band,
    /// An exact function without order, such as a score looked up for an occupation.
    Lookup,
    /// The code is the sum, over the parents that say so, of the class's number.
    Add(&'static [u16]),
    /// Nearly one-to-one: the code at the class's place, or one of its neighbours.
    Near,
    /// No effect beyond [`Classes::Only`].
    Nothing,
}

pub(super) struct Term {
    pub parent: &'static str,
    pub classes: Classes,
    pub effect: Effect,
}

pub(super) enum Source {
    Roster(Field),
    Drawn(Drawn),
}

/// A log-linear model and who shares a draw from it.
pub(super) struct Drawn {
    pub unit: Unit,
    pub base: Base,
    pub terms: Vec<Term>,
    /// Standard deviation of a pseudo-random log weight per (classes of all parents, code).
    pub cross: f64,
}

/// How one attribute is made.
pub(super) struct Rule {
    pub name: String,
    pub cardinality: u16,
    /// A hidden cause: parent of others, never a column.
    pub latent: bool,
    pub source: Source,
    /// Copy this attribute of this relative, if the household has them.
    pub inherit: Option<(&'static str, Link)>,
}

impl Rule {
    /// Parents of the rule, in the order of its terms.
    pub(super) fn parents(&self) -> impl Iterator<Item = &'static str> {
        let terms: &[Term] = match &self.source {
            Source::Roster(_) => &[],
            Source::Drawn(drawn) => &drawn.terms,
        };
        terms.iter().map(|term| term.parent).chain(self.inherit.map(|(parent, _)| parent))
    }

    /// Keep it out of the table.
    pub(super) fn hidden(mut self) -> Self {
        self.latent = true;
        self
    }

    /// Let parents interact, see [`Drawn::cross`].
    pub(super) fn cross(mut self, strength: f64) -> Self {
        if let Source::Drawn(drawn) = &mut self.source {
            drawn.cross = strength;
        }
        self
    }

    pub(super) fn inherit(mut self, parent: &'static str, link: Link) -> Self {
        self.inherit = Some((parent, link));
        self
    }
}

pub(super) fn roster(name: &str, cardinality: u16, field: Field) -> Rule {
    let source = Source::Roster(field);
    Rule { name: name.to_owned(), cardinality, latent: false, source, inherit: None }
}

fn drawn(name: &str, cardinality: u16, unit: Unit, base: Base, terms: Vec<Term>) -> Rule {
    let source = Source::Drawn(Drawn { unit, base, terms, cross: 0.0 });
    Rule { name: name.to_owned(), cardinality, latent: false, source, inherit: None }
}

pub(super) fn household(name: &str, cardinality: u16, base: Base, terms: Vec<Term>) -> Rule {
    drawn(name, cardinality, Unit::Household, base, terms)
}

pub(super) fn family(name: &str, cardinality: u16, base: Base, terms: Vec<Term>) -> Rule {
    drawn(name, cardinality, Unit::Family, base, terms)
}

pub(super) fn person(name: &str, cardinality: u16, base: Base, terms: Vec<Term>) -> Rule {
    drawn(name, cardinality, Unit::Person, base, terms)
}

/// The parent, through classes of its codes, has this effect.
pub(super) fn by(parent: &'static str, classes: Classes, effect: Effect) -> Term {
    Term { parent, classes, effect }
}

/// Asked only where the parent's code lies in the range; otherwise code 0.
pub(super) fn only(parent: &'static str, codes: Range<u16>) -> Term {
    by(parent, Classes::Only(codes.start, codes.end), Effect::Nothing)
}

/// Open end of a range of codes.
pub(super) const MAX: u16 = u16::MAX;
