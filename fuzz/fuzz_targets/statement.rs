//! Any text is a statement or refused. Without its literals it has as many parameters as were
//! lifted. An expression renders to a text that is an expression too, or nests too deep with the
//! parentheses around each of its operators.

#![no_main]

use firn_fuzz::Input;
use firn_sql::error::SqlError;
use firn_sql::grammar::{Mode, Normalised, normalise, parse, parse_expression, render, split};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let mode = Mode {
        ansi_quotes: flags & 1 != 0,
        pipes_as_concat: flags & 2 != 0,
        no_backslash_escapes: flags & 4 != 0,
        high_not_precedence: flags & 8 != 0,
        ignore_space: flags & 16 != 0,
    };
    let text = String::from_utf8_lossy(input.take_all());
    let mut out = Normalised::default();
    if normalise(&text, mode, &mut out)
        && let (Ok(_), Ok(parsed)) = (parse(&text, mode), parse(out.text(), mode))
    {
        assert_eq!(parsed.parameter_count as usize, out.literals().len());
    }
    for statement in split(&text, mode) {
        let _ = parse(statement, mode);
    }
    if let Ok(tree) = parse_expression(&text, Mode::default()) {
        let rendered = render(&tree);
        let again = parse_expression(&rendered, Mode::default());
        let nests_too_deep = |error: &SqlError| error.message.starts_with("memory exhausted");
        assert!(again.as_ref().err().is_none_or(nests_too_deep), "{rendered}");
    }
});
