use expect_test::expect_file;

use super::*;

const FILE: &str = r#"{
    "title": "sysbench", "unit": "transactions/s", "relative_to": "B",
    "machine": "2 cores", "commit": "41d498c", "command": "sysbench run",
    "systems": ["A", "B"],
    "rows": [{ "name": "read only", "values": [300, 200.0] }]
}"#;

#[test]
fn a_result_file_is_read() {
    let figure = Figure::parse(FILE).unwrap();
    assert_eq!(figure.title, "sysbench");
    assert_eq!(figure.origin, ["2 cores; commit 41d498c", "sysbench run"]);
    assert_eq!(figure.systems, ["A", "B"]);
    assert_eq!(figure.rows, [Row { name: "read only".to_owned(), values: vec![300.0, 200.0] }]);
}

#[test]
fn bars_are_relative_to_a_system_only_if_the_file_names_one() {
    let relative = Figure::parse(FILE).unwrap();
    let lengths = [0, 1].map(|system| relative.length(&relative.rows[0], system));
    assert_eq!(lengths, [1.5, 1.0]);

    let absolute = Figure::parse(&FILE.replace("\"relative_to\": \"B\",", "")).unwrap();
    assert_eq!(absolute.length(&absolute.rows[0], 0), 300.0);
}

#[test]
fn a_wrong_file_is_refused_with_the_field() {
    for (old, new, reason) in [
        ("\"commit\": \"41d498c\",", "", "commit is missing or not a text"),
        ("\"B\",\n", "\"C\",\n", "relative_to: C is not in systems"),
        ("[300, 200.0]", "[300]", "read only: values needs 2 numbers above 0"),
        ("[300, 200.0]", "[300, 0]", "read only: values needs 2 numbers above 0"),
        (
            "\"systems\": [\"A\", \"B\"]",
            "\"systems\": [1]",
            "systems holds something other than texts",
        ),
        ("[{ \"name\": \"read only\", \"values\": [300, 200.0] }]", "[]", "rows is empty"),
    ] {
        assert!(FILE.contains(old), "{old}");
        assert_eq!(Figure::parse(&FILE.replacen(old, new, 1)).unwrap_err(), reason);
    }
}

/// Draws the plots of the documentation again and compares them. `UPDATE_EXPECT=1` writes them, as
/// `firn bench plot` does.
#[test]
fn the_plots_of_the_documentation_are_those_of_their_result_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    let mut drawn = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let svg = crate::bars::draw(&Figure::read(&path).unwrap()).unwrap();
            expect_file![path.with_extension("svg")].assert_eq(&svg);
            drawn += 1;
        }
    }
    assert!(drawn > 0);
}
