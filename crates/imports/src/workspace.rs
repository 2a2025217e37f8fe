//! The crates of the workspace, from their files: dependencies, and imports between modules.
//!
//! A module here is a module of a crate's root with everything below it. Items of the root itself
//! belong to no module; re-exports of the root belong to the modules that they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::graph::Graph;
use crate::paths::{Named, named};
use crate::tokens::tokens;
use crate::types::Source;

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    /// Its folder under `crates/`.
    pub(crate) name: String,
    /// Folders of the crates that it depends on, except those of its tests.
    pub(crate) dependencies: BTreeSet<String>,
    /// Imports between its modules.
    pub(crate) modules: Graph,
    /// Source files that no `mod` names, so that nothing compiles them.
    pub(crate) unnamed: Vec<String>,
}

/// Reads all crates under a folder, in the order of their names.
///
/// # Errors
/// Errors of reading files.
pub(crate) fn crates(folder: &Path) -> io::Result<Vec<Crate>> {
    crate_folders(folder)?.iter().map(|folder| read_crate(folder)).collect()
}

/// Reads the sources of all crates under a folder, without the files that hold tests.
///
/// # Errors
/// Errors of reading files.
pub(crate) fn sources(folder: &Path) -> io::Result<Vec<Source>> {
    let is_test =
        |name: &String| matches!(name.as_str(), "tests" | "test_support" | "interleavings");
    let mut found = Vec::new();
    for folder in crate_folders(folder)? {
        let crate_name = name_of(&folder);
        read_files(&folder.join("src"), &mut Vec::new(), &mut |place, path, text| {
            if !place.iter().any(is_test) {
                let file = path.strip_prefix(folder.join("src")).unwrap_or(path);
                let (crate_name, file) = (crate_name.clone(), file.to_string_lossy().into_owned());
                found.push(Source { crate_name, file, text });
            }
        })?;
    }
    Ok(found)
}

fn crate_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders.sort();
    Ok(folders)
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_crate(folder: &Path) -> io::Result<Crate> {
    let name = name_of(folder);
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    let (mut files, mut declared) = (BTreeMap::new(), BTreeSet::new());
    read_files(&folder.join("src"), &mut Vec::new(), &mut |place, _, text| {
        let tokens = tokens(&text);
        declared.extend(children(place, &tokens));
        files.insert(place.to_vec(), named(&tokens));
    })?;
    let unnamed = files.keys().filter(|place| !is_root(place) && !declared.contains(*place));
    Ok(Crate {
        name,
        dependencies: dependencies(&manifest),
        modules: modules(&files),
        unnamed: unnamed.map(|place| place.join("::")).collect(),
    })
}

/// The modules that a file names with `mod`.
fn children(place: &[String], tokens: &[&str]) -> Vec<Vec<String>> {
    let named = tokens.windows(3).filter_map(|window| match window {
        ["mod", name, ";"] => Some([place, &[(*name).to_owned()]].concat()),
        _ => None,
    });
    named.collect()
}

/// Whether the module is a crate's root, which nothing names.
fn is_root(place: &[String]) -> bool {
    place.is_empty() || place[0] == "bin"
}

/// The workspace's crates among the dependencies of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if section == "[dependencies]"
            && let Some(rest) = line.strip_prefix("firn-")
        {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '-'));
            found.insert(rest[..end.unwrap_or(rest.len())].replace('-', "_"));
        }
    }
    found
}

/// The paths named in each file, by the path of its module.
type Files = BTreeMap<Vec<String>, Named>;

