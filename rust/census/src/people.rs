//! Households and institutions: the hand-written core of the simulated census.
//!
//! A household has a head, often a spouse, children whose ages fit the mother's, then other relatives
//! and lodgers; an institution has inmates and a few staff. Ages heap on fives and tens, as people
//! round. Only sex, age, relation and marital status are made here; what follows from them is
//! derived in `roster.rs`, the rest is drawn by rule.
//! Cost: about five draws per person.

use super::draw::{Table, below, bits};

/// Codes of sex.
pub(super) const MALE: u16 = 0;
pub(super) const FEMALE: u16 = 1;

/// Codes of the relation to the head.
pub(super) const HEAD: u16 = 0;
pub(super) const SPOUSE: u16 = 1;
pub(super) const CHILD: u16 = 2;
pub(super) const CHILD_IN_LAW: u16 = 3;
pub(super) const PARENT: u16 = 4;
pub(super) const PARENT_IN_LAW: u16 = 5;
pub(super) const SIBLING: u16 = 6;
const SIBLING_IN_LAW: u16 = 7;
pub(super) const GRANDCHILD: u16 = 8;
pub(super) const OTHER_RELATIVE: u16 = 9;
pub(super) const LODGER: u16 = 11;
pub(super) const INMATE: u16 = 12;

/// Codes of marital status; between them: absent spouse, separated, divorced, widowed.
pub(super) const MARRIED: u16 = 0;
pub(super) const NEVER_MARRIED: u16 = 5;

/// Codes of quarters: a private household, a rooming house, then institutions of several kinds.
pub(super) const PRIVATE: u16 = 0;
pub(super) const ROOMING_HOUSE: u16 = 1;
pub(super) const INSTITUTION: u16 = 2;

/// Nobody younger than this works, earns or has married.
pub(super) const WORKING_AGE: u16 = 14;
const OLDEST: u16 = 101;

#[derive(Clone, Copy)]
pub(super) struct Person {
    pub relation: u16,
    pub sex: u16,
    pub age: u16,
    pub marital: u16,
}

/// The draws of one household, one after another.
pub(super) struct Draws {
    key: u64,
    count: u64,
}

impl Draws {
    pub(super) fn new(key: u64) -> Self {
        Self { key, count: 0 }
    }

    fn next(&mut self) -> u64 {
        self.count = self.count.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits(self.key, self.count)
    }

    fn below(&mut self, n: u16) -> u16 {
        below(self.next(), n)
    }

    fn percent(&mut self, chance: u16) -> bool {
        self.below(100) < chance
    }

    fn sex(&mut self, percent_male: u16) -> u16 {
        if self.percent(percent_male) { MALE } else { FEMALE }
    }

    fn from(&mut self, table: &Table, context: usize) -> u16 {
        let bits = self.next();
        table.draw(context, bits)
    }
}

/// The distributions that households and institutions are drawn from.
pub(super) struct People {
    /// Household size, from 1.
    size: Table,
    /// Age of the head, by size.
    head_age: Table,
    /// Age of the head minus age of the wife, plus 10.
    age_gap: Table,
    /// Age of the mother at a birth.
    mother_age: Table,
    /// Relation of other members, by whether the head is 45 or older.
    relation: Table,
    /// Marital status of those without a spouse in the household, by life stage and sex.
    marital: Table,
    /// Kind of institution, minus [`INSTITUTION`].
    institution: Table,
    /// Age of inmates by kind, then of lodgers, then of other relatives.
    age: Table,
}

const LODGER_AGES: usize = 6;
const RELATIVE_AGES: usize = 7;
/// Percentage of men among the inmates of each kind of institution.
const INMATES_MALE: [u16; 6] = [54, 95, 45, 30, 100, 50];
/// Life stages for marital status start at these ages.
const STAGES: [u16; 7] = [WORKING_AGE, 18, 22, 27, 35, 50, 65];

