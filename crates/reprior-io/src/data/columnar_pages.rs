//! What the pages of a Parquet file say of their own lengths. The file's description does not say it, and their reader asks for as much memory as
//! each of them claims.
//!
//! A page begins with its header in Thrift's compact protocol: fields of a number and a type, of which those that are not wanted are passed over.

use std::ops::ControlFlow;

use super::columnar_check::TOO_LARGE;

/// Structures within structures; a page's header has two of them.
const MOST_DEPTH: usize = 8;

/// What a page says of itself.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct PageHeader {
    uncompressed: i32,
    compressed: i32,
    /// Values of a dictionary.
    dictionary: Option<i32>,
    /// Whether it is text whose lengths are counted once more among its values.
    has_lengths: bool,
}

/// The encodings of such text.
const WITH_LENGTHS: [i32; 2] = [6, 7];

/// Refuses pages of a column, from `start` to `end` of the file, that lie beyond it or that unfold to more than is `left`, which becomes less.
/// All of them: how many values a column has is believed by nobody. Whether pages hold text whose lengths are to be looked at.
///
/// # Errors
/// What is wrong.
pub(super) fn check_pages(
    bytes: &[u8],
    start: u64,
    end: u64,
    left: &mut u64,
) -> Result<bool, String> {
    let beyond = || "a page lies beyond the end of the file".to_owned();
    let mut has_lengths = false;
    let mut place = usize::try_from(start).map_err(|_| beyond())?;
    while (place as u64) < end {
        let mut bytes = Compact(bytes.get(place..).ok_or_else(beyond)?);
        let before = bytes.0.len();
        let header = page_header(&mut bytes).ok_or("the header of a page is not understood")?;
        let negative = |_| "a page has a negative length".to_owned();
        let size = usize::try_from(header.compressed).map_err(negative)?;
        let own = u64::try_from(header.uncompressed).map_err(negative)?;
        if size > bytes.0.len() {
            return Err(beyond());
        }
        *left = left.checked_sub(own).ok_or_else(|| TOO_LARGE.to_owned())?;
        // every value of a dictionary takes a byte or more
        let fits = |values: i32| u64::try_from(values).is_ok_and(|values| values <= own);
        if !header.dictionary.is_none_or(fits) {
            return Err("a dictionary has fewer bytes than values".to_owned());
        }
        has_lengths |= header.has_lengths;
        place += before - bytes.0.len() + size;
    }
    Ok(has_lengths)
}

/// None where a field is of another type than the format has: the reader takes it for its own, whatever it is, and goes on from another place.
fn page_header(bytes: &mut Compact<'_>) -> Option<PageHeader> {
    let mut header = PageHeader::default();
    bytes.fields(0, &mut |bytes, field, kind| {
        let own = match (field, kind) {
            (1..=4, Compact::I32) => bytes.integer32()?,
            (5..=8, Compact::STRUCT) => {
                bytes.fields(1, &mut |bytes, own, kind| {
                    header.page_field(bytes, [field, own], kind)
                })?;
                return Some(ControlFlow::Break(()));
            }
            (1..=8, _) => return None,
            _ => return Some(ControlFlow::Continue(())),
        };
        match field {
            2 => header.uncompressed = own,
            3 => header.compressed = own,
            _ => {}
        }
        Some(ControlFlow::Break(()))
    })?;
    Some(header)
}

impl PageHeader {
    /// A field of the header of values (5), of a dictionary (7) or of values of the second version (8).
    fn page_field(&mut self, bytes: &mut Compact<'_>, field: [i64; 2], kind: u8) -> Taken {
        match (field, kind) {
            ([5, 1..=4] | [7, 1..=2] | [8, 1..=6], Compact::I32) => {
                let own = bytes.integer32()?;
                match field {
                    [5, 2] | [8, 4] => self.has_lengths |= WITH_LENGTHS.contains(&own),
                    [7, 1] => self.dictionary = Some(own),
                    _ => {}
                }
            }
            ([7, 3] | [8, 7], 1 | 2) => {}
            // statistics: the least and the greatest value, numbers of values, whether they are exact
            ([5, 5] | [8, 8], Compact::STRUCT) => bytes.fields(2, &mut |_, own, kind| {
                let is_own = match own {
                    1 | 2 | 5 | 6 => kind == 8,
                    3 | 4 => kind == 6,
                    7 | 8 => matches!(kind, 1 | 2),
                    _ => true,
                };
                is_own.then_some(ControlFlow::Continue(()))
            })?,
            ([5, 1..=5] | [7, 1..=3] | [8, 1..=8], _) => return None,
            _ => return Some(ControlFlow::Continue(())),
        }
        Some(ControlFlow::Break(()))
    }
}

