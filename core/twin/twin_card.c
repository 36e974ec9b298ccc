/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_card.h"
#include "digest/digest.h"
#include "util/file.h"
#include "util/log.h"
#include "util/process.h"
#include "util/process_id.h"
#include "settings/settings.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCI_TWIN_CARD_FIRST_LINE "uci-twin 1\n"
#define UCI_TWIN_CARD_END        "end "
#define UCI_TWIN_CARD_END_LENGTH (sizeof(UCI_TWIN_CARD_END) - 1 + 16 + 1) /* "end <16 hex digits>\n" */

#define UCI_TWIN_PROGRAM_PIECE ((size_t)1 << 20) /* at the beginning and at the end of a program's file */
#define UCI_TWIN_ARGUMENTS_MAX ((size_t)8 << 20) /* more than Linux allows by default */

static uint64_t uci_twin_card_digest(const void *data, size_t length)
{
    uci_digest_init();
    return uci_digest_table[UCI_DIGEST_XXH3].digest(data, length);
}

/* Characters that would end a line, or that a terminal would obey, become '?' */
static void uci_twin_card_set_text(char *text, size_t size, const char *value)
{
    size_t i;

    for (i = 0; (i < size - 1) && (value[i] != '\0'); ++i) {
        text[i] = ((value[i] < ' ') || (value[i] > '~'))
                          ? '?'
                          : value[i]; /* a char may be signed: what is not ASCII is one or the other */
    }
    text[i] = '\0';
}

#define uci_twin_card_set(_text, _value) uci_twin_card_set_text(_text, sizeof(_text), _value)

/* A program that differs does so in its beginning, where its tables of sections and its build id are, if not in its size. */
static uint64_t uci_twin_card_identify(const char *path)
{
    FILE *stream  = uci_file_open(path);
    char *pieces  = malloc(sizeof(uint64_t) + (2 * UCI_TWIN_PROGRAM_PIECE));
    uint64_t id   = 0, size;
    size_t length = sizeof(size);
    struct stat info;

    if ((stream != NULL) && (pieces != NULL) && (fstat(fileno(stream), &info) == 0)) {
        size = (uint64_t)info.st_size;
        memcpy(pieces, &size, sizeof(size));
        length += fread(pieces + length, 1, UCI_TWIN_PROGRAM_PIECE, stream);
        if ((size > 2 * UCI_TWIN_PROGRAM_PIECE) && (fseeko(stream, -(off_t)UCI_TWIN_PROGRAM_PIECE, SEEK_END) != 0)) {
            length = sizeof(size);
        }
        length += fread(pieces + length, 1, UCI_TWIN_PROGRAM_PIECE, stream);
        id = ferror(stream) ? 0 : uci_twin_card_digest(pieces, length);
    }
    free(pieces);
    if (stream != NULL) {
        fclose(stream);
    }
    return id;
}

static void uci_twin_card_fill_program(uci_twin_card_t *card)
{
    static const char self[] = "/proc/self/exe";
    char path[PATH_MAX];
    ssize_t length = readlink(self, path, sizeof(path) - 1);

    path[(length > 0) ? length : 0] = '\0';
    uci_twin_card_set(card->program, path);
    card->program_id = uci_twin_card_identify(self);
}

static void uci_twin_card_fill_arguments(uci_twin_card_t *card)
{
    size_t length, skip, i;
    char *text;

    if (uci_file_read("/proc/self/cmdline", UCI_TWIN_ARGUMENTS_MAX, &text, &length) != UCI_OK) {
        return;
    }
    skip               = uci_min(strlen(text) + 1, length); /* the name of the program */
    card->arguments_id = uci_twin_card_digest(text + skip, length - skip);
    for (i = skip; i + 1 < length; ++i) {
        text[i] = (text[i] == '\0') ? ' ' : text[i];
    }
    uci_twin_card_set(card->arguments, text + skip);
    free(text);
}

