#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::collections::HashMap;

use super::*;

#[test]
fn days_are_dates() {
    let shown = [0, 59, 60, 365, 366, TODAY, LAST_ORDER_DAY].map(date);
    assert_eq!(
        shown,
        [
            "1992-01-01",
            "1992-02-29",
            "1992-03-01",
            "1992-12-31",
            "1993-01-01",
            "1995-06-17",
            "1998-08-02"
        ]
    );
}

#[test]
fn keys_and_prices_follow_their_rules() {
    assert_eq!([1, 8, 9, 16, 17].map(order_key), [1, 8, 33, 40, 65]);
    assert_eq!([1, 10, 1000].map(retail_price), [90_100, 91_001, 90_100]);
}

fn generated(seed: u64) -> HashMap<String, Vec<Vec<String>>> {
    let generator = Generator { sizes: Sizes::of(0.001), seed, pool: TextPool::new(seed) };
    let directory = std::env::temp_dir().join(format!("firn-tpch-{}-{seed}", std::process::id()));
    let tables: Vec<String> = super::super::schema::TABLES.map(str::to_owned).to_vec();
    crate::load::export(&directory, &tables, generator.parts(), |part, sink, loading| {
        generator.fill(part, sink, loading)
    })
    .unwrap();
    let read = |table: &String| {
        let text = std::fs::read_to_string(directory.join(format!("{table}.csv"))).unwrap();
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    };
    let rows = tables.iter().map(|table| (table.clone(), read(table))).collect();
    std::fs::remove_dir_all(directory).unwrap();
    rows
}

#[test]
fn a_part_has_four_suppliers_at_every_scale() {
    for ten_thousandths in 1..400 {
        let sizes = Sizes::of(f64::from(ten_thousandths) / 10_000.0);
        for part in 1..=sizes.parts {
            let mut suppliers = [0, 1, 2, 3].map(|index| sizes.supplier_of(part, index));
            suppliers.sort_unstable();
            assert!(suppliers.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}: {part}");
            assert!(suppliers[0] >= 1 && suppliers[3] <= sizes.suppliers);
        }
    }
}

#[test]
fn rows_fit_together_and_are_fixed_by_the_seed() {
    let rows = generated(4);
    let count = |table: &str| rows[table].len();
    assert_eq!(
        ["region", "nation", "supplier", "customer", "part", "partsupp", "orders"].map(count),
        [5, 25, 80, 150, 200, 800, 1500]
    );
    assert!((5_500..6_500).contains(&count("lineitem")), "{}", count("lineitem"));
    let supplied: Vec<_> = rows["partsupp"].iter().map(|row| row[..2].to_vec()).collect();
    for line in &rows["lineitem"] {
        assert!(supplied.contains(&line[1..3].to_vec()), "{line:?}");
        assert!(line[10] < line[12], "shipped before received: {line:?}");
    }
    let distinct: std::collections::HashSet<_> = supplied.iter().collect();
    assert_eq!(distinct.len(), 800);
    for order in &rows["orders"] {
        assert_ne!(order[1].parse::<i64>().unwrap() % 3, 0, "{order:?}");
    }
    assert!(rows["part"].iter().any(|row| row[4].ends_with("BRASS")));
    assert!(rows["supplier"].iter().any(|row| row[6].contains("Customer Complaints")));
    assert!(rows["orders"].iter().any(|row| row[8].contains("requests")));
    assert_eq!(rows, generated(4));
    assert_ne!(rows["orders"], generated(5)["orders"]);
}
