// Deep Go: goroutines on their own small stacks, interfaces, closures, recursion and functions
// that the compiler inlines.
//
//	deep-go [-seconds S | -iterations N] [-goroutines G]
//
// prints a checksum: with -iterations it depends on N and G alone.
package main

import (
	"flag"
	"fmt"
	"math/bits"
	"sort"
	"sync"
	"time"
)

// Frames of each of the two mutually recursive functions.
const recursion = 16

type kernel interface{ run(seed uint64) uint64 }

type hashKernel struct{ rounds uint64 }

type sortKernel struct{}

// Small enough to be inlined into scramble, which is inlined into run.
func scrambleRound(value, key uint64) uint64 {
	return (value ^ (bits.RotateLeft64(value, 23) + key)) * 0x9E3779B97F4A7C15
}

func scramble(value, key uint64) uint64 {
	return scrambleRound(scrambleRound(scrambleRound(value, key), key+1), key+2)
}

//go:noinline
func (k hashKernel) run(seed uint64) uint64 {
	for i := uint64(0); i < k.rounds; i++ {
		seed = scramble(seed, i)
	}
	return seed
}

//go:noinline
func (sortKernel) run(seed uint64) uint64 {
	var block [32]int
	for i := range block {
		seed = seed*6364136223846793005 + 1442695040888963407
		block[i] = int(seed >> 33)
	}
	sort.Ints(block[:])
	return uint64(block[seed%uint64(len(block))])
}

//go:noinline
func even(kernels []kernel, seed uint64, depth int) uint64 {
	if depth == 0 {
		sum := uint64(0)
		for i, k := range kernels {
			sum += k.run(seed + uint64(i))
		}
		return sum
	}
	return odd(kernels, seed*31, depth) + 1
}

//go:noinline
func odd(kernels []kernel, seed uint64, depth int) uint64 {
	return even(kernels, seed+uint64(depth), depth-1) ^ 1
}

//go:noinline
func drive(limit limits, salt uint64) uint64 {
	kernels := []kernel{hashKernel{rounds: 200}, sortKernel{}, hashKernel{rounds: 100}}
	end := time.Now().Add(time.Duration(limit.seconds * float64(time.Second)))
	checksum := salt
	for i := uint64(0); ; i++ {
		if limit.iterations != 0 {
			if i >= limit.iterations {
				break
			}
		} else if !time.Now().Before(end) {
			break
		}
		checksum = checksum*31 + even(kernels, i, recursion)
	}
	return checksum
}

type limits struct {
	seconds    float64
	iterations uint64
}

func main() {
	var limit limits
	flag.Float64Var(&limit.seconds, "seconds", 1, "run for so long")
	flag.Uint64Var(&limit.iterations, "iterations", 0, "run so many iterations instead")
	goroutines := flag.Uint("goroutines", 2, "goroutines that work at the same time")
	flag.Parse()

	checksums := make([]uint64, *goroutines)
	var wait sync.WaitGroup
	for g := range checksums {
		wait.Add(1)
		go func(g int) {
			defer wait.Done()
			checksums[g] = drive(limit, uint64(g)+1)
		}(g)
	}
	wait.Wait()
	checksum := uint64(0)
	for _, c := range checksums {
		checksum ^= c
	}
	fmt.Printf("checksum %016x\n", checksum)
}
