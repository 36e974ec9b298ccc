/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "stats.h"
#include "fault.h"
#include "file.h"
#include "live.h"
#include "log.h"
#include "process.h"
#include "version.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uci_stats_t uci_stats;
uci_stats_t *uci_stats_outside       = &uci_stats;
__thread uci_stats_t *uci_stats_here = &uci_stats;

static uci_list_t uci_stats_blocks           = {&uci_stats_blocks, &uci_stats_blocks};
static pthread_mutex_t uci_stats_blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    const char *digest, *mode, *ucx_version;
} uci_stats_info = {"unknown", "unknown", "unknown"};

void uci_stats_set_info(const char *digest, const char *mode, const char *ucx_version)
{
    pthread_mutex_lock(&uci_stats_blocks_lock);
    uci_stats_info.digest      = digest;
    uci_stats_info.mode        = mode;
    uci_stats_info.ucx_version = ucx_version;
    pthread_mutex_unlock(&uci_stats_blocks_lock);
    uci_live_set_info(digest, mode, ucx_version);
}

static void uci_stats_add_up(uci_stats_t *sum, const uci_stats_t *counters)
{
#define UCI_STATS_SUM(_name, _text) sum->_name += counters->_name;
    UCI_STATS_COUNTERS(UCI_STATS_SUM)
#undef UCI_STATS_SUM
}

static unsigned uci_stats_unlisted; /* workers without a block in the live file that there is */

void uci_stats_open_live(const char *where)
{
#define UCI_STATS_NAME(_name, _text) #_name,
    static const char *const names[] = { UCI_STATS_COUNTERS(UCI_STATS_NAME) };
#undef UCI_STATS_NAME
    uint64_t *block;

    if (uci_live_open(where, names, uci_array_size(names), &block) != UCI_OK) {
        return;
    }
    pthread_mutex_lock(&uci_stats_blocks_lock);
    uci_stats_outside = (uci_stats_t *)(void *)block;
    uci_stats_add_up(uci_stats_outside, &uci_stats);
    memset(&uci_stats, 0, sizeof(uci_stats));
    uci_fault_mirror(&uci_stats_outside->faults_injected);
    pthread_mutex_unlock(&uci_stats_blocks_lock);
    uci_live_set_info(uci_stats_info.digest, uci_stats_info.mode, uci_stats_info.ucx_version);
}

void uci_stats_join(uci_stats_block_t *block, uint64_t uid)
{
    memset(&block->own, 0, sizeof(block->own));
    pthread_mutex_lock(&uci_stats_blocks_lock);
    block->live     = uci_live_take_block(uid);
    block->counters = (block->live != NULL) ? (uci_stats_t *)(void *)block->live : &block->own;
    if (block->live == NULL) {
        uci_live_set_unlisted(++uci_stats_unlisted);
    }
    uci_list_add_tail(&uci_stats_blocks, &block->link);
    pthread_mutex_unlock(&uci_stats_blocks_lock);
}

void uci_stats_leave(uci_stats_block_t *block)
{
    pthread_mutex_lock(&uci_stats_blocks_lock);
    uci_list_del(&block->link);
    uci_stats_add_up(uci_stats_outside, &block->own);
    if (block->live == NULL) {
        uci_live_set_unlisted(--uci_stats_unlisted);
    }
    uci_live_give_block(block->live);
    pthread_mutex_unlock(&uci_stats_blocks_lock);
    if (uci_stats_here == block->counters) {
        uci_stats_here = uci_stats_outside;
    }
}

void uci_stats_reset(void)
{
    pthread_mutex_lock(&uci_stats_blocks_lock);
    uci_stats_outside = &uci_stats;
    uci_fault_mirror(NULL);
    memset(&uci_stats, 0, sizeof(uci_stats));
    uci_list_for_each(block, &uci_stats_blocks, uci_stats_block_t, link)
    {
        memset(block->counters, 0, sizeof(*block->counters));
    }
    pthread_mutex_unlock(&uci_stats_blocks_lock);
}

static void uci_stats_add_free(void *arg, const uint64_t *counters)
{
    uci_stats_add_up(arg, (const uci_stats_t *)(const void *)counters);
}

/* A process that writes at its end, or because it aborts, may still be counting in other threads: then a number is some
 * messages old */
static uci_stats_t uci_stats_total(void)
{
    uci_stats_t total;

    pthread_mutex_lock(&uci_stats_blocks_lock);
    total = uci_stats;
    if (uci_stats_outside != &uci_stats) {
        uci_stats_add_up(&total, uci_stats_outside);
    }
    uci_live_for_each_free(uci_stats_add_free, &total);
    uci_list_for_each(block, &uci_stats_blocks, uci_stats_block_t, link)
    {
        uci_stats_add_up(&total, block->counters);
    }
    pthread_mutex_unlock(&uci_stats_blocks_lock);
    total.faults_injected = uci_fault_count();
    return total;
}

