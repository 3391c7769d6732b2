// Threads that hand boxes to one another: freed where they were not made.
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel::<Vec<Box<[u8]>>>();
    let makers: Vec<_> = (0..4u64)
        .map(|seed| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut state = seed + 1;
                for _ in 0..500 {
                    let batch = (0..100)
                        .map(|_| {
                            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                            vec![seed as u8 + 1; 1 + (state >> 53) as usize].into_boxed_slice()
                        })
                        .collect();
                    sender.send(batch).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let (mut bytes, mut sum, mut sizes) = (0usize, 0u64, HashMap::<usize, u32>::new());
    for batch in receiver {
        for block in batch {
            bytes += block.len();
            sum += block.iter().map(|&b| b as u64).sum::<u64>();
            *sizes.entry(block.len() / 64).or_default() += 1;
        }
    }
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    let ordered: BTreeMap<_, _> = sizes.into_iter().collect();
    println!("{bytes} {sum} {ordered:?}");
}
