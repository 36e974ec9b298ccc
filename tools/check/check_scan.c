/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_scan.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uci_check_type_t uci_check_type_of(const FTSENT *found)
{
    switch (found->fts_info) {
    case FTS_D:
        return UCI_CHECK_FOLDER;
    case FTS_F:
        return UCI_CHECK_FILE;
    case FTS_SL:
    case FTS_SLNONE:
        return UCI_CHECK_LINK;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
    case FTS_DC:
        return UCI_CHECK_UNREADABLE;
    default:
        return UCI_CHECK_OTHER;
    }
}

/* Relative to the path that was given */
static char *uci_check_name_of(const FTSENT *found, char *path, size_t root_length, bool relative)
{
    char *name = path + root_length;

    if (!relative) {
        return path;
    }
    if (found->fts_level == FTS_ROOTLEVEL) {
        return ".";
    }
    return name + strspn(name, "/");
}

static void uci_check_add_found(uci_check_list_t *list, const FTSENT *found, size_t root_length, bool relative)
{
    const struct stat *st    = found->fts_statp;
    uci_check_entry_t *entry = uci_check_list_add(list);

    entry->path = uci_check_memory(strdup(found->fts_path));
    entry->name = uci_check_name_of(found, entry->path, root_length, relative);
    entry->type = uci_check_type_of(found);
    if (entry->type == UCI_CHECK_UNREADABLE) {
        entry->error = (found->fts_info == FTS_DC) ? ELOOP : found->fts_errno;
    } else {
        entry->length = (entry->type == UCI_CHECK_FILE) ? (uint64_t)st->st_size : 0;
        entry->dev    = st->st_dev;
        entry->ino    = st->st_ino;
        entry->mtime  = st->st_mtim;
        entry->ctime  = st->st_ctim;
    }
}

/* A folder that can't be read comes twice: as one, and as what can't be read */
static bool uci_check_take_found(uci_check_list_t *list, const FTSENT *found, size_t root_length, bool relative)
{
    uci_check_entry_t *last = (list->count > 0) ? &list->entries[list->count - 1] : NULL;

    if ((found->fts_info == FTS_NS) && (found->fts_level == FTS_ROOTLEVEL)) {
        uci_check_complain("%s: %s", found->fts_path, strerror(found->fts_errno));
        return false;
    }
    if ((found->fts_info == FTS_DNR) && (last != NULL) && (strcmp(last->path, found->fts_path) == 0)) {
        last->type  = UCI_CHECK_UNREADABLE;
        last->error = found->fts_errno;
    } else {
        uci_check_add_found(list, found, root_length, relative);
    }
    return true;
}

static bool uci_check_is_skipped(const FTSENT *found, const uci_check_scan_options_t *options)
{
    size_t i;

    for (i = 0; (found->fts_info == FTS_F) && (i < uci_array_size(options->skip)); ++i) {
        if ((found->fts_statp->st_ino == options->skip[i].ino) && (found->fts_statp->st_dev == options->skip[i].dev)) {
            return true;
        }
    }
    return false;
}

/* One path: so that a name can be cut at its end */
static bool uci_check_walk(char *path, const uci_check_scan_options_t *options, uci_check_list_t *list)
{
    char *paths[]      = {path, NULL};
    int flags          = FTS_PHYSICAL | FTS_NOCHDIR | (options->one_file_system ? FTS_XDEV : 0);
    size_t root_length = 0;
    FTS *walk          = fts_open(paths, flags, NULL);
    bool is_good       = true;
    FTSENT *found      = NULL;

    if (walk == NULL) {
        uci_check_complain("%s: %s", path, strerror(errno));
        return false;
    }
    errno = 0;
    while (is_good && ((found = fts_read(walk)) != NULL)) {
        if (found->fts_level == FTS_ROOTLEVEL) {
            root_length = found->fts_pathlen;
        }
        if ((found->fts_info != FTS_DP) && !uci_check_is_skipped(found, options)) {
            is_good = uci_check_take_found(list, found, root_length, options->relative);
        }
        errno = 0;
    }
    if (is_good && (errno != 0)) {
        uci_check_complain("%s: %s", path, strerror(errno));
        is_good = false;
    }
    fts_close(walk);
    return is_good;
}

static void uci_check_say_unreadable(const uci_check_list_t *list)
{
    size_t i;
    char *name;

    for (i = 0; i < list->count; ++i) {
        if (list->entries[i].type == UCI_CHECK_UNREADABLE) {
            name = uci_check_escape(list->entries[i].path);
            uci_check_complain("%s is not checked: %s", name, uci_check_why(&list->entries[i]));
            free(name);
        }
    }
}

bool uci_check_scan(char *const *paths, const uci_check_scan_options_t *options, uci_check_list_t *list,
                    uci_check_work_t *work)
{
    size_t i;

    for (i = 0; paths[i] != NULL; ++i) {
        if (!uci_check_walk(paths[i], options, list)) {
            return false;
        }
    }
    if (!uci_check_list_sort(list)) {
        uci_check_complain("some paths are given twice, or lie within others");
        return false;
    }
    uci_check_list_make_leaves(list);
    uci_check_read(list, options, work);
    uci_check_say_unreadable(list);
    return true;
}
