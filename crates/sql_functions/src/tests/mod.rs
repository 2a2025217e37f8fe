mod digest;
mod harness;
mod json;
mod numeric;
mod properties;
mod string;
mod temporal;

use super::*;

#[test]
fn names_are_found_in_any_case_and_by_their_aliases() {
    assert_eq!(find("mod").map(|function| function.name), Some("%"));
    assert_eq!(find("+").map(|function| function.name), Some("+"));
    assert!(find("no_such_function").is_none());
}

#[test]
fn no_name_is_taken_twice() {
    let mut names: Vec<&str> = all().map(|function| function.name).collect();
    names.extend(ALIASES.iter().map(|(alias, _)| *alias));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_wrong_number_of_arguments_is_refused() {
    let error = find("~").unwrap().check_arity(2).unwrap_err();
    assert_eq!(error.code, 1582);
    assert_eq!(error.message, "Incorrect parameter count in the call to native function '~'");
}
