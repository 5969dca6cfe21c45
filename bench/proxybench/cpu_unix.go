//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

// cpuTime returns the user and system time that this process has taken.
func cpuTime() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}
