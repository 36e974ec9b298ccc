/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_window.h"

#include <sched.h>

#include "util/process.h"

#define UCI_MPI_TURNS_SPIN  64u           /* turns before the processor is given away */
#define UCI_MPI_TURNS_STORE 1024u         /* turns after which a rank writes again what its seat must say */
#define UCI_MPI_REWRITES    3u            /* of a chunk */
#define UCI_MPI_DAMAGED_NS  2000000000ull /* a counter that is none for so long will not be put right by its owner */
#define UCI_MPI_TAG_NOBODY  1             /* of messages that nobody sends */
#define UCI_MPI_PAGE        ((size_t)4096)

/* Numbers stand there with their complement, so that a damaged one is none */
struct uci_mpi_seat {
    _Alignas(UCI_CACHE_LINE) uint64_t filled; /* up to this piece the own contribution lies in the slot */
    uint64_t reduced;                         /* ... the sums of the own block do */
    uint64_t taken;                           /* ... all sums have been read */
    uint64_t failed;                          /* an error of MPI's, if it is a number */

    /* "Put that chunk there again": what, and the number of the request, which is written last */
    _Alignas(UCI_CACHE_LINE) uint32_t piece;
    uint32_t writer;
    uint32_t block;
    uint32_t chunk;
    uint64_t asked;
    uint64_t answered; /* by the writer */
};

static uint64_t uci_mpi_word(uint32_t number)
{
    return ((uint64_t)~number << 32) | number;
}

static bool uci_mpi_word_is_number(uint64_t word)
{
    return (uint32_t)(word >> 32) == ~(uint32_t)word;
}

/* Digests of half a slot: blocks may end within a chunk, each has one more */
static size_t uci_mpi_digests(unsigned leaders, size_t slot)
{
    return slot / UCI_MPI_CHUNK + leaders + 1;
}

static size_t uci_mpi_seats_size(unsigned ranks)
{
    return uci_align_up(ranks * sizeof(uci_mpi_seat_t), UCI_MPI_PAGE);
}

static size_t uci_mpi_digests_size(unsigned ranks, unsigned leaders, size_t slot)
{
    return uci_align_up(2 * ranks * uci_mpi_digests(leaders, slot) * sizeof(uint64_t), UCI_MPI_PAGE);
}

size_t uci_mpi_window_size(unsigned ranks, unsigned leaders, size_t slot)
{
    return uci_mpi_seats_size(ranks) + uci_mpi_digests_size(ranks, leaders, slot) + 2 * ranks * slot;
}

static uci_mpi_seat_t *uci_mpi_seat(const uci_mpi_window_t *window, unsigned rank)
{
    return (uci_mpi_seat_t *)window->memory + rank;
}

static size_t uci_mpi_half(const uci_mpi_piece_t *piece, unsigned rank)
{
    return 2 * rank + (piece->number & 1);
}

static uint64_t *uci_mpi_chunk_digest(const uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer,
                                      unsigned block, size_t offset)
{
    uint64_t *digests = (uint64_t *)(window->memory + uci_mpi_seats_size(window->ranks));

    return digests + uci_mpi_half(piece, writer) * uci_mpi_digests(window->leaders, window->slot) +
           uci_mpi_block_begin(piece, block) / UCI_MPI_CHUNK + block + offset / UCI_MPI_CHUNK;
}

static char *uci_mpi_chunk(const uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer,
                           unsigned block, size_t offset)
{
    return window->memory + uci_mpi_seats_size(window->ranks) +
           uci_mpi_digests_size(window->ranks, window->leaders, window->slot) +
           uci_mpi_half(piece, writer) * window->slot + uci_mpi_block_begin(piece, block) + offset;
}

/* What lies there from an earlier piece, or at another place, has another digest */
static uint64_t uci_mpi_place(const uci_mpi_piece_t *piece, unsigned block, size_t offset)
{
    return (((uint64_t)piece->number << 32) ^ ((uint64_t)block << 20) ^ (offset / UCI_MPI_CHUNK)) *
           0x9e3779b97f4a7c15ul;
}

