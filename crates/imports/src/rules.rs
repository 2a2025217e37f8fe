//! The rules for imports.
//!
//! * A crate depends only on crates below it in `order.txt`.
//! * Modules of a crate do not import each other in a cycle. Arrows of existing cycles are listed
//!   in `cycles.txt`. An unlisted arrow fails, and so does a listed one that no longer exists, so
//!   the list only shrinks.

use std::collections::BTreeSet;

use crate::workspace::Crate;

/// The rules, from the files beside the tool.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The crates from top to bottom.
    order: Vec<String>,
    /// Known cycles: crate, importing module, imported module.
    known: BTreeSet<(String, String, String)>,
}

impl Rules {
    /// Reads the rules; lines that begin with `#` are comments.
    pub(crate) fn new(order: &str, cycles: &str) -> Rules {
        let lines = |text: &str| -> Vec<Vec<String>> {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
            words.filter(|words: &Vec<String>| !words.is_empty()).collect()
        };
        let order = lines(order).into_iter().map(|mut words| words.remove(0)).collect();
        let known = lines(cycles).into_iter().filter_map(|words| {
            let [name, from, to] = <[String; 3]>::try_from(words).ok()?;
            Some((name, from, to))
        });
        Rules { order, known: known.collect() }
    }

    /// The violations, one per line.
    pub(crate) fn faults(&self, crates: &[Crate]) -> Vec<String> {
        let mut faults = Vec::new();
        for one in crates {
            self.judge_dependencies(one, &mut faults);
        }
        let present: BTreeSet<_> = crates
            .iter()
            .flat_map(|one| {
                let cyclic = one.modules.cyclic().into_iter();
                cyclic.map(|(from, to)| (one.name.clone(), from, to))
            })
            .collect();
        for (name, from, to) in present.difference(&self.known) {
            faults.push(format!("{name}: {from} imports {to}, which imports it in turn"));
        }
        for (name, from, to) in self.known.difference(&present) {
            faults.push(format!("cycles.txt: '{name} {from} {to}' is gone: delete the line"));
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
        Crate { name: name.to_owned(), dependencies, modules }
    }

    #[test]
    fn an_upward_dependency_is_a_fault() {
        let rules = Rules::new("# top\nsql\nbase", "");
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
    fn known_cycles_only_shrink() {
        let rules = Rules::new("sql", "sql a b\nsql b a\n");
        let circle = [("a", "b"), ("b", "a"), ("b", "c")];
        assert_eq!(rules.faults(&[of("sql", &[], &circle)]), Vec::<String>::new());
        let grown = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")];
        assert_eq!(
            rules.faults(&[of("sql", &[], &grown)]),
            [
                "sql: b imports c, which imports it in turn",
                "sql: c imports a, which imports it in turn"
            ]
        );
        assert_eq!(
            rules.faults(&[of("sql", &[], &[("a", "b")])]),
            [
                "cycles.txt: 'sql a b' is gone: delete the line",
                "cycles.txt: 'sql b a' is gone: delete the line"
            ]
        );
    }
}
