#include "record/family.h"

#include "capture/freeze.h"
#include "target/children.h"

enum { MEMBERS_MAX = 4096 };

/* How often children are looked for. */
static const uint64_t look_ns = 50000000;

void ss_family_init(struct ss_family *family, struct ss_writer *writer,
		    struct ss_session *session, unsigned max_frames, bool children,
		    const struct ss_capture_options *options)
{
	*family = (struct ss_family){ .writer = writer,
				      .session = session,
				      .max_frames = max_frames,
				      .children = children,
				      .options = *options };
}

static void member_free(struct ss_followed *member)
{
	ss_followed_deinit(member);
	free(member);
}

void ss_family_deinit(struct ss_family *family)
{
	for (size_t i = 0; i < family->members.count; i++)
		member_free(family->members.items[i]);
	ss_vector_free(&family->members);
}

bool ss_family_add(struct ss_family *family, struct ss_target *target, bool owned)
{
	struct ss_followed *member = calloc(1, sizeof(*member));
	struct ss_followed **slot = member ? ss_vector_push(&family->members) : NULL;

	if (!slot) {
		free(member);
		if (owned)
			ss_target_close(target);
		return false;
	}
	ss_followed_init(member, target, &family->options);
	member->owned = owned;
	member->writer = family->writer;
	member->session = family->session;
	member->max_frames = family->max_frames;
	*slot = member;
	return true;
}

static bool has(const struct ss_family *family, pid_t pid)
{
	for (size_t i = 0; i < family->members.count; i++) {
		if (family->members.items[i]->target->pid == pid)
			return true;
	}
	return false;
}

/* A child that has ended again, or that we may not look at, is left out. */
static bool add_child(struct ss_family *family, pid_t pid)
{
	struct ss_target *target = NULL;

	if (family->members.count >= MEMBERS_MAX || has(family, pid))
		return true;
	ss_error_free(ss_target_open(pid, &target));
	return !target || ss_family_add(family, target, true);
}

static bool look_for_children(struct ss_family *family, uint64_t now_ns)
{
	struct ss_children children = {};
	bool whole = true;

	if (!family->children || now_ns < family->looked_ns + look_ns)
		return true;
	family->looked_ns = now_ns;
	/* Those of a new member are found in the same pass. */
	for (size_t i = 0; whole && i < family->members.count; i++) {
		whole = ss_target_list_children(family->members.items[i]->target,
						&children);
		for (size_t c = 0; whole && c < children.pids.count; c++)
			whole = add_child(family, children.pids.items[c]);
	}
	ss_vector_free(&children.pids);
	return whole;
}

static void drop_ended(struct ss_family *family)
{
	size_t kept = 0;

	for (size_t i = 0; i < family->members.count; i++) {
		struct ss_followed *member = family->members.items[i];
		if (!member->ended) {
			family->members.items[kept++] = member;
			continue;
		}
		family->gone_stops += member->sampler.thread_stops;
		member_free(member);
	}
	family->members.count = kept;
}

/* Whether an error is about one child only, which is left alone then. */
static bool may_go_on(const struct ss_family *family, const struct ss_error *error)
{
	enum ss_error_code code = ss_error_code(error);

	return family->members.count > 1 &&
	       (code == SS_ERROR_DENIED || code == SS_ERROR_TRACED ||
		code == SS_ERROR_NO_PROCESS);
}

struct ss_error *ss_family_tick(struct ss_family *family, uint64_t now_ns,
				struct ss_samples *samples,
				struct ss_written_tick *written)
{
	family->looking_ns = ss_freeze_now();
	bool whole = look_for_children(family, now_ns);
	family->looking_ns = 0;
	if (!whole)
		return ss_error_no_memory();
	family->late = false;
	for (size_t i = 0; i < family->members.count; i++) {
		struct ss_followed *member = family->members.items[i];
		family->looking_ns = ss_freeze_now();
		struct ss_error *error =
			ss_followed_tick(member, now_ns, samples, written);
		family->looking_ns = 0;
		family->late |= member->sampler.late;
		if (error && !may_go_on(family, error))
			return error;
		if (error) { /* what is known of its code is written still */
			ss_error_free(error);
			member->ended = true;
			error = ss_followed_finish(member);
		}
		if (error)
			return error;
	}
	drop_ended(family);
	return NULL;
}

struct ss_error *ss_family_roll(struct ss_family *family, uint64_t monotonic_ns,
				uint64_t wall_ns)
{
	struct ss_samples last = {};
	bool whole = true;

	for (size_t i = 0; whole && i < family->members.count; i++)
		whole = ss_followed_last(family->members.items[i], &last);
	struct ss_error *error = whole ? ss_writer_roll(family->writer, monotonic_ns,
							wall_ns, last.items.items,
							last.items.count) :
					 ss_error_no_memory();
	const struct ss_written_sample *next = last.items.items;
	for (size_t i = 0; !error && i < family->members.count; i++)
		ss_followed_renew(family->members.items[i], &next);
	ss_vector_free(&last.items);
	return error;
}

struct ss_error *ss_family_finish(struct ss_family *family)
{
	struct ss_error *error = NULL;

	for (size_t i = 0; !error && i < family->members.count; i++) {
		family->looking_ns = ss_freeze_now(); /* at its perf map */
		error = ss_followed_finish(family->members.items[i]);
		family->looking_ns = 0;
	}
	return error;
}

bool ss_family_is_over(const struct ss_family *family)
{
	return family->members.count == 0;
}

bool ss_family_is_late(const struct ss_family *family)
{
	return family->late;
}

uint64_t ss_family_thread_stops(const struct ss_family *family)
{
	uint64_t stops = family->gone_stops;

	for (size_t i = 0; i < family->members.count; i++)
		stops += family->members.items[i]->sampler.thread_stops;
	return stops;
}
