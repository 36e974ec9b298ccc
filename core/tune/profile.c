/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile.h"
#include "util/file.h"
#include "util/json_writer.h"
#include "util/log.h"
#include "util/machine.h"
#include "util/process.h"
#include "settings/settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UCI_PROFILE_FILE_MAX    ((size_t)4 << 20)
#define UCI_PROFILE_ENTRIES_MAX 4096 /* of kernels, and of paths: far more than uci_tune makes */
#define UCI_PROFILE_GROW        16

void uci_profile_machine_init(uci_profile_machine_t *machine, const char *ucx)
{
    memset(machine, 0, sizeof(*machine));
    snprintf(machine->cpu, sizeof(machine->cpu), "%s", uci_machine_cpu());
    snprintf(machine->ucx, sizeof(machine->ucx), "%s", (ucx != NULL) ? ucx : "");
    machine->cores = uci_machine_cores();
}

uint32_t uci_profile_machine_key(const uci_profile_machine_t *machine)
{
    char text[3 * UCI_PROFILE_NAME_MAX];

    snprintf(text, sizeof(text), "%s\n%u\n%s", machine->cpu, machine->cores, machine->ucx);
    return (uint32_t)XXH3_64bits(text, strlen(text));
}

void uci_profile_init(uci_profile_t *profile, const char *source, const char *ucx)
{
    time_t now = time(NULL);
    struct tm utc;

    memset(profile, 0, sizeof(*profile));
    uci_profile_machine_init(&profile->machine, ucx);
    snprintf(profile->source, sizeof(profile->source), "%s", source);
    snprintf(profile->host, sizeof(profile->host), "%s", uci_process_host());
    gmtime_r(&now, &utc);
    strftime(profile->created, sizeof(profile->created), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void uci_profile_cleanup(uci_profile_t *profile)
{
    free(profile->kernels);
    free(profile->paths);
    free(profile->registrations);
    profile->kernels       = NULL;
    profile->paths         = NULL;
    profile->registrations = NULL;
    profile->kernels_count = profile->paths_count = profile->registrations_count = 0;
}

/* Room for one more entry in an array of `count`; zeroed. @return the array, or NULL and the old one stays. */
static void *uci_profile_grow(void *entries, unsigned count, size_t size)
{
    void *grown = entries;

    if (count % UCI_PROFILE_GROW == 0) {
        grown = realloc(entries, (count + UCI_PROFILE_GROW) * size);
        if (grown == NULL) {
            uci_error("failed to allocate a profile of %u entries", count + UCI_PROFILE_GROW);
            return NULL;
        }
    }
    memset((char *)grown + count * size, 0, size);
    return grown;
}

static uci_profile_kernel_t *uci_profile_kernel(const uci_profile_t *profile, uci_digest_id_t digest,
                                                uci_digest_isa_t isa, uci_form_t form, bool cached)
{
    uci_profile_kernel_t *kernel;
    unsigned i;

    for (i = 0; i < profile->kernels_count; ++i) {
        kernel = &profile->kernels[i];
        if ((kernel->digest == digest) && (kernel->isa == isa) && (kernel->form == form) &&
            (kernel->cached == cached)) {
            return kernel;
        }
    }
    return NULL;
}

const uci_cost_t *uci_profile_find_kernel(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                                          uci_form_t form, bool cached)
{
    const uci_profile_kernel_t *kernel = uci_profile_kernel(profile, digest, isa, form, cached);

    return (kernel != NULL) ? &kernel->cost : NULL;
}

double uci_profile_kernel_ns(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                             uci_form_t form, uint64_t size)
{
    const uci_cost_t *cached   = uci_profile_find_kernel(profile, digest, isa, form, true);
    const uci_cost_t *uncached = uci_profile_find_kernel(profile, digest, isa, form, false);

    if ((cached == NULL) || (uncached == NULL)) {
        return (cached != NULL) ? uci_cost_at(cached, size) : (uncached != NULL) ? uci_cost_at(uncached, size) : 0;
    }
    return (uci_cost_at(cached, size) + uci_cost_at(uncached, size)) / 2;
}

uci_cost_t *uci_profile_add_kernel(uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                                   uci_form_t form, bool cached)
{
    uci_profile_kernel_t *kernel = uci_profile_kernel(profile, digest, isa, form, cached);

    if (kernel == NULL) {
        kernel = uci_profile_grow(profile->kernels, profile->kernels_count, sizeof(*kernel));
        if (kernel == NULL) {
            return NULL;
        }
        profile->kernels = kernel;
        kernel += profile->kernels_count++;
        kernel->digest = digest;
        kernel->isa    = isa;
        kernel->form   = form;
        kernel->cached = cached;
    }
    return &kernel->cost;
}

uci_cost_t *uci_profile_add_path(uci_profile_t *profile, const char *transports, uci_path_t path, uint64_t chunk)
{
    uci_profile_path_t *entry;
    unsigned i;

    for (i = 0; i < profile->paths_count; ++i) {
        entry = &profile->paths[i];
        if ((entry->path == path) && (entry->chunk == chunk) &&
            (strncmp(entry->transports, transports, sizeof(entry->transports) - 1) == 0)) {
            return &entry->cost;
        }
    }

    entry = uci_profile_grow(profile->paths, profile->paths_count, sizeof(*entry));
    if (entry == NULL) {
        return NULL;
    }
    profile->paths = entry;
    entry += profile->paths_count++;
    snprintf(entry->transports, sizeof(entry->transports), "%s", transports);
    entry->path  = path;
    entry->chunk = chunk;
    return &entry->cost;
}

const uci_cost_t *uci_profile_find_registration(const uci_profile_t *profile, const char *transports)
{
    const uci_profile_registration_t *entry;
    unsigned i;

    for (i = 0; i < profile->registrations_count; ++i) {
        entry = &profile->registrations[i];
        if (strncmp(entry->transports, transports, sizeof(entry->transports) - 1) == 0) {
            return &entry->cost;
        }
    }
    return NULL;
}

uci_cost_t *uci_profile_add_registration(uci_profile_t *profile, const char *transports)
{
    const uci_cost_t *cost = uci_profile_find_registration(profile, transports);
    uci_profile_registration_t *entry;

    if (cost != NULL) {
        return (uci_cost_t *)cost;
    }
    entry = uci_profile_grow(profile->registrations, profile->registrations_count, sizeof(*entry));
    if (entry == NULL) {
        return NULL;
    }
    profile->registrations = entry;
    entry += profile->registrations_count++;
    snprintf(entry->transports, sizeof(entry->transports), "%s", transports);
    return &entry->cost;
}

static bool uci_profile_knows_transports(const uci_profile_t *profile, unsigned count, const char *transports)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (strcmp(profile->paths[i].transports, transports) == 0) {
            return true;
        }
    }
    return false;
}

