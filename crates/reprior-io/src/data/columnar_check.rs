//! What Parquet and Arrow files say of their own lengths, compared with what they have, before anything is read: their readers believe it, and
//! would stop the program or ask for any amount of memory.

use arrow_ipc::{Block, MessageHeader, RecordBatch, root_as_footer, root_as_message};
use bytes::Bytes;
use parquet::file::metadata::ParquetMetaData;

use super::columnar_deltas::check_deltas;
use super::columnar_pages::check_pages;

/// Of what unfolds to more than there is room for, or than a file of its size can hold of a table.
pub(super) const TOO_LARGE: &str =
    "it would be larger than the memory that is free, or than a table of so small a file is";
/// What an Arrow file ends with, after the length of its footer.
const ARROW_END: &[u8] = b"ARROW1";
/// The start of a message that is not of the earliest format.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Refuses lengths and places of columns and pages that cannot be those of a Parquet file of these `bytes`, and columns that unfold to more than
/// `limit` bytes.
///
/// # Errors
/// What is wrong.
pub(super) fn check_parquet(
    metadata: &ParquetMetaData,
    bytes: &Bytes,
    limit: u64,
) -> Result<(), String> {
    let length = bytes.len() as u64;
    let mut left = limit;
    let mut rows_left = limit;
    let mut unfolded: u64 = 0;
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows());
        let rows = rows.map_err(|_| "a group of rows has a negative number of them".to_owned())?;
        // a row is a byte of text or more
        rows_left = rows_left
            .checked_sub(rows)
            .ok_or_else(|| TOO_LARGE.to_owned())?;
        for column in group.columns() {
            let offsets = [
                Some(column.data_page_offset()),
                column.dictionary_page_offset(),
            ];
            let sizes = [column.compressed_size(), column.uncompressed_size()];
            let sizes = sizes.map(u64::try_from);
            let ([Ok(size), Ok(own)], false) = (
                sizes,
                offsets.into_iter().flatten().any(|offset| offset < 0),
            ) else {
                return Err("a column has a negative length".to_owned());
            };
            // where the reader begins
            let (start, _) = column.byte_range();
            let end = start.checked_add(size).filter(|&end| end <= length);
            let end = end.ok_or("a column lies beyond the end of the file")?;
            if check_pages(bytes, start, end, &mut left)? {
                check_deltas(bytes, column, rows as usize, limit)?;
            }
            unfolded = unfolded.saturating_add(own);
        }
    }
    match unfolded > limit {
        true => Err(TOO_LARGE.to_owned()),
        false => Ok(()),
    }
}

/// Refuses an Arrow file whose footer or messages point beyond it, or whose compressed buffers claim more than `limit` bytes.
///
/// # Errors
/// What is wrong.
pub(super) fn check_arrow(bytes: &[u8], limit: u64) -> Result<(), String> {
    let beyond = || "a part lies beyond the end of the file".to_owned();
    let body = bytes.strip_suffix(ARROW_END).ok_or_else(beyond)?;
    let (body, length) = body.split_last_chunk::<4>().ok_or_else(beyond)?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| beyond())?;
    let start = body.len().checked_sub(length).ok_or_else(beyond)?;
    let footer = root_as_footer(&body[start..]).map_err(|error| error.to_string())?;
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    let mut left = limit;
    for block in blocks.into_iter().flatten().flatten() {
        check_block(bytes, block, &mut left)?;
    }
    Ok(())
}

/// One message with its body; what its compressed buffers unfold to is taken from `left`.
fn check_block(bytes: &[u8], block: &Block, left: &mut u64) -> Result<(), String> {
    let beyond = || "a part lies beyond the end of the file".to_owned();
    let part = |from: i64, length: i64| {
        let from = usize::try_from(from).ok()?;
        let end = from.checked_add(usize::try_from(length).ok()?)?;
        bytes.get(from..end)
    };
    let metadata_length = i64::from(block.metaDataLength());
    let message = part(block.offset(), metadata_length).ok_or_else(beyond)?;
    let body_start = block.offset().checked_add(metadata_length);
    let body = body_start.and_then(|start| part(start, block.bodyLength()));
    let body = body.ok_or_else(beyond)?;
    let skipped = match message.starts_with(&CONTINUATION) {
        true => 8,
        false => 4,
    };
    let message = message.get(skipped..).ok_or_else(beyond)?;
    let message = root_as_message(message).map_err(|error| error.to_string())?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message
            .header_as_dictionary_batch()
            .and_then(|dictionary| dictionary.data()),
        _ => None,
    };
    match batch {
        Some(batch) => check_buffers(batch, body, left),
        None => Err("a part that should be rows is none".to_owned()),
    }
}

fn check_buffers(batch: RecordBatch<'_>, body: &[u8], left: &mut u64) -> Result<(), String> {
    let beyond = || "a column lies beyond its part of the file".to_owned();
    if batch.length() < 0 {
        return Err("a part has a negative number of rows".to_owned());
    }
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).map_err(|_| beyond())?;
        let length = usize::try_from(buffer.length()).map_err(|_| beyond())?;
        let end = start.checked_add(length).ok_or_else(beyond)?;
        let own = body.get(start..end).ok_or_else(beyond)?;
        let (Some(_), Some(claimed)) = (batch.compression(), own.first_chunk::<8>()) else {
            continue;
        };
        // -1 stands for a buffer that was not worth compressing
        let claimed = i64::from_le_bytes(*claimed).max(0) as u64;
        *left = left
            .checked_sub(claimed)
            .ok_or_else(|| TOO_LARGE.to_owned())?;
    }
    Ok(())
}
