/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "stats.h"
#include "fault.h"
#include "log.h"
#include "process.h"
#include "version.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UCI_STATS_TEMP_MAX 512 /* what the name of a temporary file adds to the one it becomes */

uci_stats_t uci_stats;

static struct {
    const char *digest, *mode, *ucx_version;
} uci_stats_info = {"unknown", "unknown", "unknown"};

void uci_stats_set_info(const char *digest, const char *mode, const char *ucx_version)
{
    uci_stats_info.digest      = digest;
    uci_stats_info.mode        = mode;
    uci_stats_info.ucx_version = ucx_version;
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
    uci_stats.faults_injected = uci_fault_count();

    fprintf(stream, "{\n");
    uci_stats_write_json_member(stream, "version", UCI_VERSION);
    uci_stats_write_json_member(stream, "ucx_version", uci_stats_info.ucx_version);
    uci_stats_write_json_member(stream, "host", uci_process_host());
    uci_stats_write_json_member(stream, "digest", uci_stats_info.digest);
    uci_stats_write_json_member(stream, "mode", uci_stats_info.mode);
    fprintf(stream, "  \"pid\": %d,\n", (int)getpid());
    fprintf(stream, "  \"rank\": %d", uci_process_rank());
#define UCI_STATS_WRITE(_name, _text) fprintf(stream, ",\n  \"%s\": %lu", #_name, uci_stats._name);
    UCI_STATS_COUNTERS(UCI_STATS_WRITE)
#undef UCI_STATS_WRITE
    fprintf(stream, "\n}\n");
}

void uci_stats_write_summary(FILE *stream)
{
    int rank = uci_process_rank();

    uci_stats.faults_injected = uci_fault_count();

    fprintf(stream, "UCI statistics of %s:%d", uci_process_host(), (int)getpid());
    if (rank >= 0) {
        fprintf(stream, ", rank %d", rank);
    }
    fprintf(stream, ", mode %s, digest %s\n", uci_stats_info.mode, uci_stats_info.digest);
#define UCI_STATS_WRITE(_name, _text) \
    if (uci_stats._name != 0) { \
        fprintf(stream, "    %-40s %lu\n", _text, uci_stats._name); \
    }
    UCI_STATS_COUNTERS(UCI_STATS_WRITE)
#undef UCI_STATS_WRITE
}

/* On stderr, in one piece. A second report of the same numbers (at abort, then at exit) is not printed. */
static void uci_stats_report_summary(void)
{
    static uci_stats_t printed;
    static bool is_printed;
    char *text = NULL;
    size_t length;
    FILE *stream;

    uci_stats.faults_injected = uci_fault_count();
    if (is_printed && (memcmp(&printed, &uci_stats, sizeof(printed)) == 0)) {
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

    printed    = uci_stats;
    is_printed = true;
}

/* @return UCI_OK, or UCI_ERR_IO with errno set. */
static uci_status_t uci_stats_write_file(const char *path)
{
    FILE *stream = fopen(path, "we");
    int failed;

    if (stream == NULL) {
        return UCI_ERR_IO;
    }

    uci_stats_write_json(stream);
    failed = ferror(stream);
    failed |= fclose(stream);
    return failed ? UCI_ERR_IO : UCI_OK;
}

/* A reader finds the old file or the whole new one, never a part. */
static uci_status_t uci_stats_replace_file(const char *path)
{
    char temp[PATH_MAX + UCI_STATS_TEMP_MAX];
    int saved_errno;

    snprintf(temp, sizeof(temp), "%s.%s.%d.tmp", path, uci_process_host(), (int)syscall(SYS_gettid));
    if ((uci_stats_write_file(temp) == UCI_OK) && (rename(temp, path) == 0)) {
        return UCI_OK;
    }

    saved_errno = errno;
    unlink(temp);
    errno = saved_errno;
    return UCI_ERR_IO;
}

/* What is not a regular file (/dev/null, a pipe, a link) must not be replaced by one. */
static bool uci_stats_may_replace(const char *path)
{
    struct stat info;

    return (lstat(path, &info) != 0) || S_ISREG(info.st_mode);
}

void uci_stats_report(const char *destination)
{
    char path[PATH_MAX];
    uci_status_t status;

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

    status = uci_stats_may_replace(path) ? uci_stats_replace_file(path) : uci_stats_write_file(path);
    if (status != UCI_OK) {
        uci_error("cannot write the statistics to %s: %m", path);
    }
}
