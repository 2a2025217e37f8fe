//! Which module imports which, and where imports are cyclic.

use std::collections::{BTreeMap, BTreeSet};

/// Arrows from importers to the modules that they import.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Graph {
    arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds an arrow; an import of itself is ignored.
    pub(crate) fn add(&mut self, from: &str, to: &str) {
        if from != to {
            self.arrows.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
    }

    /// The importers in order, each with its imports.
    pub(crate) fn arrows(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.arrows.iter().map(|(from, to)| (from.as_str(), to))
    }

    /// The arrows that lie on a cycle.
    pub(crate) fn cyclic(&self) -> BTreeSet<(String, String)> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.arrows.keys().map(|from| (from.as_str(), self.reached_from(from))).collect();
        let goes_back =
            |from: &str, to: &str| reached.get(to).is_some_and(|reached| reached.contains(from));
        let all = self.arrows().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
        let cyclic = all.filter(|(from, to)| goes_back(from, to));
        cyclic.map(|(from, to)| (from.to_owned(), to.clone())).collect()
    }

    fn reached_from<'g>(&'g self, start: &'g str) -> BTreeSet<&'g str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(from) = next.pop() {
            for to in self.arrows.get(from).into_iter().flatten() {
                if reached.insert(to.as_str()) {
                    next.push(to);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    #[test]
    fn arrows_of_cycles_are_found_and_those_that_lead_there_are_not() {
        let mut graph = Graph::default();
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "d")] {
            graph.add(from, to);
        }
        let cyclic: Vec<String> =
            graph.cyclic().into_iter().map(|(from, to)| format!("{from} {to}")).collect();
        assert_eq!(cyclic, ["b c", "c b"]);
    }
}
