/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided communication by every sort of window: created, allocated, dynamic, shared; with fence, PSCW, locks of one and of all; put, get,
 * the same with requests, accumulate, get-accumulate, fetch-and-op, compare-and-swap; and a ticket counter of all ranks.
 *
 * @ranks 2 4
 */
#include "check.h"

enum { TAG = 270, LENGTH = 200000, WORDS = 64 };

typedef struct window {
    MPI_Win win;
    unsigned char *memory; /* of LENGTH bytes, then WORDS words */
    MPI_Aint *bases;       /* displacements of all ranks' memory */
    bool plain; /* no puts and gets with requests: in dynamic windows Open MPI 4.1's fail, also over plain UCX */
} window_t;

static uint64_t number;

static int right(void)
{
    return (check.rank + 1) % check.size;
}

static int left(void)
{
    return (check.rank + check.size - 1) % check.size;
}

static int64_t *words_of(const window_t *window)
{
    return (int64_t *)(void *)(window->memory + LENGTH);
}

static MPI_Aint at(const window_t *window, int rank, MPI_Aint offset)
{
    return window->bases[rank] + offset;
}

/* The program's own stores and loads, between those of others */
static void settle(const window_t *window)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check.rank, 0, window->win);
    MPI_Win_unlock(check.rank, window->win);
}

/* --------------------------------------------------------------- bytes */

static void fence(const window_t *window, int length)
{
    unsigned char *data = malloc(LENGTH);

    check_phase("fence");
    check_fill(data, (size_t)length, check.rank, TAG, number);
    MPI_Win_fence(0, window->win);
    MPI_Put(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win);
    MPI_Win_fence(0, window->win);
    check_bytes(window->memory, (size_t)length, left(), TAG, number);
    MPI_Win_fence(0, window->win);
    MPI_Get(data, length, MPI_BYTE, left(), at(window, left(), 0), length, MPI_BYTE, window->win);
    MPI_Win_fence(0, window->win);
    check_bytes(data, (size_t)length, (left() + check.size - 1) % check.size, TAG, number++);
    free(data);
}

static void pscw(const window_t *window, int length)
{
    unsigned char *data = malloc(LENGTH);
    MPI_Group world, from, to;
    int ranks[2] = {left(), right()};

    check_phase("post, start, complete, wait");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &ranks[0], &from);
    MPI_Group_incl(world, 1, &ranks[1], &to);
    check_fill(data, (size_t)length, check.rank, TAG, number);
    MPI_Win_post(from, 0, window->win);
    MPI_Win_start(to, 0, window->win);
    MPI_Put(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win);
    MPI_Win_complete(window->win);
    MPI_Win_wait(window->win);
    check_bytes(window->memory, (size_t)length, left(), TAG, number++);
    MPI_Barrier(MPI_COMM_WORLD); /* it is not written again before that */
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&world);
    free(data);
}

