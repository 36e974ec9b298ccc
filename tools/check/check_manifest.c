/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_manifest.h"
#include "util/file.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UCI_CHECK_VERSION_LINE "uci_check 1"
#define UCI_CHECK_LEAVES_MAGIC 0x314641454c494355ull /* "UCILEAF1" */

enum { UCI_CHECK_LEAVES_WORD_MAGIC, UCI_CHECK_LEAVES_WORD_COUNT, UCI_CHECK_LEAVES_WORD_DIGEST, UCI_CHECK_LEAVES_WORDS };

char *uci_check_leaves_name(const char *file)
{
    char *name;

    if (asprintf(&name, "%s.leaves", file) < 0) {
        errx(2, "out of memory");
    }
    return name;
}

static void uci_check_print_name(FILE *stream, const char *format, const char *name)
{
    char *text = uci_check_escape(name);

    fprintf(stream, format, text);
    free(text);
}

static void uci_check_print_list(FILE *stream, const uci_check_list_t *list, char *const *paths)
{
    const uci_check_entry_t *entry;
    size_t i;

    fprintf(stream, UCI_CHECK_VERSION_LINE "\ndigest %s\nchunk-size %zu\narity %u\n", list->form.digest->name,
            list->form.chunk_size, list->form.arity);
    for (i = 0; paths[i] != NULL; ++i) {
        uci_check_print_name(stream, "path %s\n", paths[i]);
    }
    for (i = 0; i < list->count; ++i) {
        entry = &list->entries[i];
        fprintf(stream, "%c %016" PRIx64 " %" PRIu64, entry->type, entry->root, entry->length);
        uci_check_print_name(stream, " %s\n", entry->name);
    }
}

typedef struct uci_check_bytes {
    const void *data;
    size_t length;
    const void *more;
    size_t more_length;
} uci_check_bytes_t;

static void uci_check_write_bytes(FILE *stream, const void *arg)
{
    const uci_check_bytes_t *bytes = arg;

    fwrite(bytes->data, 1, bytes->length, stream);
    fwrite(bytes->more, 1, bytes->more_length, stream);
}

static bool uci_check_write_file(const char *file, const uci_check_bytes_t *bytes)
{
    if (file == NULL) {
        uci_check_write_bytes(stdout, bytes);
        return true; /* the end of the program looks at stdout */
    }
    if (uci_file_replace(file, uci_check_write_bytes, bytes) != UCI_OK) {
        uci_check_complain("failed to write %s: %s", file, uci_file_error(errno));
        return false;
    }
    return true;
}

static size_t uci_check_known_leaves(const uci_check_list_t *list, uint64_t *leaves)
{
    size_t count = 0, chunks, i;

    for (i = 0; i < list->count; ++i) {
        chunks = (list->entries[i].leaves == NULL) ? 0 : uci_check_chunks(&list->form, &list->entries[i]);
        if (chunks > 0) {
            memmove(leaves + count, list->entries[i].leaves, chunks * sizeof(*leaves));
            count += chunks;
        }
    }
    return count;
}

/* Leaves of what could not be read are left out: the others move up */
static bool uci_check_write_leaves(const uci_check_list_t *list, const char *file, uint64_t digest)
{
    size_t count            = uci_check_known_leaves(list, list->leaves);
    uint64_t words[]        = {UCI_CHECK_LEAVES_MAGIC, count, digest};
    uci_check_bytes_t bytes = {words, sizeof(words), list->leaves, count * sizeof(*list->leaves)};
    char *name              = uci_check_leaves_name(file);
    bool is_good            = uci_check_write_file(name, &bytes);

    free(name);
    return is_good;
}

bool uci_check_manifest_write(const uci_check_list_t *list, char *const *paths, const char *file, bool leaves,
                              uint64_t *digest_p)
{
    char *text = NULL, end[64];
    size_t length;
    uci_check_bytes_t bytes;
    FILE *stream = uci_check_memory(open_memstream(&text, &length));
    bool is_good;

    uci_check_print_list(stream, list, paths);
    if (fclose(stream) != 0) {
        errx(2, "out of memory for the manifest");
    }
    *digest_p = uci_check_hash(text, length);
    bytes     = (uci_check_bytes_t){text, length, end,
                                    (size_t)snprintf(end, sizeof(end), "end %zu %016" PRIx64 "\n", list->count, *digest_p)};
    is_good   = uci_check_write_file(file, &bytes) && (!leaves || uci_check_write_leaves(list, file, *digest_p));
    free(text);
    return is_good;
}

/*
 * Parsing: nothing of it is believed
 */

/* @return what follows @a key and a blank in @a line, or NULL. */
static char *uci_check_value_of(char *line, const char *key)
{
    size_t length = strlen(key);

    return ((strncmp(line, key, length) == 0) && (line[length] == ' ')) ? line + length + 1 : NULL;
}

