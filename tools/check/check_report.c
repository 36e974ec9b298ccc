/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_report.h"

#include <err.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UCI_CHECK_RANGES_SHOWN 8 /* of a file, unless all are wanted */
#define UCI_CHECK_JSON_VERSION 1

static const char *const uci_check_kind_names[] = {"missing", "new", "type", "changed", "unreadable"};

/* As the command's user thinks of it: what was and what is, or two folders of equal standing */
static const char *uci_check_kind_text(const uci_check_report_t *report, uci_check_diff_kind_t kind)
{
    static const char *const texts[][5] = {{"missing", "new", "other type", "changed", "unchecked"},
                                           {"only in A", "only in B", "other type", "differs", "unchecked"}};

    return texts[strcmp(report->command, "compare") == 0][kind];
}

static const char *uci_check_type_text(uci_check_type_t type)
{
    static const char *const texts[] = {[UCI_CHECK_FILE]       = "file",
                                        [UCI_CHECK_LINK]       = "link",
                                        [UCI_CHECK_FOLDER]     = "folder",
                                        [UCI_CHECK_OTHER]      = "other",
                                        [UCI_CHECK_UNREADABLE] = "unreadable"};

    return texts[type];
}

static bool uci_check_is_unreadable(const uci_check_entry_t *entry)
{
    return (entry != NULL) && (entry->type == UCI_CHECK_UNREADABLE);
}

bool uci_check_report_is_partial(const uci_check_report_t *report)
{
    size_t i;

    for (i = 0; i < report->diffs->count; ++i) {
        if (uci_check_is_unreadable(report->diffs->list[i].a) || uci_check_is_unreadable(report->diffs->list[i].b)) {
            return true;
        }
    }
    return false;
}

static double uci_check_speed(const uci_check_work_t *work)
{
    return (work->seconds > 0) ? (double)work->bytes / work->seconds / 1e9 : 0;
}

static void uci_check_print_ranges(const uci_check_diff_t *diff, bool all)
{
    const uci_ranges_t *ranges = &diff->ranges;
    size_t kept                = uci_min(ranges->count, ranges->max),
           shown               = all ? kept : uci_min(kept, (size_t)UCI_CHECK_RANGES_SHOWN);
    size_t i;

    if (diff->a->length != diff->b->length) {
        printf(", %" PRIu64 " and %" PRIu64 " bytes long", diff->a->length, diff->b->length);
    }
    for (i = 0; i < shown; ++i) {
        printf("%s %" PRIu64 "..%" PRIu64, (i == 0) ? ", bytes" : ",", ranges->list[i].offset,
               ranges->list[i].offset + ranges->list[i].length - 1);
    }
    if (shown < ranges->count) {
        printf(" and %zu more ranges", ranges->count - shown);
    }
}

static void uci_check_print_diff(const uci_check_report_t *report, const uci_check_diff_t *diff)
{
    const char *inside = uci_check_diff_name(diff);
    char *name         = uci_check_escape((strcmp(inside, ".") == 0) ? report->a : inside);

    printf("%-10s %s", uci_check_kind_text(report, diff->kind), name);
    if (diff->kind == UCI_CHECK_DIFF_TYPE) {
        printf(", %s and %s", uci_check_type_text(diff->a->type), uci_check_type_text(diff->b->type));
    } else if (uci_check_is_file_diff(diff)) {
        uci_check_print_ranges(diff, report->all_ranges);
    } else if (diff->kind == UCI_CHECK_DIFF_UNREADABLE) {
        printf(", %s: it could not be read", (diff->a->type == UCI_CHECK_UNREADABLE) ? report->a : report->b);
    }
    putchar('\n');
    free(name);
}

static void uci_check_print_counts(const uci_check_report_t *report)
{
    unsigned kind;
    size_t count;

    for (kind = UCI_CHECK_DIFF_MISSING; kind <= UCI_CHECK_DIFF_UNREADABLE; ++kind) {
        count = uci_check_diffs_count(report->diffs, kind);
        if (count > 0) {
            printf(", %zu %s", count, uci_check_kind_text(report, kind));
        }
    }
}

void uci_check_report_text(const uci_check_report_t *report)
{
    const uci_check_diffs_t *diffs = report->diffs;
    size_t i;

    for (i = 0; i < diffs->count; ++i) {
        uci_check_print_diff(report, &diffs->list[i]);
    }
    if (report->quiet) {
        return;
    }
    printf("%s: %zu entries", (diffs->count == 0) ? "the same" : "not the same", diffs->compared);
    uci_check_print_counts(report);
    printf("; %.3g GB read in %.3g s, %.3g GB/s\n", (double)report->work->bytes / 1e9, report->work->seconds,
           uci_check_speed(report->work));
    if (report->moved != NULL) {
        printf("moved: %" PRIu64 " bytes sent, %" PRIu64 " received, in %" PRIu64 " rounds\n", report->moved->sent,
               report->moved->received, report->moved->rounds);
    }
}