/* Flushed, and told by a message: who has that finds the bytes */
static void flush_and_tell(const window_t *window, int length)
{
    unsigned char *data = malloc(LENGTH);
    MPI_Request request;
    char token;

    check_phase("lock_all, flush, and a message");
    check_fill(data, (size_t)length, check.rank, TAG, number);
    MPI_Win_lock_all(0, window->win);
    if (window->plain) {
        MPI_Put(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win);
        MPI_Win_flush_local(right(), window->win);
    } else {
        MPI_Rput(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_scribble(data, (size_t)length);
    MPI_Win_flush(right(), window->win);
    MPI_Sendrecv("", 1, MPI_CHAR, right(), TAG, &token, 1, MPI_CHAR, left(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(window->win);
    check_bytes(window->memory, (size_t)length, left(), TAG, number);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(data, CHECK_POISON_BYTE, (size_t)length);
    if (window->plain) {
        MPI_Get(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win);
        MPI_Win_flush(right(), window->win);
    } else {
        MPI_Rget(data, length, MPI_BYTE, right(), at(window, right(), 0), length, MPI_BYTE, window->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_bytes(data, (size_t)length, check.rank, TAG, number++);
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

/* Every third column of a matrix: pieces on both sides */
static void pieces(const window_t *window)
{
    enum { ROWS = 100, COLUMNS = 30 };
    int rows[ROWS * COLUMNS], *there = (int *)(void *)window->memory, i;
    MPI_Datatype column;

    check_phase("pieces");
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (i = 0; i < ROWS * COLUMNS; ++i) {
        rows[i] = (check.rank * 100000) + i;
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check.rank, 0, window->win);
    memset(there, 0, sizeof(rows));
    MPI_Win_unlock(check.rank, window->win);
    MPI_Win_fence(0, window->win);
    for (i = 0; i < COLUMNS; i += 3) {
        MPI_Put(rows + i, 1, column, right(), at(window, right(), i * (MPI_Aint)sizeof(int)), 1, column, window->win);
    }
    MPI_Win_fence(0, window->win);
    for (i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK(there[i] == ((i % COLUMNS % 3 == 0) ? (left() * 100000) + i : 0), "%d in %d", there[i], i);
    }
    MPI_Win_fence(0, window->win);
    MPI_Type_free(&column);
}

/* ------------------------------------------------------------- atomics */

static void clear(const window_t *window)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check.rank, 0, window->win);
    memset(words_of(window), 0, WORDS * sizeof(int64_t));
    MPI_Win_unlock(check.rank, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All add to all words of rank 0 */
static void accumulate(const window_t *window)
{
    int64_t add[WORDS], old[WORDS];
    int i;

    check_phase("accumulate");
    clear(window);
    for (i = 0; i < WORDS; ++i) {
        add[i] = check.rank + i;
    }
    MPI_Win_fence(0, window->win);
    MPI_Accumulate(add, WORDS, MPI_INT64_T, 0, at(window, 0, LENGTH), WORDS, MPI_INT64_T, MPI_SUM, window->win);
    MPI_Win_fence(0, window->win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
    MPI_Get_accumulate(add, WORDS, MPI_INT64_T, old, WORDS, MPI_INT64_T, 0, at(window, 0, LENGTH), WORDS, MPI_INT64_T,
                       MPI_NO_OP, window->win);
    MPI_Win_unlock(0, window->win);
    for (i = 0; i < WORDS; ++i) {
        int64_t sum = ((int64_t)check.size * (check.size - 1) / 2) + ((int64_t)check.size * i);

        CHECK(old[i] == sum, "%lld in word %d instead of %lld", (long long)old[i], i, (long long)sum);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each number is drawn once: who draws writes its rank there, and nobody finds it taken */
static void tickets(const window_t *window, int turns)
{
    int64_t one = 1, ticket, none = 0, mine = check.rank + 1, old;
    int i;

    check_phase("tickets");
    clear(window);
    MPI_Win_lock_all(0, window->win);
    for (i = 0; i < turns; ++i) {
        MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, at(window, 0, LENGTH), MPI_SUM, window->win);
        MPI_Win_flush(0, window->win);
        CHECK((ticket >= 0) && (ticket < (int64_t)turns * check.size), "ticket %lld", (long long)ticket);
        if (ticket + 1 < WORDS) {
            MPI_Compare_and_swap(&mine, &none, &old, MPI_INT64_T, 0,
                                 at(window, 0, LENGTH + ((ticket + 1) * (MPI_Aint)sizeof(mine))), window->win);
            MPI_Win_flush(0, window->win);
            CHECK(old == 0, "ticket %lld was drawn by %lld too", (long long)ticket, (long long)old - 1);
        }
    }
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    settle(window);
    CHECK((check.rank != 0) || (words_of(window)[0] == (int64_t)turns * check.size), "%lld tickets",
          (long long)words_of(window)[0]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* -------------------------------------------------------------- windows */

static void all_of(const window_t *window)
{
    static const int lengths[] = {8, 1000, 8300, LENGTH};
    unsigned i;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        fence(window, lengths[i]);
        pscw(window, lengths[i]);
        flush_and_tell(window, lengths[i]);
    }
    pieces(window);
    accumulate(window);
    tickets(window, 10);
}

static size_t window_size(void)
{
    return LENGTH + (WORDS * sizeof(int64_t));
}

static void created(window_t *window)
{
    check_phase("created");
    window->memory = calloc(1, window_size());
    MPI_Win_create(window->memory, (MPI_Aint)window_size(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
    all_of(window);
    MPI_Win_free(&window->win);
    free(window->memory);
}

static void allocated(window_t *window)
{
    check_phase("allocated");
    MPI_Win_allocate((MPI_Aint)window_size(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->memory, &window->win);
    all_of(window);
    MPI_Win_free(&window->win);
}

/* Open MPI has another component for these than osc/ucx, which is the only one here */
static void shared(window_t *window)
{
#ifdef OPEN_MPI
    return;
#endif
    check_phase("shared");
    MPI_Win_allocate_shared((MPI_Aint)window_size(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->memory, &window->win);
    all_of(window);
    MPI_Win_free(&window->win);
}

static void dynamic(window_t *window)
{
    MPI_Aint address;

    check_phase("dynamic");
    window->memory = calloc(1, window_size());
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
    MPI_Win_attach(window->win, window->memory, (MPI_Aint)window_size());
    MPI_Get_address(window->memory, &address);
    MPI_Allgather(&address, 1, MPI_AINT, window->bases, 1, MPI_AINT, MPI_COMM_WORLD);
    window->plain = true;
    all_of(window);
    window->plain = false;
    MPI_Win_detach(window->win, window->memory);
    MPI_Win_free(&window->win);
    memset(window->bases, 0, (size_t)check.size * sizeof(*window->bases));
    free(window->memory);
}

int main(int argc, char **argv)
{
    window_t window = {.plain = false};
    int repeat;

    check_init(&argc, &argv, "rma_windows");
    window.bases = calloc((size_t)check.size, sizeof(*window.bases));
    for (repeat = check_scaled(1); repeat > 0; --repeat) {
        created(&window);
        allocated(&window);
        shared(&window);
        dynamic(&window);
    }
    free(window.bases);
    return check_finish();
}
