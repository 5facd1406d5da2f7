//! ChaCha8 (Bernstein 2008) for noise by the million: eight blocks at once, one in each lane of a vector, or sixteen where vectors
//! are as long.
//!
//! Same key and nonce as the generator of [`Stream`](super::Stream), with block counters from 2⁶³ on, which that one never
//! reaches. The words of eight consecutive blocks come out interleaved: first word of each block, second word of each, …

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m512i;

#[cfg(target_arch = "x86_64")]
use super::instructions::arch;
use super::vector::simd_of_eight_words;

/// Blocks whose words are interleaved.
const LANES: usize = 8;
/// Their words.
pub(super) const WORDS: usize = 16 * LANES;
/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

type WordLanes = [u32; LANES];

/// Key, nonce and the number of words taken so far.
#[derive(Debug, Clone)]
pub(super) struct BlockGenerator {
    key: [u32; 8],
    nonce: u64,
    counter: u64,
}

impl BlockGenerator {
    pub fn new(key: [u8; 32], nonce: u64) -> Self {
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|j| key[4 * i + j]));
        Self {
            key: std::array::from_fn(word),
            nonce,
            counter: 1 << 63,
        }
    }

    /// The same after so many words, a multiple of [`WORDS`], have been taken.
    pub fn after(&self, words: usize) -> Self {
        debug_assert_eq!(words % WORDS, 0);
        Self {
            counter: self.counter + (words / WORDS * LANES) as u64,
            ..self.clone()
        }
    }

    /// Overwrites `words`, whose number is a multiple of [`WORDS`].
    pub fn fill(&mut self, words: &mut [u32]) {
        debug_assert_eq!(words.len() % WORDS, 0);
        #[cfg(target_arch = "x86_64")]
        if let pulp::Arch::V4(simd) = arch() {
            let (pairs, last) = words.split_at_mut(words.len() / (2 * WORDS) * (2 * WORDS));
            let generator = &mut *self;
            simd.vectorize(BySixteen {
                simd,
                generator,
                words: pairs,
            });
            return self.fill_by_eight(last);
        }
        self.fill_by_eight(words);
    }

    fn fill_by_eight(&mut self, words: &mut [u32]) {
        simd_of_eight_words(
            #[inline(always)]
            || {
                for out in words.chunks_exact_mut(WORDS) {
                    eight_blocks(&self.key, self.nonce, self.counter, out);
                    self.counter += LANES as u64;
                }
            },
        );
    }
}

#[inline(always)]
fn eight_blocks(key: &[u32; 8], nonce: u64, counter: u64, out: &mut [u32]) {
    let mut first = [[0; LANES]; 16];
    for i in 0..4 {
        first[i] = [CONSTANTS[i]; LANES];
    }
    for i in 0..8 {
        first[4 + i] = [key[i]; LANES];
    }
    first[12] = std::array::from_fn(|lane| (counter + lane as u64) as u32);
    first[13] = std::array::from_fn(|lane| ((counter + lane as u64) >> 32) as u32);
    first[14] = [nonce as u32; LANES];
    first[15] = [(nonce >> 32) as u32; LANES];
    let mut state = first;
    for _ in 0..4 {
        for i in 0..4 {
            quarter_round(&mut state, [i, 4 + i, 8 + i, 12 + i]);
        }
        for i in 0..4 {
            quarter_round(
                &mut state,
                [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4],
            );
        }
    }
    for ((out, state), first) in out.chunks_exact_mut(LANES).zip(&state).zip(&first) {
        for ((out, a), b) in out.iter_mut().zip(state).zip(first) {
            *out = a.wrapping_add(*b);
        }
    }
}

#[inline(always)]
fn quarter_round(state: &mut [WordLanes; 16], [a, b, c, d]: [usize; 4]) {
    let [mut va, mut vb, mut vc, mut vd] = [state[a], state[b], state[c], state[d]];
    for (left, right) in [(16, 12), (8, 7)] {
        for lane in 0..LANES {
            va[lane] = va[lane].wrapping_add(vb[lane]);
            vd[lane] = (vd[lane] ^ va[lane]).rotate_left(left);
        }
        for lane in 0..LANES {
            vc[lane] = vc[lane].wrapping_add(vd[lane]);
            vb[lane] = (vb[lane] ^ vc[lane]).rotate_left(right);
        }
    }
    [state[a], state[b], state[c], state[d]] = [va, vb, vc, vd];
}