/* A number of @a base without sign or blanks, then @a end. @return what follows that, or NULL. */
static char *uci_check_number(char *text, int base, char end, uint64_t *value_p)
{
    char *rest;

    if (strspn(text, (base == 16) ? "0123456789abcdef" : "0123456789") == 0) {
        return NULL;
    }
    errno    = 0;
    *value_p = strtoull(text, &rest, base);
    if ((errno != 0) || (*rest != end)) {
        return NULL;
    }
    return (end == '\0') ? rest : rest + 1;
}

static const char *uci_check_parse_form(uci_check_form_t *form, char *line)
{
    uint64_t number;
    char *value;

    if ((value = uci_check_value_of(line, "digest")) != NULL) {
        form->digest = uci_digest_find(value);
        return ((form->digest == NULL) || (form->digest->id == UCI_DIGEST_NONE)) ? "its digest is not known here"
                                                                                 : NULL;
    }
    if ((value = uci_check_value_of(line, "chunk-size")) != NULL) {
        if ((uci_check_number(value, 10, '\0', &number) == NULL) || (number < UCI_CHECK_CHUNK_SIZE_MIN) ||
            (number > UCI_CHECK_CHUNK_SIZE_MAX)) {
            return "its chunk-size is wrong";
        }
        form->chunk_size = number;
        return NULL;
    }
    if (((value = uci_check_value_of(line, "arity")) != NULL) && (uci_check_number(value, 10, '\0', &number) != NULL) &&
        (number >= UCI_MERKLE_ARITY_MIN) && (number <= UCI_MERKLE_ARITY_MAX)) {
        form->arity = (unsigned)number;
        return NULL;
    }
    return "a line of it is not known";
}

static const char *uci_check_parse_path(uci_check_manifest_t *manifest, char *path)
{
    manifest->paths = uci_check_memory(
            realloc(manifest->paths, (manifest->paths_count + 2) * sizeof(*manifest->paths)));
    manifest->paths[manifest->paths_count++] = path;
    manifest->paths[manifest->paths_count]   = NULL;
    return ((*path != '\0') && uci_check_unescape(path)) ? NULL : "a path of it is not written as it should be";
}

static const char *uci_check_parse_entry(uci_check_list_t *list, char *line)
{
    const uci_check_form_t *form = &list->form;
    uci_check_entry_t *entry;
    uint64_t root, length;
    char *rest;

    if ((form->digest == NULL) || (form->chunk_size == 0) || (form->arity == 0)) {
        return "it does not begin with digest, chunk-size and arity";
    }
    rest = (line[1] != ' ') ? NULL : uci_check_number(line + 2, 16, ' ', &root);
    rest = (rest == NULL) ? NULL : uci_check_number(rest, 10, ' ', &length);
    if ((rest == NULL) || (length > UCI_MERKLE_LENGTH_MAX) || (*rest == '\0') || !uci_check_unescape(rest)) {
        return "an entry of it is not written as it should be";
    }
    if ((list->count > 0) && (strcmp(list->entries[list->count - 1].name, rest) >= 0)) {
        return "its entries are not in order";
    }
    entry         = uci_check_list_add(list);
    entry->type   = (uci_check_type_t)line[0];
    entry->root   = root;
    entry->length = length;
    entry->path   = rest;
    entry->name   = rest;
    return NULL;
}

static const char *uci_check_parse_line(uci_check_manifest_t *manifest, char *line)
{
    char *path = uci_check_value_of(line, "path");

    if (path != NULL) {
        return uci_check_parse_path(manifest, path);
    }
    if ((line[0] != '\0') && (strchr("fldoe", line[0]) != NULL) && (line[1] == ' ')) {
        return uci_check_parse_entry(&manifest->list, line);
    }
    return (manifest->list.count > 0) ? "a line of it is not known" : uci_check_parse_form(&manifest->list.form, line);
}

/* @return the last line, if it is what ends a manifest. */
static char *uci_check_find_end(char *text, size_t length)
{
    char *end;

    if ((length == 0) || (text[length - 1] != '\n') || (strlen(text) != length)) {
        return NULL;
    }
    text[length - 1] = '\0';
    end              = strrchr(text, '\n');
    return ((end == NULL) || (uci_check_value_of(end + 1, "end") == NULL)) ? NULL : end + 1;
}

const char *uci_check_manifest_parse(char *text, size_t length, uci_check_manifest_t *manifest)
{
    static const uci_check_form_t unknown = {0};
    const char *wrong                     = NULL;
    uint64_t entries, digest;
    char *line, *next, *end;

    memset(manifest, 0, sizeof(*manifest));
    uci_check_list_init(&manifest->list, &unknown);
    manifest->list.borrows = true; /* names lie in text */
    manifest->text         = text;
    if (strncmp(text, UCI_CHECK_VERSION_LINE "\n", strlen(UCI_CHECK_VERSION_LINE) + 1) != 0) {
        return "it is not a manifest of uci_check, or of another version of it";
    }
    end = uci_check_find_end(text, length);
    if ((end == NULL) || ((next = uci_check_number(end + 4, 10, ' ', &entries)) == NULL) ||
        (uci_check_number(next, 16, '\0', &digest) == NULL)) {
        return "its end is missing";
    }
    manifest->digest = uci_check_hash(text, (size_t)(end - text));
    if (digest != manifest->digest) {
        return "it is damaged: its digest is not the one it ends with";
    }
    for (line = strchr(text, '\n') + 1; (wrong == NULL) && (line < end); line = next + 1) {
        next  = strchr(line, '\n');
        *next = '\0';
        wrong = uci_check_parse_line(manifest, line);
    }
    if ((wrong == NULL) && ((entries != manifest->list.count) || (manifest->paths_count == 0))) {
        wrong = "it does not have the paths or entries it should";
    }
    return wrong;
}

