"""Goroutines. All cases are functions of one program, which also waits for connections: so that the
runtime does not end it itself."""

from cases import ALARM, built, hang

SOURCES = {}
PRELUDE = """package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

var _ = bufio.NewReader
var _ = context.Background
var _ = http.Get
var _ = exec.Command
var _ = io.Pipe
var _ = runtime.NumCPU
var _ = time.Now

func serve() {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println("ready")
	l.Accept()
}
"""


def start(lab, word):
    text = PRELUDE + "\n".join(SOURCES.values()) + "\nfunc main() {\n\tswitch os.Args[1] {\n" + \
        "".join('\tcase "%s":\n\t\tgo %s()\n' % (name, name) for name in SOURCES) + \
        "\t}\n\ttime.Sleep(200 * time.Millisecond)\n\tserve()\n}\n"
    program = built("goroutines.go", text, "sh", "-c", "HOME={directory} GO111MODULE=off "
                    "GOCACHE=${{GOCACHE:-{directory}/cache}} go build -o {program} {source}")
    return lab.run(program, word)


def case(word, title, truth, source, expect, **options):
    """The source has a function of that name, which returns or blocks."""
    SOURCES[word] = source
    hang("go", title, truth, lambda lab: start(lab, word), expect, **options)


case("abba", "two mutexes in opposite order", "abbaPay holds a and wants b, abbaRefund holds b and wants a", """
var abbaA, abbaB sync.Mutex
func abbaPay() { abbaA.Lock(); time.Sleep(50 * time.Millisecond); abbaB.Lock() }
func abbaRefund() { abbaB.Lock(); time.Sleep(50 * time.Millisecond); abbaA.Lock() }
func abba() { go abbaPay(); go abbaRefund() }
""", ["abbaPay", "abbaRefund", "Mutex"], alarm=ALARM)
case("twice", "a mutex locked twice", "twiceLog waits for the mutex that twiceRequest, its caller, holds", """
var twiceM sync.Mutex
func twiceLog() { twiceM.Lock() }
func twice() { twiceM.Lock(); twiceLog() }
""", ["twiceLog", "main.twice", "Mutex"], alarm=ALARM)
case("reread", "a read lock taken again behind a writer", "rereadInner wants the read lock again; rereadWriter waits before it for rereadOuter", """
var rereadM sync.RWMutex
func rereadInner() { rereadM.RLock() }
func rereadOuter() { rereadM.RLock(); time.Sleep(100 * time.Millisecond); rereadInner() }
func rereadWriter() { time.Sleep(50 * time.Millisecond); rereadM.Lock() }
func reread() { go rereadOuter(); go rereadWriter() }
""", ["rereadInner", "rereadWriter", "RWMutex"], alarm=ALARM)
case("send", "a channel without a receiver", "sendResult waits to send; whoever asked has returned", """
func sendResult(c chan int) { c <- 1 }
func send() { go sendResult(make(chan int)) }
""", ["sendResult", "chan.* send|send.* chan"], alarm=ALARM)
case("leak", "a hundred goroutines that send to nobody", "100 goroutines wait in leakWork to send; each request's reader has given up", """
func leakWork(c chan int) { c <- 1 }
func leak() { for i := 0; i < 100; i++ { go leakWork(make(chan int)) } }
""", ["100", "leakWork", "chan.* send|send.* chan"], alarm=ALARM)
case("never", "a receive from a nil channel", "neverUpdate receives from a nil channel", """
var neverC chan int
func neverUpdate() { <-neverC }
func never() { neverUpdate() }
""", ["neverUpdate", "nil chan"], alarm=ALARM)
case("choose", "a select whose channels nobody uses", "chooseEvent waits in select for two channels that nobody else has", """
func chooseEvent() { a, b := make(chan int), make(chan int); select { case <-a: case b <- 1: } }
func choose() { chooseEvent() }
""", ["chooseEvent", "select"], alarm=ALARM)
case("group", "a WaitGroup without its last Done", "groupWait waits for two; one worker waits in groupWork for a mutex that groupWait holds", """
var groupM sync.Mutex
func groupWork(w *sync.WaitGroup) { groupM.Lock(); w.Done() }
func groupWait() { var w sync.WaitGroup; groupM.Lock(); w.Add(1); go groupWork(&w); w.Wait() }
func group() { groupWait() }
""", ["groupWait", "groupWork", "WaitGroup", "Mutex"], alarm=ALARM)
case("cond", "a Cond that nobody signals", "condTake waits for a signal that came before", """
func condTake(c *sync.Cond) { c.L.Lock(); c.Wait() }
func cond() { c := sync.NewCond(&sync.Mutex{}); c.Signal(); condTake(c) }
""", ["condTake", "Cond"], alarm=ALARM)
case("circle", "two full channels", "circleA waits to send to b, circleB waits to send to a; each would receive after that", """
func circleA(a, b chan int) { for { b <- 1; <-a } }
func circleB(a, b chan int) { for { a <- 1; <-b } }
func circle() { a, b := make(chan int), make(chan int); go circleA(a, b); go circleB(a, b) }
""", ["circleA", "circleB", "send"], alarm=ALARM)
case("locked", "a send under a mutex that the receiver wants", "lockedSend holds m and waits to send; lockedReceive waits for m", """
var lockedM sync.Mutex
func lockedSend(c chan int) { lockedM.Lock(); c <- 1 }
func lockedReceive(c chan int) { time.Sleep(50 * time.Millisecond); lockedM.Lock(); <-c }
func locked() { c := make(chan int); go lockedSend(c); go lockedReceive(c) }
""", ["lockedSend", "lockedReceive", "Mutex", "send"], alarm=ALARM)
case("once", "a Once in its own function", "onceSetup calls Do of the Once that runs it", """
var onceO sync.Once
func onceSetup() { onceO.Do(onceSetup) }
func once() { onceO.Do(onceSetup) }
""", ["onceSetup", "Once|Mutex"], alarm=ALARM)
case("tokens", "a channel of tokens, taken twice", "two goroutines hold both tokens and wait in tokensInner for another one", """
var tokensC = make(chan int, 2)
func tokensInner() { tokensC <- 1 }
func tokensOuter() { tokensC <- 1; time.Sleep(50 * time.Millisecond); tokensInner() }
func tokens() { go tokensOuter(); go tokensOuter() }
""", ["tokensInner", "send"], alarm=ALARM)
case("silent", "a server that does not answer", "silentFetch waits for an answer; the server's handler silentHandle waits for a channel", """
func silentHandle(http.ResponseWriter, *http.Request) { <-make(chan int) }
func silentFetch(a string) { http.Get("http://" + a) }
func silent() { l, _ := net.Listen("tcp", "127.0.0.1:0"); go http.Serve(l, http.HandlerFunc(silentHandle)); silentFetch(l.Addr().String()) }
""", ["silentHandle", "silentFetch", "receive|select"], alarm=ALARM)
case("child", "a child whose output is not read", "childStart waits for the child, which waits to write to a pipe that this process does not read", """
func childStart() { c := exec.Command("sh", "-c", "head -c 1000000 /dev/zero"); c.StdoutPipe(); c.Start(); fmt.Println("fact child", c.Process.Pid); c.Process.Wait() }
func child() { childStart() }
""", ["childStart", "{child}|wait4|waitid", "pipe"], alarm=ALARM)
case("tube", "an io.Pipe that nobody reads", "tubeWrite waits in io.Pipe's Write", """
func tubeWrite() { _, w := io.Pipe(); w.Write([]byte("x")) }
func tube() { tubeWrite() }
""", ["tubeWrite", "[Pp]ipe|select"], alarm=ALARM)
case("deaf", "a net.Pipe whose ends both write", "deafLeft and deafRight both wait to write", """
func deafLeft(c net.Conn) { c.Write([]byte("x")); c.Read(make([]byte, 1)) }
func deafRight(c net.Conn) { c.Write([]byte("x")); c.Read(make([]byte, 1)) }
func deaf() { a, b := net.Pipe(); go deafLeft(a); go deafRight(b) }
""", ["deafLeft", "deafRight", "select|[Pp]ipe"], alarm=ALARM)
case("held", "a mutex whose holder waits for a channel", "heldWork holds m and receives from a channel; four others wait for m in heldWork", """
var heldM sync.Mutex
func heldWork(c chan int) { heldM.Lock(); <-c }
func held() { c := make(chan int); for i := 0; i < 5; i++ { go heldWork(c) } }
""", ["4 goroutines", "heldWork", r"probably held by goroutine \d+", "chan receive"], alarm=ALARM)
case("busy", "two mutexes in opposite order beside a ticker", "busyPay and busyRefund deadlock while busyTick runs every millisecond", """
var busyA, busyB sync.Mutex
func busyPay() { busyA.Lock(); time.Sleep(50 * time.Millisecond); busyB.Lock() }
func busyRefund() { busyB.Lock(); time.Sleep(50 * time.Millisecond); busyA.Lock() }
func busyTick() { for { time.Sleep(time.Millisecond) } }
func busy() { go busyPay(); go busyRefund(); go busyTick() }
""", ["busyPay", "busyRefund", "Mutex"], alarm=ALARM, still=False)
case("contextLost", "a context that nobody cancels", "contextWork waits for a context whose cancel function was dropped", """
func contextWork(c context.Context) { <-c.Done() }
func contextLost() { c, cancel := context.WithCancel(context.Background()); _ = cancel; go contextWork(c) }
""", ["contextWork", "chan receive"], alarm=ALARM)
