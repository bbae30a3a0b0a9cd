//! How a kernel goes about a computation: in which order it visits the bytes, and what it fetches and
//! stores how. Never what comes out.
//!
//! What is fastest differs from one kind of machine to another, and is not told by the instructions that
//! a processor has: how many lines of cache it can have under way, what its own prefetching makes of
//! many streams, whether a store past the cache costs it more than a store into it. So it is a value
//! that the caller gives. [`Choices::of`] is what to take without knowing more; [`measure`](crate::measure)
//! finds the best of [`Choice::candidates`] with a clock that its caller lends to it.

use std::fmt;

use crate::fields::Field;
use crate::kernels::Kernel;

/// How computations of one [`Class`] are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The instructions.
    pub kernel: Kernel,
    /// The order in which sources are visited.
    pub order: Order,
    /// How much of a source is in registers at a time.
    pub width: Width,
    /// How far ahead of its use a source is fetched, in bytes; 0 for not at all. With
    /// [`Order::InTurn`] whole runs of 4 KiB are fetched, from one to 64 of them; by a transform, a coset's. With
    /// [`Order::Together`] only few sources mind the number: of many, the group that comes next is fetched.
    pub ahead: usize,
    /// How results are stored.
    pub stores: Stores,
}

/// The order in which sources are visited. Kernels without vectors know only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All sources side by side, a few of their bytes at a time: the sums are short.
    Together,
    /// Some sources after the other, 4 KiB of each: memory is read in long runs.
    InTurn,
}

/// How much of a source is in registers at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Half as many vectors as would fit.
    Narrow,
    /// As many vectors as fit.
    Wide,
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Into the cache: for results that are needed again soon.
    Cached,
    /// Past the cache, where the kernel has vectors and the results lie at multiples of their size: no
    /// line is read before it is written, and nothing else is driven out of the cache.
    Past,
}

/// What kind of computation it is: what makes the difference for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One result of up to 16 sources over GF(2^8): what an array computes at a time.
    One,
    /// Several results of up to 16 sources over GF(2^8): all redundancy of a stripe, a part of a codeword.
    Few,
    /// More sources over GF(2^8), and up to five results, by no transform.
    Many,
    /// More sources over GF(2^8), and more results, by no transform.
    ManyByMany,
    /// Over the tower field, by no transform.
    Tower,
    /// Over either field, where a transform is less work for all results together than their elements one by
    /// one: with lookups from five results on over GF(2^8) and from four over the tower field, otherwise from 13 and
    /// from six. The width makes no difference then, and of what is fetched ahead only whether anything is.
    Transform,
}

/// The choice for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// See [`Class::One`].
    pub one: Choice,
    /// See [`Class::Few`].
    pub few: Choice,
    /// See [`Class::Many`].
    pub many: Choice,
    /// See [`Class::ManyByMany`].
    pub many_by_many: Choice,
    /// See [`Class::Tower`].
    pub tower: Choice,
    /// See [`Class::Transform`].
    pub transform: Choice,
}

/// The most sources of [`Class::One`] and [`Class::Few`].
pub(crate) const FEW: usize = 16;

/// The most results of [`Class::Many`].
const MANY_ROWS: usize = 5;

impl Class {
    /// Every class.
    pub const ALL: [Self; 6] =
        [Self::One, Self::Few, Self::Many, Self::ManyByMany, Self::Tower, Self::Transform];

    /// The class of a computation that no transform does.
    pub(crate) fn of(field: Field, source_count: usize, row_count: usize) -> Self {
        match field {
            Field::Tower => Self::Tower,
            Field::Bytes if source_count <= FEW && row_count == 1 => Self::One,
            Field::Bytes if source_count <= FEW => Self::Few,
            Field::Bytes if row_count <= MANY_ROWS => Self::Many,
            Field::Bytes => Self::ManyByMany,
        }
    }

    /// A name: `one`, `few`, `many`, `many-by-many`, `tower`,
    /// `transform`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Few => "few",
            Self::Many => "many",
            Self::ManyByMany => "many-by-many",
            Self::Tower => "tower",
            Self::Transform => "transform",
        }
    }
}

impl Choice {
    /// What to take for a class without having measured anything.
    pub const fn of(kernel: Kernel, class: Class) -> Self {
        let (order, width, ahead) = match class {
            Class::One | Class::Few if kernel.multiplies_by_lookup() => {
                (Order::Together, Width::Narrow, 256)
            }
            Class::One | Class::Few => (Order::Together, Width::Wide, 512),
            Class::Many | Class::ManyByMany | Class::Tower | Class::Transform => {
                (Order::InTurn, Width::Narrow, 16 * RUN)
            }
        };
        Self { kernel, order, width, ahead, stores: Stores::Cached }
    }

