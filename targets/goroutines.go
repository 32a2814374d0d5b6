// Goroutines that are parked in each way, and N more that wait for one channel.
// usage: goroutines N | crash
//
// crash: main, fail, read, which follows a nil pointer.
//
// Parked, besides the runtime's own: N in outer, inner, runtime.chanrecv; one each in
// sync.Mutex.Lock, sync.RWMutex.RLock and Lock, sync.Cond.Wait, time.Sleep, select without
// cases, send to a nil channel, select, 20 calls of deep, sync.WaitGroup.Wait, accept, and a
// read from a pipe. main reads standard input, in a system call.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

type shape struct{ lock sync.Mutex }

var channel = make(chan int)
var readers sync.RWMutex
var condition = sync.NewCond(new(sync.Mutex))

func inner() { <-channel }
func outer() { inner() }

func (s *shape) take() {
	s.lock.Lock()
	fmt.Println("never")
}

//go:noinline
func deep(n int) {
	if n == 0 {
		<-channel
		return
	}
	deep(n - 1)
}

//go:noinline
func generic[T any](c chan T) T { return <-c }

type node struct{ next *node }

//go:noinline
func (n *node) read() *node { return n.next }

//go:noinline
func fail(n *node) bool { return n.next.read() == nil }

func main() {
	if os.Args[1] == "crash" {
		fmt.Println(fail(new(node)))
	}
	n, _ := strconv.Atoi(os.Args[1])
	s := new(shape)
	s.lock.Lock()
	readers.Lock()
	for i := 0; i < n; i++ {
		go outer()
	}
	go s.take()
	go readers.RLock()
	go readers.Lock()
	go func() { condition.L.Lock(); condition.Wait() }()
	go time.Sleep(time.Hour)
	go func() { select {} }()
	go func() { var c chan int; c <- 1 }()
	go func() {
		select {
		case <-channel:
		case <-time.After(time.Hour):
		}
	}()
	go deep(20)
	go generic(make(chan string))
	go func() { var group sync.WaitGroup; group.Add(1); group.Wait() }()
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go listener.Accept()
	pipe, _, _ := os.Pipe()
	go func() { pipe.Read(make([]byte, 1)) }()
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.GC() // from the second one on, the runtime knows since when they wait
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
