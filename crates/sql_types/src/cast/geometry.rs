//! Whether bytes are a geometry: the number of a reference system, followed by well-known binary.
//!
//! ```text
//!   reference system 4 │ byte order 1 │ type 4 │ points, or counts of parts and the parts
//! ```

const POINT_BYTES: usize = 16;
/// How deep collections may nest.
const DEEPEST: usize = 32;

/// Whether bytes are exactly a geometry.
pub(super) fn is_geometry(bytes: &[u8]) -> bool {
    let Some((_, rest)) = bytes.split_first_chunk::<4>() else { return false };
    let mut reader = Reader { rest };
    reader.geometry(None, DEEPEST).is_some() && reader.rest.is_empty()
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self, is_little: bool) -> Option<usize> {
        let (bytes, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        let number =
            if is_little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) };
        Some(number as usize)
    }

    fn points(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count.checked_mul(POINT_BYTES)?..)?;
        Some(())
    }

    /// A geometry, of the wanted type if there is one.
    fn geometry(&mut self, wanted: Option<usize>, depth: usize) -> Option<()> {
        let (order, rest) = self.rest.split_first()?;
        self.rest = rest;
        let is_little = match order {
            0 => false,
            1 => true,
            _ => return None,
        };
        let of = self.number(is_little)?;
        if wanted.is_some_and(|wanted| wanted != of) || depth == 0 {
            return None;
        }
        match of {
            1 => self.points(1),
            2 => {
                let count = self.number(is_little)?;
                self.points(count)
            }
            3 => {
                for _ in 0..self.number(is_little)? {
                    let count = self.number(is_little)?;
                    self.points(count)?;
                }
                Some(())
            }
            4..=7 => {
                let part = (of < 7).then_some(of - 3);
                for _ in 0..self.number(is_little)? {
                    self.geometry(part, depth - 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_geometry;

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_no_geometry() {
        let point = bytes("000000000101000000000000000000F03F0000000000000040");
        assert!(is_geometry(&point));
        assert!(is_geometry(&bytes("00000000010700000000000000")), "an empty collection");
        assert!((0..point.len()).all(|end| !is_geometry(&point[..end])));
        assert!(!is_geometry(&[point.as_slice(), &[0]].concat()));
        assert!(!is_geometry(&[0; 25]), "there is no type 0");
        assert!(!is_geometry(&bytes("000000000102000000FFFFFFFF")), "points that are not there");
    }
}
