//! Items among the words of a file: blocks, `impl` heads, functions with their parameters.

/// The words of a file without the items that are compiled for tests only.
pub(crate) fn without_tests<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if test_attribute(&tokens[at..]).is_some() {
            let rest = &tokens[at..];
            let end = rest.iter().position(|token| matches!(*token, "{" | ";")).unwrap_or(0);
            at += end + if rest[end] == "{" { block_length(&rest[end..]) } else { 1 };
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// The length of the attribute that begins here, if what follows it is compiled for tests only:
/// `#[cfg(test)]`, or `#[cfg(all(…))]` with `test` among its conditions.
pub(crate) fn test_attribute(tokens: &[&str]) -> Option<usize> {
    let condition = tokens.strip_prefix(&["#", "[", "cfg"])?;
    let length = closed_length(condition, "(", ")");
    let is_for_tests = match condition.get(1..length - 1)? {
        ["test"] => true,
        ["all", "(", conditions @ .., ")"] => split_at_commas(conditions).contains(&&["test"][..]),
        _ => false,
    };
    is_for_tests.then_some(3 + length + 1)
}

/// The number of words of the block that begins here, including its braces.
pub(crate) fn block_length(tokens: &[&str]) -> usize {
    closed_length(tokens, "{", "}")
}

/// The number of words up to the bracket that closes the one that begins here.
fn closed_length(tokens: &[&str], open: &str, close: &str) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if *token == open {
            depth += 1;
        } else if *token == close {
            depth -= 1;
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The type of an inherent `impl`, from the words between `impl` and the brace.
pub(crate) fn name_of<'t>(head: &[&'t str]) -> Option<&'t str> {
    let mut depth = 0_usize;
    let mut name = None;
    for token in head {
        match *token {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "where" => break,
            word if depth == 0 && word.starts_with(char::is_uppercase) => name = Some(word),
            _ => {}
        }
    }
    name
}

/// A parameter that is a reference to a type with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference<'t> {
    /// The parameter's name.
    pub(crate) name: &'t str,
    /// The type's name, without its module.
    pub(crate) of: &'t str,
    pub(crate) is_mutable: bool,
}

/// A function's references, and the place of its body among the words from `fn` on. A function
/// without a body ends there.
pub(crate) fn function<'t>(tokens: &[&'t str]) -> Option<(Vec<Reference<'t>>, usize)> {
    let open = parameters_at(tokens)?;
    let length = closed_length(&tokens[open..], "(", ")");
    let parameters = &tokens[open + 1..open + length - 1];
    let references = split_at_commas(parameters).into_iter().filter_map(reference).collect();
    let after = open + length;
    let mut depth = 0_usize;
    for (at, token) in tokens[after..].iter().enumerate() {
        match *token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" | ";" if depth == 0 => return Some((references, after + at)),
            _ => {}
        }
    }
    None
}

/// The place of the parenthesis that opens the parameters of the function that begins here.
fn parameters_at(tokens: &[&str]) -> Option<usize> {
    let ["fn", name, ..] = tokens else { return None };
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(2) {
        match *token {
            "<" => depth += 1,
            ">" if tokens[at - 1] != "-" => depth = depth.saturating_sub(1),
            "(" if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// The words between the commas that are in no inner brackets.
pub(crate) fn split_at_commas<'s, 't>(tokens: &'s [&'t str]) -> Vec<&'s [&'t str]> {
    let mut depth = 0_usize;
    let mut before = "";
    let split = tokens.split(move |token| {
        match *token {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            ">" if before != "-" => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = token;
        *token == "," && depth == 0
    });
    split.filter(|words| !words.is_empty()).collect()
}

/// `name: &'a mut module::Type<…>`
fn reference<'t>(parameter: &[&'t str]) -> Option<Reference<'t>> {
    let [name, ":", "&", ty @ ..] = parameter else { return None };
    let path = ty.split(|token| *token == "<").next().unwrap_or_default();
    let is_path = path.iter().all(|token| *token == "::" || token.starts_with(char::is_alphabetic));
    let of = path.last().filter(|name| is_path && name.starts_with(char::is_uppercase))?;
    let is_trait = path.contains(&"dyn") || path.contains(&"impl");
    (!is_trait).then(|| Reference { name, of, is_mutable: path.contains(&"mut") })
}

#[cfg(test)]
mod tests {
    use super::{Reference, function};
    use crate::tokens::tokens;

    fn references(source: &str) -> Vec<(String, String, bool)> {
        let tokens = tokens(source);
        let (found, body) = function(&tokens).expect("it is a function");
        assert!(matches!(tokens[body], "{" | ";"));
        let found = found.iter();
        found
            .map(|Reference { name, of, is_mutable }| {
                ((*name).to_owned(), (*of).to_owned(), *is_mutable)
            })
            .collect()
    }

    #[test]
    fn references_to_types_are_found_among_parameters() {
        let source =
            "fn f<T, F: Fn(&A) -> B>(a: &'x mut c::C<D, E>, g: &G, h: H, i: &[J], k: &dyn L,
                      m: impl FnOnce(&mut N), o: &Arc<P>) -> [u8; 4] where F: Q { a.b }";
        let wanted = [("a", "C", true), ("g", "G", false), ("o", "Arc", false)];
        let wanted = wanted.map(|(name, of, is_mutable)| (name.into(), of.into(), is_mutable));
        assert_eq!(references(source), wanted);
    }

    #[test]
    fn a_function_of_a_trait_may_have_no_body() {
        assert_eq!(references("fn f(&self, a: &A);"), [("a".into(), "A".into(), false)]);
    }
}