void uci_mpi_window_reset(uci_mpi_window_t *window)
{
    window->filled = window->reduced = window->taken = uci_mpi_word(0);
}

void uci_mpi_window_format(uci_mpi_window_t *window)
{
    uci_mpi_seat_t *seat;
    unsigned rank;

    for (rank = 0; rank < window->ranks; ++rank) {
        seat           = uci_mpi_seat(window, rank);
        seat->filled   = uci_mpi_word(0);
        seat->reduced  = uci_mpi_word(0);
        seat->taken    = uci_mpi_word(0);
        seat->asked    = uci_mpi_word(0);
        seat->answered = uci_mpi_word(0);
    }
}

static void uci_mpi_chunk_write(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned block, size_t offset,
                                size_t length)
{
    const char *from = (block == window->rank) ? window->receive : window->send;
    uint64_t digest;

    from += piece->offset + uci_mpi_block_begin(piece, block) + offset;
    digest = window->digest->copy(uci_mpi_chunk(window, piece, window->rank, block, offset), from, length);
    *uci_mpi_chunk_digest(window, piece, window->rank, block, offset) = digest ^ uci_mpi_place(piece, block, offset);
}

static void uci_mpi_block_write(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned block)
{
    size_t length = uci_mpi_block_length(piece, block), offset, chunk;

    for (offset = 0; offset < length; offset += chunk) {
        chunk = uci_min(UCI_MPI_CHUNK, length - offset);
        uci_mpi_chunk_write(window, piece, block, offset, chunk);
    }
}

const uci_mpi_piece_t *uci_mpi_window_begin(uci_mpi_window_t *window, size_t offset, size_t length)
{
    uci_mpi_piece_t *piece = &window->piece[++window->number & 1];

    *piece = (uci_mpi_piece_t){
            .number = window->number, .leaders = window->leaders, .offset = offset, .length = length};
    return piece;
}

static void uci_mpi_window_say(uint64_t *own, uint64_t *seat, uint32_t number)
{
    *own = uci_mpi_word(number);
    __atomic_store_n(seat, *own, __ATOMIC_RELEASE);
}

void uci_mpi_window_fill(uci_mpi_window_t *window, const uci_mpi_piece_t *piece)
{
    unsigned block;

    for (block = 0; block < window->leaders; ++block) {
        if (block != window->rank) {
            uci_mpi_block_write(window, piece, block);
        }
    }
    uci_mpi_window_say(&window->filled, &uci_mpi_seat(window, window->rank)->filled, piece->number);
}

void uci_mpi_window_publish(uci_mpi_window_t *window, const uci_mpi_piece_t *piece)
{
    uci_mpi_block_write(window, piece, window->rank);
    uci_mpi_window_say(&window->reduced, &uci_mpi_seat(window, window->rank)->reduced, piece->number);
}

void uci_mpi_window_take(uci_mpi_window_t *window, const uci_mpi_piece_t *piece)
{
    uci_mpi_window_say(&window->taken, &uci_mpi_seat(window, window->rank)->taken, piece->number);
}

void uci_mpi_window_fail(uci_mpi_window_t *window, int error)
{
    __atomic_store_n(&uci_mpi_seat(window, window->rank)->failed, uci_mpi_word((uint32_t)error), __ATOMIC_RELEASE);
}

/* A request that can't be fulfilled is answered as well: who has made it will see that nothing has changed, and say so. Others can write to the
 * seat: each word is read once, so that what is looked at is what is used */
static void uci_mpi_request_serve(uci_mpi_window_t *window, const uci_mpi_seat_t *seat)
{
    uint32_t number              = __atomic_load_n(&seat->piece, __ATOMIC_RELAXED);
    uint32_t block               = __atomic_load_n(&seat->block, __ATOMIC_RELAXED);
    size_t offset                = __atomic_load_n(&seat->chunk, __ATOMIC_RELAXED) * UCI_MPI_CHUNK, length;
    const uci_mpi_piece_t *piece = &window->piece[number & 1];

    if ((piece->number != number) || (block >= piece->leaders)) {
        return;
    }
    length = uci_mpi_block_length(piece, block);
    if (offset < length) {
        uci_mpi_chunk_write(window, piece, block, offset, uci_min(UCI_MPI_CHUNK, length - offset));
    }
}

