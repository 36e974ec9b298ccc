/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_diff.h"

#include <stdlib.h>
#include <string.h>

static void uci_check_add_diff(uci_check_diffs_t *diffs, uci_check_diff_kind_t kind, const uci_check_entry_t *a,
                               const uci_check_entry_t *b)
{
    if (diffs->count == diffs->room) {
        diffs->room = (diffs->room == 0) ? 64 : 2 * diffs->room;
        diffs->list = uci_check_memory(realloc(diffs->list, diffs->room * sizeof(*diffs->list)));
    }
    diffs->list[diffs->count] = (uci_check_diff_t){.kind = kind, .a = a, .b = b};
    uci_ranges_init_growing(&diffs->list[diffs->count].ranges);
    ++diffs->count;
}

static void uci_check_join_same_name(uci_check_diffs_t *diffs, const uci_check_entry_t *a, const uci_check_entry_t *b)
{
    if ((a->type == UCI_CHECK_UNREADABLE) || (b->type == UCI_CHECK_UNREADABLE)) {
        uci_check_add_diff(diffs, UCI_CHECK_DIFF_UNREADABLE, a, b);
    } else if (a->type != b->type) {
        uci_check_add_diff(diffs, UCI_CHECK_DIFF_TYPE, a, b);
    } else if ((a->root != b->root) || (a->length != b->length)) {
        uci_check_add_diff(diffs, UCI_CHECK_DIFF_CONTENT, a, b);
    }
}

void uci_check_join(const uci_check_list_t *a, const uci_check_list_t *b, uci_check_diffs_t *diffs)
{
    size_t i = 0, j = 0;
    int order;

    for (diffs->compared = 0; (i < a->count) || (j < b->count); ++diffs->compared) {
        order = (i == a->count) ? 1 : (j == b->count) ? -1 : strcmp(a->entries[i].name, b->entries[j].name);
        if (order < 0) {
            uci_check_add_diff(diffs, UCI_CHECK_DIFF_MISSING, &a->entries[i++], NULL);
        } else if (order > 0) {
            uci_check_add_diff(diffs, UCI_CHECK_DIFF_NEW, NULL, &b->entries[j++]);
        } else {
            uci_check_join_same_name(diffs, &a->entries[i++], &b->entries[j++]);
        }
    }
}

bool uci_check_is_file_diff(const uci_check_diff_t *diff)
{
    return (diff->kind == UCI_CHECK_DIFF_CONTENT) && (diff->a->type == UCI_CHECK_FILE);
}

static void uci_check_differ(void *arg, uint64_t offset, uint64_t length)
{
    uci_ranges_add(arg, offset, length);
}

void uci_check_find_ranges(const uci_check_form_t *form, uci_check_diffs_t *diffs)
{
    uci_merkle_side_t a, b;
    uci_check_diff_t *diff;
    size_t i;

    for (i = 0; i < diffs->count; ++i) {
        diff = &diffs->list[i];
        if (uci_check_is_file_diff(diff) && (diff->a->leaves != NULL) && (diff->b->leaves != NULL)) {
            uci_check_make_side(form, diff->a, &a);
            uci_check_make_side(form, diff->b, &b);
            uci_merkle_side_compare(&a, &b, uci_check_differ, &diff->ranges);
            uci_merkle_destroy(a.tree);
            uci_merkle_destroy(b.tree);
        }
    }
}

const char *uci_check_diff_name(const uci_check_diff_t *diff)
{
    return (diff->a != NULL) ? diff->a->name : diff->b->name;
}

size_t uci_check_diffs_count(const uci_check_diffs_t *diffs, uci_check_diff_kind_t kind)
{
    size_t i, count = 0;

    for (i = 0; i < diffs->count; ++i) {
        count += (diffs->list[i].kind == kind);
    }
    return count;
}

void uci_check_diffs_cleanup(uci_check_diffs_t *diffs)
{
    size_t i;

    for (i = 0; i < diffs->count; ++i) {
        uci_ranges_cleanup(&diffs->list[i].ranges);
    }
    free(diffs->list);
    memset(diffs, 0, sizeof(*diffs));
}
