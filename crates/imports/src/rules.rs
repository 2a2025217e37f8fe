//! The rules for imports.
//!
//! * A crate depends only on crates below it in `order.txt`.
//! * Modules of a crate do not import each other in a cycle.
//! * Each source file belongs to a module; otherwise nobody notices that it is not compiled.

use crate::workspace::Crate;

/// The rules, with the order of crates from the file beside the tool.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The crates from top to bottom.
    order: Vec<String>,
}

impl Rules {
    /// Reads the order: the first word of each line. Lines that begin with `#` are comments.
    pub(crate) fn new(order: &str) -> Rules {
        let lines = order.lines().filter(|line| !line.starts_with('#'));
        let names = lines.filter_map(|line| line.split_whitespace().next());
        Rules { order: names.map(str::to_owned).collect() }
    }

    /// The violations, one per line.
    pub(crate) fn faults(&self, crates: &[Crate]) -> Vec<String> {
        let mut faults = Vec::new();
        for one in crates {
            self.judge_dependencies(one, &mut faults);
            let name = &one.name;
            let unnamed = one.unnamed.iter();
            faults.extend(unnamed.map(|file| {
                format!("{name}: no `mod` names the file of {file}, so nothing compiles it")
            }));
            faults.extend(one.modules.cyclic().into_iter().map(|(from, to)| {
                format!("{name}: {from} imports {to}, which imports it, perhaps through others")
            }));
        }
        faults
    }

    fn judge_dependencies(&self, one: &Crate, faults: &mut Vec<String>) {
        let place = |name: &str| self.order.iter().position(|other| other == name);
        let Some(own) = place(&one.name) else {
            faults.push(format!("order.txt does not name the crate {}", one.name));
            return;
        };
        for dependency in &one.dependencies {
            if place(dependency).is_none_or(|below| below <= own) {
                faults.push(format!("{} depends on {dependency}, which is not below it", one.name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Rules;
    use crate::graph::Graph;
    use crate::workspace::Crate;

    fn of(name: &str, dependencies: &[&str], arrows: &[(&str, &str)]) -> Crate {
        let mut modules = Graph::default();
        arrows.iter().for_each(|(from, to)| modules.add(from, to));
        let dependencies: BTreeSet<String> =
            dependencies.iter().map(|one| (*one).to_owned()).collect();
        Crate { name: name.to_owned(), dependencies, modules, unnamed: Vec::new() }
    }

    #[test]
    fn an_upward_dependency_is_a_fault() {
        let rules = Rules::new("# top\nsql\nbase");
        let fine = [of("sql", &["base"], &[]), of("base", &[], &[])];
        assert_eq!(rules.faults(&fine), Vec::<String>::new());
        let upward = [of("sql", &[], &[]), of("base", &["sql"], &[]), of("other", &[], &[])];
        assert_eq!(
            rules.faults(&upward),
            [
                "base depends on sql, which is not below it",
                "order.txt does not name the crate other"
            ]
        );
    }

    #[test]
    fn a_file_of_no_module_is_a_fault() {
        let rules = Rules::new("sql");
        let one = Crate { unnamed: vec!["a::lost".to_owned()], ..of("sql", &[], &[]) };
        let found = rules.faults(&[one]);
        assert_eq!(found, ["sql: no `mod` names the file of a::lost, so nothing compiles it"]);
    }

    #[test]
    fn each_arrow_of_a_circle_is_a_fault() {
        let rules = Rules::new("sql");
        let one_way = [("a", "b"), ("b", "c"), ("a", "c")];
        assert_eq!(rules.faults(&[of("sql", &[], &one_way)]), Vec::<String>::new());
        let circle = [("a", "b"), ("b", "a"), ("b", "c")];
        assert_eq!(
            rules.faults(&[of("sql", &[], &circle)]),
            [
                "sql: a imports b, which imports it, perhaps through others",
                "sql: b imports a, which imports it, perhaps through others"
            ]
        );
    }
}
