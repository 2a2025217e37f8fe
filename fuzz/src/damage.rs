//! Damage to the files of a directory, chosen by the fuzzer.

use std::path::Path;

use crate::{Contents, Input};

/// Makes the checksum around an offset of a file valid; false if there is none.
pub type Reseal = fn(file: &mut [u8], at: usize) -> bool;

/// Damages files whose path begins with `under` until the input is used up: removes them, truncates
/// them, overwrites them. True if some damage got a valid checksum.
pub fn damage(
    contents: &mut Contents,
    under: &Path,
    input: &mut Input<'_>,
    reseal: Reseal,
) -> bool {
    let mut is_resealed = false;
    while !input.is_empty() {
        is_resealed |= damage_once(contents, under, input, reseal);
    }
    is_resealed
}

fn damage_once(
    contents: &mut Contents,
    under: &Path,
    input: &mut Input<'_>,
    reseal: Reseal,
) -> bool {
    let number = usize::from(input.u8());
    let count = contents.keys().filter(|path| path.starts_with(under)).count();
    let mut paths = contents.keys().filter(|path| path.starts_with(under));
    let Some(path) = paths.nth(number % count.max(1)).cloned() else {
        input.take_all();
        return false;
    };
    let file = contents.get_mut(&path).expect("it was found");
    let kind = input.u8() % 4;
    let at = usize::from(input.u16()) * usize::from(1 + input.u8() % 8) % (file.len() + 1);
    match kind {
        0 => {
            contents.remove(&path);
            false
        }
        1 => {
            file.truncate(at);
            false
        }
        _ => {
            let length = usize::from(input.u8() % 32).min(file.len() - at);
            let run = input.take(length);
            file[at..at + run.len()].copy_from_slice(run);
            kind == 3 && reseal(file, at)
        }
    }
}
