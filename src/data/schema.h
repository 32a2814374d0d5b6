/*
 * The fields of structs as tables, and their encoding: for recordings and for messages of a
 * confined process. A struct is a sequence of numbered fields; those that have their default
 * are omitted, and a reader skips fields that it does not know. The same tables say how JSON
 * shows the members, see report/json_fields.c.
 *
 * A field begins with its number and a bit (ULEB128, number << 1 | bit): 0: a number follows
 * (ULEB128; signed ones as zigzag); 1: a size and so many bytes follow (a text, a nested
 * struct). An element of a list is a field of its own.
 *
 * To add a field to a struct: a row in its table, with a number that was never used. Fields of
 * recordings are specified in stacksnap-recording(5).
 */
#ifndef SS_DATA_SCHEMA_H
#define SS_DATA_SCHEMA_H

#include "base/buffer.h"
#include "base/bytes.h"

enum ss_field_type {
	SS_FIELD_UNSIGNED,
	SS_FIELD_SIGNED,
	SS_FIELD_TEXT,	 /* const char *, or NULL */
	SS_FIELD_BYTES,	 /* an array in the struct, and its length (unsigned) */
	SS_FIELD_WORDS,	 /* an array of uint64_t in the struct; max of them */
	SS_FIELD_STRUCT, /* a struct in the struct */
	SS_FIELD_ARRAY,	 /* an array of max structs in the struct, and a count (size_t) */
	SS_FIELD_POINTER, /* a pointer to a struct, or NULL */
	SS_FIELD_LIST,	  /* a pointer to structs, and a count (size_t) */
	SS_FIELD_OWNED,	  /* the same, freed with free() by the owner of the struct */
	SS_FIELD_VECTOR,  /* SS_VECTOR() of structs */
	SS_FIELD_INDEXES, /* a pointer to size_t, and a count (size_t) */
};

/* How JSON shows a field. A number of 1 byte with the limit 1 is a bool. */
enum ss_field_flags {
	SS_HIDDEN = 1 << 0,   /* it does not */
	SS_NULLABLE = 1 << 1, /* null if it has its default */
	SS_OPTIONAL = 1 << 2, /* absent if it has its default */
	SS_INVERTED = 1 << 3, /* a bool: as its opposite */
	SS_HEX = 1 << 4,
	SS_LETTER = 1 << 5,  /* a state; null for '?' */
	SS_SIGNALS = 1 << 6, /* an array of numbers; bit n-1 is signal n */
	SS_LINES = 1 << 7,   /* a text: an array of its lines */
};

struct ss_names;
struct ss_schema;

struct ss_field {
	uint8_t number; /* from 1 */
	uint8_t type;	/* enum ss_field_type */
	uint16_t size;	/* of the member */
	uint16_t offset;
	uint16_t count; /* offset of the count */
	/* Limit of a number (-max - 1 for negative ones); 0: any that fits. A number below the
	   count of a table, if table is set. */
	uint64_t max;
	uint8_t table;	/* whose elements the number is an index of; 0: none */
	uint16_t flags; /* enum ss_field_flags */
	const struct ss_schema *schema; /* of nested structs */
	const char *member;		/* in the struct */
	const char *name;		/* in JSON; NULL: as in the struct */
	const struct ss_names *names;	/* of the values of an enum */
	/* Cases of struct ss_schema: absent in others; null in others. 0: none of both */
	uint64_t only;
	uint64_t known;
};

struct ss_schema {
	const struct ss_field *fields;
	size_t count;
	size_t size;	  /* of the struct */
	const void *none; /* the struct with all defaults; NULL: zeros */
	/* Bits that tell which fields make sense in this struct; NULL: all do. */
	uint64_t (*cases)(const void *structure);
};

/* What follows the arguments named here says how JSON shows the field. */
#define SS_FIELD(n, t, structure, field, limit, ...)                                     \
	{                                                                                \
		.member = #field, .number = (n), .type = SS_FIELD_##t,                   \
		.size = sizeof(((struct structure *)NULL)->field),                       \
		.offset = offsetof(struct structure, field), .max = (limit), __VA_ARGS__ \
	}