/* @param cost  of an entry that was added; NULL: there was no memory */
static bool uci_profile_merge_cost(uci_cost_t *cost, const uci_cost_t *from)
{
    if (cost != NULL) {
        *cost = *from;
    }
    return cost != NULL;
}

static bool uci_profile_merge_kernels(uci_profile_t *profile, const uci_profile_t *from)
{
    bool ok = true, is_empty = profile->kernels_count == 0;
    const uci_profile_kernel_t *kernel;

    for (kernel = from->kernels; ok && is_empty && (kernel < from->kernels + from->kernels_count); ++kernel) {
        ok = uci_profile_merge_cost(
                uci_profile_add_kernel(profile, kernel->digest, kernel->isa, kernel->form, kernel->cached),
                &kernel->cost);
    }
    return ok;
}

static bool uci_profile_merge_paths(uci_profile_t *profile, const uci_profile_t *from)
{
    unsigned own = profile->paths_count;
    const uci_profile_path_t *path;
    bool ok = true;

    for (path = from->paths; ok && (path < from->paths + from->paths_count); ++path) {
        ok = uci_profile_knows_transports(profile, own, path->transports) ||
             uci_profile_merge_cost(uci_profile_add_path(profile, path->transports, path->path, path->chunk),
                                    &path->cost);
    }
    return ok;
}

static bool uci_profile_merge_registrations(uci_profile_t *profile, const uci_profile_t *from)
{
    const uci_profile_registration_t *entry;
    bool ok = true;

    for (entry = from->registrations; ok && (entry < from->registrations + from->registrations_count); ++entry) {
        ok = (uci_profile_find_registration(profile, entry->transports) != NULL) ||
             uci_profile_merge_cost(uci_profile_add_registration(profile, entry->transports), &entry->cost);
    }
    return ok;
}

