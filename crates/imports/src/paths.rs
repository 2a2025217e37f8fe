//! The paths named in a source file, without those of its tests.
//!
//! ```text
//!   use crate::{a::B, c};   fn f(x: super::D) {}      crate::a::B  crate::c  super::D
//! ```

use crate::items::{split_at_commas, test_attribute};

/// A path and, if a `use` imports it, its name in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// The names between the `::`.
    pub(crate) segments: Vec<String>,
    /// The name that a `use` brings into the file.
    pub(crate) name: Option<String>,
}

/// The names in a file.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// The paths, with those of `use` split into single ones.
    pub(crate) paths: Vec<Path>,
    /// Modules that are compiled only for tests and have files.
    pub(crate) test_modules: Vec<String>,
}

/// Finds the paths in a file.
pub(crate) fn named(tokens: &[&str]) -> Named {
    let mut found = Named::default();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(length) = test_attribute(&tokens[at..]) {
            at = skip_item(tokens, at + length, &mut found.test_modules);
            continue;
        }
        at = match &tokens[at..] {
            ["use", ..] => {
                let end = at + tokens[at..].iter().position(|token| *token == ";").unwrap_or(1);
                add_tree(&tokens[at + 1..end], &[], &mut found.paths);
                end
            }
            [_, "::", ..] => {
                let segments = path_at(&tokens[at..]);
                let length = segments.len() * 2 - 1;
                found.paths.push(Path { segments, name: None });
                at + length
            }
            _ => at + 1,
        };
    }
    found
}

/// The segments of the path that begins here.
fn path_at(tokens: &[&str]) -> Vec<String> {
    let mut segments = vec![tokens[0].to_owned()];
    for pair in tokens[1..].chunks_exact(2) {
        match pair {
            ["::", word] if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                segments.push((*word).to_owned());
            }
            _ => break,
        }
    }
    segments
}

/// Adds the paths of a `use` tree below a prefix.
fn add_tree(tree: &[&str], prefix: &[String], into: &mut Vec<Path>) {
    let mut segments = prefix.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at] {
            "{" => {
                let inside = &tree[at + 1..tree.len() - 1];
                for branch in split_at_commas(inside) {
                    add_tree(branch, &segments, into);
                }
                return;
            }
            "as" => {
                let name = tree.get(at + 1).map(|name| (*name).to_owned());
                into.push(Path { segments, name });
                return;
            }
            "::" => {}
            "self" if !segments.is_empty() => {}
            word => segments.push(word.to_owned()),
        }
        at += 1;
    }
    let name = segments.last().cloned();
    into.push(Path { segments, name });
}

/// The index after the item that begins here. Adds the name of a module that has a file to
/// `test_modules`.
fn skip_item(tokens: &[&str], start: usize, test_modules: &mut Vec<String>) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match *token {
            ";" if depth == 0 => {
                if let ["mod", name] = &tokens[at.saturating_sub(2)..at] {
                    test_modules.push((*name).to_owned());
                }
                return at + 1;
            }
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && *token == "}" {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use crate::tokens::tokens;

    use super::named;

    fn paths(source: &str) -> Vec<String> {
        let found = named(&tokens(source));
        found.paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        let source = "pub(crate) use crate::{a::{self, B as C}, d::*}; use super::e;";
        assert_eq!(paths(source), ["crate::a", "crate::a::B", "crate::d::*", "super::e"]);
    }

    #[test]
    fn paths_in_code_count_and_those_of_tests_do_not() {
        let source = "fn f() -> crate::a::B { let x = super::c(); }
            #[cfg(test)] mod fixture;
            #[cfg(test)] mod tests { use crate::z; fn f() { { crate::y::g() } } }
            #[cfg(test)] use crate::x::X;
            #[cfg(all(test, not(windows)))] mod model;
            #[cfg(all(not(test), unix))] use crate::u::U;
            const D: crate::d::D = crate::d::D(1);";
        assert_eq!(
            paths(source),
            ["crate::a::B", "super::c", "crate::u::U", "crate::d::D", "crate::d::D"]
        );
        assert_eq!(named(&tokens(source)).test_modules, ["fixture", "model"]);
    }
}
