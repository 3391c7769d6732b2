// What causes.c does, in Rust with its own library alone, on the allocator of the system.
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

const STEP: usize = 1 << 18;
const PAGE: usize = 36 << 20;
const THREADS: usize = 24;

struct Piece<const SIZE: usize>([u8; SIZE]);

trait Storage {
    fn append_rows(&mut self, size: usize);
}

impl Storage for Vec<Piece<64>> {
    #[inline(never)]
    fn append_rows(&mut self, size: usize) {
        self.reserve_exact(size / 64); // and no more: each time all of it moves
        for _ in 0..size / 64 {
            self.push(Piece([1; 64]));
        }
    }
}

#[inline(never)]
fn keep_request(requests: &mut Vec<&'static mut Vec<u8>>) {
    requests.push(Box::leak(Box::new(vec![1; 2000])));
}

#[inline(never)]
fn make_index_entry<T: Clone>(value: &T) -> Box<T> {
    Box::new(value.clone())
}

#[inline(never)]
fn make_temporary() -> String {
    "x".repeat(512)
}

fn fragment() {
    let mut entries = Vec::new();
    let mut temporaries = Vec::new();
    for index in 0..80000 {
        if index % 8 == 0 {
            entries.push(make_index_entry(&[2u8; 512]));
        } else {
            temporaries.push(make_temporary());
        }
    }
    std::mem::forget(black_box(entries));
}

#[inline(never)]
fn fill_caches() {
    for size in (16..=1024).step_by(64) {
        let blocks: Vec<Vec<u8>> = (0..96).map(|_| vec![1; size]).collect();
        black_box(blocks);
    }
}

fn park() {
    let all_parked = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let parked = Arc::clone(&all_parked);
        std::thread::spawn(move || {
            fill_caches();
            parked.wait();
            loop {
                std::thread::park();
            }
        });
    }
    all_parked.wait();
}

#[inline(never)]
fn render_page(size: usize) {
    black_box(vec![1u8; size]);
}

fn main() {
    let cause = std::env::args().nth(1).expect("a cause");
    let (mut requests, mut rows) = (Vec::new(), Vec::<Piece<64>>::new());
    match cause.as_str() {
        "leak" => (0..10000).for_each(|_| keep_request(&mut requests)),
        "fragmentation" => fragment(),
        "parked" => park(),
        "same" | "more" => (0..8).for_each(|index| render_page(PAGE + index)),
        "array" => (0..8).for_each(|index| rows.append_rows(if index == 0 { PAGE / 4 } else { STEP })),
        _ => std::process::exit(2),
    }
    std::io::stdout().write_all(b"ready\n").expect("a pipe");
    let has_ended = Arc::new(Mutex::new(false));
    let sets = Arc::clone(&has_ended);
    let input = std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        *sets.lock().expect("no panic") = true;
    });
    for step in 1.. {
        if *has_ended.lock().expect("no panic") || step == 1 && input.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        match cause.as_str() {
            "leak" => (0..100).for_each(|_| keep_request(&mut requests)),
            "fragmentation" => drop(black_box(vec![1u8; 200000])),
            "parked" if step == 25 => drop(black_box(vec![1u8; 200000])),
            "same" if step % 7 == 1 => render_page(PAGE),
            "more" if step % 7 == 1 => render_page(PAGE + step * 9000),
            "array" => rows.append_rows(STEP),
            _ => (),
        }
    }
    black_box((rows.len(), requests.len()));
    std::mem::forget(requests);
}
