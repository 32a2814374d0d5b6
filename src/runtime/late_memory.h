/*
 * Memory of a process for runtimes. It is searched in this order: what the capture copied;
 * pages that are read now through a function, if that is allowed, and kept; the file that is
 * mapped there (a page that the process has not changed may not be in its memory).
 */
#ifndef SS_RUNTIME_LATE_MEMORY_H
#define SS_RUNTIME_LATE_MEMORY_H

#include "base/hash.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/session.h"

struct ss_late_page {
	uint64_t address;
	size_t size; /* of the readable prefix */
	uint8_t *bytes;
	bool copied; /* a part of it is in the capture */
	bool unused; /* it was only read with others so far */
};

struct ss_late_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	const struct ss_capture *capture;
	const struct ss_session *session;
	struct ss_capture_memory copied;
	ss_memory_read_function *read; /* or NULL */
	/* The same for many pages at once, with read_data; or NULL. To be set after the function
	   that makes a memory. */
	ss_memory_read_ranges_function *read_ranges;
	void *read_data;
	bool *used; /* set if anything was read late; or NULL */
	bool allow; /* read through the function */
	bool ahead; /* read the next pages, too, since many will be needed */
	/* Set if memory was not read since a limit was reached, here or in the function; or
	   NULL */
	bool *limited;
	uint64_t readable; /* a page that the function has read; 0: none */
	/* The memory that owns the pages; several share them */
	struct ss_late_memory *cache;
	SS_VECTOR(struct ss_late_page) pages;
	size_t unused; /* how many of them are */
	struct ss_hash table;
	bool collects;		     /* pages are not read, but noted: */
	SS_VECTOR(uint64_t) lacking; /* by ss_late_memory_read_together() */
	/* Only of ss_late_memory_of_after(): */
	const struct ss_late_memory *base;
	size_t base_pages; /* that the base had when these were read */
};

void ss_late_memory_init(struct ss_late_memory *memory, const struct ss_capture *capture,
			 const struct ss_session *session, ss_memory_read_function *read,
			 void *read_data);
void ss_late_memory_deinit(struct ss_late_memory *memory);

/* The same memory as a thread saw it. allow: the thread has not run since, so pages that are
   read now count. Must not outlive base. */
void ss_late_memory_of_thread(struct ss_late_memory *memory, struct ss_late_memory *base,
			      const struct ss_capture_thread *thread, bool allow);

/* The same memory as it is now: pages are read anew each time. Must not outlive base. */
void ss_late_memory_of_now(struct ss_late_memory *memory, struct ss_late_memory *base);

/* The same memory, read after all that base has read so far: it proves that what was read
   has not changed meanwhile. Its pages are kept until base reads another one, since each is a
   question to the parent process. A page that cannot be read any more proves nothing. To be
   released with ss_late_memory_deinit(); base must not be moved, and must outlive it. */
void ss_late_memory_of_after(struct ss_late_memory *memory,
			     const struct ss_late_memory *base);

/*
 * Reads pages together that would else be read one by one, each with a question to the parent
 * process. Calls visit several times: what it cannot read then is read at once, and visit comes
 * that much further in the next call. What it finds does not count; the caller does the same
 * again after this. Nothing happens if memory cannot read many pages at once.
 */
void ss_late_memory_read_together(const struct ss_memory *memory,
				  void (*visit)(void *data), void *data);

/* Such a memory is read anew from now on. */
void ss_late_memory_forget(const struct ss_memory *after);

#endif