/// Not a closure: `vectorize` would take it for one that can be called again, whose single call is a function of its own that need not be
/// compiled for AVX-512.
#[cfg(target_arch = "x86_64")]
struct BySixteen<'a> {
    simd: pulp::x86::V4,
    generator: &'a mut BlockGenerator,
    words: &'a mut [u32],
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for BySixteen<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let BlockGenerator {
            key,
            nonce,
            counter,
        } = self.generator;
        for out in self.words.chunks_exact_mut(2 * WORDS) {
            sixteen_blocks(self.simd, key, *nonce, *counter, out);
            *counter += 2 * LANES as u64;
        }
    }
}

/// Eight blocks and the next eight, by instructions of AVX-512: of loops over sixteen lanes the compiler makes two of eight, puts them
/// together and takes them apart, for three times as long as it works on them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sixteen_blocks(simd: pulp::x86::V4, key: &[u32; 8], nonce: u64, counter: u64, out: &mut [u32]) {
    let counters = |shift: u32| -> [u32; 2 * LANES] {
        std::array::from_fn(|lane| ((counter + lane as u64) >> shift) as u32)
    };
    let mut first = [pulp::cast([0_u32; 2 * LANES]); 16];
    for i in 0..4 {
        first[i] = pulp::cast([CONSTANTS[i]; 2 * LANES]);
    }
    for i in 0..8 {
        first[4 + i] = pulp::cast([key[i]; 2 * LANES]);
    }
    first[12] = pulp::cast(counters(0));
    first[13] = pulp::cast(counters(32));
    first[14] = pulp::cast([nonce as u32; 2 * LANES]);
    first[15] = pulp::cast([(nonce >> 32) as u32; 2 * LANES]);
    let mut state = first;
    for _ in 0..4 {
        for i in 0..4 {
            wide_quarter_round(simd, &mut state, [i, 4 + i, 8 + i, 12 + i]);
        }
        for i in 0..4 {
            let diagonal = [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4];
            wide_quarter_round(simd, &mut state, diagonal);
        }
    }
    let (low, high) = out.split_at_mut(WORDS);
    let halves = low
        .chunks_exact_mut(LANES)
        .zip(high.chunks_exact_mut(LANES));
    for ((low, high), (state, first)) in halves.zip(state.into_iter().zip(first)) {
        let sum = simd.avx512f._mm512_add_epi32(state, first);
        let words: [u32; 2 * LANES] = pulp::cast(sum);
        low.copy_from_slice(&words[..LANES]);
        high.copy_from_slice(&words[LANES..]);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn wide_quarter_round(simd: pulp::x86::V4, state: &mut [__m512i; 16], [a, b, c, d]: [usize; 4]) {
    let avx512 = simd.avx512f;
    let [mut va, mut vb, mut vc, mut vd] = [state[a], state[b], state[c], state[d]];
    va = avx512._mm512_add_epi32(va, vb);
    vd = avx512._mm512_rol_epi32::<16>(avx512._mm512_xor_si512(vd, va));
    vc = avx512._mm512_add_epi32(vc, vd);
    vb = avx512._mm512_rol_epi32::<12>(avx512._mm512_xor_si512(vb, vc));
    va = avx512._mm512_add_epi32(va, vb);
    vd = avx512._mm512_rol_epi32::<8>(avx512._mm512_xor_si512(vd, va));
    vc = avx512._mm512_add_epi32(vc, vd);
    vb = avx512._mm512_rol_epi32::<7>(avx512._mm512_xor_si512(vb, vc));
    [state[a], state[b], state[c], state[d]] = [va, vb, vc, vd];
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn words_are_those_of_chacha8() {
        let key: [u8; 32] = std::array::from_fn(|i| (7 * i + 3) as u8);
        for nonce in [0, 5, u64::MAX] {
            // an odd number of eight blocks
            let mut words = [0; 5 * WORDS];
            BlockGenerator::new(key, nonce).fill(&mut words);
            let mut generator = ChaCha8Rng::from_seed(key);
            generator.set_stream(nonce);
            generator.set_word_pos(1 << 67);
            for pass in words.chunks_exact(WORDS) {
                for lane in 0..LANES {
                    for word in 0..16 {
                        assert_eq!(pass[word * LANES + lane], generator.next_u32());
                    }
                }
            }
        }
    }
}
