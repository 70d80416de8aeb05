package main

import (
	"os"
	"strconv"
	"time"
)

func mix(x, k uint64) uint64 {
	return (x^k)*0x9e3779b97f4a7c15 + 77
}
func spin_red(x, n uint64) uint64 {
	for i := uint64(1); i < n; i++ {
		x = mix(x, i)
	}
	return x
}
func spin_green(x, n uint64) uint64 {
	for i := uint64(2); i < n; i++ {
		x = mix(x, i)
	}
	return x
}
func spin_blue(x, n uint64) uint64 {
	for i := uint64(3); i < n; i++ {
		x = mix(x, i)
	}
	return x
}

//go:noinline
func morning(x, n uint64) uint64 {
	return spin_red(x, n)
}

//go:noinline
func noonday(x, n uint64) uint64 {
	return spin_green(x, n)
}

//go:noinline
func evening(x, n uint64) uint64 {
	return spin_blue(x, n)
}
func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	x, end := uint64(1), time.Now().Add(time.Duration(seconds*1e9))
	for time.Now().Before(end) {
		unit := 10000 + x%20000
		x = morning(x, 5*unit)
		x = noonday(x, 3*unit)
		x = evening(x, 2*unit)
	}
	if x == 0 {
		os.Exit(1)
	}
}
