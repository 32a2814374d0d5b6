#include "diagnose/task_cycle.h"

#include "base/cleanup.h"
#include "base/graph.h"

/* Who waits for whom, where a task waits for all of these. */
struct edges {
	size_t count;	 /* of tasks */
	size_t *first;	 /* by task: index in waiters; one more at the end */
	size_t *waiters; /* of the task */
	size_t *left;	 /* by task: tasks that it waits for and that may never end */
};

static void deinit(struct edges *edges)
{
	free(edges->first);
	free(edges->waiters);
	free(edges->left);
}

static size_t count_awaited(const struct ss_async_task *task)
{
	return task->awaits_all ? task->awaited_count : 0;
}

static bool init(struct edges *edges, const struct ss_snapshot *snapshot)
{
	const struct ss_async_task *tasks = snapshot->async_tasks.items;
	const size_t count = snapshot->async_tasks.count;
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += count_awaited(&tasks[i]);
	*edges = (struct edges){ .count = count,
				 .first = calloc(count + 2, sizeof(size_t)),
				 .waiters = calloc(total + 1, sizeof(size_t)),
				 .left = calloc(count + 1, sizeof(size_t)) };
	if (!edges->first || !edges->waiters || !edges->left)
		return false;
	for (size_t i = 0; i < count; i++) {
		edges->left[i] = count_awaited(&tasks[i]);
		for (size_t k = 0; k < edges->left[i]; k++)
			edges->first[tasks[i].awaited[k] + 2]++;
	}
	for (size_t i = 2; i < count + 2; i++)
		edges->first[i] += edges->first[i - 1];
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < edges->left[i]; k++)
			edges->waiters[edges->first[tasks[i].awaited[k] + 1]++] = i;
	}
	return true;
}

/* Removes tasks that wait for no task, then those that wait for these only, and so on. What is
   left waits for a cycle, or is in one. */
static bool remove_ends(struct edges *edges)
{
	_cleanup_free_ size_t *queue = calloc(edges->count + 1, sizeof(size_t));
	size_t count = 0;

	if (!queue)
		return false;
	for (size_t i = 0; i < edges->count; i++) {
		if (edges->left[i] == 0)
			queue[count++] = i;
	}
	for (size_t at = 0; at < count; at++) {
		for (size_t i = edges->first[queue[at]]; i < edges->first[queue[at] + 1];
		     i++) {
			if (--edges->left[edges->waiters[i]] == 0)
				queue[count++] = edges->waiters[i];
		}
	}
	return true;
}

/* One task that is left, of those for which a task waits. */
static size_t find_next(const struct edges *edges, const struct ss_async_task *task)
{
	for (size_t i = 0; i < task->awaited_count; i++) {
		if (edges->left[task->awaited[i]] > 0)
			return task->awaited[i];
	}
	return SS_GRAPH_NONE;
}

static bool mark(struct ss_snapshot *snapshot, const struct edges *edges)
{
	_cleanup_free_ size_t *next = calloc(edges->count + 1, sizeof(size_t));
	struct ss_graph graph;

	if (!next)
		return false;
	for (size_t i = 0; i < edges->count; i++)
		next[i] = edges->left[i] > 0 ?
				  find_next(edges, &snapshot->async_tasks.items[i]) :
				  SS_GRAPH_NONE;
	if (!ss_graph_init(&graph, next, edges->count))
		return false;
	for (size_t i = 0; i < edges->count; i++) {
		struct ss_async_task *task = &snapshot->async_tasks.items[i];
		task->in_cycle = graph.cyclic[i];
		task->cycle_next = graph.cyclic[i] ? next[i] : 0;
	}
	ss_graph_deinit(&graph);
	return true;
}

bool ss_task_cycles_find(struct ss_snapshot *snapshot)
{
	struct edges edges;

	if (snapshot->async_tasks.count == 0)
		return true;
	bool ok = init(&edges, snapshot) && remove_ends(&edges) && mark(snapshot, &edges);
	deinit(&edges);
	return ok;
}
