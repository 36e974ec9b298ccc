/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_list.h"

#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void uci_check_list_init(uci_check_list_t *list, const uci_check_form_t *form)
{
    memset(list, 0, sizeof(*list));
    list->form = *form;
}

void uci_check_list_cleanup(uci_check_list_t *list)
{
    size_t i;

    for (i = 0; !list->borrows && (i < list->count); ++i) {
        free(list->entries[i].path);
    }
    if (!list->borrows) {
        free(list->leaves);
    }
    free(list->entries);
    memset(list, 0, sizeof(*list));
}

uci_check_entry_t *uci_check_list_add(uci_check_list_t *list)
{
    if (list->count == list->room) {
        list->room    = (list->room == 0) ? 64 : 2 * list->room;
        list->entries = uci_check_memory(realloc(list->entries, list->room * sizeof(*list->entries)));
    }
    memset(&list->entries[list->count], 0, sizeof(*list->entries));
    return &list->entries[list->count++];
}

static int uci_check_by_name(const void *a, const void *b)
{
    return strcmp(((const uci_check_entry_t *)a)->name, ((const uci_check_entry_t *)b)->name);
}

bool uci_check_list_sort(uci_check_list_t *list)
{
    size_t i;

    if (list->count > 1) {
        qsort(list->entries, list->count, sizeof(*list->entries), uci_check_by_name);
    }
    for (i = 1; i < list->count; ++i) {
        if (strcmp(list->entries[i - 1].name, list->entries[i].name) == 0) {
            return false;
        }
    }
    return true;
}

size_t uci_check_list_count(const uci_check_list_t *list, uci_check_type_t type)
{
    size_t i, count = 0;

    for (i = 0; i < list->count; ++i) {
        count += (list->entries[i].type == type);
    }
    return count;
}

size_t uci_check_chunks(const uci_check_form_t *form, const uci_check_entry_t *entry)
{
    return (entry->type == UCI_CHECK_FILE) ? uci_merkle_chunks(entry->length, form->chunk_size) : 0;
}

void uci_check_list_make_leaves(uci_check_list_t *list)
{
    size_t total = 0, i;
    uint64_t *next;

    for (i = 0; i < list->count; ++i) {
        total += uci_check_chunks(&list->form, &list->entries[i]);
    }
    next = calloc(total + 1, sizeof(*next));
    if (next == NULL) {
        errx(2, "out of memory for the digests of %zu chunks: a larger --chunk-size needs less", total);
    }
    list->leaves = next;
    for (i = 0; i < list->count; ++i) {
        if (list->entries[i].type == UCI_CHECK_FILE) {
            list->entries[i].leaves = next;
            next += uci_check_chunks(&list->form, &list->entries[i]);
        }
    }
}

uci_merkle_t *uci_check_make_tree(size_t leaves, unsigned arity)
{
    uci_merkle_t *tree;

    if (uci_merkle_create(leaves, arity, &tree) != UCI_OK) {
        exit(2); /* it has logged */
    }
    return tree;
}

void uci_check_make_side(const uci_check_form_t *form, const uci_check_entry_t *entry, uci_merkle_side_t *side)
{
    size_t chunks = uci_check_chunks(form, entry), i;

    *side = (uci_merkle_side_t){.length = entry->length, .chunk_size = form->chunk_size, .digest = form->digest->id};
    side->tree = uci_check_make_tree(chunks, form->arity);
    for (i = 0; i < chunks; ++i) {
        uci_merkle_set_leaf(side->tree, i, entry->leaves[i]);
    }
}

const char *uci_check_why(const uci_check_entry_t *entry)
{
    return (entry->error == UCI_CHECK_CHANGED) ? "it changed while it was read" : strerror(entry->error);
}

/* @return length of the UTF-8 character at @a text, a printable one; 0: it is to be escaped. */
static size_t uci_check_printable(const unsigned char *text)
{
    size_t length, i;
    unsigned code;

    if (text[0] < 0x80) {
        return (text[0] >= 0x20) && (text[0] != 0x7f) && (text[0] != '\\');
    }
    length = (text[0] >= 0xf0) ? 4 : (text[0] >= 0xe0) ? 3 : 2;
    code   = text[0] & (0x7f >> length);
    if ((text[0] < 0xc2) || (text[0] > 0xf4)) {
        return 0;
    }
    for (i = 1; i < length; ++i) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = (code << 6) | (text[i] & 0x3f);
    }
    if ((code < 0xa0) || ((length == 3) && (code < 0x800)) || ((length == 4) && (code < 0x10000)) ||
        (code > 0x10ffff) || ((code >= 0xd800) && (code < 0xe000))) {
        return 0; /* a control character, written too long, or no character */
    }
    return length;
}

char *uci_check_escape(const char *name)
{
    const unsigned char *in = (const unsigned char *)name;
    char *text = uci_check_memory(malloc((4 * strlen(name)) + 1)), *out = text;
    size_t length;

    for (; *in != '\0'; in += uci_max(length, (size_t)1)) {
        length = uci_check_printable(in);
        if (length > 0) {
            out = mempcpy(out, in, length);
        } else if ((*in == '\\') || (*in == '\n')) {
            *out++ = '\\';
            *out++ = (*in == '\n') ? 'n' : '\\';
        } else {
            out += sprintf(out, "\\x%02x", *in);
        }
    }
    *out = '\0';
    return text;
}

/* @return the byte of \xHH, whose digits are at @a text; 0: there is none. */
static char uci_check_unescape_byte(const char *text)
{
    char digits[3] = {0};

    if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1])) {
        return 0;
    }
    memcpy(digits, text, 2);
    return (char)strtoul(digits, NULL, 16);
}

bool uci_check_unescape(char *text)
{
    const char *in = text;
    char *out      = text;

    while (*in != '\0') {
        if (*in != '\\') {
            *out++ = *in++;
            continue;
        }
        *out = (in[1] == 'n') ? '\n' : (in[1] == '\\') ? '\\' : (in[1] == 'x') ? uci_check_unescape_byte(in + 2) : 0;
        if (*out++ == 0) {
            return false;
        }
        in += (in[1] == 'x') ? 4 : 2;
    }
    *out = '\0';
    return true;
}