uci_status_t uci_profile_merge(uci_profile_t *profile, const uci_profile_t *from)
{
    return (uci_profile_merge_kernels(profile, from) && uci_profile_merge_paths(profile, from) &&
            uci_profile_merge_registrations(profile, from))
                   ? UCI_OK
                   : UCI_ERR_NO_MEMORY;
}

bool uci_profile_fits(const uci_profile_t *profile, const uci_profile_machine_t *machine, char *reason, size_t size)
{
    const uci_profile_machine_t *other = &profile->machine;

    if (strcmp(other->cpu, machine->cpu) != 0) {
        snprintf(reason, size, "it is of cpu '%s', this is '%s'", other->cpu, machine->cpu);
        return false;
    }
    if (other->cores != machine->cores) {
        snprintf(reason, size, "it is of %u cores, here are %u", other->cores, machine->cores);
        return false;
    }
    if (strcmp(other->ucx, machine->ucx) != 0) {
        snprintf(reason, size, "it is of UCX '%s', this is UCX '%s'", other->ucx, machine->ucx);
        return false;
    }
    return true;
}

static void uci_profile_write_string(FILE *stream, const char *name, const char *text)
{
    fprintf(stream, "\"%s\": ", name);
    uci_json_write_string(stream, text);
}

static void uci_profile_write_cost(FILE *stream, const uci_cost_t *cost)
{
    unsigned i;

    fprintf(stream, "\"ns\": [");
    for (i = 0; i < cost->count; ++i) {
        fprintf(stream, "%s[%lu, ", (i > 0) ? ", " : "", cost->points[i].size);
        uci_json_write_double(stream, uci_max(cost->points[i].ns, 0.1), 1);
        fputc(']', stream);
    }
    fprintf(stream, "]}");
}

static void uci_profile_write_kernel(FILE *stream, const uci_profile_kernel_t *kernel)
{
    fprintf(stream, "    {\"digest\": \"%s\", \"isa\": \"%s\", \"form\": \"%s\", \"cached\": %s, ",
            uci_digest_by_id(kernel->digest)->name, uci_digest_isa_names[kernel->isa], uci_form_names[kernel->form],
            kernel->cached ? "true" : "false");
    uci_profile_write_cost(stream, &kernel->cost);
}

static void uci_profile_write_path(FILE *stream, const uci_profile_path_t *path)
{
    fprintf(stream, "    {");
    uci_profile_write_string(stream, "transports", path->transports);
    fprintf(stream, ", \"path\": \"%s\", \"chunk\": %lu, ", uci_path_names[path->path], path->chunk);
    uci_profile_write_cost(stream, &path->cost);
}

static void uci_profile_write_registration(FILE *stream, const uci_profile_registration_t *registration)
{
    fprintf(stream, "    {");
    uci_profile_write_string(stream, "transports", registration->transports);
    fprintf(stream, ", ");
    uci_profile_write_cost(stream, &registration->cost);
}

void uci_profile_write(const uci_profile_t *profile, FILE *stream)
{
    unsigned i;

    fprintf(stream, "{\n  \"uci_profile\": %d,\n  ", UCI_PROFILE_VERSION);
    uci_profile_write_string(stream, "source", profile->source);
    fprintf(stream, ",\n  ");
    uci_profile_write_string(stream, "created", profile->created);
    fprintf(stream, ",\n  ");
    uci_profile_write_string(stream, "host", profile->host);
    fprintf(stream, ",\n  \"machine\": {");
    uci_profile_write_string(stream, "cpu", profile->machine.cpu);
    fprintf(stream, ", \"cores\": %u, ", profile->machine.cores);
    uci_profile_write_string(stream, "ucx", profile->machine.ucx);
    fprintf(stream, "},\n  \"kernels\": [");
    for (i = 0; i < profile->kernels_count; ++i) {
        fprintf(stream, "%s\n", (i > 0) ? "," : "");
        uci_profile_write_kernel(stream, &profile->kernels[i]);
    }
    fprintf(stream, "],\n  \"paths\": [");
    for (i = 0; i < profile->paths_count; ++i) {
        fprintf(stream, "%s\n", (i > 0) ? "," : "");
        uci_profile_write_path(stream, &profile->paths[i]);
    }
    fprintf(stream, "],\n  \"registrations\": [");
    for (i = 0; i < profile->registrations_count; ++i) {
        fprintf(stream, "%s\n", (i > 0) ? "," : "");
        uci_profile_write_registration(stream, &profile->registrations[i]);
    }
    fprintf(stream, "]\n}\n");
}

