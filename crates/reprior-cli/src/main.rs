//! The program `reprior`.

fn main() {}
