/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: what is in a folder or a manifest: a list of entries by name, with the digests of their contents.
 */
#ifndef UCI_CHECK_LIST_H_
#define UCI_CHECK_LIST_H_

#include <sys/types.h>
#include <time.h>

#include "check_complain.h"
#include "digest/digest.h"
#include "tree/merkle_exchange.h"

#define UCI_CHECK_CHUNK_SIZE_DEFAULT 65536
#define UCI_CHECK_CHUNK_SIZE_MIN     4096
#define UCI_CHECK_CHUNK_SIZE_MAX     (16 << 20)
#define UCI_CHECK_ARITY              16

/** Letters of the manifest, and of messages between hosts */
typedef enum {
    UCI_CHECK_FILE       = 'f',
    UCI_CHECK_LINK       = 'l', /**< symbolic: its target is its content */
    UCI_CHECK_FOLDER     = 'd',
    UCI_CHECK_OTHER      = 'o', /**< a pipe, socket or device: not opened */
    UCI_CHECK_UNREADABLE = 'e'
} uci_check_type_t;

/** How contents are digested: the same in lists that are compared. */
typedef struct uci_check_form {
    const uci_digest_ops_t *digest;
    size_t chunk_size;
    unsigned arity;
} uci_check_form_t;

typedef struct uci_check_entry {
    char *path; /**< to open it by */
    char *name; /**< in the list; lies in path, or is a constant */
    uci_check_type_t type;
    int error;        /**< UNREADABLE: errno, or UCI_CHECK_CHANGED */
    uint64_t length;  /**< of the content, in bytes */
    uint64_t root;    /**< of a file's tree; digest of a link's target */
    uint64_t *leaves; /**< digests of a file's chunks, in the list's memory; NULL: not known */
    dev_t dev;        /**< what was found, so that it is known when that changes */
    ino_t ino;
    struct timespec mtime, ctime;
} uci_check_entry_t;

typedef struct uci_check_list {
    uci_check_form_t form;
    uci_check_entry_t *entries; /**< by name, once sorted */
    size_t count;
    size_t room;
    uint64_t *leaves; /**< of all entries */
    bool borrows;     /**< paths and leaves are another list's */
} uci_check_list_t;

#define UCI_CHECK_CHANGED (-1) /**< in place of an errno: it changed while it was read */

/** What manifests and messages are sealed with. */
UCI_INLINE uint64_t uci_check_hash(const void *data, size_t length)
{
    return uci_digest_table[UCI_DIGEST_XXH3].digest(data, length);
}

void uci_check_list_init(uci_check_list_t *list, const uci_check_form_t *form);
void uci_check_list_cleanup(uci_check_list_t *list);

/** Add an entry, all 0. */
uci_check_entry_t *uci_check_list_add(uci_check_list_t *list);

/** Sort by name. @return false if two have the same name. */
bool uci_check_list_sort(uci_check_list_t *list);

/** @return entries of that type. */
size_t uci_check_list_count(const uci_check_list_t *list, uci_check_type_t type);

/** Give the files of @a list memory for their leaves. */
void uci_check_list_make_leaves(uci_check_list_t *list);

/** @return chunks of a file, 0 for all else. */
size_t uci_check_chunks(const uci_check_form_t *form, const uci_check_entry_t *entry);

/** @return a tree. */
uci_merkle_t *uci_check_make_tree(size_t leaves, unsigned arity);

/** Make the tree of a file whose leaves are known. */
void uci_check_make_side(const uci_check_form_t *form, const uci_check_entry_t *entry, uci_merkle_side_t *side);

/** @return why an entry could not be read. */
const char *uci_check_why(const uci_check_entry_t *entry);

/** @return @a name on one line of UTF-8, to be freed: backslash, control characters and what is not UTF-8 as \\, \n and \xHH. */
char *uci_check_escape(const char *name);

/** Undo uci_check_escape() in place. @return false if it is not what that writes. */
bool uci_check_unescape(char *text);

#endif
