// Allocating Go: all work is in main.build, below main.level's recursion, and most of that is the allocator's
// and the collector's, which runs on the threads' own stacks.
//
//	collect-go [-seconds S] [-goroutines G]
package main

import (
	"flag"
	"fmt"
	"time"
)

// Frames of the recursion.
const recursion = 8

// Nodes of a list.
const length = 2000

type node struct {
	next *node
	pad  [6]uint64
}

//go:noinline
func build(nodes int) *node {
	var head *node
	for i := 0; i < nodes; i++ {
		head = &node{next: head}
	}
	return head
}

//go:noinline
func level(depth int) *node {
	if depth == 0 {
		return build(length)
	}
	list := level(depth - 1)
	list.pad[0]++
	return list
}

func main() {
	seconds := flag.Float64("seconds", 1, "run for so long")
	goroutines := flag.Int("goroutines", 3, "goroutines that allocate at the same time")
	flag.Parse()
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	lists := make(chan uint64)
	for g := 0; g < *goroutines; g++ {
		go func() {
			count := uint64(0)
			for time.Now().Before(end) {
				count += level(recursion).pad[0]
			}
			lists <- count
		}()
	}
	count := uint64(0)
	for g := 0; g < *goroutines; g++ {
		count += <-lists
	}
	fmt.Println("lists", count/recursion)
}