/* A file whose root is not that of its leaves has none. @return whether it is. */
static bool uci_check_prove_leaves(uci_check_list_t *list, uci_check_entry_t *entry)
{
    uci_merkle_side_t side;

    uci_check_make_side(&list->form, entry, &side);
    if (uci_merkle_side_root(&side) != entry->root) {
        entry->leaves = NULL;
    }
    uci_merkle_destroy(side.tree);
    return entry->leaves != NULL;
}

const char *uci_check_manifest_take_leaves(uci_check_manifest_t *manifest, const uint64_t *words, size_t count)
{
    uci_check_list_t *list = &manifest->list;
    uint64_t total         = 0;
    bool is_damaged        = false;
    size_t i;

    for (i = 0; (i < list->count) && (total < count); ++i) {
        total += uci_check_chunks(&list->form, &list->entries[i]);
    }
    if ((count < UCI_CHECK_LEAVES_WORDS) || (words[UCI_CHECK_LEAVES_WORD_MAGIC] != UCI_CHECK_LEAVES_MAGIC) ||
        (words[UCI_CHECK_LEAVES_WORD_COUNT] != count - UCI_CHECK_LEAVES_WORDS) || (i < list->count) ||
        (total != count - UCI_CHECK_LEAVES_WORDS)) {
        return "it is not a file of leaves, or cut short";
    }
    if (words[UCI_CHECK_LEAVES_WORD_DIGEST] != manifest->digest) {
        return "it is of another manifest";
    }
    uci_check_list_make_leaves(list);
    memcpy(list->leaves, words + UCI_CHECK_LEAVES_WORDS, total * sizeof(*words));
    for (i = 0; i < list->count; ++i) {
        is_damaged |= (list->entries[i].type == UCI_CHECK_FILE) && !uci_check_prove_leaves(list, &list->entries[i]);
    }
    return is_damaged ? "it is damaged: leaves do not make the root that the manifest has" : NULL;
}

/* As large as it is now: uci_file_read() takes memory for the largest it would read */
static uci_status_t uci_check_read_file(const char *name, char **bytes_p, size_t *length_p)
{
    struct stat st;

    return uci_file_read(name, (stat(name, &st) == 0) ? (size_t)st.st_size : 0, bytes_p, length_p);
}

/* Without leaves it is not known which bytes of a file have changed, only that they have */
static void uci_check_read_leaves(const char *file, uci_check_manifest_t *manifest)
{
    char *name = uci_check_leaves_name(file), *bytes;
    const char *wrong;
    size_t length;
    uci_status_t status = uci_check_read_file(name, &bytes, &length);

    if (status == UCI_OK) {
        wrong = uci_check_manifest_take_leaves(manifest, (const uint64_t *)(void *)bytes, length / sizeof(uint64_t));
        free(bytes);
    } else {
        wrong = (status == UCI_ERR_NO_ELEM) ? NULL : uci_file_error(errno);
    }
    if (wrong != NULL) {
        uci_check_complain("%s is not used: %s", name, wrong);
    }
    free(name);
}

bool uci_check_manifest_read(const char *file, uci_check_manifest_t *manifest)
{
    const char *wrong;
    uci_status_t status;
    size_t length;
    char *text;

    memset(manifest, 0, sizeof(*manifest));
    status = uci_check_read_file(file, &text, &length);
    if (status != UCI_OK) {
        uci_check_complain("failed to read %s: %s", file,
                           (status == UCI_ERR_NO_ELEM) ? "there is no such file"
                           : (status == UCI_ERR_IO)    ? uci_file_error(errno)
                                                       : uci_status_string(status));
        return false;
    }
    wrong = uci_check_manifest_parse(text, length, manifest);
    if (wrong != NULL) {
        uci_check_complain("%s can't be used: %s", file, wrong);
        uci_check_manifest_cleanup(manifest);
        return false;
    }
    uci_check_read_leaves(file, manifest);
    return true;
}

void uci_check_manifest_cleanup(uci_check_manifest_t *manifest)
{
    free(manifest->list.leaves);
    uci_check_list_cleanup(&manifest->list);
    free(manifest->paths);
    free(manifest->text);
    memset(manifest, 0, sizeof(*manifest));
}
