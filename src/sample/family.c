#include "sample/family.h"

enum { MEMBERS_MAX = 4096 };

static const uint64_t interval_ns = 50000000;

void ss_family_init(struct ss_family *family, const struct ss_process_access *access)
{
	*family = (struct ss_family){ .access = access };
}

void ss_family_deinit(struct ss_family *family)
{
	ss_vector_free(&family->members);
}

bool ss_family_add(struct ss_family *family, struct ss_target *target)
{
	struct ss_target **slot = ss_vector_push(&family->members);

	if (slot)
		*slot = target;
	return slot != NULL;
}

void ss_family_remove(struct ss_family *family, const struct ss_target *target)
{
	size_t kept = 0;

	for (size_t i = 0; i < family->members.count; i++) {
		if (family->members.items[i] != target)
			family->members.items[kept++] = family->members.items[i];
	}
	family->members.count = kept;
}

static bool has(const struct ss_family *family, pid_t pid)
{
	for (size_t i = 0; i < family->members.count; i++) {
		if (family->members.items[i]->pid == pid)
			return true;
	}
	return false;
}

static bool add_child(struct ss_family *family, pid_t pid, ss_family_adopt *adopt,
		      void *data)
{
	struct ss_target *target = NULL;

	if (family->members.count >= MEMBERS_MAX || has(family, pid))
		return true;
	ss_error_free(family->access->open_child(pid, &target));
	return !target || adopt(data, target);
}

bool ss_family_search(struct ss_family *family, uint64_t now_ns, ss_family_adopt *adopt,
		      void *data)
{
	struct ss_children children = {};
	bool ok = true;

	if (now_ns < family->searched_ns + interval_ns)
		return true;
	family->searched_ns = now_ns;
	/* Finds children of new members in the same pass. */
	for (size_t i = 0; ok && i < family->members.count; i++) {
		ok = family->access->list_children(family->members.items[i], &children);
		for (size_t c = 0; ok && c < children.pids.count; c++)
			ok = add_child(family, children.pids.items[c], adopt, data);
	}
	ss_vector_free(&children.pids);
	return ok;
}
