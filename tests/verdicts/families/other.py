"""Node, Ruby, Perl, shells, Tcl, Lisp."""

from cases import ALARM, child_named, hang


def script(family, title, truth, words, name, source, expect, child=None, ready="ready", **options):
    def start(lab):
        lab.fifo()
        process = lab.run(*words, lab.path(name, source.replace("@DIR@", lab.directory)), ready=ready)
        return child_named(process.pid, child) if child else process
    hang(family, title, truth, start, expect, **options)


def node(title, truth, source, expect, **options):
    script("node", title, truth, ("node",), "program.js",
           "const fs = require('fs'), { Worker, isMainThread, workerData } = require('worker_threads');\n"
           "function ready() { fs.writeSync(1, 'ready\\n'); }\n" + source, expect, **options)


node("a pool that is full of reads of a FIFO", "four reads of a FIFO that nobody opens fill libuv's pool; hash, a fifth job, never begins", """
const crypto = require('crypto');
for (let i = 0; i < 4; i++) fs.readFile('@DIR@/fifo', () => {});
function hash() { crypto.pbkdf2('a', 'b', 1, 20, 'sha1', () => {}); }
setTimeout(() => { hash(); ready(); }, 200);
""", ["4 threads", "fifo|FIFO|pipe", "open|read", "libuv|pool|worker|uv_"], alarm=ALARM)
node("a synchronous read of a FIFO", "the event loop's thread waits in load, in openSync", """
function load() { return fs.readFileSync('@DIR@/fifo'); }
require('http').createServer(() => {}).listen(0, () => { ready(); load(); });
""", ["load", "fifo|FIFO", "open"], alarm=ALARM)
node("execSync of a child that waits", "the event loop's thread waits in build for a child, cat, which reads a FIFO", """
function build() { require('child_process').execSync('exec cat @DIR@/fifo'); }
setTimeout(() => { ready(); build(); }, 10);
""", ["build", "execSync|spawnSync", "cat|child"], alarm=ALARM)
node("Atomics.wait in the main thread", "main waits in acquire for a worker's notify; the worker waits for a message", """
if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(4));
  function acquire() { Atomics.wait(shared, 0, 0); }
  new Worker(__filename, { workerData: shared }); setTimeout(() => { ready(); acquire(); }, 300);
} else { require('worker_threads').parentPort.on('message', () => Atomics.notify(workerData, 0)); }
""", ["acquire", "Atomics|futex|condition"], alarm=ALARM)
node("two workers that wait for each other", "first waits in take for slot 1, second for slot 0; each would notify after that", """
function take(slot) { Atomics.wait(workerData.shared, slot, 0); Atomics.notify(workerData.shared, 1 - slot); }
if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  for (const slot of [0, 1]) new Worker(__filename, { workerData: { shared, slot } });
  setTimeout(ready, 500); setInterval(() => {}, 1000000);
} else take(workerData.slot);
""", ["2 threads|take", "take", "Atomics|futex|condition"], alarm=ALARM)
node("an endless loop in a handler", "the event loop's thread computes in parse", """
function parse() { for (;;) ; }
setTimeout(() => { ready(); parse(); }, 10);
""", ["parse", "busy|running"], still=False)
node("a regular expression that backtracks", "the event loop's thread matches in validate", """
function validate(s) { return /^(a+)+$/.test(s); }
setTimeout(() => { ready(); validate('a'.repeat(60) + '!'); }, 10);
""", ["validate", "busy|running"], still=False)
node("a promise that nobody resolves", "the server is idle; request awaits a promise without anybody to resolve it", """
async function request() { await new Promise(() => {}); }
require('http').createServer(() => {}).listen(0, () => { request(); setTimeout(ready, 10); });
""", ["idle|waits", "epoll|event loop"])
node("a child whose output is not read", "main awaits the exit of yes, which waits to write to a pipe that main does not read", """
const c = require('child_process').spawn('sh', ['-c', 'exec head -c 10000000 /dev/zero']);
c.stdout.pause(); c.on('exit', () => {}); console.log('fact child ' + c.pid); setTimeout(ready, 300);
""", ["{child}|head", "pipe|socket"])


def ruby(title, truth, source, expect, **options):
    script("scripts", "Ruby: " + title, truth, ("ruby",), "program.rb", "$stdout.sync = true\n" + source, expect,
           **options)


