/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading: all files are cut into blocks, which threads take one after another, so that one huge file and many small ones both keep all
 * of them busy. read() into a buffer that stays in the cache is as fast as mapping, and a file that is cut short meanwhile is an
 * error of that file, not a signal.
 */
#include "check_scan.h"
#include "util/machine.h"
#include "util/process.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCI_CHECK_BLOCK     ((size_t)4 << 20)   /* what a thread takes at a time */
#define UCI_CHECK_PIECE     ((size_t)256 << 10) /* what it reads at a time: stays in L2 */
#define UCI_CHECK_LINK_MAX  (1 << 16)
#define UCI_CHECK_REDRAW_NS 200000000u

typedef struct uci_check_block {
    uci_check_entry_t *entry;
    size_t first; /* chunk */
} uci_check_block_t;

typedef struct uci_check_reader {
    const uci_check_form_t *form;
    size_t block_chunks, piece;
    uint64_t zero_chunk; /* digest of a chunk of a hole */
    bool progress;
    uint64_t begin_ns, drawn_ns, total, bytes, holes;
    bool is_drawn;
} uci_check_reader_t;

static void uci_check_draw(uci_check_reader_t *reader)
{
    uint64_t now    = uci_process_time_ns(), bytes;
    double gb       = 1e9;
    double seconds  = (double)(now - reader->begin_ns) / 1e9;
    double per_byte = 0;

    if (!reader->progress || (omp_get_thread_num() != 0) || (now - reader->drawn_ns < UCI_CHECK_REDRAW_NS)) {
        return;
    }
    bytes    = __atomic_load_n(&reader->bytes, __ATOMIC_RELAXED) + __atomic_load_n(&reader->holes, __ATOMIC_RELAXED);
    per_byte = seconds / (double)uci_max(bytes, (uint64_t)1);
    reader->drawn_ns = now;
    reader->is_drawn = true;
    fprintf(stderr, "\r%.1f of %.1f GB, %.1f GB/s, %.0f s left \033[K", (double)bytes / gb, (double)reader->total / gb,
            (double)bytes / gb / seconds, per_byte * (double)(reader->total - bytes));
}

