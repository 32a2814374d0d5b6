"""Threads of Rust's standard library. All cases are modules of one program."""

from cases import ALARM, built, hang

SOURCES = {}
PRELUDE = """#![allow(unused)]
use std::sync::*;
use std::thread;
use std::time::Duration;
fn named(name: &str, f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(f).unwrap()
}
fn ready() { println!("ready"); }
"""


def case(word, title, truth, source, expect, **options):
    SOURCES[word] = source

    def start(lab):
        text = PRELUDE + "".join("mod %s { use super::*;\n%s}\n" % item for item in SOURCES.items()) + \
            "fn main() { match std::env::args().nth(1).unwrap().as_str() {\n" + \
            "".join('"%s" => %s::run(),\n' % (name, name) for name in SOURCES) + "_ => panic!() } }\n"
        program = built("rusty.rs", text, "rustc", "-g", "-C", "debuginfo=2", "--edition=2021", "-o",
                        "{program}", "{source}")
        return lab.run(program, word)
    hang("rust", title, truth, start, expect, **options)


case("abba", "two mutexes in opposite order", "pay holds a and wants b, refund holds b and wants a", """
static A: Mutex<i32> = Mutex::new(0); static B: Mutex<i32> = Mutex::new(0); static BOTH: OnceLock<Barrier> = OnceLock::new();
#[inline(never)] fn pay() { let _x = A.lock(); BOTH.get().unwrap().wait(); let _y = B.lock(); }
#[inline(never)] fn refund() { let _x = B.lock(); BOTH.get().unwrap().wait(); let _y = A.lock(); }
pub fn run() { let _ = BOTH.set(Barrier::new(2)); ready(); let (a, b) = (named("pay", pay), named("refund", refund)); a.join(); b.join(); }
""", ["abba::pay", "abba::refund", "[Mm]utex"], alarm=ALARM)
case("twice", "a mutex locked twice", "log waits for the mutex that request, its caller, holds", """
static A: Mutex<i32> = Mutex::new(0);
#[inline(never)] fn log() { let _x = A.lock(); }
#[inline(never)] fn request() { let _x = A.lock(); ready(); log(); }
pub fn run() { request(); }
""", ["twice::log", "twice::request", "[Mm]utex"], alarm=ALARM)
case("open_end", "a receiver that holds its own sender", "main waits in drain to receive; the last sender is its own", """
#[inline(never)] fn drain(r: mpsc::Receiver<i32>) { for _ in r { } }
pub fn run() { let (s, r) = mpsc::channel::<i32>(); ready(); drain(r); drop(s); }
""", ["drain", "mpsc|recv|channel"], alarm=ALARM)
case("full", "two full channels", "left waits to send to b, right waits to send to a", """
use std::sync::mpsc::*;
#[inline(never)] fn left(s: SyncSender<i32>, r: Receiver<i32>) { s.send(1); s.send(2); r.recv(); }
#[inline(never)] fn right(s: SyncSender<i32>, r: Receiver<i32>) { s.send(1); s.send(2); r.recv(); }
pub fn run() { let (s1, r1) = sync_channel(1); let (s2, r2) = sync_channel(1); ready();
 let (a, b) = (named("left", move || left(s1, r2)), named("right", move || right(s2, r1))); a.join(); b.join(); }
""", ["full::left", "full::right", "mpsc|send|channel"], alarm=ALARM)
case("upgrade", "a write lock under a read lock", "main holds L for reading in check and wants to write in update", """
static L: RwLock<i32> = RwLock::new(0);
#[inline(never)] fn update() { *L.write().unwrap() = 1; }
#[inline(never)] fn check() { let _r = L.read(); ready(); update(); }
pub fn run() { check(); }
""", ["upgrade::update", "upgrade::check", "[Rr]w_?[Ll]ock|write"], alarm=ALARM)
case("signalled", "a Condvar that nobody notifies", "main waits in take", """
#[inline(never)] fn take() { let m = Mutex::new(0); let c = Condvar::new(); c.notify_one(); ready(); let _g = c.wait(m.lock().unwrap()); }
pub fn run() { take(); }
""", ["signalled::take", "[Cc]ondvar|condition"], alarm=ALARM)
case("late", "a Barrier with one thread too few", "early waits in the barrier and holds M, which late wants", """
static M: Mutex<i32> = Mutex::new(0);
pub fn run() { let b = Arc::new(Barrier::new(2)); let (b1, b2) = (b.clone(), b); ready();
 let x = named("early", move || early(&b1)); thread::sleep(Duration::from_millis(50)); let y = named("late", move || late(&b2)); x.join(); y.join(); }
#[inline(never)] fn early(b: &Barrier) { let _x = M.lock(); b.wait(); }
#[inline(never)] fn late(b: &Barrier) { let _x = M.lock(); b.wait(); }
""", ["late::early", "late::late", "Barrier", "[Mm]utex"], alarm=ALARM)
case("ends", "join under a lock", "main holds M in stop and joins worker, which wants it in flush", """
static M: Mutex<i32> = Mutex::new(0);
#[inline(never)] fn flush() { let _x = M.lock(); }
#[inline(never)] fn stop() { let _x = M.lock(); let t = named("worker", flush); ready(); t.join(); }
pub fn run() { stop(); }
""", ["ends::flush", "ends::stop", "join|end of| to end", "[Mm]utex"], alarm=ALARM)
case("sleepy", "a thread that nobody unparks", "sleeper is parked in idle_until; main joins it", """
#[inline(never)] fn idle_until() { loop { thread::park(); } }
pub fn run() { let t = named("sleeper", idle_until); ready(); t.join(); }
""", ["idle_until", "park", "sleeper"], alarm=ALARM)
case("cell", "a OnceLock that initialises itself", "setup is the initialiser of O and asks for O", """
static O: OnceLock<i32> = OnceLock::new();
#[inline(never)] fn setup() -> i32 { *get() }
#[inline(never)] fn get() -> &'static i32 { O.get_or_init(setup) }
pub fn run() { ready(); get(); }
""", ["cell::setup", "[Oo]nce"], alarm=ALARM)
case("child", "a child that waits for input that stays open", "main waits in wait_child for cat, which reads from a pipe that main has not closed", """
use std::process::*;
#[inline(never)] fn wait_child(mut c: Child) { let input = c.stdin.take(); println!("fact child {}", c.id()); ready(); c.wait(); drop(input); }
pub fn run() { wait_child(Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()); }
""", ["wait_child", "{child}", "cat", "pipe"], alarm=ALARM)
case("shared_receiver", "a worker that holds the receiver's lock while its job asks for a job", "worker one holds R and waits to receive; worker two waits for R; main joins them and holds the sender", """
static R: Mutex<Option<mpsc::Receiver<i32>>> = Mutex::new(None);
#[inline(never)] fn work() { let g = R.lock().unwrap(); g.as_ref().unwrap().recv(); }
pub fn run() { let (s, r) = mpsc::channel(); *R.lock().unwrap() = Some(r); ready(); let (a, b) = (named("w1", work), named("w2", work)); a.join(); b.join(); drop(s); }
""", ["shared_receiver::work", "recv|mpsc|channel", "[Mm]utex", "join|end of| to end"], alarm=ALARM)
