/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Damages messages of a running job from outside, in the shared memory that its processes have mapped: single bits, bursts,
 * blocks of zeros. Knows nothing of UCI or UCX but the names of segments; it finds its place by the pattern of the payload (pattern.h).
 *
 * Whom it touches: processes that run the given program AND carry the given mark in their environment; of these, shared mappings
 * whose names begin as UCX's do; in these, bytes that are part of a line with the job's key (but for mode fields). Each word is exchanged atomically with
 * what the pattern says stands there, so that memory which has got another content meanwhile is never hit.
 *
 * usage: flip --mark NAME=VALUE --program NAME --key HEX [options]
 *
 *   --mode MODE      when: random   any line of a recent message, at any time
 *                          fresh    as soon as the first line of a message appears somewhere: before it can have been taken
 *                          late     the same, 50 us to 4 ms later: the send may be over, the receiver has not come yet
 *                          frozen   all processes of the job are stopped, damaged, and go on
 *                          mixed    these in turn (default)
 *                          fields   as frozen, but not payload is hit: single bits of the 128 bytes in front of a row of more
 *                                   than 8 KiB of payload, since who puts so long a row there has his fields in front of it
 *                          lines    the same 128 bytes, by their lines of 64: one is copied over the other, or they are exchanged; or so are two
 *                                   neighbouring words in them. What is right in its own place is wrong in another one
 *                          filling  without a pause, while a message is being written: one bit of its first 256 bytes, as soon as
 *                                   its number appears where one has been before. Who looks at these bytes again takes them for right
 *   --kind KIND      flip, burst, zero, any (default any)
 *   --seconds N      at most so long after the first process was found (default 600)
 *   --wait N         for the first process, in seconds (default 20)
 *   --pause US       between two hits, on average (default 500)
 *   --each N         hits of one message at most (default 2): a message that is hit whenever it comes can't be healed
 *   --seed N         (default 1)
 *
 * Ends with the job. Its last line: "flip: N hits, N bytes, N flip, N burst, N zero, N of fields, N lines seen, N segments, N processes". Exit status 0 if it
 * found the job, whether it hit anything or not.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

enum {
    PROCESSES_MAX = 64,
    SEGMENTS_MAX  = 1024,
    PLACES_MAX    = 4096,    /* that are watched */
    HITS_TABLE    = 1 << 16, /* messages that have been hit, by a hash of their number */
    RECENT        = 16,      /* messages of one source that may still be on their way */
    SOURCES_MAX   = 256,
    FROZEN_HITS   = 3,
    LOOK_NS       = 30000000, /* between two looks for new segments and places */
    WATCH_NS      = 4000000,  /* without anything new, look elsewhere */
    LATE_MIN_NS   = 50000,
    LATE_MAX_NS   = 4000000,
    NS_PER_SECOND = 1000000000,
    FIELDS        = 128,
    LINE          = 64,
    FILLING       = 256,
    FILLING_TRIES = 64, /* until the bit that is to be hit has been written */
    FIELDS_ROW    = 8192,
    PAGE          = 4096,
    PATH_LENGTH   = 512
};

typedef enum {
    MODE_RANDOM,
    MODE_FRESH,
    MODE_LATE,
    MODE_FROZEN,
    MODE_MIXED,
    MODE_FIELDS,
    MODE_LINES,
    MODE_FILLING,
    MODES
} flip_mode_t;

static const char *const mode_names[] = {"random", "fresh", "late", "frozen", "mixed", "fields", "lines", "filling"};

typedef struct flip_process {
    pid_t pid;
    int fd; /* pidfd: never another process, even if the id is used again */
} flip_process_t;

typedef struct flip_segment {
    dev_t device;
    ino_t inode;
    uint8_t *bytes;
    size_t length;
} flip_segment_t;

/* Where a row of lines of one message begins */
typedef struct flip_place {
    uint8_t *bytes;
    const flip_segment_t *segment;
    uint64_t number; /* what was there when it was looked at last */
} flip_place_t;

