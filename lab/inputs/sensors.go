// Goroutines keep readings in C structures: made by one, grown, and freed by another.
package main

/*
#include <stdlib.h>
#include <string.h>

typedef struct reading { struct reading *next; char *name; double *values; int count; } reading;

static reading *reading_new(int id, int count)
{
	reading *r = malloc(sizeof *r);
	r->next = NULL;
	r->name = malloc(24 + id % 40);
	memset(r->name, 'a' + id % 26, 23);
	r->name[23] = 0;
	r->values = calloc(count, sizeof *r->values);
	r->count = count;
	return r;
}

static void reading_grow(reading *r, int more)
{
	r->values = realloc(r->values, (r->count + more) * sizeof *r->values);
	for (int i = 0; i < more; i++)
		r->values[r->count + i] = i;
	r->count += more;
}

static reading *readings_new(unsigned seed, int many)
{
	reading *first = NULL;
	for (int i = 0; i < many; i++) {
		seed = seed * 1664525 + 1013904223;
		reading *r = reading_new(seed >> 16, 1 + (seed >> 24));
		if (i % 4 == 0)
			reading_grow(r, 1 + (seed >> 23));
		r->next = first;
		first = r;
	}
	return first;
}

static long readings_free(reading *r)
{
	long sum = 0;
	while (r) {
		reading *next = r->next;
		sum += r->count + (long)strlen(r->name);
		free(r->values);
		free(r->name);
		free(r);
		r = next;
	}
	return sum;
}
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"unsafe"
)

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	chains := make(chan *C.reading, 64)
	var makers, takers sync.WaitGroup
	var lock sync.Mutex
	total := int64(0)
	for worker := 0; worker < 4; worker++ {
		makers.Add(1)
		takers.Add(1)
		go func(seed uint32) {
			defer makers.Done()
			for i := 0; i < rounds; i++ {
				seed = seed*22695477 + 1
				name := C.CString("sensor " + strconv.Itoa(int(seed%1000)))
				chains <- C.readings_new(C.uint(seed), 50)
				C.free(unsafe.Pointer(name))
			}
		}(uint32(worker))
		go func() {
			defer takers.Done()
			sum := int64(0)
			for chain := range chains {
				sum += int64(C.readings_free(chain))
			}
			lock.Lock()
			total += sum
			lock.Unlock()
		}()
	}
	makers.Wait()
	close(chains)
	takers.Wait()
	fmt.Println(total)
}
