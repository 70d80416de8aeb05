// A program that knows how its goroutines wait.
//
//	goroutines [-rounds N] [-idle N] [-pings N]
//
// In each round, a goroutine waits for a mutex, a channel, a channel by select, and the answer of a server. Another one
// looks until the runtime says that it waits, then lets it wait for a time, and ends the wait:
//
//	mutex 20 ms, channel 10 ms, select 5 ms, network 30 ms
//
// So the goroutine waits once, and at least for this time. At the end the program prints each wait: the number of the
// goroutine, of the one that ended the wait, and the nanoseconds between two looks at the clock around it. The poller ends waits
// for the network, so that there the waker is 0.
//
//	wait function=F reason="R" goroutine=N waker=N ns=N
//
// Goroutines of -idle wait for a channel that nothing is sent to. With -pings N, two goroutines hand a value to each
// other N times instead, which probes cost most. The time is that of all threads on CPUs:
//
//	pings count=N cpu_ns_per_ping=N
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	mutexHold   = 20 * time.Millisecond
	channelHold = 10 * time.Millisecond
	selectHold  = 5 * time.Millisecond
	networkHold = 30 * time.Millisecond
	look        = 200 * time.Microsecond
)

type wait struct {
	function, reason string
	goroutine, waker int
	ns               int64
}

var waits []wait

// own gives the number of the goroutine that calls it.
func own() int {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	number, err := strconv.Atoi(string(fields[1]))
	check(err)
	return number
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
}

// untilWaiting returns once the runtime says that a goroutine waits for this reason.
func untilWaiting(goroutine int, reason string) {
	text := make([]byte, 1<<16)
	head := fmt.Sprintf("goroutine %d [%s", goroutine, reason)
	for !bytes.Contains(text[:runtime.Stack(text, true)], []byte(head)) {
		time.Sleep(look)
	}
}

// measured runs a wait, with another goroutine that ends it after hold.
func measured(function, reason string, hold time.Duration, begins, ends func()) {
	waiter, waker := own(), make(chan int)
	go func() {
		waker <- own()
		untilWaiting(waiter, reason)
		time.Sleep(hold)
		ends()
	}()
	number := <-waker
	if reason == "IO wait" {
		number = 0
	}
	from := time.Now()
	begins()
	waits = append(waits, wait{function, reason, waiter, number, time.Since(from).Nanoseconds()})
}

//go:noinline
func lockMutex(mutex *sync.Mutex) { mutex.Lock() }

//go:noinline
func receive(channel chan int) { <-channel }

//go:noinline
func selectOne(channel, other chan int) {
	select {
	case <-channel:
	case <-other:
	}
}

//go:noinline
func readAnswer(connection net.Conn) {
	var answer [1]byte
	_, err := connection.Read(answer[:])
	check(err)
}

//go:noinline
func idle(channel chan int) { <-channel }

// cpuTime gives the process's nanoseconds on CPUs.
func cpuTime() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func pings(count int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for range there {
			back <- 1
		}
	}()
	from := cpuTime()
	for range count {
		there <- 1
		<-back
	}
	fmt.Printf("pings count=%d cpu_ns_per_ping=%d\n", count, (cpuTime()-from)/int64(count))
}

func main() {
	rounds := flag.Int("rounds", 10, "rounds of waits")
	idles := flag.Int("idle", 3, "goroutines that wait for ever")
	count := flag.Int("pings", 0, "measure this number of hand-overs instead")
	flag.Parse()
	if *count > 0 {
		pings(*count)
		return
	}
	for range *idles {
		go idle(make(chan int))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	client, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	server, err := listener.Accept()
	check(err)
	for range *rounds {
		var mutex sync.Mutex
		mutex.Lock()
		measured("main.lockMutex", "sync.Mutex.Lock", mutexHold, func() { lockMutex(&mutex) }, mutex.Unlock)
		channel, other := make(chan int), make(chan int)
		measured("main.receive", "chan receive", channelHold, func() { receive(channel) }, func() { channel <- 1 })
		measured("main.selectOne", "select", selectHold, func() { selectOne(channel, other) }, func() { channel <- 1 })
		measured("main.readAnswer", "IO wait", networkHold, func() { readAnswer(client) }, func() {
			_, err := server.Write([]byte{1})
			check(err)
		})
	}
	for _, w := range waits {
		fmt.Printf("wait function=%s reason=%q goroutine=%d waker=%d ns=%d\n", w.function, w.reason, w.goroutine, w.waker, w.ns)
	}
}