static json_t *uci_check_name_json(const char *name)
{
    char *text    = uci_check_escape(name);
    json_t *value = json_string(text);

    free(text);
    return value;
}

static json_t *uci_check_side_json(const uci_check_entry_t *entry)
{
    if (entry == NULL) {
        return json_null();
    }
    return json_pack("{s:s, s:I}", "type", uci_check_type_text(entry->type), "length", (json_int_t)entry->length);
}

static json_t *uci_check_diff_json(const uci_check_diff_t *diff)
{
    const uci_ranges_t *ranges = &diff->ranges;
    bool is_known              = uci_check_is_file_diff(diff) && (ranges->count > 0) && (ranges->count <= ranges->max);
    json_t *list               = is_known ? json_array() : json_null();
    size_t i;

    for (i = 0; is_known && (i < ranges->count); ++i) {
        json_array_append_new(
                list, json_pack("[I, I]", (json_int_t)ranges->list[i].offset, (json_int_t)ranges->list[i].length));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind", uci_check_kind_names[diff->kind], "path",
                     uci_check_name_json(uci_check_diff_name(diff)), "a", uci_check_side_json(diff->a), "b",
                     uci_check_side_json(diff->b), "ranges", list);
}

static json_t *uci_check_work_json(const uci_check_work_t *work)
{
    return json_pack("{s:I, s:f, s:f}", "bytes", (json_int_t)work->bytes, "seconds", work->seconds, "GB_per_s",
                     uci_check_speed(work));
}

static json_t *uci_check_form_json(const uci_check_form_t *form)
{
    return json_pack("{s:s, s:I, s:i}", "digest", form->digest->name, "chunk_size", (json_int_t)form->chunk_size,
                     "arity", (int)form->arity);
}

static void uci_check_print_json(json_t *root)
{
    if ((root == NULL) || (json_dumpf(root, stdout, JSON_INDENT(1)) != 0)) {
        errx(2, "failed to write JSON");
    }
    putchar('\n');
    json_decref(root);
}

void uci_check_report_json(const uci_check_report_t *report)
{
    const uci_check_moved_t *moved = report->moved;
    json_t *list                   = json_array();
    size_t i;

    for (i = 0; i < report->diffs->count; ++i) {
        json_array_append_new(list, uci_check_diff_json(&report->diffs->list[i]));
    }
    uci_check_print_json(json_pack(
            "{s:i, s:s, s:o, s:o, s:b, s:b, s:I, s:o, s:o, s:o, s:o}", "uci_check", UCI_CHECK_JSON_VERSION, "command",
            report->command, "a", uci_check_name_json(report->a), "b", uci_check_name_json(report->b), "same",
            report->diffs->count == 0, "complete", !uci_check_report_is_partial(report), "entries",
            (json_int_t)report->diffs->compared, "differences", list, "form", uci_check_form_json(report->form), "read",
            uci_check_work_json(report->work), "moved",
            (moved == NULL) ? json_null()
                            : json_pack("{s:I, s:I, s:I}", "sent", (json_int_t)moved->sent, "received",
                                        (json_int_t)moved->received, "rounds", (json_int_t)moved->rounds)));
}

void uci_check_report_sum(const uci_check_list_t *list, const uci_check_work_t *work, const char *file, uint64_t digest,
                          bool json)
{
    size_t unreadable = uci_check_list_count(list, UCI_CHECK_UNREADABLE);
    char hex[17];

    snprintf(hex, sizeof(hex), "%016" PRIx64, digest);
    if (json) {
        uci_check_print_json(json_pack("{s:i, s:s, s:o, s:s, s:I, s:I, s:o, s:o}", "uci_check", UCI_CHECK_JSON_VERSION,
                                       "command", "sum", "manifest",
                                       (file == NULL) ? json_null() : uci_check_name_json(file), "sum", hex, "entries",
                                       (json_int_t)list->count, "unreadable", (json_int_t)unreadable, "form",
                                       uci_check_form_json(&list->form), "read", uci_check_work_json(work)));
        return;
    }
    fprintf(stderr, "%s: %zu entries, %.3g GB read in %.3g s, %.3g GB/s\n", hex, list->count, (double)work->bytes / 1e9,
            work->seconds, uci_check_speed(work));
}
