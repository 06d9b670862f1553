//! From rules to steps: the columns that a table needs, parents first.
//!
//! A step adds up one offset per parent into a context number and draws from that context's
//! distribution; where a question does not apply, the sum passes the last context and the code is 0.
//! Cost: see `model.rs`; once per [`super::Census`].

use std::collections::HashMap;

use super::draw::{Table, salt};
use super::model::{Lens, Model};
use super::rule::{Field, Link, Rule, Source, Term, Unit};

/// One column of the plan; parents are earlier columns.
pub(super) struct Step {
    pub action: Action,
    pub inherit: Option<(usize, Link)>,
}

pub(super) enum Action {
    Roster(Field),
    Draw { salt: u64, unit: Unit, parents: Vec<Parent>, table: Table },
    Function { parents: Vec<Parent>, codes: Vec<u16> },
}

pub(super) struct Parent {
    pub column: usize,
    /// What each code of the parent adds to the context number.
    pub offsets: Vec<u32>,
}

/// Steps in an order in which parents come first, and the step of each published attribute.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub published: Vec<usize>,
}

impl Plan {
    /// The steps that `published` (indices into `rules`) and their ancestors need.
    pub(super) fn new(rules: &[Rule], published: &[usize]) -> Self {
        let names = rules.iter().enumerate().map(|(i, rule)| (rule.name.as_str(), i)).collect();
        let mut order = Order { rules, names, column: vec![None; rules.len()], steps: Vec::new() };
        let published = published.iter().map(|&rule| order.visit(rule)).collect();
        Self { steps: order.steps, published }
    }
}

struct Order<'a> {
    rules: &'a [Rule],
    names: HashMap<&'a str, usize>,
    /// Column of each rule that already has one.
    column: Vec<Option<usize>>,
    steps: Vec<Step>,
}

impl Order<'_> {
    fn visit(&mut self, rule: usize) -> usize {
        if let Some(column) = self.column[rule] {
            return column;
        }
        let rules = self.rules;
        for parent in rules[rule].parents() {
            self.visit(self.names[parent]);
        }
        let step = self.compile(&rules[rule]);
        self.steps.push(step);
        *self.column[rule].insert(self.steps.len() - 1)
    }

    fn column_of(&self, name: &str) -> usize {
        self.column[self.names[name]].expect("parents are visited first")
    }

    fn compile(&self, rule: &Rule) -> Step {
        let action = match &rule.source {
            Source::Roster(field) => Action::Roster(*field),
            Source::Drawn(drawn) => {
                let salt = salt(&rule.name);
                let cardinality = |name: &str| self.rules[self.names[name]].cardinality;
                let model = Model::new(salt, rule.cardinality, drawn, cardinality);
                let parents = self.parents(&drawn.terms, &model.lenses);
                let table = model.table();
                match table.function() {
                    Some(codes) => Action::Function { parents, codes },
                    None => Action::Draw { salt, unit: drawn.unit, parents, table },
                }
            }
        };
        let inherit = rule.inherit.map(|(parent, link)| (self.column_of(parent), link));
        Step { action, inherit }
    }

    /// One look-up per parent, also for a parent named in two terms.
    fn parents(&self, terms: &[Term], lenses: &[Lens]) -> Vec<Parent> {
        let mut parents: Vec<Parent> = Vec::new();
        let mut stride = 1;
        for (term, lens) in terms.iter().zip(lenses) {
            let offsets = lens.offsets(stride);
            stride *= lens.count;
            let column = self.column_of(term.parent);
            match parents.iter_mut().find(|parent| parent.column == column) {
                Some(parent) => {
                    for (sum, offset) in parent.offsets.iter_mut().zip(offsets) {
                        *sum += offset;
                    }
                }
                None => parents.push(Parent { column, offsets }),
            }
        }
        parents
    }
}