/* @return bytes of the well-formed UTF-8 sequence at @a text, 0 if it is none (RFC 3629). */
static unsigned uci_stats_utf8_length(const unsigned char *text)
{
    unsigned length = (text[0] < 0x80)   ? 1
                      : (text[0] < 0xc2) ? 0
                      : (text[0] < 0xe0) ? 2
                      : (text[0] < 0xf0) ? 3
                      : (text[0] < 0xf5) ? 4
                                         : 0;
    unsigned i;

    for (i = 1; i < length; ++i) {
        if ((text[i] & 0xc0) != 0x80) { /* the terminating 0 too */
            return 0;
        }
    }

    if (((text[0] == 0xe0) && (text[1] < 0xa0)) || /* overlong */
        ((text[0] == 0xed) && (text[1] > 0x9f)) || /* surrogate */
        ((text[0] == 0xf0) && (text[1] < 0x90)) || /* overlong */
        ((text[0] == 0xf4) && (text[1] > 0x8f))) { /* above U+10FFFF */
        return 0;
    }
    return length;
}

void uci_stats_write_json_string(FILE *stream, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned length;

    putc('"', stream);
    while (*p != '\0') {
        length = uci_stats_utf8_length(p);
        if ((length == 0) || (*p < ' ') || (*p == 0x7f)) {
            fprintf(stream, "\\u%04x", *p++);
            continue;
        }
        if ((*p == '"') || (*p == '\\')) {
            putc('\\', stream);
        }
        fwrite(p, 1, length, stream);
        p += length;
    }
    putc('"', stream);
}

static void uci_stats_write_json_member(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "  \"%s\": ", name);
    uci_stats_write_json_string(stream, value);
    fprintf(stream, ",\n");
}

void uci_stats_write_json(FILE *stream)
{
    uci_stats_t total = uci_stats_total();

    fprintf(stream, "{\n");
    uci_stats_write_json_member(stream, "version", UCI_VERSION);
    uci_stats_write_json_member(stream, "ucx_version", uci_stats_info.ucx_version);
    uci_stats_write_json_member(stream, "host", uci_process_host());
    uci_stats_write_json_member(stream, "digest", uci_stats_info.digest);
    uci_stats_write_json_member(stream, "mode", uci_stats_info.mode);
    fprintf(stream, "  \"pid\": %d,\n", (int)getpid());
    fprintf(stream, "  \"rank\": %d", uci_process_rank());
#define UCI_STATS_WRITE(_name, _text) fprintf(stream, ",\n  \"%s\": %lu", #_name, total._name);
    UCI_STATS_COUNTERS(UCI_STATS_WRITE)
#undef UCI_STATS_WRITE
    fprintf(stream, "\n}\n");
}

void uci_stats_write_summary(FILE *stream)
{
    uci_stats_t total = uci_stats_total();
    int rank          = uci_process_rank();

    fprintf(stream, "UCI statistics of %s:%d", uci_process_host(), (int)getpid());
    if (rank >= 0) {
        fprintf(stream, ", rank %d", rank);
    }
    fprintf(stream, ", mode %s, digest %s\n", uci_stats_info.mode, uci_stats_info.digest);
#define UCI_STATS_WRITE(_name, _text) \
    if (total._name != 0) { \
        fprintf(stream, "    %-40s %lu\n", _text, total._name); \
    }
    UCI_STATS_COUNTERS(UCI_STATS_WRITE)
#undef UCI_STATS_WRITE
}

/* On stderr, in one piece. A second report of the same numbers (at abort, then at exit) is not printed. */
static void uci_stats_report_summary(void)
{
    static uci_stats_t printed;
    static bool is_printed;
    uci_stats_t total = uci_stats_total();
    char *text        = NULL;
    size_t length;
    FILE *stream;

    if (is_printed && (memcmp(&printed, &total, sizeof(printed)) == 0)) {
        return;
    }

    stream = open_memstream(&text, &length);
    if (stream == NULL) {
        uci_error("cannot print the statistics: %m");
        return;
    }

    uci_stats_write_summary(stream);
    if (fclose(stream) == 0) {
        fwrite(text, 1, length, stderr);
        fflush(stderr);
    }
    free(text);

    printed    = total;
    is_printed = true;
}

static void uci_stats_write_file(FILE *stream, const void *arg)
{
    uci_stats_write_json(stream);
}

void uci_stats_report(const char *destination)
{
    char path[PATH_MAX];

    if ((destination == NULL) || (*destination == '\0')) {
        return;
    }
    if (strcmp(destination, "-") == 0) {
        uci_stats_report_summary();
        return;
    }
    if (uci_process_expand(destination, path, sizeof(path)) != UCI_OK) {
        uci_error("cannot write the statistics to %s: bad file name (allowed are %%h, %%p, %%r and %%%%)", destination);
        return;
    }

    if (uci_file_replace(path, uci_stats_write_file, NULL) != UCI_OK) {
        uci_error("cannot write the statistics to %s: %s", path, uci_file_error(errno));
    }
}

/* Does the name hold this conversion? "%%p" does not */
static bool uci_stats_holds(const char *pattern, char conversion)
{
    for (; *pattern != '\0'; ++pattern) {
        if ((*pattern == '%') && (*++pattern == conversion)) {
            return true;
        }
        if (*pattern == '\0') {
            break;
        }
    }
    return false;
}

bool uci_stats_is_shared(const char *destination)
{
    struct stat info;

    if ((*destination == '\0') || (strcmp(destination, "-") == 0) || (uci_process_job_size() < 2) ||
        uci_stats_holds(destination, 'p') || uci_stats_holds(destination, 'r')) {
        return false;
    }
    if (uci_stats_holds(destination, 'h') && (uci_process_local_count() == 1)) {
        return false;
    }
    return (stat(destination, &info) != 0) || S_ISREG(info.st_mode); /* not /dev/null, nor a pipe */
}