static struct {
    const char *mark, *program;
    uint64_t key, random;
    int kind;
    flip_mode_t mode;
    unsigned seconds, wait, pause_us, each;
} options = {
        .kind = FOREIGN_KINDS, .mode = MODE_MIXED, .seconds = 600, .wait = 20, .pause_us = 500, .each = 2, .random = 1};

static struct {
    flip_process_t processes[PROCESSES_MAX];
    unsigned process_count, processes_seen;
    flip_segment_t segments[SEGMENTS_MAX];
    unsigned segment_count;
    flip_place_t places[PLACES_MAX];
    unsigned place_count;
    uint64_t newest[SOURCES_MAX]; /* number of each source's youngest message */
    uint8_t hits_of[HITS_TABLE];
    uint64_t hits, bytes, lines, fields, kinds[FOREIGN_KINDS];
} job;

static volatile sig_atomic_t ended;

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("flip: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * NS_PER_SECOND) + (uint64_t)now.tv_nsec;
}

static void sleep_us(uint64_t us)
{
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

    nanosleep(&time, NULL);
}

/* ------------------------------------------------ whose memory it is */

/** Is "NAME=VALUE" one of the strings of the process's environment? */
static bool process_has_mark(pid_t pid)
{
    static char environment[1 << 18];
    char path[PATH_LENGTH];
    ssize_t length, i;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    length = read(file, environment, sizeof(environment) - 1);
    close(file);
    if (length <= 0) {
        return false;
    }
    environment[length] = '\0';
    for (i = 0; i < length; i += (ssize_t)strlen(environment + i) + 1) {
        if (strcmp(environment + i, options.mark) == 0) {
            return true;
        }
    }
    return false;
}

static bool process_runs_program(pid_t pid)
{
    char path[PATH_LENGTH], target[PATH_LENGTH];
    const char *name;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0) {
        return false;
    }
    target[length] = '\0';
    name           = strrchr(target, '/');
    return (name != NULL) && (strcmp(name + 1, options.program) == 0);
}

static bool process_is_known(pid_t pid)
{
    unsigned i;

    for (i = 0; i < job.process_count; ++i) {
        if (job.processes[i].pid == pid) {
            return true;
        }
    }
    return false;
}

static int signal_process(const flip_process_t *process, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, process->fd, number, NULL, 0);
}

static void forget_ended_processes(void)
{
    unsigned i = 0;

    while (i < job.process_count) {
        if (signal_process(&job.processes[i], 0) == 0) {
            ++i;
        } else {
            close(job.processes[i].fd);
            job.processes[i] = job.processes[--job.process_count];
        }
    }
}

static void find_processes(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t pid;
    int fd;

    if (folder == NULL) {
        die("cannot read /proc: %m");
    }
    while ((entry = readdir(folder)) != NULL) {
        pid = (pid_t)atoi(entry->d_name);
        if ((pid <= 1) || process_is_known(pid) || !process_runs_program(pid) || (job.process_count == PROCESSES_MAX)) {
            continue;
        }
        fd = (int)syscall(SYS_pidfd_open, pid, 0); /* first, so that what is then looked at is this one */
        if ((fd < 0) || !process_has_mark(pid)) {
            if (fd >= 0) {
                close(fd);
            }
            continue;
        }
        job.processes[job.process_count++] = (flip_process_t){.pid = pid, .fd = fd};
        ++job.processes_seen;
    }
    closedir(folder);
}

static bool segment_is_known(dev_t device, ino_t inode)
{
    unsigned i;

    for (i = 0; i < job.segment_count; ++i) {
        if ((job.segments[i].device == device) && (job.segments[i].inode == inode)) {
            return true;
        }
    }
    return false;
}

static void add_segment(const struct stat *info, void *bytes, size_t length)
{
    if ((bytes == MAP_FAILED) || (job.segment_count == SEGMENTS_MAX)) {
        return;
    }
    job.segments[job.segment_count++] = (flip_segment_t){info->st_dev, info->st_ino, bytes, length};
}

/** Map what process @a pid has mapped at @a range, however it came there: its name may be gone. */
static void map_segment(pid_t pid, const char *range)
{
    char path[PATH_LENGTH];
    struct stat info;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/map_files/%s", pid, range);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    if ((fstat(file, &info) == 0) && !segment_is_known(info.st_dev, info.st_ino)) {
        add_segment(&info, mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
                    (size_t)info.st_size);
    }
    close(file);
}

