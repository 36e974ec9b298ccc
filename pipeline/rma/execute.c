/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute.h"

#include <string.h>

const char *const uci_rma_names[UCI_RMA_KIND_LAST] = {"a put", "a get", "an atomic operation"};

#define UCI_RMA_WORD(_type, _to, _from) \
    do { \
        _type word_; \
        memcpy(&word_, _from, sizeof(word_)); \
        __atomic_store_n((_type *)(_to), word_, __ATOMIC_RELEASE); \
    } while (0)

/* The word is read at once, wherever it goes */
#define UCI_RMA_WORD_OF(_type, _to, _from) \
    do { \
        _type word_ = __atomic_load_n((const _type *)(_from), __ATOMIC_ACQUIRE); \
        memcpy(_to, &word_, sizeof(word_)); \
    } while (0)

static bool uci_rma_is_word(const void *memory, size_t length)
{
    return ((length == 8) || (length == 4)) && ((uintptr_t)memory % length == 0);
}

void uci_rma_store(void *to, const void *from, size_t length)
{
    if (!uci_rma_is_word(to, length)) {
        memcpy(to, from, length);
    } else if (length == 8) {
        UCI_RMA_WORD(uint64_t, to, from);
    } else {
        UCI_RMA_WORD(uint32_t, to, from);
    }
}

void uci_rma_load(void *to, const void *from, size_t length)
{
    if (!uci_rma_is_word(from, length)) {
        memcpy(to, from, length);
    } else if (length == 8) {
        UCI_RMA_WORD_OF(uint64_t, to, from);
    } else {
        UCI_RMA_WORD_OF(uint32_t, to, from);
    }
}

#define UCI_RMA_ATOMIC_OF(_type) \
    static _type uci_rma_##_type(uci_rma_op_t op, _type *memory, _type operand, _type swap) \
    { \
        switch (op) { \
        case UCI_RMA_ADD: \
            return __atomic_fetch_add(memory, operand, __ATOMIC_SEQ_CST); \
        case UCI_RMA_SWAP: \
            return __atomic_exchange_n(memory, operand, __ATOMIC_SEQ_CST); \
        case UCI_RMA_AND: \
            return __atomic_fetch_and(memory, operand, __ATOMIC_SEQ_CST); \
        case UCI_RMA_OR: \
            return __atomic_fetch_or(memory, operand, __ATOMIC_SEQ_CST); \
        case UCI_RMA_XOR: \
            return __atomic_fetch_xor(memory, operand, __ATOMIC_SEQ_CST); \
        default: \
            (void)__atomic_compare_exchange_n(memory, &operand, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
            return operand; \
        } \
    }

UCI_RMA_ATOMIC_OF(uint32_t)
UCI_RMA_ATOMIC_OF(uint64_t)

void uci_rma_atomically(uci_rma_op_t op, void *memory, size_t size, const void *operands, void *old)
{
    uint64_t words[2]  = {0, 0};
    uint32_t halves[2] = {0, 0};

    if (size == sizeof(words[0])) {
        memcpy(words, operands, uci_rma_operands(op, size));
        words[0] = uci_rma_uint64_t(op, memory, words[0], words[1]);
        memcpy(old, words, size);
    } else {
        memcpy(halves, operands, uci_rma_operands(op, size));
        halves[0] = uci_rma_uint32_t(op, memory, halves[0], halves[1]);
        memcpy(old, halves, size);
    }
}