    /// Everything worth trying for a class with one kernel: first what [`of`](Self::of) gives.
    pub fn candidates(kernel: Kernel, class: Class) -> Vec<Self> {
        let first = Self::of(kernel, class);
        let mut candidates = vec![first];
        if !kernel.has_vectors() {
            return candidates;
        }
        let mut orders = [0, 512, 256, 1024].map(|ahead| (Order::Together, ahead)).to_vec();
        match class {
            Class::One => {}
            Class::Few => orders.extend([(Order::InTurn, 0), (Order::InTurn, 2 * RUN)]),
            Class::Many | Class::ManyByMany | Class::Tower | Class::Transform => {
                orders.truncate(2);
                orders.extend([0, 4, 8, 16, 32].map(|runs| (Order::InTurn, runs * RUN)));
            }
        }
        for (order, ahead) in orders {
            for width in [Width::Narrow, Width::Wide] {
                for stores in [Stores::Cached, Stores::Past] {
                    let choice = Self { kernel, order, width, ahead, stores };
                    candidates.push(choice.with_what_matters(class));
                }
            }
        }
        unique(candidates)
    }
}

impl Choice {
    /// The same with results stored into the cache.
    const fn cached(self) -> Self {
        Self { stores: Stores::Cached, ..self }
    }

    /// Of the [`candidates`](Self::candidates) those that were the fastest for some code on some machine:
    /// few enough to be compared within milliseconds.
    pub(crate) fn shortlist(kernel: Kernel, class: Class, place: Place) -> Vec<Self> {
        use Order::{InTurn, Together};
        use Stores::{Cached, Past};
        use Width::{Narrow, Wide};

        let first = Self::of(kernel, class);
        let mut list = vec![first];
        if !kernel.has_vectors() {
            return list;
        }
        let ways = match (class, place) {
            // What it makes is most often read at once: into the cache.
            (Class::One, Place::Memory) => vec![
                (Together, Narrow, 0, Cached),
                (Together, Narrow, 256, Cached),
                (Together, Narrow, 512, Cached),
                (Together, Wide, 0, Cached),
                (Together, Wide, 256, Cached),
            ],
            (Class::Few, Place::Memory) => vec![
                (Together, Narrow, 256, Past),
                (Together, Narrow, 0, Cached),
                (Together, Wide, 256, Cached),
                (Together, Wide, 512, Past),
                (InTurn, Narrow, 2 * RUN, Past),
                (InTurn, Wide, 2 * RUN, Past),
            ],
            (Class::One | Class::Few, Place::Cache) => {
                vec![(Together, Narrow, 0, Cached), (Together, Wide, 0, Cached)]
            }
            (Class::Many | Class::ManyByMany | Class::Tower | Class::Transform, Place::Memory) => {
                vec![
                    (InTurn, Narrow, 4 * RUN, Past),
                    (InTurn, Narrow, 8 * RUN, Past),
                    (InTurn, Narrow, 16 * RUN, Past),
                    (InTurn, Wide, 8 * RUN, Past),
                    (Together, Wide, 512, Cached),
                ]
            }
            (Class::Many | Class::ManyByMany | Class::Tower | Class::Transform, Place::Cache) => {
                vec![
                    (Together, Narrow, 0, Cached),
                    (Together, Wide, 0, Cached),
                    (InTurn, Wide, 0, Cached),
                    (InTurn, Wide, 16 * RUN, Cached),
                ]
            }
        };
        list.extend(ways.into_iter().map(|(order, width, ahead, stores)| {
            Self { kernel, order, width, ahead, stores }.with_what_matters(class)
        }));
        unique(list)
    }

    /// The same choice in one form: the width is that of sources in registers, and where a product takes
    /// lookups, only sums of few sources side by side keep them there. A transform keeps none, and fetches a coset.
    fn with_what_matters(self, class: Class) -> Self {
        let keeps_sources = match (class, self.order) {
            (Class::One | Class::Few, Order::Together) => true,
            (Class::One | Class::Few, Order::InTurn)
            | (Class::Many | Class::ManyByMany | Class::Tower, _) => {
                !self.kernel.multiplies_by_lookup()
            }
            (Class::Transform, _) => false,
        };
        let ahead = match (class, self.ahead, self.order) {
            (Class::Transform, 1.., Order::InTurn) => 16 * RUN,
            (Class::Transform, 1.., Order::Together) => 512,
            (_, ahead, _) => ahead,
        };
        Self { width: if keeps_sources { self.width } else { Width::Narrow }, ahead, ..self }
    }
}