/** A segment of System V: its inode is its id. */
static void attach_segment(ino_t inode)
{
    struct stat info = {.st_dev = 0, .st_ino = inode};
    struct shmid_ds description;

    if (!segment_is_known(0, inode) && (shmctl((int)inode, IPC_STAT, &description) == 0)) {
        add_segment(&info, shmat((int)inode, NULL, 0), description.shm_segsz);
    }
}

static void find_segments_of(pid_t pid)
{
    char line[PATH_LENGTH + 128], range[64], rights[8], name[PATH_LENGTH];
    unsigned long inode;
    FILE *file;

    snprintf(line, sizeof(line), "/proc/%d/maps", pid);
    file = fopen(line, "re");
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if ((sscanf(line, "%63s %7s %*s %*s %lu %511[^\n]", range, rights, &inode, name) != 4) ||
            (strncmp(rights, "rw-s", 4) != 0)) {
            continue;
        }
        if (strncmp(name, "/dev/shm/ucx_shm_", strlen("/dev/shm/ucx_shm_")) == 0) {
            map_segment(pid, range);
        } else if (strncmp(name, "/SYSV", strlen("/SYSV")) == 0) {
            attach_segment(inode);
        }
    }
    fclose(file);
}

/* ------------------------------------------------ where messages lie */

/** Only a message that is among the youngest of its sender may still be on its way. */
static bool is_recent(uint64_t number)
{
    return number + RECENT > job.newest[foreign_source(number) % SOURCES_MAX];
}

/** What is in front of a message has been read before its payload is: of those before the last two nobody looks at it any more. */
static bool is_newest(uint64_t number)
{
    return number + 2 > job.newest[foreign_source(number) % SOURCES_MAX];
}

static void see_number(uint64_t number)
{
    uint64_t *newest = &job.newest[foreign_source(number) % SOURCES_MAX];

    *newest = (number > *newest) ? number : *newest;
}

typedef void (*line_func_t)(const flip_segment_t *segment, uint8_t *bytes, const foreign_line_t *line, void *arg);

static void scan_range(const flip_segment_t *segment, size_t begin, size_t end, line_func_t func, void *arg)
{
    const uint8_t *at = segment->bytes + begin, *limit = segment->bytes + end, *found;
    foreign_line_t line;
    size_t length;

    while ((found = foreign_line_search(at, (size_t)(limit - at), options.key)) != NULL) {
        length = foreign_line_at(found, (size_t)(segment->bytes + segment->length - found), options.key, &line);
        if (length > 0) {
            see_number(line.number);
            func(segment, segment->bytes + (found - segment->bytes), &line, arg);
        }
        at = found + ((length > 0) ? length : 1);
        at = (at < limit) ? at : limit;
    }
}

/** Call @a func for each line in the segments. Pages that nobody has touched are left alone: reading would make them. */
static void scan_all(line_func_t func, void *arg)
{
    static unsigned char resident[1 << 18];
    const flip_segment_t *segment;
    size_t page, first, pages;

    for (segment = job.segments; segment < job.segments + job.segment_count; ++segment) {
        pages = (segment->length + PAGE - 1) / PAGE;
        if ((pages > sizeof(resident)) || (mincore(segment->bytes, segment->length, resident) != 0)) {
            continue;
        }
        for (page = 0; page < pages; page = first + 1) {
            for (first = page; (page < pages) && (resident[page] & 1); ++page) {
            }
            if (page > first) {
                scan_range(segment, first * PAGE, (page * PAGE < segment->length) ? page * PAGE : segment->length, func,
                           arg);
            }
            first = page;
        }
    }
}

/* ------------------------------------------------ hitting */

static uint8_t *hits_of(uint64_t number)
{
    return &job.hits_of[(number * 0x9e3779b97f4a7c15ull) >> 48];
}

