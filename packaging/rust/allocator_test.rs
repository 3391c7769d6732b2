//! The crate as the allocator of this program: containers, alignments, threads, zeroed memory.
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

#[test]
fn blocks_are_ours() {
    let list: Vec<u64> = (0..1000).collect();
    assert!(GLOBAL.owns(list.as_ptr()));
    assert!(!GLOBAL.owns(&GLOBAL as *const _ as *const u8));
}

#[test]
fn alignments_hold_and_contents_survive() {
    for shift in 0..17 {
        for size in [1, 100, 5000, 300_000, 5_000_000] {
            let layout = Layout::from_size_align(size, 1 << shift).unwrap();
            let longer = Layout::from_size_align(size * 2, 1 << shift).unwrap();
            unsafe {
                let block = alloc_zeroed(layout);
                assert_eq!(block as usize % layout.align(), 0);
                assert!((0..size).step_by(97).all(|at| *block.add(at) == 0));
                block.write_bytes(7, size);
                let block = realloc(block, layout, size * 2);
                assert_eq!(block as usize % layout.align(), 0);
                assert!((0..size).step_by(97).all(|at| *block.add(at) == 7));
                let block = realloc(block, longer, size);
                dealloc(block, layout);
                dealloc(alloc(layout), layout);
            }
        }
    }
}

#[test]
fn threads_hand_blocks_over() {
    let maps: Vec<HashMap<u32, String>> = (0..4u32)
        .map(|number| {
            std::thread::spawn(move || {
                (0..10_000).map(|key| (key, format!("{number} {key}"))).collect()
            })
        })
        .map(|thread| thread.join().unwrap())
        .collect();
    for (number, map) in maps.iter().enumerate() {
        assert_eq!(map[&9_999], format!("{number} 9999"));
    }
    drop(maps);
    GLOBAL.idle();
    GLOBAL.purge();
}
