// Locks of Rust's standard library, which do not record their owners. The test compiles
// it if there is a rustc.
//
// Thread	waits in
//	ab, ba	Mutex::lock: each holds the mutex that the other one wants
//	reader	RwLock::read: main holds the write lock
//	writer	RwLock::write: the same
//	condvar	Condvar::wait
//	parked	thread::park
// The main thread prints "ready" when all threads wait, and reads standard input.
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

fn spawn(name: &str, routine: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.into()).spawn(routine).unwrap();
}

// Threads that sleep in futex, system call 202.
fn waiting() -> usize {
    let mut count = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path().join("syscall");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        count += text.starts_with("202 ") as usize;
    }
    count
}

fn main() {
    let a = Arc::new(Mutex::new(1));
    let b = Arc::new(Mutex::new(2));
    let both = Arc::new(Barrier::new(3));
    let shared = Arc::new(RwLock::new(3));
    let held = shared.write().unwrap();

    for (name, x, y) in [("ab", a.clone(), b.clone()), ("ba", b, a)] {
        let both = both.clone();
        spawn(name, move || {
            let first = x.lock().unwrap();
            both.wait();
            let second = y.lock().unwrap();
            println!("{} {}", first, second);
        });
    }
    both.wait();
    let lock = shared.clone();
    spawn("reader", move || println!("{}", lock.read().unwrap()));
    let lock = shared.clone();
    spawn("writer", move || *lock.write().unwrap() = 4);
    spawn("condvar", || {
        let mutex = Mutex::new(0);
        let condvar = Condvar::new();
        let guard = condvar.wait(mutex.lock().unwrap());
        println!("{}", guard.unwrap());
    });
    spawn("parked", || loop {
        thread::park();
    });
    while waiting() < 6 {
        thread::yield_now();
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(held);
}