/* An index of a table. */
#define SS_FIELD_INDEX(n, t, structure, field, of, ...)                                  \
	{                                                                                \
		.member = #field, .number = (n), .type = SS_FIELD_##t,                   \
		.size = sizeof(((struct structure *)NULL)->field),                       \
		.offset = offsetof(struct structure, field), .table = (of), __VA_ARGS__  \
	}
/* A list with its count; nested is NULL for INDEXES of the table. */
#define SS_FIELD_OF(n, t, structure, field, counted, nested, of, limit, ...)             \
	{                                                                                \
		.member = #field, .number = (n), .type = SS_FIELD_##t,                   \
		.size = sizeof(((struct structure *)NULL)->field),                       \
		.offset = offsetof(struct structure, field),                             \
		.count = offsetof(struct structure, counted), .schema = (nested),        \
		.table = (of), .max = (limit), __VA_ARGS__                               \
	}
/* A nested struct, or a pointer to one, which may be an element of a table. */
#define SS_FIELD_NESTED(n, t, structure, field, nested, of, ...)                         \
	{                                                                                \
		.member = #field, .number = (n), .type = SS_FIELD_##t,                   \
		.size = sizeof(((struct structure *)NULL)->field),                       \
		.offset = offsetof(struct structure, field), .schema = (nested),         \
		.table = (of), __VA_ARGS__                                               \
	}
#define SS_SCHEMA(table, structure, defaults, ...)                                       \
	{                                                                                \
		.fields = (table), .count = sizeof(table) / sizeof(*(table)),            \
		.size = sizeof(struct structure), .none = (defaults), __VA_ARGS__        \
	}

/* Of a number, without its sign extended beyond 64 bits; of a pointer; of a count. */
uint64_t ss_field_number(const struct ss_field *field, const void *structure);
const void *ss_field_pointer(const struct ss_field *field, const void *structure);
size_t ss_field_count(const struct ss_field *field, const void *structure);

/* Whether a member has its default. */
bool ss_field_is_default(const struct ss_schema *schema, const struct ss_field *field,
			 const void *structure);

struct ss_schema_writer {
	struct ss_buffer *out; /* failed without memory */
	size_t list_max;       /* longer lists are cut; 0: no limit */
	/* The number of a text; NULL: texts are written in place. */
	uint64_t (*text)(void *data, const char *text);
	/* The number of an element of a table that a POINTER refers to. NULL: it is nested. */
	uint64_t (*element)(void *data, unsigned table, const void *element);
	void *data;
};

/* Appends the fields of a struct. */
void ss_schema_write(const struct ss_schema_writer *writer,
		     const struct ss_schema *schema, const void *structure);

/*
 * Copies a struct and what its fields point to into one block, for free(3); NULL without
 * memory. Adds the size of the block to *bytes, which may be NULL. What is no field has its
 * default. text copies a text, and returns NULL without memory; without it, texts are in the
 * block. ARRAY, INDEXES, OWNED and VECTOR are not supported.
 */
void *ss_schema_copy(const struct ss_schema *schema, const void *structure,
		     const char *(*text)(void *data, const char *text), void *data,
		     size_t *bytes);

/* Replaces the texts of a struct by copies of them, but not those of nested structs. False: text
   has returned NULL. */
bool ss_schema_copy_texts(const struct ss_schema *schema, void *structure,
			  const char *(*text)(void *data, const char *text), void *data);

struct ss_schema_reader {
	struct ss_cursor cursor; /* failed: what was read is invalid */
	size_t list_max;	 /* longer lists are invalid; 0: no limit */
	/* The text of these bytes, which lives as long as the structs. NULL: invalid. */
	const char *(*text)(void *data, const uint8_t *bytes, size_t size);
	/* The text of a number; or NULL, as above. */
	const char *(*numbered)(void *data, uint64_t number);
	/* Zeroed memory that lives as long as the structs, for LIST, POINTER and INDEXES;
	   owned: for the others, to be freed with free(). NULL: invalid. */
	void *(*allocate)(void *data, size_t size, bool owned);
	/* The element of a table; or NULL. */
	const void *(*element)(void *data, unsigned table, uint64_t number);
	/* The count of a table; or NULL. */
	uint64_t (*limit)(void *data, unsigned table);
	void *data;
};

/* Reads fields until the cursor ends into a struct, which is set to its defaults first. */
void ss_schema_read(struct ss_schema_reader *reader, const struct ss_schema *schema,
		    void *structure);

#endif