static void uci_check_fail(uci_check_entry_t *entry, int error)
{
    int none = 0;

    __atomic_compare_exchange_n(&entry->error, &none, error, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool uci_check_is_same_time(const struct timespec *a, const struct timespec *b)
{
    return (a->tv_sec == b->tv_sec) && (a->tv_nsec == b->tv_nsec);
}

/* Is it still the file that was found? */
static bool uci_check_is_same(int fd, const uci_check_entry_t *entry)
{
    struct stat st;

    return (fstat(fd, &st) == 0) && S_ISREG(st.st_mode) && (st.st_dev == entry->dev) && (st.st_ino == entry->ino) &&
           ((uint64_t)st.st_size == entry->length) && uci_check_is_same_time(&st.st_mtim, &entry->mtime) &&
           uci_check_is_same_time(&st.st_ctim, &entry->ctime);
}

/* @return bytes read, fewer only at the end of the file; -1 with errno set. */
static ssize_t uci_check_pread(int fd, void *buffer, size_t length, uint64_t offset)
{
    size_t done = 0;
    ssize_t ret = 1;

    while ((done < length) && (ret != 0)) {
        ret = pread(fd, (char *)buffer + done, length - done, (off_t)(offset + done));
        if (ret > 0) {
            done += (size_t)ret;
        } else if ((ret < 0) && (errno != EINTR)) {
            return -1;
        }
    }
    return (ssize_t)done;
}

/* @return whether @a length bytes at @a offset, of a file that goes on at least as far, are a hole: nothing is stored there. */
static bool uci_check_is_hole(int fd, uint64_t offset, uint64_t length)
{
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);

    return (data >= 0) ? ((uint64_t)data >= offset + length) : (errno == ENXIO);
}

static void uci_check_digest_piece(const uci_check_form_t *form, const uint8_t *bytes, size_t length, uint64_t *leaves)
{
    size_t at;

    for (at = 0; at < length; at += form->chunk_size) {
        *leaves++ = form->digest->digest(bytes + at, uci_min(form->chunk_size, length - at));
    }
}

/* @return 0, errno, or UCI_CHECK_CHANGED */
static int uci_check_read_pieces(uci_check_reader_t *reader, int fd, uint8_t *buffer, const uci_check_entry_t *entry,
                                 size_t chunk, uint64_t end)
{
    const uci_check_form_t *form = reader->form;
    uint64_t offset;
    size_t length;
    ssize_t ret;

    for (offset = chunk * form->chunk_size; offset < end; offset += length, chunk += reader->piece / form->chunk_size) {
        length = uci_min(reader->piece, end - offset);
        ret    = uci_check_pread(fd, buffer, length, offset);
        if (ret != (ssize_t)length) {
            return (ret < 0) ? errno : UCI_CHECK_CHANGED;
        }
        uci_check_digest_piece(form, buffer, length, &entry->leaves[chunk]);
        __atomic_fetch_add(&reader->bytes, length, __ATOMIC_RELAXED);
        uci_check_draw(reader);
    }
    return 0;
}

/* No bytes are one chunk without any; but some files have bytes that their size does not tell, as those of /proc */
static int uci_check_read_empty(const uci_check_form_t *form, int fd, const uci_check_entry_t *entry)
{
    ssize_t ret;
    char byte;

    entry->leaves[0] = form->digest->digest(NULL, 0);
    ret              = uci_check_pread(fd, &byte, 1, 0);
    return (ret == 0) ? 0 : (ret < 0) ? errno : EINVAL;
}

static int uci_check_read_open(uci_check_reader_t *reader, int fd, uint8_t *buffer, const uci_check_entry_t *entry,
                               size_t chunk)
{
    const uci_check_form_t *form = reader->form;
    uint64_t begin               = chunk * form->chunk_size;
    uint64_t end                 = uci_min(entry->length, begin + (reader->block_chunks * form->chunk_size));
    size_t i, count = (end - begin) / form->chunk_size;
    int error = 0;

    if (!uci_check_is_same(fd, entry)) {
        return UCI_CHECK_CHANGED;
    }
    if (entry->length == 0) {
        error = uci_check_read_empty(form, fd, entry);
    } else if ((count == reader->block_chunks) && uci_check_is_hole(fd, begin, end - begin)) {
        for (i = 0; i < count; ++i) {
            entry->leaves[chunk + i] = reader->zero_chunk;
        }
        __atomic_fetch_add(&reader->holes, end - begin, __ATOMIC_RELAXED);
    } else {
        error = uci_check_read_pieces(reader, fd, buffer, entry, chunk, end);
    }
    return ((error == 0) && !uci_check_is_same(fd, entry)) ? UCI_CHECK_CHANGED : error;
}

static void uci_check_read_block(uci_check_reader_t *reader, const uci_check_block_t *block, uint8_t *buffer)
{
    uci_check_entry_t *entry = block->entry;
    int fd, error;

    if (__atomic_load_n(&entry->error, __ATOMIC_RELAXED) != 0) {
        return; /* another block of it has failed */
    }
    fd = open(entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        uci_check_fail(entry, (errno == ELOOP) ? UCI_CHECK_CHANGED : errno);
        return;
    }
    error = uci_check_read_open(reader, fd, buffer, entry, block->first);
    if (error != 0) {
        uci_check_fail(entry, error);
    }
    close(fd);
}

static void uci_check_read_link(const uci_check_form_t *form, uci_check_entry_t *entry)
{
    char target[UCI_CHECK_LINK_MAX];
    ssize_t length = readlink(entry->path, target, sizeof(target));

    if (length < 0) {
        uci_check_fail(entry, (errno == EINVAL) ? UCI_CHECK_CHANGED : errno);
        return;
    }
    entry->length = (uint64_t)length;
    entry->root   = form->digest->digest(target, (size_t)length);
}

static void uci_check_finish(const uci_check_form_t *form, uci_check_entry_t *entry)
{
    uci_merkle_side_t side;

    if (entry->type == UCI_CHECK_LINK) {
        uci_check_read_link(form, entry);
    } else if ((entry->type == UCI_CHECK_FILE) && (entry->error == 0)) {
        uci_check_make_side(form, entry, &side);
        entry->root = uci_merkle_side_root(&side);
        uci_merkle_destroy(side.tree);
    }
    if (entry->error != 0) {
        entry->type   = UCI_CHECK_UNREADABLE;
        entry->leaves = NULL;
    }
}

static uci_check_block_t *uci_check_make_blocks(const uci_check_reader_t *reader, uci_check_list_t *list,
                                                size_t *count_p)
{
    size_t count = 0, i, chunk;
    uci_check_block_t *blocks;

    for (i = 0; i < list->count; ++i) {
        count += uci_div_up(uci_check_chunks(&list->form, &list->entries[i]), reader->block_chunks);
    }
    blocks   = uci_check_memory(malloc((count + 1) * sizeof(*blocks)));
    *count_p = 0;
    for (i = 0; i < list->count; ++i) {
        for (chunk = 0; chunk < uci_check_chunks(&list->form, &list->entries[i]); chunk += reader->block_chunks) {
            blocks[(*count_p)++] = (uci_check_block_t){&list->entries[i], chunk};
        }
    }
    return blocks;
}

static void uci_check_read_blocks(uci_check_reader_t *reader, const uci_check_block_t *blocks, size_t count,
                                  unsigned threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        uint8_t *buffer = uci_check_memory(malloc(reader->piece));
        size_t i;

#pragma omp for schedule(dynamic)
        for (i = 0; i < count; ++i) {
            uci_check_read_block(reader, &blocks[i], buffer);
        }
        free(buffer);
    }
}