uci_status_t uci_twin_card_fill(uci_twin_card_t *card)
{
    bool dead;

    memset(card, 0, sizeof(*card));
    if (uci_process_rank() < 0) {
        uci_error(
                "UCI_TWINS needs to know which rank this process is, and its launcher says nothing of it: start it with mpirun");
        return UCI_ERR_UNSUPPORTED;
    }
    uci_twin_card_set(card->version, UCI_VERSION " (" UCI_REVISION ")");
    uci_twin_card_set(card->host, uci_process_host());
    uci_twin_card_set(card->boot, uci_process_boot());
    uci_twin_card_set(card->job, (uci_process_job() != NULL) ? uci_process_job() : "");
    uci_twin_card_set(card->digest, uci_settings.digest->name);
    card->protocol  = UCI_TWIN_PROTOCOL;
    card->twin      = uci_settings.twins.twin;
    card->of        = uci_settings.twins.of;
    card->rank      = (unsigned)uci_process_rank();
    card->ranks     = uci_process_job_size();
    card->pid_space = uci_process_pid_space();
    card->pid       = getpid();
    card->start     = uci_process_start(card->pid, &dead);
    card->chunk     = uci_settings.chunk_size;
    card->mode      = uci_settings.twins_mode;
    uci_twin_card_fill_program(card);
    uci_twin_card_fill_arguments(card);
    return UCI_OK;
}

static const char *uci_twin_card_number(uint64_t number, char text[24])
{
    snprintf(text, 24, (number == UCI_SIZE_AUTO) ? "auto" : "%" PRIu64, number);
    return text;
}

/* The file may lie elsewhere in another container or on another host: its content tells, if it can be read */
static bool uci_twin_card_same_program(const uci_twin_card_t *ours, const uci_twin_card_t *theirs)
{
    return ((ours->program_id != 0) && (theirs->program_id != 0)) ? (ours->program_id == theirs->program_id)
                                                                  : (strcmp(ours->program, theirs->program) == 0);
}

bool uci_twin_card_differs(const uci_twin_card_t *ours, const uci_twin_card_t *theirs, char *text, size_t size)
{
    char ranks[2][24], ofs[2][24], chunks[2][24];
    const struct {
        bool is_same;
        const char *what, *our, *their;
    } rows[] = {
            {(ours->protocol == theirs->protocol) && (strcmp(ours->version, theirs->version) == 0),
             "they have different versions of UCI", ours->version, theirs->version},
            {uci_twin_card_same_program(ours, theirs),
             (strcmp(ours->program, theirs->program) == 0) ? "the file of the program has another content"
                                                           : "they run different programs",
             ours->program, theirs->program},
            {ours->arguments_id == theirs->arguments_id, "the program has different arguments", ours->arguments,
             theirs->arguments},
            {ours->ranks == theirs->ranks, "they have different numbers of ranks",
             uci_twin_card_number(ours->ranks, ranks[0]), uci_twin_card_number(theirs->ranks, ranks[1])},
            {ours->of == theirs->of, "UCI_TWINS says different numbers of twins",
             uci_twin_card_number(ours->of, ofs[0]), uci_twin_card_number(theirs->of, ofs[1])},
            {ours->mode == theirs->mode, "they have different settings of UCI_TWINS_MODE",
             uci_twins_mode_names[ours->mode], uci_twins_mode_names[theirs->mode]},
            {strcmp(ours->digest, theirs->digest) == 0, "they have different settings of UCI_DIGEST", ours->digest,
             theirs->digest},
            {ours->chunk == theirs->chunk, "they have different settings of UCI_CHUNK_SIZE",
             uci_twin_card_number(ours->chunk, chunks[0]), uci_twin_card_number(theirs->chunk, chunks[1])},
    };
    size_t i;

    for (i = 0; (i < uci_array_size(rows)) && rows[i].is_same; ++i) {
    }
    if (i == uci_array_size(rows)) {
        return false;
    }
    snprintf(text, size, "%s: %s in twin %u (%s:%d), %s in twin %u (%s:%d)", rows[i].what, rows[i].our, ours->twin,
             ours->host, (int)ours->pid, rows[i].their, theirs->twin, theirs->host, (int)theirs->pid);
    return true;
}