impl People {
    pub(super) fn new() -> Self {
        Self {
            size: Table::from_weights([(1, vec![9.0, 24.0, 22.0, 18.0, 12.0, 7.0, 4.0, 2.0, 1.0, 0.6, 0.25, 0.15])]),
            head_age: Table::from_weights([
                ages(17, 98, 58.0, 19.0),
                ages(17, 96, 50.0, 17.0),
                ages(18, 90, 43.0, 14.0),
                ages(19, 85, 40.0, 11.0),
                ages(22, 80, 42.0, 9.0),
            ]),
            age_gap: Table::from_weights([bell(0, 30, 13.0, 4.0)]),
            mother_age: Table::from_weights([bell(16, 45, 27.0, 6.0)]),
            // Child-in-law, parent, parent-in-law, sibling, sibling-in-law, grandchild, relative, friend, lodger.
            relation: Table::from_weights([
                (CHILD_IN_LAW, vec![0.2, 8.0, 7.0, 16.0, 10.0, 0.0, 12.0, 4.0, 30.0]),
                (CHILD_IN_LAW, vec![8.0, 8.0, 5.0, 9.0, 4.0, 24.0, 10.0, 3.0, 30.0]),
            ]),
            // Spouse absent, separated, divorced, widowed, never married: men, then women, by stage.
            marital: Table::from_weights(
                [
                    [0.001, 0.0, 0.0, 0.0, 0.999],
                    [0.02, 0.002, 0.002, 0.001, 0.975],
                    [0.05, 0.01, 0.01, 0.005, 0.925],
                    [0.08, 0.02, 0.04, 0.01, 0.85],
                    [0.11, 0.03, 0.09, 0.05, 0.72],
                    [0.12, 0.03, 0.12, 0.2, 0.53],
                    [0.08, 0.02, 0.06, 0.54, 0.3],
                    [0.005, 0.0, 0.0, 0.0, 0.995],
                    [0.06, 0.01, 0.01, 0.002, 0.918],
                    [0.1, 0.02, 0.03, 0.01, 0.84],
                    [0.12, 0.04, 0.09, 0.05, 0.7],
                    [0.11, 0.04, 0.15, 0.2, 0.5],
                    [0.07, 0.03, 0.1, 0.5, 0.3],
                    [0.03, 0.01, 0.03, 0.79, 0.14],
                ]
                .map(|weights| (1, weights.to_vec())),
            ),
            institution: Table::from_weights([(0, vec![34.0, 18.0, 12.0, 16.0, 14.0, 6.0])]),
            age: Table::from_weights([
                ages(1, 95, 48.0, 18.0),
                ages(16, 75, 32.0, 10.0),
                ages(50, 99, 75.0, 9.0),
                ages(6, 60, 14.0, 6.0),
                ages(17, 55, 24.0, 5.0),
                ages(0, 95, 38.0, 22.0),
                ages(15, 85, 34.0, 15.0),
                ages(0, 85, 30.0, 25.0),
            ]),
        }
    }

    /// Fill `members` with the people of an institution of `room` beds; returns its quarters code.
    pub(super) fn institution(&self, draws: &mut Draws, room: usize, members: &mut Vec<Person>) -> u16 {
        let code = draws.from(&self.institution, 0);
        let kind = usize::from(code);
        members.extend((0..room).map(|_| {
            let staff = draws.percent(8);
            let age = draws.from(&self.age, if staff { LODGER_AGES } else { kind });
            let sex = draws.sex(INMATES_MALE[kind]);
            self.single(draws, if staff { LODGER } else { INMATE }, sex, age)
        }));
        INSTITUTION + code
    }

