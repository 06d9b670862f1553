//! The household of every row, and its keys, links and counts.
//!
//! Rows come in blocks of 64; a hash-driven walk cuts each block into households, or makes all of it
//! one institution, so the household of a row depends on its block alone. Rows of one household share
//! a key, and so all draws made with it.
//! Cost: O(rows) with the draws of `people.rs`, about 40 ns a row.

#![allow(clippy::cast_possible_truncation, reason = "a tile is far shorter than 65,536 rows")]

use chicle_core::random::mix;

use super::people::{
    CHILD, CHILD_IN_LAW, Draws, FEMALE, GRANDCHILD, HEAD, MALE, OTHER_RELATIVE, PARENT, PARENT_IN_LAW, People, Person,
    SIBLING, SPOUSE,
};
use super::rule::{Field, Link, Unit};

/// Rows of a block; no household crosses a block's end.
pub(super) const BLOCK: usize = 64;
const FIELDS: usize = Field::HouseholdType as usize + 1;
const UNITS: usize = Unit::Person as usize + 1;
const LINKS: usize = Link::Mother as usize + 1;
/// Relatives of the head have relations below this.
const UNRELATED: u16 = OTHER_RELATIVE + 1;

/// The rows of a tile, which starts and ends with a block.
pub(super) struct Roster {
    keys: [Vec<u64>; UNITS],
    /// Row of the relative, counted from the start of the tile; the row itself if there is none.
    links: [Vec<u16>; LINKS],
    fields: [Vec<u16>; FIELDS],
}

/// Parents and children of one member; lines count from 1, 0 is nobody.
#[derive(Clone, Copy, Default)]
struct Ties {
    mother: u16,
    father: u16,
    children: u16,
    under_5: u16,
    /// Age of the child plus 1; 0 without children.
    eldest: u16,
    youngest: u16,
}