/** Exchange the aligned word around @a at, as long as it holds @a old. */
static bool exchange_word(uint8_t *at, uint64_t old, uint64_t new)
{
    return __atomic_compare_exchange_n((uint64_t *)(void *)at, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/** Damage up to @a extent bytes of the line at @a bytes from @a first on, by whole words of memory that lie within it.
 *  @return how many bytes have changed. */
static size_t hit_line(uint8_t *bytes, const foreign_line_t *line, size_t length, size_t first, size_t extent,
                       foreign_kind_t kind)
{
    size_t skew = (8 - ((uintptr_t)bytes % 8)) % 8, word, i, changed = 0;
    uint8_t before[8], after[8];
    uint64_t old, new;

    for (word = skew; word + 8 <= length; word += 8) {
        if ((word + 8 <= first) || (word >= first + extent)) {
            continue;
        }
        memcpy(before, (const uint8_t *)line + word, 8);
        memcpy(after, before, 8);
        for (i = 0; i < 8; ++i) {
            if ((word + i >= first) && (word + i < first + extent)) {
                after[i] = foreign_damaged(kind, before[i], &options.random);
            }
        }
        memcpy(&old, before, 8);
        memcpy(&new, after, 8);
        if ((old == new) || !exchange_word(bytes + word, old, new)) {
            continue;
        }
        for (i = 0; i < 8; ++i) {
            changed += (before[i] != after[i]);
        }
    }
    return changed;
}

/** Damage what begins with the line at @a bytes. @return false: it is not there any more, or has been hit often enough. */
static bool hit(const flip_segment_t *segment, uint8_t *bytes)
{
    const uint8_t *end  = segment->bytes + segment->length;
    foreign_kind_t kind = (options.kind == FOREIGN_KINDS)
                                  ? (foreign_kind_t)foreign_below(&options.random, FOREIGN_KINDS)
                                  : (foreign_kind_t)options.kind;
    size_t extent = foreign_extent(kind, &options.random), length, first, changed = 0;
    foreign_line_t line;
    uint64_t number;

    length = foreign_line_at(bytes, (size_t)(end - bytes), options.key, &line);
    number = line.number;
    if ((length == 0) || (*hits_of(number) >= options.each)) {
        return false;
    }
    /* zeros begin with a line and go on as long as its message does; the others stay within one */
    first = (kind == FOREIGN_ZERO) ? 0 : foreign_below(&options.random, length - ((extent < length) ? extent : 0));
    while ((extent > 0) && (length > 0) && (line.number == number)) {
        changed += hit_line(bytes, &line, length, first, extent, kind);
        bytes += length;
        extent -= (kind == FOREIGN_ZERO) ? ((extent < length) ? extent : length) : extent;
        length = (bytes < end) ? foreign_line_at(bytes, (size_t)(end - bytes), options.key, &line) : 0;
    }
    if (changed == 0) {
        return false;
    }
    ++*hits_of(number);
    ++job.hits;
    ++job.kinds[kind];
    job.bytes += changed;
    return true;
}

/* One line of all that were seen, each as likely as the others */
typedef struct flip_pick {
    const flip_segment_t *segment;
    uint8_t *bytes;
    uint64_t number, seen;
} flip_pick_t;

static void pick_line(const flip_segment_t *segment, uint8_t *bytes, const foreign_line_t *line, void *arg)
{
    flip_pick_t *pick = arg;

    ++job.lines;
    if (is_recent(line->number) && (*hits_of(line->number) < options.each) &&
        (foreign_below(&options.random, ++pick->seen) == 0)) {
        pick->segment = segment;
        pick->bytes   = bytes;
    }
}

static void hit_random(void)
{
    flip_pick_t pick = {0};

    scan_all(pick_line, &pick);
    if (pick.seen > 0) {
        hit(pick.segment, pick.bytes);
    }
}

/* A row of lines of one message, and one of all such that are long enough */
typedef struct flip_row {
    uint8_t *begin, *end;
    uint64_t number;
    flip_pick_t pick;
} flip_row_t;

static void pick_row(const flip_segment_t *segment, uint8_t *bytes, const foreign_line_t *line, void *arg)
{
    flip_row_t *row = arg;

    ++job.lines;
    if ((bytes != row->end) || (line->number != row->number)) {
        row->begin  = bytes;
        row->number = line->number;
    }
    row->end = bytes + FOREIGN_LINE;
    /* counted once, where it gets long enough */
    if ((row->end - row->begin == FIELDS_ROW + FOREIGN_LINE) && is_newest(row->number) &&
        (row->begin - segment->bytes >= FIELDS) && (*hits_of(row->number) < options.each) &&
        (foreign_below(&options.random, ++row->pick.seen) == 0)) {
        row->pick.segment = segment;
        row->pick.bytes   = row->begin;
        row->pick.number  = row->number;
    }
}

static void flip_field(uint8_t *fields)
{
    __atomic_xor_fetch(fields + foreign_below(&options.random, FIELDS), 1u << foreign_below(&options.random, 8),
                       __ATOMIC_SEQ_CST);
    ++job.bytes;
}

/* Two neighbours of @a length bytes: the first one over the second, the second over the first, or both exchanged */
static void move_fields(uint8_t *fields, size_t length)
{
    uint8_t copy[FIELDS], *at = fields + foreign_below(&options.random, (FIELDS / length) - 1) * length;
    uint64_t way = foreign_below(&options.random, 3);

    memcpy(copy, at, 2 * length);
    if (way != 1) {
        memcpy(at + length, copy, length);
    }
    if (way != 0) {
        memcpy(at, copy + length, length);
    }
    job.bytes += length;
}

static void hit_field(bool lines)
{
    flip_row_t row = {0};

    scan_all(pick_row, &row);
    if (row.pick.seen == 0) {
        return;
    }
    if (lines) {
        move_fields(row.pick.bytes - FIELDS, (foreign_below(&options.random, 2) == 0) ? LINE : sizeof(uint64_t));
    } else {
        flip_field(row.pick.bytes - FIELDS);
    }
    ++*hits_of(row.pick.number);
    ++job.hits;
    ++job.fields;
}

static void signal_all(int number)
{
    unsigned i;

    for (i = 0; i < job.process_count; ++i) {
        signal_process(&job.processes[i], number);
    }
}

/** Nothing moves while it is looked for and hit. */
static void hit_frozen(flip_mode_t mode)
{
    bool fields    = (mode == MODE_FIELDS) || (mode == MODE_LINES);
    uint64_t begin = now_ns();
    int i;

    signal_all(SIGSTOP);
    sleep_us(200); /* a stop takes a moment to reach the other cores */
    if (fields) {
        hit_field(mode == MODE_LINES);
    }
    for (i = 0; (i < FROZEN_HITS) && !fields; ++i) {
        hit_random();
    }
    signal_all(SIGCONT);
    sleep_us((now_ns() - begin) / 1000); /* what never moves on reads nothing of what was hit */
}

/* ---- waiting for the worst moment ---- */

static void add_place(const flip_segment_t *segment, uint8_t *bytes, const foreign_line_t *line, void *arg)
{
    flip_place_t *last = arg;

    ++job.lines;
    /* a line that follows another one of its message is found from there */
    if ((last->number != line->number) || (bytes != last->bytes + FOREIGN_LINE)) {
        if (job.place_count < PLACES_MAX) {
            job.places[job.place_count++] = (flip_place_t){bytes, segment, line->number};
        }
    }
    *last = (flip_place_t){bytes, segment, line->number};
}

static void find_places(void)
{
    flip_place_t last = {0};

    job.place_count = 0;
    scan_all(add_place, &last);
}

/** @return a place whose content has become that of another message since it was looked at last, or NULL. */
static flip_place_t *take_change(void)
{
    uint64_t number;
    unsigned i;

    for (i = 0; i < job.place_count; ++i) {
        memcpy(&number, job.places[i].bytes + offsetof(foreign_line_t, number), sizeof(number));
        if (number == job.places[i].number) {
            continue;
        }
        job.places[i].number = number;
        if (memcmp(job.places[i].bytes, &options.key, sizeof(options.key)) == 0) {
            return &job.places[i];
        }
    }
    return NULL;
}

/** @return the same; NULL: nothing has changed for a while. */
static flip_place_t *wait_for_change(void)
{
    uint64_t end = now_ns() + WATCH_NS;
    flip_place_t *place;

    do {
        place = take_change();
    } while ((place == NULL) && (now_ns() < end) && !ended);
    return place;
}

/** Hit a line of the message at @a place: this one, or one that follows it as far as it is there by now. */
static bool hit_near(const flip_place_t *place)
{
    const uint8_t *end = place->segment->bytes + place->segment->length;
    uint8_t *bytes = place->bytes, *chosen = NULL;
    foreign_line_t line;
    uint64_t seen = 0;
    size_t length;

    do {
        length = foreign_line_at(bytes, (size_t)(end - bytes), options.key, &line);
        if ((length == 0) || (line.number != place->number)) {
            break;
        }
        ++job.lines;
        chosen = (foreign_below(&options.random, ++seen) == 0) ? bytes : chosen;
        bytes += length;
    } while ((bytes < end) && (seen < 16)); /* looking on would take longer than the receiver needs */
    return (chosen != NULL) && hit(place->segment, chosen);
}

static void hit_fresh(bool late)
{
    static uint64_t looked;
    flip_place_t *place;

    if (now_ns() - looked > LOOK_NS) {
        find_places();
        looked = now_ns();
    }
    while (take_change() != NULL) {
        /* what has come since the last look may be gone by now */
    }
    if (late) {
        place = wait_for_change();
        if (place != NULL) {
            sleep_us((LATE_MIN_NS + foreign_below(&options.random, LATE_MAX_NS - LATE_MIN_NS)) / 1000);
            see_number(place->number);
            if (is_recent(place->number)) {
                hit_near(place);
            }
        }
        return;
    }
    while ((place = wait_for_change()) != NULL) {
        if (hit_near(place)) {
            return;
        }
    }
}

/** Is the end of this message, or of its first page, not there yet? */
static bool is_being_written(const flip_place_t *place, const foreign_line_t *head)
{
    size_t length = (head->length < PAGE) ? head->length : PAGE;
    foreign_line_t last;

    memcpy(&last, place->bytes + ((length / FOREIGN_LINE) - 1) * FOREIGN_LINE, FOREIGN_LINE_HEAD);
    return (last.key != options.key) || (last.number != place->number);
}

/** Its first lines have just been written. What is damaged later proves nothing, and takes long to heal. */
static void hit_place(const flip_place_t *place)
{
    size_t offset = foreign_below(&options.random, FILLING / 8) * 8;
    uint64_t old, bit = 1ull << foreign_below(&options.random, 64);
    foreign_line_t head, line;
    int tries;

    memcpy(&head, place->bytes, FOREIGN_LINE_HEAD);
    if ((head.key != options.key) || (head.number != place->number) || (head.line != 0) || (head.length < FILLING) ||
        (*hits_of(head.number) >= options.each) || !is_being_written(place, &head)) {
        return;
    }
    foreign_line_make(&line, head.key, head.number, (uint32_t)(offset / FOREIGN_LINE), head.length);
    memcpy(&old, (const uint8_t *)&line + (offset % FOREIGN_LINE), sizeof(old));
    for (tries = 0; tries < FILLING_TRIES; ++tries) {
        if (exchange_word(place->bytes + offset, old, old ^ bit)) {
            ++*hits_of(head.number);
            ++job.hits;
            ++job.bytes;
            ++job.kinds[FOREIGN_FLIP];
            return;
        }
    }
}

static void hit_filling(void)
{
    flip_place_t *place;

    find_places();
    while ((place = wait_for_change()) != NULL) {
        if ((uintptr_t)place->bytes % 8 == 0) {
            hit_place(place);
        }
    }
}

/* ------------------------------------------------ the whole */

static void hit_once(flip_mode_t mode)
{
    switch (mode) {
    case MODE_RANDOM:
        hit_random();
        break;
    case MODE_FROZEN:
    case MODE_FIELDS:
    case MODE_LINES:
        hit_frozen(mode);
        break;
    case MODE_FILLING:
        hit_filling();
        break;
    default:
        hit_fresh(mode == MODE_LATE);
        break;
    }
}

static void attack(void)
{
    uint64_t end = now_ns() + ((uint64_t)options.seconds * NS_PER_SECOND), looked = 0;
    unsigned i;

    while (!ended && (now_ns() < end)) {
        if (now_ns() - looked > LOOK_NS) {
            forget_ended_processes();
            find_processes();
            if (job.process_count == 0) {
                return;
            }
            for (i = 0; i < job.process_count; ++i) {
                find_segments_of(job.processes[i].pid);
            }
            looked = now_ns();
        }
        hit_once((options.mode == MODE_MIXED) ? (flip_mode_t)foreign_below(&options.random, MODE_MIXED) : options.mode);
        if (options.mode != MODE_FILLING) {
            sleep_us(foreign_below(&options.random, 2 * (size_t)options.pause_us + 1));
        }
    }
}

static void wait_for_job(void)
{
    uint64_t end = now_ns() + ((uint64_t)options.wait * NS_PER_SECOND);

    do {
        find_processes();
        if (job.process_count > 0) {
            return;
        }
        sleep_us(20000);
    } while (!ended && (now_ns() < end));
    die("no process of program '%s' with %s", options.program, options.mark);
}

static flip_mode_t parse_mode(const char *name)
{
    int mode;

    for (mode = 0; mode < MODES; ++mode) {
        if (strcmp(name, mode_names[mode]) == 0) {
            return (flip_mode_t)mode;
        }
    }
    die("unknown mode '%s'", name);
}

static unsigned parse_number(const char *name, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 0);

    if ((end == text) || (*end != '\0') || (number > 1000000)) {
        die("bad value '%s' for --%s", text, name);
    }
    return (unsigned)number;
}

static void parse_options(int argc, char **argv)
{
    enum { MARK, PROGRAM, KEY, MODE, KIND, SECONDS, WAIT, PAUSE, EACH, SEED, NAMES };
    static const struct option names[] = {
            {"mark", required_argument, NULL, MARK},
            {"program", required_argument, NULL, PROGRAM},
            {"key", required_argument, NULL, KEY},
            {"mode", required_argument, NULL, MODE},
            {"kind", required_argument, NULL, KIND},
            {"seconds", required_argument, NULL, SECONDS},
            {"wait", required_argument, NULL, WAIT},
            {"pause", required_argument, NULL, PAUSE},
            {"each", required_argument, NULL, EACH},
            {"seed", required_argument, NULL, SEED},
            {NULL, 0, NULL, 0},
    };
    int which;

    while ((which = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (which) {
        case MARK:
            options.mark = optarg;
            break;
        case PROGRAM:
            options.program = optarg;
            break;
        case KEY:
            options.key = strtoull(optarg, NULL, 16);
            break;
        case MODE:
            options.mode = parse_mode(optarg);
            break;
        case KIND:
            options.kind = foreign_kind_parse(optarg);
            break;
        case SECONDS:
            options.seconds = parse_number("seconds", optarg);
            break;
        case WAIT:
            options.wait = parse_number("wait", optarg);
            break;
        case PAUSE:
            options.pause_us = parse_number("pause", optarg);
            break;
        case EACH:
            options.each = parse_number("each", optarg);
            break;
        case SEED:
            options.random = parse_number("seed", optarg);
            break;
        default:
            die("see the beginning of flip.c for its options");
        }
    }
    if ((options.mark == NULL) || (options.program == NULL) || (options.key == 0) || (options.kind < 0) ||
        (optind != argc)) {
        die("--mark, --program and --key are needed, and a known --kind");
    }
    if (options.each > UINT8_MAX) {
        die("--each is at most %d", UINT8_MAX);
    }
}

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    wait_for_job();
    attack();
    signal_all(SIGCONT);
    printf("flip: %llu hits, %llu bytes, %llu flip, %llu burst, %llu zero, %llu of fields, %llu lines seen, %u segments, %u processes\n",
           (unsigned long long)job.hits, (unsigned long long)job.bytes, (unsigned long long)job.kinds[FOREIGN_FLIP],
           (unsigned long long)job.kinds[FOREIGN_BURST], (unsigned long long)job.kinds[FOREIGN_ZERO],
           (unsigned long long)job.fields, (unsigned long long)job.lines, job.segment_count, job.processes_seen);
    return 0;
}