    /// Fill `members` with a household of at most `room` people; returns its quarters code.
    pub(super) fn household(&self, draws: &mut Draws, room: usize, members: &mut Vec<Person>) -> u16 {
        let size = usize::from(draws.from(&self.size, 0)).min(room);
        let age = draws.from(&self.head_age, size.min(5) - 1);
        let sex = draws.sex(if size == 1 { 50 } else { 87 });
        let rooming_house = size > 4 && draws.percent(6);
        let married = size > 1 && sex == MALE && !rooming_house && draws.percent(91);
        let head = self.single(draws, HEAD, sex, age);
        members.push(head);
        let mut mother_age = if sex == MALE { age - 3 } else { age };
        if married {
            members[0].marital = MARRIED;
            mother_age = (age + 10).saturating_sub(draws.from(&self.age_gap, 0)).clamp(16, OLDEST);
            members.push(Person { relation: SPOUSE, sex: FEMALE, age: mother_age, marital: MARRIED });
        }
        // At most two births in three years since the age of 14, so a young mother has few.
        let mut births = if rooming_house { 0 } else { mother_age.saturating_sub(14) * 2 / 3 };
        for _ in members.len()..size {
            let member = if births > 0 && draws.percent(85) {
                births -= 1;
                self.child(draws, mother_age)
            } else {
                self.other(draws, age, rooming_house)
            };
            members.push(member);
        }
        members.sort_by_key(|member| (member.relation, u16::MAX - member.age));
        if rooming_house { ROOMING_HOUSE } else { PRIVATE }
    }

    fn child(&self, draws: &mut Draws, mother_age: u16) -> Person {
        let age = match mother_age.checked_sub(draws.from(&self.mother_age, 0)) {
            Some(age) => age,
            None => draws.below(mother_age - 14),
        };
        let sex = draws.sex(51);
        self.single(draws, CHILD, sex, age)
    }

    /// A relative other than spouse or child, or a lodger.
    fn other(&self, draws: &mut Draws, head_age: u16, rooming_house: bool) -> Person {
        let relation = match draws.from(&self.relation, usize::from(head_age >= 45)) {
            _ if rooming_house => LODGER,
            // Nobody is older than OLDEST.
            PARENT | PARENT_IN_LAW if head_age > 72 => SIBLING,
            relation => relation,
        };
        let age = match relation {
            PARENT | PARENT_IN_LAW => (head_age + 17 + draws.below(20)).min(OLDEST),
            SIBLING | SIBLING_IN_LAW => (head_age + draws.below(17)).saturating_sub(8),
            GRANDCHILD => draws.below(head_age - 36).min(25),
            OTHER_RELATIVE => draws.from(&self.age, RELATIVE_AGES),
            _ => draws.from(&self.age, LODGER_AGES),
        };
        let sex = draws.sex(if relation == PARENT { 30 } else { 52 });
        self.single(draws, relation, sex, age)
    }

    /// Someone without a spouse in the household.
    fn single(&self, draws: &mut Draws, relation: u16, sex: u16, age: u16) -> Person {
        let marital = match STAGES.iter().rposition(|&from| from <= age) {
            Some(stage) => draws.from(&self.marital, usize::from(sex) * STAGES.len() + stage),
            None => NEVER_MARRIED,
        };
        Person { relation, sex, age, marital }
    }
}

/// Weights of a normal law on `from..=to`.
fn bell(from: u16, to: u16, mean: f64, deviation: f64) -> (u16, Vec<f64>) {
    let weight = |x: u16| (-0.5 * ((f64::from(x) - mean) / deviation).powi(2)).exp();
    (from, (from..=to).map(weight).collect())
}

/// A normal law of ages as people state them.
fn ages(from: u16, to: u16, mean: f64, deviation: f64) -> (u16, Vec<f64>) {
    let (from, mut weights) = bell(from, to, mean, deviation);
    for (age, weight) in (from..).zip(&mut weights) {
        if age >= 20 && age % 10 == 0 {
            *weight *= 1.35;
        } else if age >= 20 && age % 5 == 0 {
            *weight *= 1.15;
        }
    }
    (from, weights)
}
