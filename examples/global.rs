//! A Rust program on HAKMEM. From the checkout: `cargo run --release --example global`
use hakmem::Hakmem;
use std::collections::HashMap;

#[global_allocator]
static GLOBAL: Hakmem = Hakmem;

fn main() {
    let mut squares = HashMap::new();
    for number in 0..100_000u64 {
        squares.insert(number, Box::new(number * number));
    }
    let last = &squares[&99_999];
    println!("{last}, in a block of HAKMEM: {}", GLOBAL.owns(&**last));
    drop(squares);
    println!("given back: {} KiB", GLOBAL.purge() / 1024);
}
