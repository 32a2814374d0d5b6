// Two threads take two mutexes in opposite order, while the main thread waits for
// connections, which it prints "ready" before. The test compiles it if there is a rustc:
// without debug information, the functions of all three threads have one name, since the
// compiler inlines the closures into instances of one generic function.
use std::net::TcpListener;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

fn main() {
    let locks = [Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0))];
    let both = Arc::new(Barrier::new(3));
    for id in 0..2 {
        let (first, second) = (Arc::clone(&locks[id]), Arc::clone(&locks[1 - id]));
        let both = Arc::clone(&both);
        thread::spawn(move || {
            let _first = first.lock().unwrap();
            both.wait();
            let _second = second.lock().unwrap();
        });
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    both.wait();
    println!("ready");
    let _ = listener.accept();
}
