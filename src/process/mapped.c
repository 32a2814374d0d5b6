#include "process/mapped.h"

#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <sys/ioctl.h>

/* PROCMAP_QUERY of <linux/fs.h>, since Linux 6.11, in the kernel's layout. */
struct procmap_query {
	__u64 size;
	__u64 query_flags; /* 0: the mapping that covers query_addr */
	__u64 query_addr;
	__u64 start;
	__u64 end;
	__u64 flags;
	__u64 page_size;
	__u64 offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 name_size;     /* 0: no name is requested */
	__u32 build_id_size; /* 0: no build-id is requested; otherwise at least 20 */
	__u64 name_addr;
	__u64 build_id_addr;
};

enum { DEVICE_MAJOR_SHIFT = 32 };

static int run_query(int maps_fd, struct procmap_query *query)
{
	query->size = sizeof(*query);
	return ioctl(maps_fd, _IOWR('f', 17, struct procmap_query), query);
}

static uint64_t device_of(const struct procmap_query *query)
{
	return (uint64_t)query->dev_major << DEVICE_MAJOR_SHIFT | query->dev_minor;
}

int ss_mapped_query(int maps_fd, uint64_t address, struct ss_mapped *ret)
{
	struct procmap_query query = { .query_addr = address };

	if (run_query(maps_fd, &query) != 0)
		return errno;
	*ret = (struct ss_mapped){
		.start = query.start,
		.end = query.end,
		.offset = query.offset,
		.inode = query.inode,
		.device = device_of(&query),
	};
	return 0;
}

size_t ss_mapped_build_id(int maps_fd, uint64_t address, uint64_t device, uint64_t inode,
			  uint8_t ret[SS_MAPPED_BUILD_ID_MAX])
{
	uint8_t id[SS_MAPPED_BUILD_ID_MAX] = {};
	struct procmap_query query = {
		.query_addr = address,
		.build_id_size = sizeof(id),
		.build_id_addr = (uintptr_t)id,
	};

	if (run_query(maps_fd, &query) != 0 || query.build_id_size > sizeof(id) ||
	    device_of(&query) != device || query.inode != inode)
		return 0;
	memcpy(ret, id, query.build_id_size);
	return query.build_id_size;
}
