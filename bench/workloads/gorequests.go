// A Go server that knows its requests.
//
//	gorequests [-requests N] [-workers N] [-empty N]
//
// Goroutines of -workers take requests from a channel, and call handle for each. A request computes for 1 ms, has its
// stack grow, and waits:
//
//   - number ending in 9: for a mutex. Another goroutine holds it, and computes for 5 ms in holdLock meanwhile.
//   - others: for the answer of a goroutine of its own, which sleeps for 1 ms.
//
// Every seventh calls handle within itself. Every fifth calls handle for a request that panics, and recovers. At the end
// the program prints its requests with the times of CLOCK_MONOTONIC within the call, the goroutine, the goroutine that
// held the mutex, and the nanoseconds between two looks at the clock around all waits, and around that for the mutex; and
// how many calls panicked:
//
//	request number=N goroutine=N holder=N begin=NS end=NS wait=NS lock=NS
//	left count=N
//
// With -empty N it calls an empty function N times instead, which the probes cost most:
//
//	empty calls=N ns_per_call=NS
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	nested         = 1 << 20
	ownWork        = time.Millisecond
	answerDelay    = time.Millisecond
	lockHeld       = 5 * time.Millisecond
)

type request struct {
	number, goroutine, holder int
	begin, end, wait, lock    int64
}

var (
	mutex  sync.Mutex
	panics atomic.Int64
	done   sync.Mutex
	log    []request
)

// now gives the clock of the recording.
func now() int64 {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// own gives the number of the goroutine that calls it.
func own() int {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	number, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "gorequests:", err)
		os.Exit(1)
	}
	return number
}

//go:noinline
func compute(time time.Duration) {
	for until := now() + time.Nanoseconds(); now() < until; {
	}
}

// grow takes more stack than a new goroutine has.
//
//go:noinline
func grow(depth int) byte {
	var room [512]byte
	room[depth] = byte(depth)
	if depth > 0 {
		return grow(depth-1) + room[depth]
	}
	return room[0]
}

//go:noinline
func holdLock(holds chan<- int) {
	mutex.Lock()
	holds <- own()
	// The request asks for the mutex first.
	runtime.Gosched()
	compute(lockHeld)
	mutex.Unlock()
}

//go:noinline
func answer(answers chan<- int) {
	time.Sleep(answerDelay)
	answers <- 1
}

//go:noinline
func fail(number int) {
	defer func() {
		if recover() == nil {
			panic("no panic")
		}
	}()
	handle(-number)
}

// note may wait for another request that is noted.
//
//go:noinline
func note(it request) {
	done.Lock()
	log = append(log, it)
	done.Unlock()
}

//go:noinline
func handle(number int) int {
	if number < 0 {
		panics.Add(1)
		panic("planted")
	}
	it := request{number: number, goroutine: own(), begin: now()}
	compute(ownWork)
	grow(64)
	from := now()
	if number%10 == 9 {
		holds := make(chan int)
		go holdLock(holds)
		it.holder = <-holds
		locks := now()
		mutex.Lock()
		it.lock = now() - locks
		mutex.Unlock()
	} else {
		answers := make(chan int)
		go answer(answers)
		<-answers
	}
	it.wait = now() - from
	if number < nested && number%7 == 6 {
		handle(number + nested)
	}
	if number < nested && number%5 == 4 {
		fail(number)
	}
	it.end = now()
	note(it)
	return number
}

//go:noinline
func nothing(number int) int { return number }

// empty has a frame, since it calls another function.
//
//go:noinline
func empty(number int) int { return nothing(number) }

func callEmpty(calls int) {
	begin := now()
	for number := range calls {
		empty(number)
	}
	fmt.Printf("empty calls=%d ns_per_call=%.1f\n", calls, float64(now()-begin)/float64(calls))
}

func main() {
	requests := flag.Int("requests", 200, "requests")
	workers := flag.Int("workers", 4, "goroutines that serve them")
	calls := flag.Int("empty", 0, "measure this number of empty calls instead")
	flag.Parse()
	if *calls > 0 {
		callEmpty(*calls)
		return
	}
	queue := make(chan int)
	var group sync.WaitGroup
	for range *workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := range queue {
				handle(number)
			}
		}()
	}
	for number := range *requests {
		queue <- number
	}
	close(queue)
	group.Wait()
	for _, it := range log {
		fmt.Printf("request number=%d goroutine=%d holder=%d begin=%d end=%d wait=%d lock=%d\n",
			it.number, it.goroutine, it.holder, it.begin, it.end, it.wait, it.lock)
	}
	fmt.Printf("left count=%d\n", panics.Load())
}
