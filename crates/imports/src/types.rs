//! Which types are large: by the methods of a type, and by the files that name it.
//!
//! ```text
//!   impl<'a> Parser<'a> { fn … fn … }     Parser: two more methods, in one more file
//!   fn bind(table: &TableModel)           TableModel: named in one more file
//! ```
//!
//! A type is identified by its name. If a crate defines the name several times, methods belong to
//! the definition that is nearest to them in the tree of files, and files are not counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{block_length, name_of, without_tests};

/// Names that also belong to the standard library, another crate or a variant: a file with such a
/// word need not mean the type.
const AMBIGUOUS: [&str; 5] = ["Copy", "Json", "Mutex", "Update", "Write"];

/// A source file of a crate, without its tests.
pub(crate) struct Source {
    pub(crate) crate_name: String,
    /// Its path in the crate, for output.
    pub(crate) file: String,
    pub(crate) text: String,
}

/// The facts about the types of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By type and file: the number of inherent methods.
    methods: BTreeMap<(String, String), usize>,
    /// By type: the files that define it.
    defined: BTreeMap<String, BTreeSet<String>>,
    /// By word: the files that have it.
    named: BTreeMap<String, BTreeSet<String>>,
}

impl Types {
    /// Adds the words of a file.
    pub(crate) fn add(&mut self, source: &Source, tokens: &[&str]) {
        let tokens = without_tests(tokens);
        let file = format!("{}/{}", source.crate_name, source.file);
        for pair in tokens.windows(2) {
            if let ["struct" | "enum" | "trait" | "union", name] = pair {
                self.defined.entry((*name).to_owned()).or_default().insert(file.clone());
            }
        }
        for word in tokens.iter().filter(|word| word.starts_with(char::is_uppercase)) {
            self.named.entry((*word).to_owned()).or_default().insert(file.clone());
        }
        let mut at = 0;
        while at < tokens.len() {
            at = match tokens[at] {
                "impl" => self.add_impl(&file, &tokens, at),
                _ => at + 1,
            };
        }
    }

    /// Counts the methods of an inherent `impl`; returns where it ends.
    fn add_impl(&mut self, file: &str, tokens: &[&str], at: usize) -> usize {
        let Some(open) = tokens[at..].iter().position(|token| matches!(*token, "{" | ";" | "("))
        else {
            return tokens.len();
        };
        let head = &tokens[at + 1..at + open];
        if tokens[at + open] != "{" {
            return at + 1;
        }
        let end = at + open + block_length(&tokens[at + open..]);
        if head.contains(&"for") {
            return at + open + 1;
        }
        let Some(name) = name_of(head) else { return end };
        let methods = methods_in(&tokens[at + open..end]);
        *self.methods.entry((name.to_owned(), file.to_owned())).or_default() += methods;
        end
    }

    /// The types with the most inherent methods: where they are defined, type, methods, files.
    pub(crate) fn by_methods(&self, most: usize) -> Vec<(&str, &str, usize, usize)> {
        let mut of_types: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
        for ((name, file), methods) in &self.methods {
            let definition = self.nearest_definition(name, file).unwrap_or(file);
            let (count, files) = of_types.entry((definition, name)).or_default();
            *count += methods;
            *files += 1;
        }
        let all = of_types.into_iter();
        let mut all: Vec<_> =
            all.map(|((file, name), (count, files))| (file, name, count, files)).collect();
        all.sort_by_key(|(_, _, count, _)| std::cmp::Reverse(*count));
        all.truncate(most);
        all
    }

    /// The file with the definition that a file of the same crate means by a name.
    fn nearest_definition(&self, name: &str, file: &str) -> Option<&str> {
        let defined = self.defined.get(name)?.iter().map(String::as_str);
        let in_common = |other: &str| {
            module_of(file).zip(module_of(other)).take_while(|(one, other)| one == other).count()
        };
        defined.filter(|other| in_common(other) > 0).max_by_key(|other| in_common(other))
    }

    /// The types that are named in the most files: crate, type, files.
    pub(crate) fn by_files(&self, most: usize) -> Vec<(&str, &str, usize)> {
        let unique = self
            .defined
            .iter()
            .filter(|(name, files)| files.len() == 1 && !AMBIGUOUS.contains(&name.as_str()));
        let mut all: Vec<_> = unique
            .filter_map(|(name, files)| {
                Some((files.first()?.as_str(), name.as_str(), self.named.get(name)?.len() - 1))
            })
            .collect();
        all.sort_by_key(|(_, _, files)| std::cmp::Reverse(*files));
        all.truncate(most);
        all
    }
}

/// The parts of the path of a file's module, from its crate on.
fn module_of(file: &str) -> impl Iterator<Item = &str> {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
    module.split('/')
}

/// The functions directly within a block.
fn methods_in(block: &[&str]) -> usize {
    let mut depth = 0_usize;
    let mut count = 0;
    for token in block {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            "fn" if depth == 1 => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    #[test]
    fn methods_are_counted_by_type_and_tests_are_left_out() {
        let source = |file: &str, text: &str| Source {
            crate_name: "sql".to_owned(),
            file: file.to_owned(),
            text: text.to_owned(),
        };
        let mut types = Types::default();
        for source in [
            source(
                "a.rs",
                "struct A<T>; impl<T: B> A<T> where T: C { fn a() { fn inner() {} } pub fn b() {} }",
            ),
            source("b.rs", "impl A<u8> { fn c() {} } impl D for A<u8> { fn d() {} }"),
            source("c.rs", "fn f(a: A<u8>) {} #[cfg(test)] mod tests { impl A<u8> { fn e() {} } }"),
        ] {
            types.add(&source, &tokens(&source.text));
        }
        assert_eq!(types.by_methods(1), [("sql/a.rs", "A", 3, 2)]);
        assert_eq!(types.by_files(1), [("sql/a.rs", "A", 2)]);
    }
    #[test]
    fn methods_belong_to_the_type_of_their_name_that_is_nearest() {
        let mut types = Types::default();
        for (file, text) in [
            ("log/shared.rs", "struct Shared; impl Shared { fn a() {} }"),
            ("log/write.rs", "impl Shared { fn b() {} fn c() {} }"),
            ("pages/mod.rs", "struct Shared;"),
            ("pages/read.rs", "impl Shared { fn d() {} }"),
        ] {
            let (crate_name, file, text) = ("storage".to_owned(), file.to_owned(), text.to_owned());
            types.add(&Source { crate_name, file, text: text.clone() }, &tokens(&text));
        }
        let expected =
            [("storage/log/shared.rs", "Shared", 3, 2), ("storage/pages/mod.rs", "Shared", 1, 1)];
        assert_eq!(types.by_methods(2), expected);
    }
}
