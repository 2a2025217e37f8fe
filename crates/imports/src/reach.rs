//! Which types much code reaches into: by the functions that take them, and by their fields.
//!
//! ```text
//!   struct A { b: u8, c: u8 }                  A: two fields
//!   fn f(a: &mut A, d: &A) { a.b = d.b }       A: one function takes it as `&mut`;
//!                                              if the file is not A's own: `b` is read outside
//! ```
//!
//! A type that is large through free functions has few methods: this list shows it. Types are
//! identified by their names. A name that is defined in several crates means the one of the same
//! crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{Reference, block_length, function, name_of, split_at_commas, without_tests};
use crate::types::Source;

/// A type by its crate and name.
type Key = (String, String);

/// A type with fields.
#[derive(Debug)]
struct Fielded {
    file: String,
    fields: BTreeSet<String>,
}

/// What a file does with a type.
#[derive(Debug)]
struct Use {
    crate_name: String,
    file: String,
    of: String,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A free function takes it.
    Taken { is_mutable: bool },
    /// A field is read or written.
    Field(String),
}

/// The uses of the types of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    types: BTreeMap<Key, Fielded>,
    uses: Vec<Use>,
}

/// How far a type is reached into.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached<'r> {
    pub(crate) crate_name: &'r str,
    pub(crate) name: &'r str,
    /// Free functions that take it as `&mut`.
    pub(crate) mutably: usize,
    /// Free functions that take it as `&`.
    pub(crate) shared: usize,
    /// Files other than its own that take it as `&mut` or read its fields.
    pub(crate) files: usize,
    pub(crate) fields: usize,
    /// Fields that are read in other files.
    pub(crate) outside: Vec<&'r str>,
}

impl Reach {
    /// Adds the words of a file.
    pub(crate) fn add(&mut self, source: &Source, tokens: &[&str]) {
        let tokens = without_tests(tokens);
        let file = format!("{}/{}", source.crate_name, source.file);
        let mut walk = Walk { source, file: &file, impls: Vec::new(), reach: self };
        let mut at = 0;
        while at < tokens.len() {
            at = walk.item(&tokens, at);
        }
    }

    /// The types that the most free functions take as `&mut`.
    pub(crate) fn by_functions(&self, most: usize) -> Vec<Reached<'_>> {
        let mut found: BTreeMap<&Key, (Reached<'_>, BTreeSet<&str>)> = BTreeMap::new();
        for one in &self.uses {
            let Some((key, ty)) = self.meant(one) else { continue };
            let (reached, files) =
                found.entry(key).or_insert_with(|| (begun(key, ty), BTreeSet::new()));
            let is_outside = ty.file != one.file;
            match &one.what {
                What::Taken { is_mutable: false } => reached.shared += 1,
                What::Taken { is_mutable: true } => {
                    reached.mutably += 1;
                    files.extend(is_outside.then_some(one.file.as_str()));
                }
                What::Field(field) => {
                    if let Some(field) = ty.fields.get(field).filter(|_| is_outside) {
                        files.insert(&one.file);
                        if !reached.outside.contains(&field.as_str()) {
                            reached.outside.push(field);
                        }
                    }
                }
            }
        }
        let mut all: Vec<_> = found
            .into_values()
            .map(|(reached, files)| Reached { files: files.len(), ..reached })
            .collect();
        all.iter_mut().for_each(|one| one.outside.sort_unstable());
        all.sort_by_key(|one| std::cmp::Reverse((one.mutably, one.files)));
        all.truncate(most);
        all
    }

    /// The type that a use means: that of its own crate, or the only one with the name.
    fn meant(&self, one: &Use) -> Option<(&Key, &Fielded)> {
        let own = (one.crate_name.clone(), one.of.clone());
        if let Some(found) = self.types.get_key_value(&own) {
            return Some(found);
        }
        let mut named = self.types.iter().filter(|((_, name), _)| *name == one.of);
        named.next().filter(|_| named.next().is_none())
    }
}

fn begun<'r>((crate_name, name): &'r Key, ty: &Fielded) -> Reached<'r> {
    Reached {
        crate_name,
        name,
        mutably: 0,
        shared: 0,
        files: 0,
        fields: ty.fields.len(),
        outside: Vec::new(),
    }
}

/// A walk over the items of a file.
struct Walk<'w> {
    source: &'w Source,
    file: &'w str,
    /// The `impl` and `trait` blocks around the place: where each ends, and its type.
    impls: Vec<(usize, Option<String>)>,
    reach: &'w mut Reach,
}