static void uci_check_set_zero_chunk(uci_check_reader_t *reader)
{
    uint8_t *zeros = uci_check_memory(calloc(1, reader->form->chunk_size));

    reader->zero_chunk = reader->form->digest->digest(zeros, reader->form->chunk_size);
    free(zeros);
}

void uci_check_read(uci_check_list_t *list, const uci_check_scan_options_t *options, uci_check_work_t *work)
{
    unsigned threads          = (options->threads == 0) ? uci_machine_cores_usable() : options->threads;
    uci_check_reader_t reader = {.form         = &list->form,
                                 .block_chunks = uci_max(UCI_CHECK_BLOCK / list->form.chunk_size, (size_t)1),
                                 .piece        = uci_align_up(UCI_CHECK_PIECE, list->form.chunk_size),
                                 .progress     = options->progress,
                                 .begin_ns     = uci_process_time_ns(),
                                 .drawn_ns     = uci_process_time_ns()};
    size_t count              = 0, i;
    uci_check_block_t *blocks = uci_check_make_blocks(&reader, list, &count);

    for (i = 0; i < list->count; ++i) {
        reader.total += (list->entries[i].type == UCI_CHECK_FILE) ? list->entries[i].length : 0;
    }
    uci_check_set_zero_chunk(&reader);
    uci_check_read_blocks(&reader, blocks, count, (unsigned)uci_max(uci_min((size_t)threads, count), (size_t)1));
    for (i = 0; i < list->count; ++i) {
        uci_check_finish(&list->form, &list->entries[i]);
    }
    free(blocks);
    if (reader.is_drawn) {
        fputs("\r\033[K", stderr);
    }
    work->bytes += reader.bytes;
    work->seconds += (double)(uci_process_time_ns() - reader.begin_ns) / 1e9;
}
