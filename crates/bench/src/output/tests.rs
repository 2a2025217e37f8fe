use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::measure::Window;

fn page() -> Page {
    let mut report = Report::new("tpcc");
    report.note("1 warehouse & <nobody> thinks");
    let mut section = Section::new("Overall", &["tpmC", "what"]);
    section.push(vec![1234.5.into(), "x".into()]);
    report.add(section);
    let mut measured = Measured::new(vec!["new_order".into()], 1);
    for second in 1..=3u64 {
        measured.windows.push(Window {
            end: Duration::from_secs(second),
            length: Duration::from_secs(1),
            transactions: vec![second * 10],
            conflicts: 1,
            latency_ms: [1.0, 2.0, 3.0],
        });
        for _ in 0..second * 10 {
            measured.kinds[0].record(Duration::from_millis(second));
        }
    }
    measured.elapsed = Duration::from_secs(3);
    Page { report, measured: Some(measured) }
}

#[test]
fn json_has_tables_and_the_course() {
    let mut page = page();
    page.measured.as_mut().unwrap().windows.truncate(1);
    let mut json = to_json(&[page]);
    json["version"] = "V".into();
    expect![[r#"{"reports":[{"course":[{"P50 ms":1.0,"P95 ms":2.0,"P99 ms":3.0,"conflicts":1,"end s":1.0,"transactions":[10],"transactions/s":10.0}],"notes":["1 warehouse & <nobody> thinks"],"tables":[{"heading":"Overall","rows":[{"tpmC":1234.5,"what":"x"}]}],"workload":"tpcc"}],"version":"V"}"#]]
    .assert_eq(&json.to_string());
}

#[test]
fn a_page_stands_alone() {
    let html = to_html(&[page()]).unwrap();
    assert!(html.contains("1 warehouse &amp; &lt;nobody&gt; thinks"));
    assert!(html.contains("<td>1 235"));
    assert_eq!(html.matches("<svg").count(), 3);
    assert_eq!(html.matches("</svg>").count(), 3);
    assert!(html.contains("Throughput, transactions/s by second") && html.contains("new_order"));
    // The page fetches nothing; the namespace of SVG is only a name.
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http"), "{outside}");
}

#[test]
fn a_run_without_transactions_can_be_drawn() {
    let page =
        Page { report: Report::new("nothing"), measured: Some(Measured::new(vec!["a".into()], 1)) };
    assert_eq!(to_html(&[page]).unwrap().matches("<svg").count(), 3);
}