static void uci_mpi_window_serve(uci_mpi_window_t *window)
{
    uci_mpi_seat_t *seat;
    uint64_t asked;
    unsigned rank;

    for (rank = 0; rank < window->ranks; ++rank) {
        seat  = uci_mpi_seat(window, rank);
        asked = __atomic_load_n(&seat->asked, __ATOMIC_ACQUIRE);
        if (uci_likely((uint32_t)asked == window->served[rank]) || (rank == window->rank) ||
            !uci_mpi_word_is_number(asked) || (seat->writer != window->rank)) {
            continue;
        }
        uci_mpi_request_serve(window, seat);
        window->served[rank] = (uint32_t)asked;
        __atomic_store_n(&seat->answered, asked, __ATOMIC_RELEASE);
    }
}

/* What others wait for, in case that somebody else has written there */
static void uci_mpi_window_store_again(uci_mpi_window_t *window)
{
    uci_mpi_seat_t *seat = uci_mpi_seat(window, window->rank);

    __atomic_store_n(&seat->filled, window->filled, __ATOMIC_RELEASE);
    __atomic_store_n(&seat->reduced, window->reduced, __ATOMIC_RELEASE);
    __atomic_store_n(&seat->taken, window->taken, __ATOMIC_RELEASE);
}

static int uci_mpi_window_error(const uci_mpi_window_t *window)
{
    uint64_t failed;
    unsigned rank;

    for (rank = 0; rank < window->ranks; ++rank) {
        failed = __atomic_load_n(&uci_mpi_seat(window, rank)->failed, __ATOMIC_ACQUIRE);
        if (uci_unlikely(failed != 0) && uci_mpi_word_is_number(failed)) {
            return (int)(uint32_t)failed;
        }
    }
    return MPI_SUCCESS;
}

static void uci_mpi_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int uci_mpi_window_turn(uci_mpi_window_t *window)
{
    if (++window->turns < UCI_MPI_TURNS_SPIN) {
        uci_mpi_pause();
        return MPI_SUCCESS;
    }
    uci_mpi_window_serve(window);
    if (window->turns % UCI_MPI_TURNS_STORE == 0) {
        uci_mpi_window_store_again(window);
    }
    sched_yield();
    return uci_mpi_window_error(window);
}

/* Nothing comes: this lets MPI go on, for those who wait for a message of this rank's program. MPICH does not where a communicator has one rank, as no
 * window's has */
static int uci_mpi_window_progress(uci_mpi_window_t *window)
{
    int flag;

    return (window->turns < UCI_MPI_TURNS_SPIN)
                   ? MPI_SUCCESS
                   : PMPI_Iprobe((int)window->rank, UCI_MPI_TAG_NOBODY, window->comm, &flag, MPI_STATUS_IGNORE);
}

/* A counter that is damaged its owner puts right, if it waits; nobody can go on without */
static void uci_mpi_window_look(const uci_mpi_window_t *window, uint64_t word, uint64_t *since)
{
    static const uci_allreduce_damage_t damaged = {.problem = "a rank's counter is damaged, and stays so"};
    uci_allreduce_damage_t damage               = damaged;

    if (uci_mpi_word_is_number(word)) {
        *since = 0;
    } else if (*since == 0) {
        *since = uci_process_time_ns();
    } else if (uci_process_time_ns() - *since > UCI_MPI_DAMAGED_NS) {
        damage.count = window->count;
        window->ops->damaged(&damage);
    }
}

