// Go threads that call malloc, realloc and free through cgo; blocks cross threads.
package main

/*
#include <stdlib.h>
#include <string.h>
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

func main() {
	blocks := make(chan unsafe.Pointer, 256)
	var makers, takers sync.WaitGroup
	var lock sync.Mutex
	total := 0
	for worker := 0; worker < 4; worker++ {
		makers.Add(1)
		takers.Add(1)
		go func(seed uint32) {
			defer makers.Done()
			for i := 0; i < 20000; i++ {
				seed = seed*1664525 + 1013904223
				block := C.malloc(64)
				C.memset(block, 7, 64)
				blocks <- C.realloc(block, C.size_t(64+seed%5000))
			}
		}(uint32(worker))
		go func() {
			defer takers.Done()
			sum := 0
			for block := range blocks {
				for _, b := range unsafe.Slice((*byte)(block), 64) {
					sum += int(b)
				}
				C.free(block)
			}
			lock.Lock()
			total += sum
			lock.Unlock()
		}()
	}
	makers.Wait()
	close(blocks)
	takers.Wait()
	fmt.Println(total)
}