static void uci_profile_write_file(FILE *stream, const void *arg)
{
    uci_profile_write(arg, stream);
}

uci_status_t uci_profile_try_save(const uci_profile_t *profile, const char *path)
{
    return (uci_file_make_folder(path) == UCI_OK) ? uci_file_replace(path, uci_profile_write_file, profile)
                                                  : UCI_ERR_IO;
}

uci_status_t uci_profile_save(const uci_profile_t *profile, const char *path)
{
    uci_status_t status = uci_profile_try_save(profile, path);

    if (status != UCI_OK) {
        uci_error("cannot write the profile %s: %s", path, uci_file_error(errno));
    }
    return status;
}

/* Jansson is opened when a profile is first read: the library that holds this code is preloaded into processes that
 * never read one. */
static struct {
    __typeof__(json_loadb) *loadb;
    __typeof__(json_delete) *delete;
    __typeof__(json_object_get) *object_get;
    __typeof__(json_array_size) *array_size;
    __typeof__(json_array_get) *array_get;
    __typeof__(json_string_value) *string_value;
    __typeof__(json_integer_value) *integer_value;
    __typeof__(json_number_value) *number_value;
} uci_jansson;

static bool uci_jansson_is_loaded;

static void uci_jansson_load(void)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {{"json_loadb", &uci_jansson.loadb},
                     {"json_delete", &uci_jansson.delete},
                     {"json_object_get", &uci_jansson.object_get},
                     {"json_array_size", &uci_jansson.array_size},
                     {"json_array_get", &uci_jansson.array_get},
                     {"json_string_value", &uci_jansson.string_value},
                     {"json_integer_value", &uci_jansson.integer_value},
                     {"json_number_value", &uci_jansson.number_value}};
    void *jansson = dlopen("libjansson.so.4", RTLD_NOW | RTLD_LOCAL);
    void *symbol;
    size_t i;

    for (i = 0; (i < uci_array_size(functions)) && (jansson != NULL); ++i) {
        symbol = dlsym(jansson, functions[i].name);
        if (symbol == NULL) {
            return;
        }
        memcpy(functions[i].function, &symbol, sizeof(symbol));
    }
    uci_jansson_is_loaded = (jansson != NULL);
}

/* What is read, and what is wrong with it: the first complaint is the one that counts */
typedef struct uci_profile_reader {
    uci_profile_t *profile;
    const char *name;
    uci_status_t status;
} uci_profile_reader_t;

static void __attribute__((format(printf, 3, 4)))
uci_profile_complain(uci_profile_reader_t *reader, uci_status_t status, const char *format, ...)
{
    char text[256];
    va_list args;

    if (reader->status != UCI_OK) {
        return;
    }
    reader->status = status;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    uci_warn("the profile %s is not used: %s (make a new one with uci_tune)", reader->name, text);
}

/* @return the text of a member, "" after complaining that there is none */
static const char *uci_profile_read_string(uci_profile_reader_t *reader, const json_t *object, const char *where,
                                           const char *name)
{
    const json_t *value = uci_jansson.object_get(object, name);
    const char *text    = json_is_string(value) ? uci_jansson.string_value(value) : NULL;

    if ((text == NULL) || (strlen(text) >= UCI_PROFILE_NAME_MAX)) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"%s\" is not a text of up to %d characters", where, name,
                             UCI_PROFILE_NAME_MAX - 1);
        return "";
    }
    return text;
}

static uint64_t uci_profile_read_number(uci_profile_reader_t *reader, const json_t *object, const char *where,
                                        const char *name, uint64_t max)
{
    const json_t *value = uci_jansson.object_get(object, name);
    json_int_t number   = json_is_integer(value) ? uci_jansson.integer_value(value) : -1;

    if ((number < 0) || ((uint64_t)number > max)) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"%s\" is not a whole number of 0 to %lu", where, name, max);
        return 0;
    }
    return (uint64_t)number;
}

