/*
 * The length of an instruction, by the opcode maps of the Intel manual (volume 2, appendix A).
 */
#include "arch/arch.h"

#include <string.h>

enum { SIZE_MAX_X86 = 15 };

/* What follows an opcode. */
enum {
	M = 1,		    /* a ModR/M byte */
	I1 = 2,		    /* an immediate of 1 byte, */
	I2 = 4,		    /* of 2 bytes, */
	I4 = 8,		    /* of 4 bytes, or 2 with the prefix 66 */
	IV = 16,	    /* of 8 bytes with REX.W, else as before */
	MOFFS = 32,	    /* an address; with the prefix 67 of half its size */
	INVALID = 64,	    /* in 64-bit mode */
	GROUP3 = 128,	    /* an immediate only if the ModR/M byte says "test" */
	REL4 = I4 | 1 << 8, /* relative: always 4 bytes */
};

struct decoder {
	const uint8_t *at;
	const uint8_t *end;
	bool operand16;
	bool short_address; /* the prefix 67 */
	bool is_32bit;	    /* the mode */
	bool wide;	    /* REX.W */
	bool repeat;	    /* the prefix f3 */
};

static unsigned arithmetic(uint8_t op)
{
	switch (op & 7) {
	case 4:
		return I1;
	case 5:
		return I4;
	case 6:
	case 7:
		return INVALID;
	default:
		return M;
	}
}

/* Opcodes of 32-bit mode only. */
static unsigned only_32bit(uint8_t op)
{
	switch (op) {
	case 0x62: /* bound */
	case 0xc4: /* les, lds */
	case 0xc5:
		return M;
	case 0x82:
		return M | I1;
	case 0x9a: /* call and jmp far */
	case 0xea:
		return I4 | I2;
	case 0xd4:
	case 0xd5:
		return I1;
	case 0x06:
	case 0x07:
	case 0x0e:
	case 0x16:
	case 0x17:
	case 0x1e:
	case 0x1f:
	case 0x27:
	case 0x2f:
	case 0x37:
	case 0x3f:
	case 0x40 ... 0x4f: /* inc and dec */
	case 0x60:
	case 0x61:
	case 0xce:
		return 0;
	default:
		return INVALID;
	}
}

static unsigned one_byte(uint8_t op)
{
	if (op < 0x40)
		return arithmetic(op);
	switch (op) {
	case 0x50 ... 0x5f:
	case 0x6c ... 0x6f:
	case 0x90 ... 0x99:
	case 0x9b ... 0x9f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
	case 0xc3:
	case 0xc9:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xd7:
	case 0xec ... 0xef:
	case 0xf1:
	case 0xf4:
	case 0xf5:
	case 0xf8 ... 0xfd:
		return 0;
	case 0x63:
	case 0x84 ... 0x8f:
	case 0xd0 ... 0xd3:
	case 0xd8 ... 0xdf:
	case 0xfe:
	case 0xff:
		return M;
	case 0x69:
	case 0x81:
	case 0xc7:
		return M | I4;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return M | I1;
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xcd:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return I1;
	case 0x68:
	case 0xa9:
		return I4;
	case 0xe8:
	case 0xe9:
		return REL4;
	case 0xb8 ... 0xbf:
		return IV;
	case 0xa0 ... 0xa3:
		return MOFFS;
	case 0xc2:
	case 0xca:
		return I2;
	case 0xc8:
		return I2 | I1;
	case 0xf6:
		return M | I1 | GROUP3;
	case 0xf7:
		return M | I4 | GROUP3;
	default:
		return INVALID;
	}
}

/* After 0f. */
static unsigned two_bytes(uint8_t op)
{
	switch (op) {
	case 0x05 ... 0x09:
	case 0x0b:
	case 0x0e:
	case 0x30 ... 0x37:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		return 0;
	case 0x80 ... 0x8f:
		return REL4;
	case 0x0f:
	case 0x70 ... 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return M | I1;
	case 0x04:
	case 0x0a:
	case 0x0c:
	case 0x24 ... 0x27:
		return INVALID;
	default:
		return M;
	}
}

static bool skip(struct decoder *decoder, size_t size)
{
	if ((size_t)(decoder->end - decoder->at) < size)
		return false;
	decoder->at += size;
	return true;
}

