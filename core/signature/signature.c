/* SPDX-License-Identifier: BSD-3-Clause */
#include "signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drawn at random, once */
#define UCI_SIGHASH_STEP 0x0f3c9a5be1d27846ull

/* A run of basic elements, or several of one type; what lies before it */
typedef struct uci_sigtype_run {
    const uci_sigtype_t *type; /* NULL: basic elements */
    uint64_t count;            /* of the type, or of elements */
    uint64_t elements_before;
    uci_sighash_t hash_before;
    unsigned code; /* of basic elements */
} uci_sigtype_run_t;

struct uci_sigtype {
    uint32_t references;
    unsigned code; /* of all its elements; UCI_SIGNATURE_MIXED: it has runs, or no elements */
    uint64_t elements;
    uci_sighash_t hash;
    char text[UCI_SIGNATURE_TEXT_MAX];
    size_t count;
    uci_sigtype_run_t runs[];
};

/* splitmix64's (S. Vigna) */
uint64_t uci_sighash_scatter(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

uci_sighash_t uci_sighash_element(unsigned code)
{
    return (uci_sighash_t){uci_sighash_scatter(code) % UCI_SIGHASH_PRIME, UCI_SIGHASH_STEP};
}

uci_sighash_t uci_sighash_repeat(uci_sighash_t hash, uint64_t count)
{
    uci_sighash_t result = UCI_SIGHASH_EMPTY;

    for (; count > 0; count >>= 1) {
        if (count & 1) {
            result = uci_sighash_concat(result, hash);
        }
        hash = uci_sighash_concat(hash, hash);
    }
    return result;
}

static uci_sigtype_t *uci_sigtype_alloc(size_t runs)
{
    uci_sigtype_t *type = calloc(1, sizeof(*type) + (runs * sizeof(type->runs[0])));

    if (type != NULL) {
        type->references = 1;
        type->code       = UCI_SIGNATURE_MIXED;
        type->hash       = UCI_SIGHASH_EMPTY;
    }
    return type;
}

uci_status_t uci_sigtype_create_basic(unsigned code, uint64_t elements, uci_sigtype_t **type_p)
{
    uci_sigtype_t *type = uci_sigtype_alloc(0);

    if (type == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    type->code     = (elements > 0) ? code : UCI_SIGNATURE_MIXED;
    type->elements = elements;
    type->hash     = uci_sighash_repeat(uci_sighash_element(code), elements);
    *type_p        = type;
    return UCI_OK;
}

/* Elements of one, and of all of a run */
static uint64_t uci_sigtype_run_unit(const uci_sigtype_run_t *run)
{
    return (run->type != NULL) ? run->type->elements : 1;
}

static uci_sighash_t uci_sigtype_run_hash(const uci_sigtype_run_t *run, uint64_t count)
{
    return uci_sighash_repeat((run->type != NULL) ? run->type->hash : uci_sighash_element(run->code), count);
}

/* Several of one type are not a type of their own */
static uci_sigtype_part_t uci_sigtype_unwrap(const uci_sigtype_part_t *part)
{
    const uci_sigtype_t *type = part->type;

    return (type->count == 1) ? (uci_sigtype_part_t){type->runs[0].type, part->count * type->runs[0].count} : *part;
}

/* Put @a wrapped behind the runs of @a type. @return false: there are too many elements */
static bool uci_sigtype_append(uci_sigtype_t *type, const uci_sigtype_part_t *wrapped)
{
    uci_sigtype_run_t *end  = &type->runs[type->count];
    uci_sigtype_part_t part = {0};
    uci_sigtype_run_t run   = {0};

    if ((wrapped->count == 0) || (wrapped->type->elements == 0)) {
        return true;
    }
    if (wrapped->count > (UCI_SIGNATURE_ELEMENTS_MAX - type->elements) / wrapped->type->elements) {
        return false;
    }
    part     = uci_sigtype_unwrap(wrapped);
    run.code = part.type->code;
    if (run.code == UCI_SIGNATURE_MIXED) {
        run.type  = part.type;
        run.count = part.count;
    } else {
        run.count = part.count * part.type->elements;
    }
    if ((type->count > 0) && (end[-1].type == run.type) && (end[-1].code == run.code)) {
        end[-1].count += run.count;
    } else {
        run.elements_before = type->elements;
        run.hash_before     = type->hash;
        *end                = run;
        ++type->count;
    }
    type->elements += part.count * part.type->elements;
    type->hash = uci_sighash_concat(type->hash, uci_sigtype_run_hash(&run, run.count));
    return true;
}

uci_status_t uci_sigtype_create(const uci_sigtype_part_t *parts, size_t count, uci_sigtype_t **type_p)
{
    uci_sigtype_t *type = uci_sigtype_alloc(count);
    size_t i;

    if (type == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    for (i = 0; i < count; ++i) {
        if (!uci_sigtype_append(type, &parts[i])) {
            free(type); /* it holds nothing yet */
            return UCI_ERR_INVALID_PARAM;
        }
    }
    if ((type->count == 1) && (type->runs[0].type == NULL)) {
        type->code  = type->runs[0].code;
        type->count = 0;
    }
    for (i = 0; i < type->count; ++i) {
        if (type->runs[i].type != NULL) {
            uci_sigtype_hold(type->runs[i].type);
        }
    }
    *type_p = type;
    return UCI_OK;
}

void uci_sigtype_hold(const uci_sigtype_t *type)
{
    __atomic_fetch_add(&((uci_sigtype_t *)(uintptr_t)type)->references, 1, __ATOMIC_RELAXED);
}

void uci_sigtype_release(const uci_sigtype_t *type)
{
    uci_sigtype_t *ours = (uci_sigtype_t *)(uintptr_t)type; /* const is what it is made of */
    size_t i;

    if (__atomic_sub_fetch(&ours->references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (i = 0; i < ours->count; ++i) {
        if (ours->runs[i].type != NULL) {
            uci_sigtype_release(ours->runs[i].type);
        }
    }
    free(ours);
}

uint64_t uci_sigtype_elements(const uci_sigtype_t *type)
{
    return type->elements;
}

unsigned uci_sigtype_code(const uci_sigtype_t *type)
{
    return type->code;
}

uci_sighash_t uci_sigtype_hash(const uci_sigtype_t *type, uint64_t count)
{
    return uci_sighash_repeat(type->hash, count);
}

/* The run that element @a element lies in: the last one that begins at it or before */
static const uci_sigtype_run_t *uci_sigtype_find(const uci_sigtype_t *type, uint64_t element)
{
    size_t first = 0, end = type->count, middle;

    while (end - first > 1) {
        middle = first + ((end - first) / 2);
        if (type->runs[middle].elements_before <= element) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return &type->runs[first];
}

uci_sighash_t uci_sigtype_prefix(const uci_sigtype_t *type, uint64_t elements)
{
    uci_sighash_t hash = UCI_SIGHASH_EMPTY;
    const uci_sigtype_run_t *run;
    uint64_t unit;

    while (elements > 0) {
        hash = uci_sighash_concat(hash, uci_sigtype_hash(type, elements / type->elements));
        elements %= type->elements;
        if (elements == 0) {
            break;
        }
        if (type->code != UCI_SIGNATURE_MIXED) {
            return uci_sighash_concat(hash, uci_sighash_repeat(uci_sighash_element(type->code), elements));
        }
        run  = uci_sigtype_find(type, elements);
        unit = uci_sigtype_run_unit(run);
        hash = uci_sighash_concat(hash, run->hash_before);
        elements -= run->elements_before;
        hash = uci_sighash_concat(hash, uci_sigtype_run_hash(run, elements / unit));
        elements %= unit;
        type = run->type; /* NULL only if nothing is left */
    }
    return hash;
}

/* Where a text goes: what does not fit is counted only */
typedef struct uci_sigtext {
    char *text;
    size_t size;
    size_t length;
} uci_sigtext_t;

static void uci_sigtext_add(uci_sigtext_t *text, const char *what)
{
    if (text->length < text->size) {
        snprintf(text->text + text->length, text->size - text->length, "%s", what);
    }
    text->length += strlen(what);
}

static void uci_sigtext_add_count(uci_sigtext_t *text, uint64_t count)
{
    char number[32];

    if (count != 1) {
        snprintf(number, sizeof(number), "%lu x ", (unsigned long)count);
        uci_sigtext_add(text, number);
    }
}

static void uci_sigtext_add_type(uci_sigtext_t *text, const uci_sigtype_t *type,
                                 const char *(*code_name)(unsigned code))
{
    size_t i;

    if (type->code != UCI_SIGNATURE_MIXED) {
        uci_sigtext_add_count(text, type->elements);
        uci_sigtext_add(text, code_name(type->code));
        return;
    }
    uci_sigtext_add(text, "{");
    for (i = 0; (i < type->count) && (text->length < text->size); ++i) {
        uci_sigtext_add(text, (i > 0) ? ", " : "");
        uci_sigtext_add_count(text, type->runs[i].count);
        if (type->runs[i].type != NULL) {
            uci_sigtext_add_type(text, type->runs[i].type, code_name);
        } else {
            uci_sigtext_add(text, code_name(type->runs[i].code));
        }
    }
    uci_sigtext_add(text, "}");
}

void uci_sigtype_set_text(uci_sigtype_t *type, const char *(*code_name)(unsigned code))
{
    uci_sigtext_t text = {.text = type->text, .size = sizeof(type->text)};

    uci_sigtext_add_type(&text, (type->count == 1) ? type->runs[0].type : type, code_name);
    if (text.length >= text.size) {
        memcpy(text.text + text.size - sizeof("...}"), "...}", sizeof("...}"));
    }
}

void uci_sigtype_sign(const uci_sigtype_t *type, uint64_t count, uci_signature_t *signature)
{
    *signature = (uci_signature_t){.word = uci_signature_word(type->code, type->elements * count), .type = type};
    if (type->code == UCI_SIGNATURE_MIXED) {
        signature->hash = uci_sigtype_hash(type, count).value;
        signature->unit = (type->count == 1) ? type->runs[0].type->elements : type->elements;
        signature->text = type->text;
    }
}

/* The hash of the first elements. A receive of elements that are all alike holds no type: its program may have freed it */
static uci_sighash_t uci_signature_prefix(const uci_signature_t *signature, uint64_t elements)
{
    unsigned code = uci_signature_code(signature->word);

    return (code == UCI_SIGNATURE_MIXED) ? uci_sigtype_prefix(signature->type, elements)
                                         : uci_sighash_repeat(uci_sighash_element(code), elements);
}

bool uci_signature_matches(const uci_signature_t *sent, const uci_signature_t *posted)
{
    unsigned code     = uci_signature_code(sent->word);
    uint64_t elements = uci_signature_elements(sent->word);
    uci_sighash_t hash;

    if ((elements == 0) || (code == UCI_SIGNATURE_PACKED) ||
        (uci_signature_code(posted->word) == UCI_SIGNATURE_PACKED)) {
        return true;
    }
    if (elements > uci_signature_elements(posted->word)) {
        return false;
    }
    hash.value = sent->hash;
    if (code != UCI_SIGNATURE_MIXED) {
        hash = uci_sighash_repeat(uci_sighash_element(code), elements);
    }
    return uci_signature_prefix(posted, elements).value == hash.value;
}

void uci_signature_describe(const uci_signature_t *signature, const char *(*code_name)(unsigned code), char *text,
                            size_t size)
{
    uint64_t elements = uci_signature_elements(signature->word);
    unsigned code     = uci_signature_code(signature->word);

    if (code != UCI_SIGNATURE_MIXED) {
        snprintf(text, size, "%lu x %s", (unsigned long)elements, code_name(code));
    } else if ((signature->unit > 0) && (elements % signature->unit == 0)) {
        snprintf(text, size, "%lu x %s", (unsigned long)(elements / signature->unit), signature->text);
    } else {
        snprintf(text, size, "%lu elements of %s", (unsigned long)elements, signature->text);
    }
}
