//! Random input of TPC-C: names, non-uniform numbers, and their constants (specification 2.1.6,
//! 4.3.2).

use crate::random::Draw;

/// Amount of data: the specification's sizes, except in tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub warehouses: i64,
    /// Items, and rows of stock in each warehouse.
    pub items: i64,
    /// Customers of each district, and its orders at the beginning.
    pub customers: i64,
}

/// Districts of each warehouse.
pub(crate) const DISTRICTS: i64 = 10;

impl Scale {
    /// The specification's sizes.
    #[must_use]
    pub fn of(warehouses: i64) -> Scale {
        Scale { warehouses, items: 100_000, customers: 3000 }
    }

    /// Orders of a district that are delivered at the beginning: 2100 of 3000.
    pub(crate) fn delivered(&self) -> i64 {
        self.customers * 7 / 10
    }

    /// Number of last names that some customer has.
    pub(crate) fn names(&self) -> i64 {
        self.customers.min(1000)
    }
}

/// The constants C of the non-uniform draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

const A_LAST_NAME: i64 = 255;
const A_CUSTOMER: i64 = 1023;
const A_ITEM: i64 = 8191;
/// Loads use one constant, whatever their seed, because a run's constant must keep a distance from
/// it.
const LOAD_LAST_NAME: i64 = 157;

impl Constants {
    /// The constants of a load.
    pub(crate) fn of_load() -> Constants {
        Constants { last_name: LOAD_LAST_NAME, customer: 0, item: 0 }
    }

    /// The constants of a run: C of the last names differs by 65 to 119 from the load's, but not by
    /// 96 or 112 (2.1.6.1).
    pub(crate) fn of_run(draw: &mut Draw) -> Constants {
        let last_name = loop {
            let candidate = draw.between(0, A_LAST_NAME);
            let distance = (candidate - LOAD_LAST_NAME).abs();
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break candidate;
            }
        };
        Constants {
            last_name,
            customer: draw.between(0, A_CUSTOMER),
            item: draw.between(0, A_ITEM),
        }
    }

    pub(crate) fn last_name(&self, draw: &mut Draw, scale: &Scale) -> String {
        last_name(draw.non_uniform(A_LAST_NAME, self.last_name, 0, scale.names() - 1))
    }

    pub(crate) fn customer(&self, draw: &mut Draw, scale: &Scale) -> i64 {
        draw.non_uniform(A_CUSTOMER, self.customer, 1, scale.customers)
    }

    pub(crate) fn item(&self, draw: &mut Draw, scale: &Scale) -> i64 {
        draw.non_uniform(A_ITEM, self.item, 1, scale.items)
    }
}

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// A syllable for each of three digits.
pub(crate) fn last_name(number: i64) -> String {
    let digit = |power: i64| SYLLABLES[(number / power % 10) as usize];
    [digit(100), digit(10), digit(1)].concat()
}

/// How an input identifies a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByWhat {
    Id(i64),
    /// By last name: the middle one, by first name, of the customers with that name.
    LastName(String),
}

/// By last name in 60 of 100 transactions (2.5.1.2, 2.6.1.2).
pub(crate) fn customer(draw: &mut Draw, constants: &Constants, scale: &Scale) -> ByWhat {
    if draw.percent(60.0) {
        ByWhat::LastName(constants.last_name(draw, scale))
    } else {
        ByWhat::Id(constants.customer(draw, scale))
    }
}

/// Another warehouse than `home`, if there is one.
pub(crate) fn other_warehouse(draw: &mut Draw, home: i64, scale: &Scale) -> i64 {
    if scale.warehouses == 1 {
        return home;
    }
    let other = draw.between(1, scale.warehouses - 1);
    if other >= home { other + 1 } else { other }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_of_digits() {
        assert_eq!(
            [last_name(371), last_name(40), last_name(0)],
            ["PRICALLYOUGHT", "BARPRESBAR", "BARBARBAR"]
        );
    }

    proptest! {
        #[test]
        fn a_runs_constants_keep_their_distance(seed: u64) {
            let constants = Constants::of_run(&mut Draw::new(seed, 0));
            let distance = (constants.last_name - LOAD_LAST_NAME).abs();
            prop_assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
            prop_assert!((0..=1023).contains(&constants.customer));
            prop_assert!((0..=8191).contains(&constants.item));
        }

        #[test]
        fn draws_name_what_is_there(seed: u64, warehouses in 1i64..5, customers in 10i64..3000) {
            let scale = Scale { warehouses, items: 50, customers };
            let mut draw = Draw::new(seed, 0);
            let constants = Constants::of_run(&mut draw);
            let known: Vec<_> = (0..scale.names()).map(last_name).collect();
            for _ in 0..20 {
                prop_assert!((1..=50).contains(&constants.item(&mut draw, &scale)));
                match customer(&mut draw, &constants, &scale) {
                    ByWhat::Id(id) => prop_assert!((1..=customers).contains(&id)),
                    ByWhat::LastName(name) => prop_assert!(known.contains(&name)),
                }
                let other = other_warehouse(&mut draw, 1, &scale);
                prop_assert!((1..=warehouses).contains(&other) && (warehouses == 1 || other != 1));
            }
        }
    }

    #[test]
    fn six_of_ten_customers_are_named() {
        let (scale, mut draw) = (Scale::of(1), Draw::new(3, 0));
        let constants = Constants::of_run(&mut draw);
        let named = (0..20_000)
            .filter(|_| matches!(customer(&mut draw, &constants, &scale), ByWhat::LastName(_)))
            .count();
        assert!((11_700..12_300).contains(&named), "{named}");
    }
}