/// The choices in their order, each once.
fn unique(choices: Vec<Choice>) -> Vec<Choice> {
    let mut unique: Vec<Choice> = Vec::with_capacity(choices.len());
    for choice in choices {
        if !unique.contains(&choice) {
            unique.push(choice);
        }
    }
    unique
}

/// Where the data of a computation is when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, and not in any cache.
    Memory,
    /// In a cache.
    Cache,
}

/// Bytes of a source that are visited one after the other with [`Order::InTurn`].
pub(crate) const RUN: usize = 4096;

impl Choices {
    /// What to take without having measured anything.
    pub const fn of(kernel: Kernel) -> Self {
        Self {
            one: Choice::of(kernel, Class::One),
            few: Choice::of(kernel, Class::Few),
            many: Choice::of(kernel, Class::Many),
            many_by_many: Choice::of(kernel, Class::ManyByMany),
            tower: Choice::of(kernel, Class::Tower),
            transform: Choice::of(kernel, Class::Transform),
        }
    }

    /// The same with results stored into the cache: for one who reads them soon, as for a checksum.
    pub const fn cached(self) -> Self {
        let Self { one, few, many, many_by_many, tower, transform } = self;
        Self {
            one: one.cached(),
            few: few.cached(),
            many: many.cached(),
            many_by_many: many_by_many.cached(),
            tower: tower.cached(),
            transform: transform.cached(),
        }
    }

    /// The choice for a class.
    pub const fn get(&self, class: Class) -> Choice {
        match class {
            Class::One => self.one,
            Class::Few => self.few,
            Class::Many => self.many,
            Class::ManyByMany => self.many_by_many,
            Class::Tower => self.tower,
            Class::Transform => self.transform,
        }
    }

    /// Sets the choice for a class.
    pub fn set(&mut self, class: Class, choice: Choice) {
        match class {
            Class::One => self.one = choice,
            Class::Few => self.few = choice,
            Class::Many => self.many = choice,
            Class::ManyByMany => self.many_by_many = choice,
            Class::Tower => self.tower = choice,
            Class::Transform => self.transform = choice,
        }
    }
}

impl From<Kernel> for Choices {
    fn from(kernel: Kernel) -> Self {
        Self::of(kernel)
    }
}

/// The same for every class.
impl From<Choice> for Choices {
    fn from(choice: Choice) -> Self {
        Self {
            one: choice,
            few: choice,
            many: choice,
            many_by_many: choice,
            tower: choice,
            transform: choice,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, order, width, ahead, stores } = self;
        let order = match order {
            Order::Together => "together",
            Order::InTurn => "in turn",
        };
        let width = match width {
            Width::Narrow => "narrow",
            Width::Wide => "wide",
        };
        write!(f, "{kernel}, sources {order}, {width}, ")?;
        match ahead {
            0 => f.write_str("nothing fetched ahead, ")?,
            bytes => write!(f, "{bytes} bytes ahead, ")?,
        }
        f.write_str(match stores {
            Stores::Cached => "stores cached",
            Stores::Past => "stores past the cache",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_quickly_is_some_of_the_candidates_each_once_and_the_unmeasured_one_first() {
        for class in Class::ALL {
            for (kernel, place) in Kernel::ALL
                .into_iter()
                .flat_map(|of| [Place::Memory, Place::Cache].map(|at| (of, at)))
            {
                let (all, list) =
                    (Choice::candidates(kernel, class), Choice::shortlist(kernel, class, place));
                assert_eq!(list[0], Choice::of(kernel, class));
                for (n, choice) in list.iter().enumerate() {
                    assert!(all.contains(choice), "{class}, {choice}");
                    assert!(!list[..n].contains(choice), "{class}, {choice}");
                }
            }
        }
    }

    #[test]
    fn lookups_are_not_compared_by_a_width_that_they_do_not_have() {
        for class in [Class::Many, Class::ManyByMany, Class::Tower, Class::Transform] {
            let is_narrow = |choice: &Choice| choice.width == Width::Narrow;
            assert!(Choice::candidates(Kernel::Avx2, class).iter().all(is_narrow));
            let is_transform = class == Class::Transform;
            assert_eq!(
                Choice::candidates(Kernel::Avx2Gfni, class).iter().all(is_narrow),
                is_transform
            );
        }
        let few = Choice::candidates(Kernel::Avx2, Class::Few);
        let is_wide_in_turn =
            |choice: &Choice| choice.order == Order::InTurn && choice.width == Width::Wide;
        assert!(few.iter().any(|choice| choice.width == Width::Wide));
        assert!(!few.iter().any(is_wide_in_turn));
    }
}
