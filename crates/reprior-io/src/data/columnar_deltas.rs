//! Text in Parquet files whose lengths are written as differences: their reader makes room for as many lengths as a page says it has, and
//! a few bytes can say any number.
//!
//! Such a page is its levels, then one list of lengths (`DELTA_LENGTH_BYTE_ARRAY`) or two (`DELTA_BYTE_ARRAY`), then the text. A list is the values of a
//! block, the parts of a block, the number of values and the first of them; then blocks: the least difference, the bits of a difference in each part,
//! the parts.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result as PageResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::columnar_pages::Compact;

/// Refuses pages of a column of so many rows that say they have more lengths than values, or than `limit`.
///
/// Costs a second decompression of the column.
///
/// # Errors
/// What is wrong.
pub(super) fn check_deltas(
    bytes: &Bytes,
    column: &ColumnChunkMetaData,
    rows: usize,
    limit: u64,
) -> Result<(), String> {
    let mut pages = pages(bytes, column, rows).map_err(|error| error.to_string())?;
    while let Some(page) = pages.get_next_page().map_err(|error| error.to_string())? {
        let lists = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => continue,
        };
        let most = u64::from(page.num_values()).min(limit);
        let values = values(&page, column);
        let is_sound = values.is_some_and(|values| {
            let mut values = Compact(values);
            (0..lists).all(|_| pass_list(&mut values, most).is_some())
        });
        if !is_sound {
            return Err("a page of text has more lengths than values".to_owned());
        }
    }
    Ok(())
}

fn pages(
    bytes: &Bytes,
    column: &ColumnChunkMetaData,
    rows: usize,
) -> PageResult<SerializedPageReader<Bytes>> {
    SerializedPageReader::new(Arc::new(bytes.clone()), column, rows, None)
}

/// The bytes behind the levels of a page.
fn values<'a>(page: &'a Page, column: &ColumnChunkMetaData) -> Option<&'a [u8]> {
    let description = column.column_descr();
    match page {
        Page::DataPage {
            buf,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let mut rest: &[u8] = buf;
            for (most, encoding) in [
                (description.max_rep_level(), rep_level_encoding),
                (description.max_def_level(), def_level_encoding),
            ] {
                if most > 0 {
                    // what wrote the earlier form of levels wrote no differences
                    let is_known = *encoding == Encoding::RLE;
                    let (length, tail) = rest.split_first_chunk().filter(|_| is_known)?;
                    rest = tail.get(u32::from_le_bytes(*length) as usize..)?;
                }
            }
            Some(rest)
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// Passes over a list of at most so many values.
fn pass_list(bytes: &mut Compact<'_>, most: u64) -> Option<()> {
    let block = bytes.unsigned()?;
    let parts = bytes.unsigned()?;
    let count = bytes.unsigned()?;
    bytes.unsigned()?;
    if count > most {
        return None;
    }
    let in_part = block.checked_div(parts).filter(|&values| values > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        bytes.unsigned()?;
        let widths = bytes.0.get(..usize::try_from(parts).ok()?)?;
        bytes.skip(parts)?;
        for &width in widths {
            if left > 0 {
                bytes.skip(in_part.checked_mul(u64::from(width))? / 8)?;
                left = left.saturating_sub(in_part);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four values in blocks of 128 of 4 parts: one block whose first part has one bit a difference, and one byte after it.
    const LIST: [u8; 15] = [0x80, 1, 4, 4, 2, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 9];

    #[test]
    fn lists_of_lengths_are_passed_over() {
        let mut bytes = Compact(&LIST);
        assert_eq!(pass_list(&mut bytes, 4), Some(()));
        assert_eq!(bytes.0, [9]);
        assert_eq!(pass_list(&mut Compact(&LIST), 3), None);
        for length in 0..14 {
            assert_eq!(pass_list(&mut Compact(&LIST[..length]), 4), None);
        }
        // no blocks
        let mut one = Compact(&[0x80, 1, 4, 1, 2, 9]);
        assert_eq!(pass_list(&mut one, 4), Some(()));
        assert_eq!(one.0, [9]);
    }
}
