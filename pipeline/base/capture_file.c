/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "util/file.h"
#include "util/log.h"
#include "util/process.h"
#include "util/quiet.h"

static pthread_mutex_t uci_capture_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned uci_capture_chunks; /* so far */
static size_t uci_capture_bytes;
static bool uci_capture_told; /* that there will be no more */

static void uci_capture_warn(const char *why, const char *path)
{
    if (!uci_capture_told) {
        uci_capture_told = true;
        uci_warn("%s: %s", why, path);
    }
}

/* @return false: there is no room, which is said once */
static bool uci_capture_reserve(size_t bytes, unsigned *number_p)
{
    if ((uci_capture_chunks >= UCI_CAPTURE_CHUNKS) || (uci_capture_bytes + bytes > UCI_CAPTURE_BYTES)) {
        uci_capture_warn("no further damaged chunks of this process are captured, it has had its share of UCI_CAPTURE",
                         uci_settings.capture);
        return false;
    }
    *number_p = uci_capture_chunks++;
    uci_capture_bytes += bytes;
    return true;
}

/* What is there is whole: a part of a .good would look like the damage */
static bool uci_capture_write(const char *folder, const char *name, const void *data, size_t length)
{
    char path[PATH_MAX + 128];
    uci_quiet_t quiet;
    FILE *stream;
    bool failed;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    stream = (uci_file_make_folder(path) == UCI_OK) ? uci_file_create(path, false) : NULL;
    if (stream == NULL) {
        uci_capture_warn(uci_file_error(errno), path);
        return false;
    }
    uci_quiet_begin(&quiet);
    failed = (fwrite(data, 1, length, stream) != length);
    failed |= (fclose(stream) != 0);
    uci_quiet_end(&quiet);
    if (failed) {
        uci_capture_warn(uci_file_error(errno), path);
        unlink(path);
    }
    return !failed;
}

/* Ranks in containers of one host may have one process id */
static void uci_capture_name(char *name, size_t size, unsigned number, const char *suffix)
{
    char rank[16];

    (void)uci_process_expand("%r", rank, sizeof(rank)); /* has room for any */
    snprintf(name, size, "%.64s.%d.%s.%u.%s", uci_process_host(), (int)getpid(), rank, number, suffix);
}

static void uci_capture_write_both(char *name, size_t size, unsigned number, const void *bad, size_t bad_length,
                                   const void *good, size_t good_length)
{
    char folder[PATH_MAX], file[128];

    if (uci_process_expand(uci_settings.capture, folder, sizeof(folder)) != UCI_OK) {
        uci_capture_warn("the name of the folder is too long", uci_settings.capture);
        return;
    }
    uci_capture_name(file, sizeof(file), number, "bad");
    if (!uci_capture_write(folder, file, bad, bad_length)) {
        return;
    }
    snprintf(name, size, "%s", file);
    uci_capture_name(file, sizeof(file), number, "good");
    if (good != NULL) {
        (void)uci_capture_write(folder, file, good, good_length);
    }
}

void uci_capture_chunk(char *name, size_t size, const void *bad, size_t bad_length, const void *good,
                       size_t good_length)
{
    unsigned number;

    name[0] = '\0';
    if (!uci_capture_is_on()) {
        return;
    }
    pthread_mutex_lock(&uci_capture_lock);
    if (uci_capture_reserve(bad_length + good_length, &number)) {
        uci_capture_write_both(name, size, number, bad, bad_length, good, good_length);
    }
    pthread_mutex_unlock(&uci_capture_lock);
}
