//! New inputs made of old ones, the same each time.

/// Numbers of SplitMix64 (Steele, Lea and Flood 2014).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below `end`, which may be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Numbers at which something ends.
const EDGES: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Longest input.
const MOST: usize = 1 << 14;

/// One of the corpus after one to four changes.
pub fn mutated(corpus: &[Vec<u8>], words: &[&str], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = corpus[chance.below(corpus.len())].clone();
    for _ in 0..=chance.below(4) {
        change(&mut bytes, corpus, words, chance);
    }
    bytes.truncate(MOST);
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], chance: &mut Chance) {
    let place = chance.below(bytes.len() + 1);
    let length = 1 + chance.below(8);
    let end = (place + length).min(bytes.len());
    match chance.below(10) {
        0 | 1 if place < bytes.len() => bytes[place] ^= 1 << chance.below(8),
        2 if place < bytes.len() => bytes[place] = chance.next() as u8,
        3 => bytes.truncate(place),
        4 => drop(bytes.drain(place..end)),
        5 => {
            let own: Vec<u8> = bytes[place..].iter().copied().take(length * 8).collect();
            drop(bytes.splice(place..place, own));
        }
        6 if !words.is_empty() => {
            let word = words[chance.below(words.len())];
            // letters below 256 stand for bytes
            let is_bytes = word.chars().all(|letter| u32::from(letter) < 256);
            let word: Vec<u8> = match is_bytes {
                true => word.chars().map(|letter| letter as u8).collect(),
                false => word.bytes().collect(),
            };
            let replaced = chance.below(2) * word.len();
            let end = (place + replaced).min(bytes.len());
            drop(bytes.splice(place..end, word));
        }
        7 => {
            let other = &corpus[chance.below(corpus.len())];
            let from = chance.below(other.len());
            bytes.truncate(place);
            bytes.extend_from_slice(&other[from.min(other.len())..]);
        }
        8 => {
            let edge = EDGES[chance.below(EDGES.len())].to_le_bytes();
            let width = 1 << chance.below(4);
            let mut edge = edge[..width].to_vec();
            if chance.below(2) == 1 {
                edge.reverse();
            }
            let end = (place + width).min(bytes.len());
            drop(bytes.splice(place..end, edge));
        }
        _ => {
            let new: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
            drop(bytes.splice(place..place, new));
        }
    }
}