/* @return index of a member's text in `names`, -1 if it is unknown or there was a complaint */
static int uci_profile_read_name(uci_profile_reader_t *reader, const json_t *object, const char *where,
                                 const char *name, const char *const *names)
{
    const char *text = uci_profile_read_string(reader, object, where, name);
    int i;

    for (i = 0; names[i] != NULL; ++i) {
        if (strcmp(names[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

static void uci_profile_read_cost(uci_profile_reader_t *reader, const json_t *object, const char *where,
                                  uci_cost_t *cost)
{
    const json_t *points = uci_jansson.object_get(object, "ns"), *point, *size;
    size_t count         = json_is_array(points) ? uci_jansson.array_size(points) : 0;
    uint64_t last        = 0;
    size_t i;

    memset(cost, 0, sizeof(*cost));
    if ((count == 0) || (count > UCI_COST_POINTS_MAX)) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"ns\" is not a list of 1 to %d points", where,
                             UCI_COST_POINTS_MAX);
        return;
    }
    for (i = 0; i < count; ++i) {
        point = uci_jansson.array_get(points, i);
        size  = (json_is_array(point) && (uci_jansson.array_size(point) == 2)) ? uci_jansson.array_get(point, 0) : NULL;
        if (!json_is_integer(size) || (uci_jansson.integer_value(size) < 0) ||
            ((i > 0) && ((uint64_t)uci_jansson.integer_value(size) <= last)) ||
            (uci_cost_add(cost, (uint64_t)uci_jansson.integer_value(size),
                          uci_jansson.number_value(uci_jansson.array_get(point, 1))) != UCI_OK)) {
            uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"ns\"[%zu] is not [size, nanoseconds], ascending", where,
                                 i);
            return;
        }
        last = (uint64_t)uci_jansson.integer_value(size);
    }
}

static void uci_profile_read_kernel(uci_profile_reader_t *reader, const json_t *object, const char *where)
{
    const json_t *cached           = uci_jansson.object_get(object, "cached");
    const uci_digest_ops_t *digest = uci_digest_find(uci_profile_read_string(reader, object, where, "digest"));
    int isa                        = uci_profile_read_name(reader, object, where, "isa", uci_digest_isa_names);
    int form                       = uci_profile_read_name(reader, object, where, "form", uci_form_names);
    uci_cost_t cost, *entry;

    uci_profile_read_cost(reader, object, where, &cost);
    if (!json_is_boolean(cached)) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"cached\" is not true or false", where);
    }
    if ((reader->status != UCI_OK) || (digest == NULL) || (isa < 0) || (form < 0)) {
        return;
    }
    entry = uci_profile_add_kernel(reader->profile, digest->id, (uci_digest_isa_t)isa, (uci_form_t)form,
                                   json_is_true(cached));
    if (entry == NULL) {
        reader->status = UCI_ERR_NO_MEMORY;
        return;
    }
    *entry = cost;
}

static void uci_profile_read_path(uci_profile_reader_t *reader, const json_t *object, const char *where)
{
    const char *transports = uci_profile_read_string(reader, object, where, "transports");
    int path               = uci_profile_read_name(reader, object, where, "path", uci_path_names);
    uint64_t chunk         = uci_profile_read_number(reader, object, where, "chunk", UCI_CHUNK_SIZE_MAX);
    uci_cost_t cost, *entry;

    uci_profile_read_cost(reader, object, where, &cost);
    path = (path == UCI_PATH_AUTO) ? -1 : path;
    if ((path >= 0) && ((path == UCI_PATH_EAGER) ? (chunk != 0) : (chunk < UCI_CHUNK_SIZE_MIN))) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "%s\"chunk\" is not 0 for 'eager', %u or more for others", where,
                             UCI_CHUNK_SIZE_MIN);
    }
    if ((reader->status != UCI_OK) || (path < 0)) {
        return;
    }
    entry = uci_profile_add_path(reader->profile, transports, (uci_path_t)path, chunk);
    if (entry == NULL) {
        reader->status = UCI_ERR_NO_MEMORY;
        return;
    }
    *entry = cost;
}

static void uci_profile_read_registration(uci_profile_reader_t *reader, const json_t *object, const char *where)
{
    const char *transports = uci_profile_read_string(reader, object, where, "transports");
    uci_cost_t cost, *entry;

    uci_profile_read_cost(reader, object, where, &cost);
    if (reader->status != UCI_OK) {
        return;
    }
    entry = uci_profile_add_registration(reader->profile, transports);
    if (entry == NULL) {
        reader->status = UCI_ERR_NO_MEMORY;
        return;
    }
    *entry = cost;
}

