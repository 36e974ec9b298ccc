/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Signatures of types (J. Langou, G. Bosilca, G. Fagg, J. Dongarra, "Hash Functions for Datatype Signatures in MPI", 2005): a hash of the
 * sequence of basic elements that a type consists of, whatever their number, by what it is made of.
 *
 * The hash of x_1 ... x_n is the pair of
 *
 *     value  = x_1 a^(n-1) + x_2 a^(n-2) + ... + x_n      modulo p = 2^61 - 1
 *     factor = a^n
 *
 * which is a checksum by the paper's theorem 1, over a field: so the hash of a concatenation is one multiplication and one addition of
 * the hashes of its parts, and that of n times the same is O(log n) of these, or a division. x_i is the code of an element, scattered over all
 * of the field (with the codes themselves, which are small numbers, the paper's 16 bit functions have up to 64 % collisions), and a is a
 * constant that was drawn at random. Two different sequences of at most n elements have the same hash with odds of n / 2^61 at most.
 * README.md compares this with the paper's own.
 *
 * A type (uci_sigtype_t) keeps the hashes of its parts, so that the hash of its first n elements, of which MPI allows a message to consist, takes
 * a search in each level it is made of. Types never change once they are made, and are counted references: any thread may use them.
 */
#ifndef UCI_SIGNATURE_H_
#define UCI_SIGNATURE_H_

#include "util/types.h"
#include "uci_signature.h"

#define UCI_SIGHASH_PRIME ((1ull << 61) - 1)

typedef struct uci_sighash {
    uint64_t value;
    uint64_t factor;
} uci_sighash_t;

/** The hash of no elements. */
#define UCI_SIGHASH_EMPTY ((uci_sighash_t){0, 1})

/** @return product modulo 2^61 - 1 of two numbers below that. */
UCI_INLINE uint64_t uci_sighash_multiply(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum                            = (uint64_t)(product & UCI_SIGHASH_PRIME) + (uint64_t)(product >> 61);

    return (sum >= UCI_SIGHASH_PRIME) ? sum - UCI_SIGHASH_PRIME : sum;
}

/** @return the hash of what @a first was made of, and then what @a second was. */
UCI_INLINE uci_sighash_t uci_sighash_concat(uci_sighash_t first, uci_sighash_t second)
{
    uint64_t value = uci_sighash_multiply(first.value, second.factor) + second.value;

    return (uci_sighash_t){(value >= UCI_SIGHASH_PRIME) ? value - UCI_SIGHASH_PRIME : value,
                           uci_sighash_multiply(first.factor, second.factor)};
}

/** @return @a x scattered over 64 bits. */
uint64_t uci_sighash_scatter(uint64_t x);

/** @return the hash of one element. @param code  below UCI_SIGNATURE_PACKED */
uci_sighash_t uci_sighash_element(unsigned code);

/** @return the hash of @a count times the same. O(log count). */
uci_sighash_t uci_sighash_repeat(uci_sighash_t hash, uint64_t count);

/** A type: a sequence of basic elements, in the order in which they are sent. */
typedef struct uci_sigtype uci_sigtype_t;

/** A part of a type: @a count times @a type. */
typedef struct uci_sigtype_part {
    const uci_sigtype_t *type;
    uint64_t count;
} uci_sigtype_part_t;

/**
 * Make a type of @a elements times a basic one.
 * @param type_p  set on success, with a reference that is the caller's.
 * @return UCI_OK or UCI_ERR_NO_MEMORY.
 */
uci_status_t uci_sigtype_create_basic(unsigned code, uint64_t elements, uci_sigtype_t **type_p);

/**
 * Make a type of these parts, one after the other. It keeps a reference of what it needs of them. Neighbours that are alike become one part;
 * one whose elements all have the same code is a basic one, whatever it was made of.
 * @param type_p  set on success, with a reference that is the caller's.
 * @return UCI_OK; UCI_ERR_NO_MEMORY; UCI_ERR_INVALID_PARAM if there are more than UCI_SIGNATURE_ELEMENTS_MAX elements.
 */
uci_status_t uci_sigtype_create(const uci_sigtype_part_t *parts, size_t count, uci_sigtype_t **type_p);

/** One reference more, and one less: the last one destroys it. Thread safe. */
void uci_sigtype_hold(const uci_sigtype_t *type);
void uci_sigtype_release(const uci_sigtype_t *type);

/** @return elements of one of it. */
uint64_t uci_sigtype_elements(const uci_sigtype_t *type);

/** @return the code that all its elements have; UCI_SIGNATURE_MIXED if they have several, or it has none. */
unsigned uci_sigtype_code(const uci_sigtype_t *type);

/** @return the hash of @a count of it. */
uci_sighash_t uci_sigtype_hash(const uci_sigtype_t *type, uint64_t count);

/** @return the hash of the first @a elements of as many of it as are needed. The type has elements, or none are wanted. */
uci_sighash_t uci_sigtype_prefix(const uci_sigtype_t *type, uint64_t elements);

/**
 * Give it a text for people: "{2 x MPI_INT, MPI_DOUBLE}"; of several of one type it is that one's. What is longer than UCI_SIGNATURE_TEXT_MAX is cut. Before anybody else has it.
 * @param code_name  names a basic type.
 */
void uci_sigtype_set_text(uci_sigtype_t *type, const char *(*code_name)(unsigned code));

/** The signature of @a count of @a type, without call and group. */
void uci_sigtype_sign(const uci_sigtype_t *type, uint64_t count, uci_signature_t *signature);

/**
 * Is what was sent the beginning of what was to be received? Packed data matches anything, no elements do, and those of types that are
 * not the same do not.
 * @param posted  if its elements are MIXED, its `type` is a uci_sigtype_t; else, and of @a sent, that is not looked at.
 */
bool uci_signature_matches(const uci_signature_t *sent, const uci_signature_t *posted);

#define UCI_SIGNATURE_DESCRIPTION_MAX 128 /**< bytes of a description, its end included */

/** Describe a signature for people: "4 x MPI_INT", "2 x {2 x MPI_INT, MPI_DOUBLE}". @param code_name  names a basic type. */
void uci_signature_describe(const uci_signature_t *signature, const char *(*code_name)(unsigned code), char *text,
                            size_t size);

#endif
