/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is done to memory, by whoever can reach it: the target, or an origin that has it attached.
 */
#ifndef UCI_RMA_EXECUTE_H_
#define UCI_RMA_EXECUTE_H_

#include "base/wire.h"

/** "a put", by uci_rma_kind_t: for people. */
extern const char *const uci_rma_names[];

/** Do so many bytes at an address lie within a region? Of its base and length. */
UCI_INLINE bool uci_rma_is_within(const uci_rma_header_t *what, uint64_t base, uint64_t length)
{
    uint64_t offset = what->address - base;

    return (offset <= length) && (what->length <= length - offset);
}

/** Two operands at most, of 8 bytes. */
#define UCI_RMA_OPERANDS_MAX 16u

/** Bytes of operands of an atomic operation on @a size bytes. */
UCI_INLINE size_t uci_rma_operands(uci_rma_op_t op, size_t size)
{
    return (op == UCI_RMA_CSWAP) ? 2 * size : size;
}

/** Store bytes that somebody may be polling on: a word that is aligned at once. */
void uci_rma_store(void *to, const void *from, size_t length);

/** The same the other way. */
void uci_rma_load(void *to, const void *from, size_t length);

/**
 * An atomic operation, as the processor has them.
 * @param memory    aligned.  @param size  4 or 8.
 * @param operands  uci_rma_operands() bytes; of CSWAP what is compared with, then what is stored.
 * @param old       room for @a size bytes: what was there.
 */
void uci_rma_atomically(uci_rma_op_t op, void *memory, size_t size, const void *operands, void *old);

#endif