typedef enum {
    UCI_TWIN_FIELD_TEXT,
    UCI_TWIN_FIELD_UINT, /* unsigned, pid_t, or uci_twins_mode_t by its number */
    UCI_TWIN_FIELD_UINT64,
    UCI_TWIN_FIELD_HEX64,
    UCI_TWIN_FIELD_ADDRESS
} uci_twin_field_type_t;

typedef struct uci_twin_field {
    const char *key;
    uci_twin_field_type_t type;
    size_t offset;
    uint64_t min, max; /* of a number; max: bytes of a text */
} uci_twin_field_t;

#define UCI_TWIN_FIELD(_type, _member, _min, _max) \
    { \
#_member, UCI_TWIN_FIELD_##_type, offsetof(uci_twin_card_t, _member), _min, _max \
    }
#define UCI_TWIN_TEXT(_member) UCI_TWIN_FIELD(TEXT, _member, 0, sizeof(((uci_twin_card_t *)NULL)->_member))

static const uci_twin_field_t uci_twin_fields[] = {
        UCI_TWIN_TEXT(version),
        UCI_TWIN_FIELD(UINT, protocol, 0, UINT_MAX),
        UCI_TWIN_FIELD(UINT, twin, 0, UCI_TWINS_MAX - 1),
        UCI_TWIN_FIELD(UINT, of, UCI_TWINS_MIN, UCI_TWINS_MAX),
        UCI_TWIN_FIELD(UINT, rank, 0, UCI_TWIN_RANKS_MAX - 1),
        UCI_TWIN_FIELD(UINT, ranks, 0, UCI_TWIN_RANKS_MAX),
        UCI_TWIN_TEXT(host),
        UCI_TWIN_TEXT(boot),
        UCI_TWIN_FIELD(UINT64, pid_space, 0, UINT64_MAX),
        UCI_TWIN_FIELD(UINT, pid, 1, INT_MAX),
        UCI_TWIN_FIELD(UINT64, start, 0, UINT64_MAX),
        UCI_TWIN_TEXT(job),
        UCI_TWIN_TEXT(program),
        UCI_TWIN_FIELD(HEX64, program_id, 0, UINT64_MAX),
        UCI_TWIN_TEXT(arguments),
        UCI_TWIN_FIELD(HEX64, arguments_id, 0, UINT64_MAX),
        UCI_TWIN_TEXT(digest),
        UCI_TWIN_FIELD(UINT64, chunk, 0, UINT64_MAX),
        UCI_TWIN_FIELD(UINT, mode, 0, UCI_TWINS_CORRECT),
        UCI_TWIN_FIELD(ADDRESS, address, 0, UCI_TWIN_ADDRESS_MAX),
};

static void uci_twin_card_print_address(const uci_twin_card_t *card, FILE *stream)
{
    const uint8_t *bytes = card->address;
    size_t i;

    for (i = 0; i < card->address_length; ++i) {
        fprintf(stream, "%02x", bytes[i]);
    }
}

static void uci_twin_card_print_field(const uci_twin_card_t *card, const uci_twin_field_t *field, FILE *stream)
{
    const void *value = (const char *)card + field->offset;

    fprintf(stream, "%s ", field->key);
    switch (field->type) {
    case UCI_TWIN_FIELD_TEXT:
        fputs(value, stream);
        break;
    case UCI_TWIN_FIELD_UINT:
        fprintf(stream, "%u", *(const unsigned *)value);
        break;
    case UCI_TWIN_FIELD_UINT64:
        fprintf(stream, "%" PRIu64, *(const uint64_t *)value);
        break;
    case UCI_TWIN_FIELD_HEX64:
        fprintf(stream, "%016" PRIx64, *(const uint64_t *)value);
        break;
    case UCI_TWIN_FIELD_ADDRESS:
        uci_twin_card_print_address(card, stream);
        break;
    }
    fputc('\n', stream);
}