/* Until the number there is @a number, or a later one */
static int uci_mpi_window_wait(uci_mpi_window_t *window, const uint64_t *place, uint32_t number)
{
    uint64_t word, since = 0;
    int ret = MPI_SUCCESS;

    uci_mpi_window_wait_begin(window);
    for (;;) {
        word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (uci_mpi_word_is_number(word) && ((int32_t)((uint32_t)word - number) >= 0)) {
            return MPI_SUCCESS;
        }
        uci_mpi_window_look(window, word, &since);
        ret = uci_mpi_window_progress(window);
        if (uci_likely(ret == MPI_SUCCESS)) {
            ret = uci_mpi_window_turn(window);
        }
        if (uci_unlikely(ret != MPI_SUCCESS)) {
            return ret;
        }
    }
}

int uci_mpi_window_wait_filled(uci_mpi_window_t *window, const uci_mpi_piece_t *piece)
{
    int ret = MPI_SUCCESS;
    unsigned rank;

    for (rank = 0; (ret == MPI_SUCCESS) && (rank < window->ranks); ++rank) {
        ret = uci_mpi_window_wait(window, &uci_mpi_seat(window, rank)->filled, piece->number);
    }
    return ret;
}

int uci_mpi_window_wait_published(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned rank)
{
    return uci_mpi_window_wait(window, &uci_mpi_seat(window, rank)->reduced, piece->number);
}

int uci_mpi_window_wait_taken(uci_mpi_window_t *window, uint32_t number)
{
    int ret = MPI_SUCCESS;
    unsigned rank;

    for (rank = 0; (ret == MPI_SUCCESS) && (rank < window->ranks); ++rank) {
        ret = uci_mpi_window_wait(window, &uci_mpi_seat(window, rank)->taken, number);
    }
    return ret;
}

/* Its writer puts it there once more */
static int uci_mpi_chunk_ask(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer, unsigned block,
                             size_t offset)
{
    uci_mpi_seat_t *seat = uci_mpi_seat(window, window->rank);

    seat->piece  = piece->number;
    seat->writer = writer;
    seat->block  = block;
    seat->chunk  = (uint32_t)(offset / UCI_MPI_CHUNK);
    __atomic_store_n(&seat->asked, uci_mpi_word(++window->requests), __ATOMIC_RELEASE);
    return uci_mpi_window_wait(window, &seat->answered, window->requests);
}

/* What has come with @a found is not what was put there */
static int uci_mpi_chunk_repair(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer, unsigned block,
                                size_t offset, size_t length, void *to, uint64_t found)
{
    const char *from              = uci_mpi_chunk(window, piece, writer, block, offset);
    const uint64_t *digest        = uci_mpi_chunk_digest(window, piece, writer, block, offset);
    uint64_t place                = uci_mpi_place(piece, block, offset);
    uci_allreduce_damage_t damage = {.writer   = window->names[writer],
                                     .offset   = piece->offset + uci_mpi_block_begin(piece, block) + offset,
                                     .length   = length,
                                     .count    = window->count,
                                     .expected = *digest ^ place,
                                     .found    = found};
    int ret;

    for (;;) {
        damage.repaired = (window->digest->copy(to, from, length) ^ place) == *digest;
        if (damage.repaired || (damage.rewritten == UCI_MPI_REWRITES)) {
            window->ops->damaged(&damage);
            return MPI_SUCCESS;
        }
        ret = uci_mpi_chunk_ask(window, piece, writer, block, offset);
        if (ret != MPI_SUCCESS) {
            return ret;
        }
        ++damage.rewritten;
    }
}

int uci_mpi_window_read(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer, unsigned block,
                        size_t offset, size_t length, void *to)
{
    const char *from  = uci_mpi_chunk(window, piece, writer, block, offset);
    uint64_t expected = *uci_mpi_chunk_digest(window, piece, writer, block, offset) ^
                        uci_mpi_place(piece, block, offset);
    uint64_t found = window->digest->copy(to, from, length);

    return uci_likely(found == expected)
                   ? MPI_SUCCESS
                   : uci_mpi_chunk_repair(window, piece, writer, block, offset, length, to, found);
}
