use super::*;
use crate::report::Cell;

fn sample(headline: f64, p99_ms: f64) -> Sample {
    Sample {
        headline,
        p50_ms: 1.0,
        p95_ms: 2.0,
        p99_ms,
        longest_ms: 10.0,
        conflicts: 0.5,
        client_cores: 1.0,
    }
}

#[test]
fn ratios_are_medians_of_rounds() {
    let compared = Compared {
        label: "tpcc".into(),
        unit: "tpmC",
        rounds: vec![
            [sample(20.0, 4.0), sample(10.0, 8.0)],
            [sample(5.0, 4.0), sample(1.0, 4.0)],
            [sample(30.0, 4.0), sample(10.0, 16.0)],
        ],
    };
    let section = comparison_section(&[compared]);
    let row = &section.rows()[0];
    let figure = |column: &str| {
        let index = section.columns().iter().position(|name| name == column).unwrap();
        row[index].clone()
    };
    assert_eq!(figure("A"), Cell::Number(20.0));
    assert_eq!(figure("B"), Cell::Number(10.0));
    assert_eq!(
        [figure("A/B"), figure("lowest"), figure("highest")],
        [3.0, 2.0, 5.0].map(Cell::Number)
    );
    assert_eq!(figure("P99 A/B"), Cell::Number(0.5));
    assert_eq!(figure("conflicts/1000 A, B"), Cell::Text("0.50, 0.50".into()));
}