/// Whether a field was taken (`Break`) or is to be passed over; none where it is not understood.
type Taken = Option<ControlFlow<()>>;

/// Bytes that are left of a structure.
pub(super) struct Compact<'a>(pub &'a [u8]);

impl Compact<'_> {
    const I32: u8 = 5;
    const STRUCT: u8 = 12;

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub fn skip(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    pub fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn integer32(&mut self) -> Option<i32> {
        self.integer()?.try_into().ok()
    }

    /// Calls `each` with the number and the type of every field of a structure; what it does not take is passed over.
    fn fields(
        &mut self,
        depth: usize,
        each: &mut dyn FnMut(&mut Self, i64, u8) -> Taken,
    ) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let start = self.byte()?;
            let kind = start & 15;
            if kind == 0 {
                return Some(());
            }
            field = match start >> 4 {
                0 => self.integer()?,
                delta => field.checked_add(i64::from(delta))?,
            };
            if each(self, field, kind)?.is_continue() {
                self.pass(kind, depth)?;
            }
        }
    }

    /// Passes over a value.
    fn pass(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MOST_DEPTH {
            return None;
        }
        match kind {
            // yes and no are types
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.unsigned().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.unsigned()?;
                self.skip(length)
            }
            9 | 10 => {
                let start = self.byte()?;
                let count = match start >> 4 {
                    15 => self.unsigned()?,
                    few => u64::from(few),
                };
                (0..count).try_for_each(|_| self.pass_element(start & 15, depth))
            }
            11 => {
                let count = self.unsigned()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.pass_element(kinds >> 4, depth)?;
                    self.pass_element(kinds & 15, depth)
                })
            }
            Self::STRUCT => self.fields(depth + 1, &mut |_, _, _| Some(ControlFlow::Continue(()))),
            _ => None,
        }
    }

    /// In lists yes and no have a byte.
    fn pass_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => self.skip(1),
            kind => self.pass(kind, depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of a page of 3 values: 20 bytes of 100, and fields that are passed over.
    const HEADER: [u8; 27] = [
        0x15, 0, // type
        0x15, 0xc8, 1, // 100 bytes
        0x15, 40,   // 20 in the file
        0x2c, // field 5
        0x15, 6, 0x15, 0, 0x15, 0, 0x15, 0, // values, encodings
        0x1c, 0x18, 2, b'a', b'b', 0x61, 0, // statistics
        0, 0x49, 0x12, // a list of one, of a field that there is none of
        1,    // yes
    ];

    fn page() -> Vec<u8> {
        [&HEADER[..], &[0; 21]].concat()
    }

    #[test]
    fn headers_are_understood() {
        let bytes = page();
        let mut bytes = Compact(&bytes);
        let expected = PageHeader {
            uncompressed: 100,
            compressed: 20,
            dictionary: None,
            has_lengths: false,
        };
        assert_eq!(page_header(&mut bytes), Some(expected));
        assert_eq!(bytes.0.len(), 20);
    }

    /// Of the number of values, and of a statistic.
    #[test]
    fn fields_of_another_type_are_refused() {
        for at in [8, 17, 21] {
            let mut bytes = page();
            bytes[at] = (bytes[at] & 0xf0) | 6;
            assert_eq!(page_header(&mut Compact(&bytes)), None, "{at}");
        }
    }

    #[test]
    fn pages_that_claim_more_than_is_left_are_refused() {
        let bytes = page();
        let end = bytes.len() as u64;
        let mut left = 100;
        assert_eq!(check_pages(&bytes, 0, end, &mut left), Ok(false));
        assert_eq!(left, 0);
        assert!(check_pages(&bytes, 0, end, &mut 99).is_err());
        assert!(check_pages(&bytes[..40], 0, 40, &mut 100).is_err());
        for length in 0..HEADER.len() {
            assert!(check_pages(&bytes[..length], 0, end, &mut 100).is_err());
        }
    }
}