impl Walk<'_> {
    /// Reads the word at a place; returns the next place.
    fn item(&mut self, tokens: &[&str], at: usize) -> usize {
        self.impls.retain(|(end, _)| *end > at);
        match tokens[at..] {
            ["struct", name, ..] => self.define(name, &tokens[at..]),
            ["impl" | "trait", ..] => return self.enter(tokens, at),
            ["fn", ..] => {
                if let Some((references, body)) = function(&tokens[at..]) {
                    self.function(&references, &tokens[at + body..]);
                    return at + body;
                }
            }
            _ => {}
        }
        at + 1
    }

    /// `struct A { b: B, … }`; other forms have no named fields.
    fn define(&mut self, name: &str, tokens: &[&str]) {
        let Some(open) = tokens.iter().position(|token| matches!(*token, "{" | ";" | "(")) else {
            return;
        };
        if tokens[open] != "{" {
            return;
        }
        let end = open + block_length(&tokens[open..]);
        let fields = split_at_commas(&tokens[open + 1..end - 1]).into_iter().filter_map(|field| {
            let colon = field.iter().position(|token| *token == ":")?;
            field.get(colon.checked_sub(1)?).map(|name| (*name).to_owned())
        });
        let fielded = Fielded { file: self.file.to_owned(), fields: fields.collect() };
        self.reach.types.insert((self.source.crate_name.clone(), name.to_owned()), fielded);
    }

    /// The block of an `impl` or `trait`.
    fn enter(&mut self, tokens: &[&str], at: usize) -> usize {
        let Some(open) = tokens[at..].iter().position(|token| matches!(*token, "{" | ";")) else {
            return at + 1;
        };
        if tokens[at + open] == "{" {
            let head = &tokens[at + 1..at + open];
            let of =
                head.iter().position(|token| *token == "for").map_or(head, |of| &head[of + 1..]);
            let name = if tokens[at] == "impl" { name_of(of).map(str::to_owned) } else { None };
            self.impls.push((at + open + block_length(&tokens[at + open..]), name));
        }
        at + open + 1
    }

    /// A function from its body on.
    fn function(&mut self, references: &[Reference<'_>], tokens: &[&str]) {
        let body = if tokens[0] == "{" { &tokens[..block_length(tokens)] } else { &[] };
        for reference in references {
            if self.impls.is_empty() {
                self.note(reference.of, What::Taken { is_mutable: reference.is_mutable });
            }
            self.fields(reference.of, reference.name, body);
        }
        if let Some((_, Some(of))) = self.impls.last() {
            self.fields(&of.clone(), "self", body);
        }
    }

    /// `variable.field` in a body; a call of a method is no field.
    fn fields(&mut self, of: &str, variable: &str, body: &[&str]) {
        for (at, words) in body.windows(3).enumerate() {
            let is_call = body.get(at + 3).is_some_and(|token| matches!(*token, "(" | "::"));
            let is_inner = at > 0 && body[at - 1] == ".";
            if words[0] == variable && words[1] == "." && !is_call && !is_inner {
                self.note(of, What::Field(words[2].to_owned()));
            }
        }
    }

    fn note(&mut self, of: &str, what: What) {
        let (crate_name, file) = (self.source.crate_name.clone(), self.file.to_owned());
        self.reach.uses.push(Use { crate_name, file, of: of.to_owned(), what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    #[test]
    fn functions_and_fields_are_counted_by_type() {
        let mut reach = Reach::default();
        let files = [
            (
                "sql",
                "a.rs",
                "struct A<T> { #[x(y)] pub(crate) b: Vec<u8>, c: [u8; 2], d: Map<u8, T> }
                 impl A<u8> { fn own(&self, other: &mut A<u8>) { self.d; } }
                 fn own(a: &mut A<u8>) { a.d }",
            ),
            (
                "sql",
                "b.rs",
                "impl A<u8> { fn m(&self) { self.c; } } impl E for A<u8> { fn n(&self) { self.own() } }
                 fn f(a: &'x mut super::A<u8>, e: &E) { a.b.d; e.c; g(a); }
                 #[cfg(test)] mod tests { fn f(a: &mut A<u8>) {} }",
            ),
            ("sql", "c.rs", "fn g(a: &A<u8>) { h.a.d; a.e; a.b() }"),
            ("base", "a.rs", "struct A { z: u8 } fn f(a: &A) {}"),
        ];
        for (crate_name, file, text) in files {
            let (crate_name, file, text) = (crate_name.into(), file.into(), text.into());
            let source = Source { crate_name, file, text };
            reach.add(&source, &tokens(&source.text));
        }
        assert_eq!(
            reach.by_functions(1),
            [Reached {
                crate_name: "sql",
                name: "A",
                mutably: 2,
                shared: 1,
                files: 1,
                fields: 3,
                outside: vec!["b", "c"],
            }]
        );
    }
}
