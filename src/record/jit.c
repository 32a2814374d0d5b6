#include "record/jit.h"

#include <sys/stat.h>

#include "target/perfmap.h"

static const uint64_t try_ns = 1000000000;

/* first: code without a file was not met before. Of a map that was not there then all
   lines were added since. */
static void find_map(struct ss_jit *jit, struct ss_target *target, bool first)
{
	struct stat st;

	ss_target_hold_root(target);
	jit->map.file = ss_perfmap_of(target);
	jit->map.settled = first && jit->map.file && fstat(jit->map.file->fd, &st) == 0 ?
				   (uint64_t)st.st_size :
				   0;
}

void ss_jit_look(struct ss_jit *jit, struct ss_target *target, uint64_t now_ns)
{
	if (jit->map.file || (jit->wanted && now_ns < jit->tried_ns + try_ns))
		return;
	jit->tried_ns = now_ns;
	find_map(jit, target, !jit->wanted);
	jit->wanted = true;
}

struct ss_error *ss_jit_write(struct ss_jit *jit, struct ss_target *target,
			      struct ss_writer *writer, uint32_t process)
{
	if (!jit->map.file && jit->wanted)
		find_map(jit, target, false); /* some write it when they are asked to */
	return jit->map.file ? ss_writer_perf_map(writer, process, &jit->map) : NULL;
}

void ss_jit_deinit(struct ss_jit *jit)
{
	ss_module_unref(jit->map.file);
	*jit = (struct ss_jit){};
}