uci_status_t uci_twin_card_format(const uci_twin_card_t *card, char **text_p, size_t *length_p)
{
    char *text   = NULL;
    FILE *stream = open_memstream(&text, length_p);
    size_t i;

    if (stream == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    fputs(UCI_TWIN_CARD_FIRST_LINE, stream);
    for (i = 0; i < uci_array_size(uci_twin_fields); ++i) {
        uci_twin_card_print_field(card, &uci_twin_fields[i], stream);
    }
    if (fflush(stream) == 0) {
        fprintf(stream, UCI_TWIN_CARD_END "%016" PRIx64 "\n", uci_twin_card_digest(text, *length_p));
    }
    if (fclose(stream) != 0) {
        free(text);
        return UCI_ERR_NO_MEMORY;
    }
    *text_p = text;
    return UCI_OK;
}

/* Digits and nothing else: no sign, no blank */
static bool uci_twin_card_parse_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *value_p)
{
    const char *digits = (base == 16) ? "0123456789abcdef" : "0123456789";

    if ((*text == '\0') || (text[strspn(text, digits)] != '\0')) {
        return false;
    }
    errno    = 0;
    *value_p = strtoull(text, NULL, base);
    return (errno == 0) && (*value_p >= min) && (*value_p <= max);
}

static bool uci_twin_card_is_printable(const char *text)
{
    for (; *text != '\0'; ++text) {
        if ((*text < ' ') || (*text > '~')) {
            return false;
        }
    }
    return true;
}

static unsigned uci_twin_card_hex_digit(char digit)
{
    return (unsigned)((digit <= '9') ? digit - '0' : digit - 'a' + 10);
}