static bool skip_modrm(struct decoder *decoder, uint8_t *ret)
{
	if (!skip(decoder, 1))
		return false;
	uint8_t modrm = decoder->at[-1];
	uint8_t mod = modrm >> 6;
	uint8_t base = modrm & 7;

	*ret = modrm;
	if (mod == 3)
		return true;
	if (base == 4) {
		if (!skip(decoder, 1))
			return false;
		base = decoder->at[-1] & 7;
	}
	if (mod == 0 && base == 5)
		return skip(decoder, 4);
	return skip(decoder, mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* Skips what follows an opcode. */
static bool skip_operands(struct decoder *decoder, unsigned what, uint8_t *modrm)
{
	size_t size = 0;

	if (what & INVALID)
		return false;
	if ((what & M) && !skip_modrm(decoder, modrm))
		return false;
	if ((what & GROUP3) && (*modrm & 0x30))
		what &= ~(unsigned)(I1 | I4);
	if (what & I1)
		size += 1;
	if (what & I2)
		size += 2;
	if ((what & REL4) == REL4)
		size += 4;
	else if (what & I4)
		size += decoder->operand16 ? 2 : 4;
	if (what & IV)
		size += decoder->wide ? 8 : decoder->operand16 ? 2 : 4;
	if (what & MOFFS)
		size += (decoder->is_32bit ? 4U : 8U) >> decoder->short_address;
	return skip(decoder, size);
}

static bool skip_prefixes(struct decoder *decoder)
{
	for (; decoder->at < decoder->end; decoder->at++) {
		switch (*decoder->at) {
		case 0x66:
			decoder->operand16 = true;
			break;
		case 0x67:
			decoder->short_address = true;
			break;
		case 0xf3:
			decoder->repeat = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
			break;
		case 0x40 ... 0x4f: /* REX, directly before the opcode */
			if (decoder->is_32bit)
				return true;
			decoder->wide = *decoder->at & 8;
			decoder->at++;
			return decoder->at < decoder->end;
		default:
			return true;
		}
	}
	return false;
}

/* VEX (c4, c5) and EVEX (62): the opcode map is a field of the prefix. */
static bool decode_vector(struct decoder *decoder)
{
	uint8_t prefix = *decoder->at;
	size_t size = prefix == 0xc5 ? 2 : prefix == 0xc4 ? 3 : 4;
	uint8_t modrm = 0;

	if (!skip(decoder, size + 1))
		return false;
	uint8_t op = decoder->at[-1];
	unsigned map = prefix == 0xc5 ? 1 :
					decoder->at[-(int)size] & (size == 3 ? 31 : 7);
	switch (map) {
	case 1:
		return skip_operands(decoder, op == 0x77 ? 0 : M | (two_bytes(op) & I1),
				     &modrm);
	case 3:
		return skip_operands(decoder, M | I1, &modrm);
	case 2:
	case 5:
	case 6:
		return skip_operands(decoder, M, &modrm);
	default:
		return false;
	}
}

static uint64_t read_target(const struct decoder *decoder, uint64_t next, size_t size)
{
	int32_t relative = 0;

	if (size == 1)
		return next + (uint64_t)(int64_t)(int8_t)decoder->at[-1];
	memcpy(&relative, decoder->at - 4, sizeof(relative));
	return next + (uint64_t)(int64_t)relative;
}

static void set_flow(const struct decoder *decoder, uint8_t op, uint8_t modrm,
		     uint64_t next, struct ss_instruction *ret)
{
	switch (op) {
	case 0xc2:
	case 0xc3:
		ret->flow = SS_FLOW_RETURN;
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		ret->flow = SS_FLOW_BRANCH;
		ret->target = read_target(decoder, next, 1);
		break;
	case 0xeb:
	case 0xe9:
		ret->flow = SS_FLOW_JUMP;
		ret->target = read_target(decoder, next, op == 0xeb ? 1 : 4);
		break;
	case 0xff:
		if ((modrm & 0x38) == 0x20 || (modrm & 0x38) == 0x28)
			ret->flow = SS_FLOW_INDIRECT;
		break;
	case 0x90:
		ret->marker = true;
		break;
	default:
		break;
	}
}

static bool decode_escaped(struct decoder *decoder, struct ss_instruction *ret,
			   uint64_t address, const uint8_t *code)
{
	uint8_t modrm = 0;

	if (!skip(decoder, 1))
		return false;
	uint8_t op = decoder->at[-1];
	if (op == 0x38 || op == 0x3a)
		return skip(decoder, 1) &&
		       skip_operands(decoder, op == 0x38 ? M : M | I1, &modrm);
	if (!skip_operands(decoder, two_bytes(op), &modrm))
		return false;
	uint64_t next = address + (uint64_t)(decoder->at - code);
	if (op >= 0x80 && op <= 0x8f) {
		ret->flow = SS_FLOW_BRANCH;
		ret->target = read_target(decoder, next, 4);
	}
	/* nop; endbr64 */
	ret->marker = op == 0x1f || (op == 0x1e && decoder->repeat && modrm == 0xfa);
	return true;
}

/* In 32-bit mode the same bytes may be instructions with an operand in memory. */
static bool is_vector(const struct decoder *decoder)
{
	const uint8_t op = *decoder->at;

	return (op == 0x62 || op == 0xc4 || op == 0xc5) &&
	       (!decoder->is_32bit ||
		(decoder->end - decoder->at > 1 && decoder->at[1] >= 0xc0));
}

static bool decode(struct decoder *decoder, uint64_t address, struct ss_instruction *ret)
{
	const uint8_t *const code = decoder->at;
	struct ss_instruction found = {};
	uint8_t modrm = 0;
	bool ok;

	if (!skip_prefixes(decoder))
		return false;
	uint8_t op = *decoder->at;
	if (is_vector(decoder)) {
		ok = decode_vector(decoder);
	} else if (op == 0x0f) {
		decoder->at++;
		ok = decode_escaped(decoder, &found, address, code);
	} else {
		unsigned what = one_byte(op);
		if (decoder->is_32bit && what == INVALID)
			what = only_32bit(op);
		decoder->at++;
		ok = skip_operands(decoder, what, &modrm);
		if (ok)
			set_flow(decoder, op, modrm,
				 address + (uint64_t)(decoder->at - code), &found);
	}
	found.size = (size_t)(decoder->at - code);
	if (ok)
		*ret = found;
	return ok;
}

bool ss_x86_64_decode(const uint8_t *code, size_t size, uint64_t address,
		      struct ss_instruction *ret)
{
	struct decoder decoder = {
		.at = code,
		.end = code + (size < SIZE_MAX_X86 ? size : SIZE_MAX_X86),
	};

	return decode(&decoder, address, ret);
}

/* Addresses of 16 bits, which no compiler uses, are not decoded. */
bool ss_i386_decode(const uint8_t *code, size_t size, uint64_t address,
		    struct ss_instruction *ret)
{
	struct decoder decoder = {
		.at = code,
		.end = code + (size < SIZE_MAX_X86 ? size : SIZE_MAX_X86),
		.is_32bit = true,
	};

	if (!decode(&decoder, address, ret) || decoder.short_address)
		return false;
	ret->target = (uint32_t)ret->target;
	return true;
}
