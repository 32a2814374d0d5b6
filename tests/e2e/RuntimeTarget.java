/* The target of test_runtimes.py: what a Java virtual machine does with signals. It computes, reads through null
   (implicit checks, by SIGSEGV), allocates and begins threads (safepoints) until its input ends; then it exits with
   status 7. SIGQUIT prints its threads. */
public class RuntimeTarget {
	static class Node {
		int value;
		Node next;
	}

	static volatile boolean ends;
	static volatile long sink;

	static int read(Node node) {
		return node.value;
	}

	static void work(int seed) {
		Node list = null;
		for (int i = 0; !ends; i++) {
			Node node = new Node();
			node.value = i * 31 + seed;
			node.next = i % 1000 == 0 ? null : list;
			list = node;
			try {
				sink += read(i % 97 == 0 ? null : node);
			} catch (NullPointerException e) {
				sink++;
			}
		}
	}

	public static void main(String[] arguments) throws Exception {
		Thread[] threads = new Thread[3];
		for (int i = 0; i < threads.length; i++) {
			final int seed = i;
			threads[i] = new Thread(() -> work(seed));
			threads[i].start();
		}
		System.out.println("ready");
		while (System.in.read() >= 0)
			System.gc();
		ends = true;
		for (Thread thread : threads)
			thread.join();
		System.exit(7);
	}
}