static void uci_profile_read_list(uci_profile_reader_t *reader, const json_t *root, const char *name,
                                  void (*read)(uci_profile_reader_t *, const json_t *, const char *))
{
    const json_t *list = uci_jansson.object_get(root, name), *object;
    size_t count       = uci_jansson.array_size(list);
    char where[64];
    size_t i;

    if (!json_is_array(list) || (count > UCI_PROFILE_ENTRIES_MAX)) {
        uci_profile_complain(reader, UCI_ERR_CORRUPT, "\"%s\" is not a list of up to %d entries", name,
                             UCI_PROFILE_ENTRIES_MAX);
        return;
    }
    for (i = 0; (i < count) && (reader->status == UCI_OK); ++i) {
        object = uci_jansson.array_get(list, i);
        snprintf(where, sizeof(where), "%s[%zu].", name, i);
        read(reader, object, where);
    }
}

static void uci_profile_read(uci_profile_reader_t *reader, const json_t *root)
{
    uci_profile_t *profile = reader->profile;
    const json_t *machine  = uci_jansson.object_get(root, "machine");
    uint64_t version       = uci_profile_read_number(reader, root, "", "uci_profile", UINT32_MAX);

    if ((reader->status == UCI_OK) && (version != UCI_PROFILE_VERSION)) {
        uci_profile_complain(reader, UCI_ERR_UNSUPPORTED, "it is of version %lu, this UCI reads version %d", version,
                             UCI_PROFILE_VERSION);
        return;
    }
    snprintf(profile->source, sizeof(profile->source), "%s", uci_profile_read_string(reader, root, "", "source"));
    snprintf(profile->created, sizeof(profile->created), "%s", uci_profile_read_string(reader, root, "", "created"));
    snprintf(profile->host, sizeof(profile->host), "%s", uci_profile_read_string(reader, root, "", "host"));
    snprintf(profile->machine.cpu, sizeof(profile->machine.cpu), "%s",
             uci_profile_read_string(reader, machine, "machine.", "cpu"));
    snprintf(profile->machine.ucx, sizeof(profile->machine.ucx), "%s",
             uci_profile_read_string(reader, machine, "machine.", "ucx"));
    profile->machine.cores = (unsigned)uci_profile_read_number(reader, machine, "machine.", "cores", UINT32_MAX);
    uci_profile_read_list(reader, root, "kernels", uci_profile_read_kernel);
    uci_profile_read_list(reader, root, "paths", uci_profile_read_path);
    if (uci_jansson.object_get(root, "registrations") != NULL) { /* came later */
        uci_profile_read_list(reader, root, "registrations", uci_profile_read_registration);
    }
}

uci_status_t uci_profile_parse(const char *text, size_t length, const char *name, uci_profile_t *profile_p)
{
    static pthread_once_t once  = PTHREAD_ONCE_INIT;
    uci_profile_t profile       = {0};
    uci_profile_reader_t reader = {.profile = &profile, .name = name, .status = UCI_OK};
    json_error_t error;
    json_t *root;

    pthread_once(&once, uci_jansson_load);
    if (!uci_jansson_is_loaded) {
        uci_warn("the profile %s is not used: libjansson.so.4 is needed to read it (Debian: apt install libjansson4)",
                 name);
        return UCI_ERR_UNSUPPORTED;
    }

    root = uci_jansson.loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        uci_profile_complain(&reader, UCI_ERR_CORRUPT, "line %d: %s", error.line, error.text);
        return reader.status;
    }

    uci_profile_read(&reader, root);
    uci_jansson.delete(root);
    if (reader.status != UCI_OK) {
        uci_profile_cleanup(&profile);
        return reader.status;
    }
    *profile_p = profile;
    return UCI_OK;
}

uci_status_t uci_profile_load(const char *path, uci_profile_t *profile_p)
{
    uci_status_t status;
    size_t length;
    char *text;

    status = uci_file_read(path, UCI_PROFILE_FILE_MAX, &text, &length);
    if (status != UCI_OK) {
        if (status != UCI_ERR_NO_ELEM) {
            uci_warn("cannot read the profile %s: %s", path, uci_file_error(errno));
        }
        return status;
    }

    status = uci_profile_parse(text, length, path, profile_p);
    free(text);
    return status;
}
