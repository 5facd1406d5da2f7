//! Gives a reader's function the inputs that libFuzzer makes: `READER=csv`. The readers are those of the tests.
#![no_main]
#![allow(dead_code, reason = "what only the tests ask of readers")]

#[path = "../../crates/reprior-run/tests/hostile/largest.rs"]
mod largest;
#[path = "../../crates/reprior-run/tests/hostile/readers/mod.rs"]
mod readers;

use std::sync::{Mutex, OnceLock};

use largest::{largest, most};
use libfuzzer_sys::fuzz_target;
use readers::{READERS, Reader};

/// What the last panic said, and where.
static LAST: Mutex<String> = Mutex::new(String::new());

fn reader() -> &'static Reader {
    static READER: OnceLock<&Reader> = OnceLock::new();
    READER.get_or_init(|| {
        let name = std::env::var("READER").unwrap_or_default();
        let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
        let own = READERS.iter().find(|reader| reader.name == name);
        // in place of libFuzzer's, which ends at once: a panic of a dependency that a reader catches is none
        std::panic::set_hook(Box::new(|panic| {
            if let Ok(mut last) = LAST.lock() {
                *last = panic.to_string();
            }
        }));
        own.unwrap_or_else(|| {
            eprintln!("READER must be one of {}", names.join(", "));
            std::process::exit(2)
        })
    })
}

fuzz_target!(init: {
    // what is made once, such as sound runs, takes longer than an input may
    (reader().read)(&[0]);
}, |bytes: &[u8]| {
    let reader = reader();
    if std::panic::catch_unwind(|| (reader.read)(bytes)).is_err() {
        eprintln!(
            "{}",
            LAST.lock().map(|last| last.clone()).unwrap_or_default()
        );
        std::process::abort();
    }
    let (asked, most) = (largest(), most(bytes.len()));
    if asked > most {
        eprintln!("{asked} bytes at once, {most} are allowed");
        std::process::abort();
    }
});