/// Passes each source file below a folder to `take`: its module's path, its own path and its text.
fn read_files(
    folder: &Path,
    module: &mut Vec<String>,
    take: &mut dyn FnMut(&[String], &Path, String),
) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = name_of(&path);
        if path.is_dir() {
            module.push(name);
            read_files(&path, module, take)?;
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut place = module.clone();
            if !matches!(name.as_str(), "lib" | "main" | "mod") {
                place.push(name);
            }
            take(&place, &path, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The imports between the modules of a crate.
fn modules(files: &Files) -> Graph {
    let tests: BTreeSet<Vec<String>> = files
        .iter()
        .flat_map(|(place, named)| {
            named
                .test_modules
                .iter()
                .map(|name| [place.as_slice(), std::slice::from_ref(name)].concat())
        })
        .collect();
    let is_test =
        |place: &[String]| (1..=place.len()).any(|length| tests.contains(&place[..length]));
    let roots: BTreeSet<&String> = files.keys().filter_map(|place| place.first()).collect();
    let exported = exports(files, &roots);
    let mut graph = Graph::default();
    for (place, named) in files.iter().filter(|(place, _)| !is_test(place)) {
        let Some(from) = place.first() else { continue };
        for path in &named.paths {
            let Some(first) = first_in_crate(place, &path.segments) else { continue };
            let to = if roots.contains(&first) { Some(&first) } else { exported.get(&first) };
            if let Some(to) = to {
                graph.add(from, to);
            }
        }
    }
    graph
}

/// Names that the root of a crate re-exports from its modules.
fn exports(files: &Files, roots: &BTreeSet<&String>) -> BTreeMap<String, String> {
    let root = files.get(&Vec::new());
    let uses = root.into_iter().flat_map(|named| &named.paths);
    let exported = uses.filter_map(|path| {
        let name = path.name.clone()?;
        let segments =
            path.segments.iter().skip_while(|one| matches!(one.as_str(), "crate" | "self"));
        let module = segments.take(1).find(|first| roots.contains(first))?;
        Some((name, module.clone()))
    });
    exported.collect()
}

/// The first name below the crate's root of a path in a module; `None` for a path of another crate.
fn first_in_crate(place: &[String], path: &[String]) -> Option<String> {
    match path.first()?.as_str() {
        "crate" => path.get(1).cloned(),
        "super" => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            let base = &place[..place.len().checked_sub(up)?];
            base.first().or_else(|| path.get(up)).cloned()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Files, children, dependencies, is_root, modules};
    use crate::paths::named;
    use crate::tokens::tokens;

    fn arrows(files: &[(&[&str], &str)]) -> Vec<String> {
        let files: Files = files
            .iter()
            .map(|(place, source)| {
                let place = place.iter().map(|one| (*one).to_owned()).collect();
                (place, named(&tokens(source)))
            })
            .collect();
        let graph = modules(&files);
        let all =
            graph.arrows().flat_map(|(from, to)| to.iter().map(move |to| format!("{from} {to}")));
        all.collect()
    }

    #[test]
    fn files_of_one_module_are_one() {
        let found = arrows(&[
            (&[], "pub mod a; pub mod b; pub use b::B;"),
            (&["a"], "mod inner; use self::inner::X;"),
            (&["a", "inner"], "use super::Y; use super::super::b::c::Z;"),
            (&["b"], "fn f(x: crate::B) {}"),
        ]);
        assert_eq!(found, ["a b"]);
    }

    #[test]
    fn what_the_root_exports_belongs_to_its_module() {
        let found = arrows(&[
            (&[], "mod a; mod b; pub use b::B;"),
            (&["a"], "use crate::B;"),
            (&["b"], "use crate::nothing::C;"),
        ]);
        assert_eq!(found, ["a b"]);
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let found = arrows(&[
            (&["a"], "#[cfg(test)] mod tests;"),
            (&["a", "tests"], "use crate::b::X;"),
            (&["b"], "#[cfg(test)] use crate::a::Y;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_file_is_compiled_if_a_module_names_it() {
        let place = |names: &[&str]| names.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let source = "#[cfg(test)] mod tests; pub(crate) mod b; // mod c;\nmod d { fn f() {} }";
        let named = children(&place(&["a"]), &tokens(source));
        assert_eq!(named, [place(&["a", "tests"]), place(&["a", "b"])]);
        assert!(is_root(&[]) && is_root(&place(&["bin", "tool"])) && !is_root(&place(&["a"])));
    }

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let manifest = "[dependencies]\nfirn-base.workspace = true\nfirn-sql-types = { path = \"x\" }\n\
                        [dev-dependencies]\nfirn-engine.workspace = true\n";
        let found: Vec<String> = dependencies(manifest).into_iter().collect();
        assert_eq!(found, ["base", "sql_types"]);
    }
}
