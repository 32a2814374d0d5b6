// The thread pool of "The Rust Programming Language", chapter 21: the workers share a
// receiver in a mutex, so one of them waits for a job and holds the mutex, and the others
// wait for the mutex. The test compiles it if there is a rustc.
//
// The main thread prints "ready" when all workers wait, and reads standard input.
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

type Job = Box<dyn FnOnce() + Send + 'static>;

fn worker(receiver: Arc<Mutex<mpsc::Receiver<Job>>>) {
    loop {
        let message = receiver.lock().unwrap().recv();
        match message {
            Ok(job) => job(),
            Err(_) => break,
        }
    }
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
    let (sender, receiver) = mpsc::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for id in 0..4 {
        let receiver = Arc::clone(&receiver);
        let name = format!("worker-{}", id);
        thread::Builder::new().name(name).spawn(move || worker(receiver)).unwrap();
    }
    while waiting() < 4 {
        thread::yield_now();
    }
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    drop(sender);
}