static uci_status_t uci_twin_card_parse_address(const char *text, uci_twin_card_t *card)
{
    size_t length = strlen(text), i;
    uint8_t *bytes;

    if ((length % 2 != 0) || (length / 2 > UCI_TWIN_ADDRESS_MAX) || (strspn(text, "0123456789abcdef") != length)) {
        return UCI_ERR_INVALID_PARAM;
    }
    if (length == 0) {
        return UCI_OK;
    }
    bytes = malloc(length / 2);
    if (bytes == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    for (i = 0; i < length / 2; ++i) {
        bytes[i] = (uint8_t)((uci_twin_card_hex_digit(text[2 * i]) << 4) | uci_twin_card_hex_digit(text[(2 * i) + 1]));
    }
    card->address        = bytes;
    card->address_length = length / 2;
    return UCI_OK;
}

static uci_status_t uci_twin_card_parse_field(const uci_twin_field_t *field, const char *text, uci_twin_card_t *card)
{
    void *value = (char *)card + field->offset;
    uint64_t number;

    switch (field->type) {
    case UCI_TWIN_FIELD_TEXT:
        if ((strlen(text) >= field->max) || !uci_twin_card_is_printable(text)) {
            return UCI_ERR_INVALID_PARAM;
        }
        strcpy(value, text);
        return UCI_OK;
    case UCI_TWIN_FIELD_UINT:
        if (!uci_twin_card_parse_number(text, 10, field->min, field->max, &number)) {
            return UCI_ERR_INVALID_PARAM;
        }
        *(unsigned *)value = (unsigned)number;
        return UCI_OK;
    case UCI_TWIN_FIELD_UINT64:
    case UCI_TWIN_FIELD_HEX64:
        return uci_twin_card_parse_number(text, (field->type == UCI_TWIN_FIELD_HEX64) ? 16 : 10, field->min, field->max,
                                          value)
                       ? UCI_OK
                       : UCI_ERR_INVALID_PARAM;
    case UCI_TWIN_FIELD_ADDRESS:
        return uci_twin_card_parse_address(text, card);
    }
    return UCI_ERR_INVALID_PARAM;
}

/* @return index of the field that @a line, which is "key value", is for; the number of fields if there is none */
static size_t uci_twin_card_find_field(const char *line, size_t key_length)
{
    size_t i;

    for (i = 0; i < uci_array_size(uci_twin_fields); ++i) {
        if ((strlen(uci_twin_fields[i].key) == key_length) && (memcmp(uci_twin_fields[i].key, line, key_length) == 0)) {
            break;
        }
    }
    return i;
}

/* @param seen_p  a bit for each field. */
static uci_status_t uci_twin_card_parse_line(const char *line, uci_twin_card_t *card, uint32_t *seen_p,
                                             const char **reason_p)
{
    size_t key_length = strcspn(line, " "), i = uci_twin_card_find_field(line, key_length);

    if (i == uci_array_size(uci_twin_fields)) {
        return UCI_OK; /* of a newer UCI; its version tells the rest */
    }
    if ((*seen_p & (1u << i)) || (line[key_length] == '\0')) {
        *reason_p = (line[key_length] == '\0') ? "a line has no value" : "a line is there twice";
        return UCI_ERR_INVALID_PARAM;
    }
    *seen_p |= 1u << i;
    return uci_twin_card_parse_field(&uci_twin_fields[i], line + key_length + 1, card);
}

/* @return NULL if the text is whole: what has no end, or one that does not belong to it, is part of a file or none at all */
static const char *uci_twin_card_refusal(const char *text, size_t length)
{
    size_t first = strlen(UCI_TWIN_CARD_FIRST_LINE), body = length - UCI_TWIN_CARD_END_LENGTH;
    char end[UCI_TWIN_CARD_END_LENGTH + 1];

    if ((length < first + UCI_TWIN_CARD_END_LENGTH) || (memcmp(text, UCI_TWIN_CARD_FIRST_LINE, first) != 0)) {
        return "it is not a file of a twin, or of another version of UCI";
    }
    snprintf(end, sizeof(end), UCI_TWIN_CARD_END "%016" PRIx64 "\n", uci_twin_card_digest(text, body));
    if ((memcmp(text + body, end, UCI_TWIN_CARD_END_LENGTH) != 0) || (memchr(text, '\0', length) != NULL)) {
        return "it is damaged: the checksum at its end is not that of its content";
    }
    return NULL;
}

static uci_status_t uci_twin_card_parse_lines(char *text, const char *end, uci_twin_card_t *card, const char **reason_p)
{
    uci_status_t status = UCI_OK;
    uint32_t seen       = 0;
    char *line, *next;

    for (line = text; (line < end) && (status == UCI_OK); line = next) {
        next     = strchr(line, '\n') + 1; /* the last line, which is not parsed, has one, too */
        next[-1] = '\0';
        status   = (next <= end) ? uci_twin_card_parse_line(line, card, &seen, reason_p) : UCI_ERR_INVALID_PARAM;
    }
    if ((status == UCI_OK) && (seen != (1u << uci_array_size(uci_twin_fields)) - 1)) {
        *reason_p = "a line is missing";
        status    = UCI_ERR_INVALID_PARAM;
    }
    return status;
}

uci_status_t uci_twin_card_parse(char *text, size_t length, uci_twin_card_t *card_p, const char **reason_p)
{
    uci_status_t status;

    _Static_assert(uci_array_size(uci_twin_fields) < 32, "a bit for each");
    memset(card_p, 0, sizeof(*card_p));
    *reason_p = uci_twin_card_refusal(text, length);
    if (*reason_p != NULL) {
        return UCI_ERR_INVALID_PARAM;
    }
    *reason_p = "a value in it is not valid";
    status    = uci_twin_card_parse_lines(text + strlen(UCI_TWIN_CARD_FIRST_LINE),
                                          text + length - UCI_TWIN_CARD_END_LENGTH, card_p, reason_p);
    if ((status == UCI_OK) &&
        ((card_p->twin >= card_p->of) || ((card_p->ranks != 0) && (card_p->rank >= card_p->ranks)))) {
        *reason_p = "it says that it is of a twin, or a rank, that there is not";
        status    = UCI_ERR_INVALID_PARAM;
    }
    if (status != UCI_OK) {
        uci_twin_card_cleanup(card_p);
    }
    return status;
}

void uci_twin_card_cleanup(uci_twin_card_t *card)
{
    free(card->address);
    card->address        = NULL;
    card->address_length = 0;
}
