//! The HAKMEM memory allocator as the global allocator of a program on Linux:
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;
//! ```
//!
//! C and C++ code of the same program keeps its malloc. Options are environment variables, as
//! `HAKMEM_MODE=checked`, in which a sized free of another size ends the program.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

extern "C" {
    fn hk_malloc(size: usize) -> *mut c_void;
    fn hk_calloc(count: usize, size: usize) -> *mut c_void;
    fn hk_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn hk_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn hk_free_sized(block: *mut c_void, size: usize);
    fn hk_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    fn hakmem_purge() -> usize;
    fn hakmem_idle();
    fn hakmem_owns(block: *const c_void) -> bool;
}

/// Every block of malloc is aligned to this.
const BLOCK_ALIGNMENT: usize = 16;

/// The allocator. It has no state of its own: all values are the same heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

impl Hakmem {
    /// Gives all idle memory back to the kernel now; returns how many bytes.
    pub fn purge(&self) -> usize {
        unsafe { hakmem_purge() }
    }

    /// Says that the calling thread will be idle: its cache goes to the other threads.
    pub fn idle(&self) {
        unsafe { hakmem_idle() }
    }

    /// Does the pointer lie in a block of this allocator? Any value is allowed.
    pub fn owns<T>(&self, pointer: *const T) -> bool {
        unsafe { hakmem_owns(pointer.cast()) }
    }
}

// Sound: the functions of C keep to the contract of malloc, for any thread.
unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= BLOCK_ALIGNMENT {
            hk_malloc(layout.size()).cast()
        } else {
            hk_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= BLOCK_ALIGNMENT {
            return hk_calloc(1, layout.size()).cast();
        }
        let block: *mut u8 = self.alloc(layout);
        if !block.is_null() {
            core::ptr::write_bytes(block, 0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= BLOCK_ALIGNMENT {
            hk_free_sized(block.cast(), layout.size());
        } else {
            hk_free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= BLOCK_ALIGNMENT {
            return hk_realloc(block.cast(), size).cast();
        }
        let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            core::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            self.dealloc(block, layout);
        }
        moved
    }
}