ruby("two mutexes in opposite order", "pay and refund hold one each; main waits for input", """
a, b = Mutex.new, Mutex.new
Thread.new { a.synchronize { sleep 0.1; b.synchronize { } } }
Thread.new { b.synchronize { sleep 0.1; a.synchronize { } } }
sleep 0.3; puts 'ready'; STDIN.read
""", ["2 threads", "mutex|rb_mutex|Mutex"], alarm=ALARM)
ruby("a queue that nobody fills", "a thread waits in Queue#pop; main waits for input", """
q = Queue.new
Thread.new { q.pop }
sleep 0.1; puts 'ready'; STDIN.read
""", ["[Qq]ueue"])
ruby("a child whose output is not read", "main waits in Process.wait for a child that waits to write to a pipe that main does not read", """
r, w = IO.pipe
pid = spawn('exec head -c 1000000 /dev/zero', out: w)
puts "fact child #{pid}", 'ready'
Process.wait(pid)
""", ["{child}", "head", "pipe|waitpid|wait4|end of"], alarm=ALARM)
ruby("a ConditionVariable that nobody signals", "a thread waits in ConditionVariable#wait", """
m, c = Mutex.new, ConditionVariable.new
Thread.new { m.synchronize { c.wait(m) } }
sleep 0.1; puts 'ready'; STDIN.read
""", ["[Cc]ond|sleep"])


def perl(title, truth, source, expect, **options):
    script("scripts", title, truth, ("perl",), "program.pl", "$| = 1;\n" + source, expect, **options)


perl("Perl: a parent and a child that both wait to read", "the parent reads from the child, the child reads from the parent", """
use IPC::Open2; my $pid = open2(my $out, my $in, 'cat'); print "fact child $pid\\nready\\n"; my $line = <$out>;
""", ["pipe", "{child}|cat", "read"], alarm=ALARM)
perl("Perl: waitpid for a child that waits for the parent's lock", "the parent holds a file lock in waitpid, the child wants it", """
use Fcntl ':flock'; open(my $f, '>', '@DIR@/lock'); flock($f, LOCK_EX);
my $pid = fork; if (!$pid) { open(my $g, '>', '@DIR@/lock'); flock($g, LOCK_EX); exit }
print "fact child $pid\\nready\\n"; waitpid($pid, 0);
""", ["{child}", "lock", "waitpid|wait4|end of|exit of"], alarm=ALARM)
perl("Perl: select of a pipe that only the program itself writes", "the only thread waits in select for itself", """
pipe(my $r, my $w); my $set = ''; vec($set, fileno($r), 1) = 1; print "ready\\n"; select($set, undef, undef, undef);
""", ["same process|itself", "pipe", "select"], alarm=ALARM)
perl("Perl: threads with two locks in opposite order", "two threads wait in cond_wait of threads::shared", """
use threads; use threads::shared; my $a :shared; my $b :shared;
my $t = threads->create(sub { lock($a); select(undef, undef, undef, 0.2); lock($b); });
my $u = threads->create(sub { lock($b); select(undef, undef, undef, 0.2); lock($a); });
select(undef, undef, undef, 0.5); print "ready\\n"; $t->join; $u->join;
""", ["2 threads|lock", "condition variable|mutex|recursive_lock"], alarm=ALARM)


def shell(title, truth, source, expect, words=("bash",), **options):
    script("scripts", title, truth, words, "program.sh", source, expect, **options)


shell("bash: wait for a job that reads a FIFO", "bash waits for cat, which waits to open a FIFO for reading", """
cat @DIR@/fifo & echo fact child $!; echo ready; wait
""", ["{child}", "cat", "fifo|FIFO"], alarm=ALARM)
shell("bash: a redirection to a FIFO", "bash waits in open of a FIFO that nobody reads", """
echo ready; echo x > @DIR@/fifo
""", ["fifo", "FIFO|open"], alarm=ALARM)
shell("bash: $(...) of a job in the background", "bash reads a pipe whose other end a sleep in the background has", """
echo ready; x=$(sleep 100000 & echo started)
""", ["pipe", "sleep"], still=True)
shell("bash: a coprocess that waits for input", "bash reads from cat, cat reads from bash", """
coproc cat; echo fact child $COPROC_PID; echo ready; read -u ${COPROC[0]} line
""", ["{child}|cat", "pipe", "read"], alarm=ALARM)
script("scripts", "Tcl: vwait for a variable that nobody sets", "tclsh waits in Tcl_DoOneEvent", ("tclsh",), "p.tcl",
       "puts ready; flush stdout; vwait forever\n", ["idle|waits", "Tcl_DoOneEvent|vwait|select|epoll|condition"])
script("scripts", "SBCL: a waitqueue that nobody notifies", "a thread waits in take for a condition, the main thread joins it",
       ("sbcl", "--script"), "p.lisp", """
(defvar *m* (sb-thread:make-mutex :name "m")) (defvar *q* (sb-thread:make-waitqueue))
(defun take () (sb-thread:with-mutex (*m*) (sb-thread:condition-wait *q* *m*)))
(defvar *t* (sb-thread:make-thread #'take))
(sleep 0.5) (format t "ready~%") (finish-output) (sb-thread:join-thread *t*)
""", ["2 threads|threads idle|futex", "futex|wait", "TAKE|take"])