impl Roster {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            keys: std::array::from_fn(|_| vec![0; rows]),
            links: std::array::from_fn(|_| vec![0; rows]),
            fields: std::array::from_fn(|_| vec![0; rows]),
        }
    }

    pub(super) fn keys(&self, unit: Unit) -> &[u64] {
        &self.keys[unit as usize]
    }

    pub(super) fn links(&self, link: Link) -> &[u16] {
        &self.links[link as usize]
    }

    pub(super) fn field(&self, field: Field) -> &[u16] {
        &self.fields[field as usize]
    }

    /// Make rows `first..first + rows` of the population; both are multiples of [`BLOCK`].
    pub(super) fn settle(&mut self, people: &People, seed: u64, first: u64, rows: usize) {
        let seed = mix(seed);
        for (row, key) in (first..).zip(&mut self.keys[Unit::Person as usize][..rows]) {
            *key = mix(seed.wrapping_add(row.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        }
        let mut members = Vec::with_capacity(BLOCK);
        for block in (0..rows).step_by(BLOCK) {
            let institution = self.household_key(block).is_multiple_of(64);
            let mut row = block;
            while row < block + BLOCK {
                members.clear();
                let mut draws = Draws::new(self.household_key(row));
                let room = block + BLOCK - row;
                let quarters = if institution {
                    people.institution(&mut draws, room, &mut members)
                } else {
                    people.household(&mut draws, room, &mut members)
                };
                self.enter(row, quarters, &members);
                row += members.len();
            }
        }
    }

    /// The key of the household that starts at `row`: that of its first person, mixed once more.
    fn household_key(&self, row: usize) -> u64 {
        mix(!self.keys[Unit::Person as usize][row])
    }

    /// Write one household.
    fn enter(&mut self, first: usize, quarters: u16, members: &[Person]) {
        let ties = ties(members);
        let (household_type, generations) = (household_type(members), generations(members));
        let household_key = self.household_key(first);
        for (line, (person, own)) in members.iter().zip(&ties[..members.len()]).enumerate() {
            let row = first + line;
            let related = person.relation < UNRELATED;
            self.keys[Unit::Household as usize][row] = household_key;
            self.keys[Unit::Family as usize][row] =
                if related { household_key } else { self.keys[Unit::Person as usize][row] };
            let relative = |line: u16| {
                if line == 0 { row } else { first + usize::from(line) - 1 }
            };
            self.links[Link::Father as usize][row] = relative(own.father) as u16;
            self.links[Link::Mother as usize][row] = relative(own.mother) as u16;
            let parent = if own.mother > 0 { own.mother } else { own.father };
            let siblings = if parent > 0 { ties[usize::from(parent) - 1].children - 1 } else { 0 };
            for (field, code) in [
                (Field::Sex, person.sex),
                (Field::Age, person.age),
                (Field::MaritalStatus, person.marital),
                (Field::Relation, person.relation),
                (Field::Quarters, quarters),
                (Field::Size, (members.len() as u16).min(13)),
                (Field::HeadAge, members[0].age),
                (Field::Children, own.children.min(9)),
                (Field::ChildrenUnder5, own.under_5.min(5)),
                (Field::EldestChild, own.eldest.min(59)),
                (Field::YoungestChild, own.youngest.min(59)),
                (Field::Siblings, siblings.min(9)),
                (Field::MotherLine, own.mother),
                (Field::FatherLine, own.father),
                (Field::Generations, generations),
                (Field::HouseholdType, household_type),
            ] {
                self.fields[field as usize][row] = code;
            }
        }
    }
}

/// Link parents and children: children of the head and wife, the head's parents and siblings.
fn ties(members: &[Person]) -> [Ties; BLOCK] {
    let mut ties = [Ties::default(); BLOCK];
    if members[0].relation != HEAD {
        return ties;
    }
    let line_of = |relation: u16, sex: u16| {
        let found = members.iter().position(|one| one.relation == relation && one.sex == sex);
        found.map_or(0, |line| line as u16 + 1)
    };
    let wife = line_of(SPOUSE, FEMALE);
    let (head_father, head_mother) = (line_of(PARENT, MALE), line_of(PARENT, FEMALE));
    let (father, mother) = if members[0].sex == MALE { (1, wife) } else { (0, 1) };
    for (line, person) in members.iter().enumerate() {
        (ties[line].father, ties[line].mother) = match person.relation {
            HEAD | SIBLING => (head_father, head_mother),
            CHILD => (father, mother),
            _ => continue,
        };
        for parent in [ties[line].father, ties[line].mother] {
            if parent > 0 {
                let tie = &mut ties[usize::from(parent) - 1];
                tie.children += 1;
                tie.under_5 += u16::from(person.age < 5);
                tie.eldest = tie.eldest.max(person.age + 1);
                tie.youngest = if tie.children == 1 { person.age + 1 } else { tie.youngest.min(person.age + 1) };
            }
        }
    }
    ties
}

/// Generations in the household; 0 for an institution.
fn generations(members: &[Person]) -> u16 {
    if members[0].relation != HEAD {
        return 0;
    }
    let has = |relations: &[u16]| u16::from(members.iter().any(|one| relations.contains(&one.relation)));
    (1 + has(&[CHILD, CHILD_IN_LAW]) + has(&[PARENT, PARENT_IN_LAW]) + has(&[GRANDCHILD])).min(3)
}

/// 0 institution, 1 couple, 2 and 3 man or woman alone, 4 and 5 with relatives, 6 and 7 with others only.
fn household_type(members: &[Person]) -> u16 {
    let (head, rest) = (members[0], &members[1..]);
    match rest.iter().map(|one| one.relation).min() {
        _ if head.relation != HEAD => 0,
        Some(SPOUSE) => 1,
        None => 2 + head.sex,
        Some(relation) if relation < UNRELATED => 4 + head.sex,
        Some(_) => 6 + head.sex,
    }
}
