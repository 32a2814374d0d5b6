/* The target of test_java.py: its threads stand still in known calls, or work all the time
   ("busy"). It must compile for Java 8. */
import java.util.Arrays;
import java.util.HashMap;
import java.util.Random;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public class JavaTarget {
	static final Object lock = new Object();
	static final ReentrantLock reentrant = new ReentrantLock();
	static volatile long sink;

	static int descend(int depth) {
		return depth == 0 ? park() : descend(depth - 1) + 1;
	}

	static int park() {
		for (;;)
			LockSupport.park();
	}

	/* C2 inlines these into each other. */
	static int outer(int x) {
		return middle(x) * 3;
	}

	static int middle(int x) {
		return inner(x) + 1;
	}

	static int inner(int x) {
		if (x == -7)
			park();
		return x ^ 0x55;
	}

	static void enter() {
		synchronized (lock) {
			park();
		}
	}

	static synchronized void sleep() {
		try {
			Thread.sleep(1000000000);
		} catch (InterruptedException e) {
		}
	}

	static void await() throws Exception {
		Object object = new Object();
		synchronized (object) {
			object.wait();
		}
	}

	static void sort() {
		Integer[] numbers = { 3, 1, 2 };
		Arrays.sort(numbers, (a, b) -> park());
	}

	static void reflect() throws Exception {
		JavaTarget.class.getDeclaredMethod("park").invoke(null);
	}

	static void accept() throws Exception {
		new java.net.ServerSocket(0).accept();
	}

	interface Body {
		void run() throws Exception;
	}

	static void start(String name, Body body) {
		Thread thread = new Thread(() -> {
			try {
				body.run();
			} catch (Exception e) {
				e.printStackTrace();
			}
		}, name);
		thread.start();
	}

	static void until(String name, Thread.State... states) throws Exception {
		for (;;) {
			for (Thread thread : Thread.getAllStackTraces().keySet())
				if (thread.getName().equals(name) &&
				    Arrays.asList(states).contains(thread.getState()))
					return;
			Thread.sleep(1);
		}
	}

	static void stand() throws Exception {
		for (int i = 0; i < 200000; i++)
			sink += outer(i);
		start("deep", () -> descend(300));
		start("inlined", () -> outer(-7));
		start("sleeps", () -> sleep());
		start("holds", () -> enter());
		until("holds", Thread.State.WAITING);
		start("enters", () -> enter());
		start("waits", () -> await());
		start("sorts", () -> sort());
		start("reflects", () -> reflect());
		start("has-lock", () -> {
			reentrant.lock();
			park();
		});
		until("has-lock", Thread.State.WAITING);
		start("locks", () -> reentrant.lock());
		for (String name : new String[] { "deep", "inlined", "waits", "sorts", "reflects",
						  "locks" })
			until(name, Thread.State.WAITING);
		until("sleeps", Thread.State.TIMED_WAITING);
		until("enters", Thread.State.BLOCKED);
	}

	static void take(Object first, Object second,
			 java.util.concurrent.CyclicBarrier both) throws Exception {
		synchronized (first) {
			both.await();
			synchronized (second) {
				park();
			}
		}
	}

	static void deadlock() throws Exception {
		java.util.concurrent.CyclicBarrier both = new java.util.concurrent.CyclicBarrier(2);
		Object a = new Object();
		Object b = new Object();
		start("java-ab", () -> take(a, b, both));
		start("java-ba", () -> take(b, a, both));
		until("java-ab", Thread.State.BLOCKED);
		until("java-ba", Thread.State.BLOCKED);
	}

	static void takeLocks(Lock first, Lock second,
			      java.util.concurrent.CyclicBarrier both) throws Exception {
		first.lock();
		both.await();
		second.lock();
	}

	/* A deadlock of locks; a reader behind a writer; a time limit; a condition, which is no lock. Readers
	   are not recorded, and a semaphore has no owner: a writer behind a reader, and a semaphore. */
	static void locks() throws Exception {
		java.util.concurrent.CyclicBarrier both = new java.util.concurrent.CyclicBarrier(2);
		ReentrantLock a = new ReentrantLock();
		ReentrantLock b = new ReentrantLock(true);
		ReentrantReadWriteLock shared = new ReentrantReadWriteLock();
		start("lock-ab", () -> takeLocks(a, b, both));
		start("lock-ba", () -> takeLocks(b, a, both));
		until("lock-ab", Thread.State.WAITING);
		until("lock-ba", Thread.State.WAITING);
		start("writes", () -> {
			shared.writeLock().lock();
			park();
		});
		until("writes", Thread.State.WAITING);
		start("reads", () -> shared.readLock().lock());
		start("tries", () -> a.tryLock(1000, java.util.concurrent.TimeUnit.SECONDS));
		ReentrantReadWriteLock read = new ReentrantReadWriteLock();
		java.util.concurrent.Semaphore semaphore = new java.util.concurrent.Semaphore(0);
		start("shares", () -> {
			read.readLock().lock();
			park();
		});
		until("shares", Thread.State.WAITING);
		start("excludes", () -> read.writeLock().lock());
		start("permits", () -> semaphore.acquire());
		until("excludes", Thread.State.WAITING);
		until("permits", Thread.State.WAITING);
		start("awaits", () -> {
			reentrant.lock();
			reentrant.newCondition().await();
		});
		until("reads", Thread.State.WAITING);
		until("tries", Thread.State.TIMED_WAITING);
		until("awaits", Thread.State.WAITING);
		/* The collector moves them. */
		for (int i = 0; i < 3; i++)
			System.gc();
	}

	static Thread[] joined = new Thread[2];
	static java.util.concurrent.CyclicBarrier initialise =
		new java.util.concurrent.CyclicBarrier(2);

	static void meet() {
		try {
			initialise.await();
		} catch (Exception e) {
			throw new Error(e);
		}
	}

	static class First {
		static int value;
		static {
			meet();
			value = Second.value;
		}
	}

	static class Second {
		static int value;
		static {
			meet();
			value = First.value;
		}
	}

	/* Threads that join each other, and one that waits for a notification by a thread. */
	static void ends() throws Exception {
		java.util.concurrent.CyclicBarrier both = new java.util.concurrent.CyclicBarrier(2);
		for (int i = 0; i < 2; i++) {
			int other = 1 - i;
			joined[i] = new Thread(() -> {
				try {
					both.await();
					joined[other].join();
				} catch (Exception e) {
					throw new Error(e);
				}
			}, "joins-" + i);
		}
		joined[0].start();
		joined[1].start();
		start("limited", () -> joined[0].join(1000000));
		start("notified", () -> {
			synchronized (joined[1]) {
				joined[1].wait();
			}
		});
		until("joins-0", Thread.State.WAITING);
		until("joins-1", Thread.State.WAITING);
		until("limited", Thread.State.TIMED_WAITING);
		until("notified", Thread.State.WAITING);
	}

	/* Two classes that initialise each other. */
	static void classes() throws Exception {
		start("first", () -> park(First.value));
		start("second", () -> park(Second.value));
		Thread.sleep(500);
	}

	static void park(int ignored) {
		park();
	}

	/* Both kinds of deadlock, while the collector moves objects all the time. */
	static void moves() throws Exception {
		deadlock();
		locks();
		start("asks", () -> {
			for (;;)
				System.gc();
		});
		start("allocates", () -> {
			byte[][] some = new byte[64][];
			for (int i = 0;; i++)
				some[i % some.length] = new byte[1 + i % 100000];
		});
	}

	/* A counted loop of C2 has no poll: it ends after minutes, and nothing else begins meanwhile. */
	static int spin(int n) {
		int sum = 0;
		for (int i = 0; i < n; i++)
			for (int k = 0; k < 1000; k++)
				sum = Integer.rotateLeft(sum * 31 + i * k, k);
		return sum;
	}

	static void safepoint() throws Exception {
		start("deep", () -> descend(30));
		until("deep", Thread.State.WAITING);
		for (int i = 0; i < 20000; i++)
			sink += spin(3);
		start("spins", () -> sink += spin(Integer.MAX_VALUE));
		start("asks", () -> {
			Thread.sleep(200);
			System.gc();
		});
	}

	static Object kept;

	static void collect() throws Exception {
		start("deep", () -> descend(30));
		until("deep", Thread.State.WAITING);
		for (int i = 0; i < 800000; i++)
			kept = new Object[] { kept };
		start("asks", () -> {
			for (;;)
				System.gc();
		});
	}

	interface Operation {
		long apply(int depth, long x);
	}

	static final Operation[] operations = {
		(depth, x) -> x + depth,
		(depth, x) -> x * 31 + depth,
		new Operation() {
			public long apply(int depth, long x) {
				return Long.rotateLeft(x, depth);
			}
		},
		(depth, x) -> x ^ depth,
	};

	static long even(int depth, long x) {
		if (depth == 0)
			return leaf(x);
		return odd(depth - 1, operations[(int)(x & 3)].apply(depth, x));
	}

	static long odd(int depth, long x) {
		return depth == 0 ? leaf(x) : even(depth - 1, x + 1) + 1;
	}

	static final byte[] from = new byte[4096];
	static final byte[] to = new byte[4096];

	static long leaf(long x) {
		switch ((int)(x & 7)) {
		case 0:
			System.arraycopy(from, 0, to, 0, from.length);
			return to[7];
		case 1:
			return ("a" + x + "b").hashCode();
		case 2:
			try {
				throw new IllegalStateException("x" + x);
			} catch (RuntimeException e) {
				return 3;
			}
		case 3:
			synchronized (JavaTarget.class) {
				return Math.round(Math.sin(x) * 100);
			}
		case 4:
			HashMap<Long, Long> map = new HashMap<>();
			for (long i = 0; i < 20; i++)
				map.put(i * x, x);
			return map.size();
		case 5:
			return Arrays.hashCode(from);
		default:
			long sum = 0;
			for (int i = 0; i < 1000; i++)
				sum += i * x;
			return sum;
		}
	}

	static void work(int seed) {
		Random random = new Random(seed);
		for (;;)
			sink += even(random.nextInt(30), random.nextLong());
	}

	static void nap() {
		synchronized (lock) {
			try {
				Thread.sleep(1000000000);
			} catch (InterruptedException e) {
			}
		}
	}

	/* Of Java 21 and later: one that works, one that its lock keeps on a thread up to Java 23, and 100 that are
	   on no thread. */
	static void virtual() throws Exception {
		java.lang.reflect.Method begin =
			Thread.class.getMethod("startVirtualThread", Runnable.class);
		begin.invoke(null, (Runnable)() -> work(0));
		begin.invoke(null, (Runnable)() -> nap());
		for (int i = 0; i < 100; i++)
			begin.invoke(null, (Runnable)() -> park());
	}

	static void names() {
		char[] many = new char[10000];
		Arrays.fill(many, 'x');
		String[] names = { "two\nlines\033[31m", "Gr\u00fc\u00dfe", "\u65e5\u672c",
				   new String(many), "", "a name of more than 15 bytes" };
		for (int i = 0; i < names.length; i++) {
			Thread thread = new Thread(() -> park(), names[i]);
			thread.setDaemon(i % 2 == 0);
			thread.setPriority(1 + i);
			thread.start();
		}
	}

	public static void main(String[] words) throws Exception {
		switch (words[0]) {
		case "stand":
			stand();
			break;
		case "deadlock":
			deadlock();
			break;
		case "locks":
			locks();
			break;
		case "ends":
			ends();
			break;
		case "classes":
			classes();
			break;
		case "moves":
			moves();
			break;
		case "safepoint":
			safepoint();
			break;
		case "collects":
			collect();
			break;
		case "names":
			names();
			break;
		case "virtual":
			virtual();
			break;
		case "busy":
			start("busy-0", () -> work(0));
			start("busy-1", () -> work(1));
			break;
		}
		System.out.println("ready");
		park();
	}
}
