/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_comm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/process_id.h"

#define UCI_MPI_COMMS_MAX   64 /* communicators of a process that have one; an MPI has 2000 or so at all */
#define UCI_MPI_LEADER_MAX  ((size_t)4 << 20)   /* bytes of a block, at most */
#define UCI_MPI_PIECE_MIN   ((size_t)128 << 10) /* bytes of a piece, at least */
#define UCI_MPI_WINDOWS_MAX ((size_t)256 << 20) /* bytes of all windows of a process; one has half of it at most */
#define UCI_MPI_NAME_MAX    64

/* A rank of a communicator, which are put in the order of their nodes */
typedef struct uci_mpi_place {
    uint64_t host; /* the same on all ranks of a node */
    int rank;
    int first; /* lowest rank of its node */
} uci_mpi_place_t;

static const uci_allreduce_ops_t *uci_mpi_comm_ops;
static int uci_mpi_comm_keyval  = MPI_KEYVAL_INVALID;
static int uci_mpi_final_keyval = MPI_KEYVAL_INVALID;
static int uci_mpi_comm_count;
static size_t uci_mpi_windows_length; /* bytes of all windows that are mapped */

static void uci_mpi_window_unmap(uci_mpi_window_t *window)
{
    if (window->memory != NULL) {
        munmap(window->memory, window->length);
        window->memory = NULL;
        __atomic_fetch_sub(&uci_mpi_windows_length, window->length, __ATOMIC_RELAXED);
    }
}

static void uci_mpi_own_free(MPI_Comm *own)
{
    if (*own != MPI_COMM_NULL) {
        PMPI_Comm_free(own);
    }
}

static void uci_mpi_comm_drop(uci_mpi_comm_t *kept)
{
    uci_mpi_window_unmap(&kept->window);
    uci_mpi_own_free(&kept->window.comm);
    uci_mpi_own_free(&kept->net.comm);
    free(kept->window.served);
    free(kept->members);
    free(kept->buffers);
    kept->window.served = NULL;
    kept->members       = NULL;
    kept->buffers       = NULL;
}

static int uci_mpi_comm_on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_comm_t *kept = value;

    if (kept->state == UCI_MPI_COMM_READY) {
        __atomic_fetch_sub(&uci_mpi_comm_count, 1, __ATOMIC_RELAXED);
    }
    uci_mpi_comm_drop(kept);
    free(kept);
    return MPI_SUCCESS;
}

/* Within MPI_Finalize, while MPI can still be used: the one that is never freed */
static int uci_mpi_comm_on_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    void *kept;
    int found = 0;

    if ((PMPI_Comm_get_attr(MPI_COMM_WORLD, uci_mpi_comm_keyval, &kept, &found) == MPI_SUCCESS) && found) {
        PMPI_Comm_delete_attr(MPI_COMM_WORLD, uci_mpi_comm_keyval);
    }
    return MPI_SUCCESS;
}

bool uci_mpi_comm_init(const uci_allreduce_ops_t *ops)
{
    uci_mpi_comm_ops = ops;
    return (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, uci_mpi_comm_on_delete, &uci_mpi_comm_keyval, NULL) ==
            MPI_SUCCESS) &&
           (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, uci_mpi_comm_on_finalize, &uci_mpi_final_keyval, NULL) ==
            MPI_SUCCESS) &&
           (PMPI_Comm_set_attr(MPI_COMM_SELF, uci_mpi_final_keyval, NULL) == MPI_SUCCESS);
}

/* What the others would go on without: there is no way to tell them */
static uci_mpi_comm_t *uci_mpi_comm_create(MPI_Comm comm)
{
    uci_mpi_comm_t *kept = calloc(1, sizeof(*kept));
    int inter            = 0;

    if ((kept == NULL) || (PMPI_Comm_set_attr(comm, uci_mpi_comm_keyval, kept) != MPI_SUCCESS)) {
        fprintf(stderr, "libuci_mpi: no memory for what is kept of a communicator\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    kept->net.comm = kept->window.comm = MPI_COMM_NULL;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &kept->ranks);
    PMPI_Comm_rank(comm, &kept->rank);
    kept->state = (inter || (kept->ranks == 1)) ? UCI_MPI_COMM_MPI : UCI_MPI_COMM_NEW;
    return kept;
}

uci_mpi_comm_t *uci_mpi_comm_get(MPI_Comm comm)
{
    uci_mpi_comm_t *kept;
    int found = 0;

    if (comm == MPI_COMM_NULL) {
        return NULL; /* an error, which MPI tells */
    }
    return ((PMPI_Comm_get_attr(comm, uci_mpi_comm_keyval, &kept, &found) == MPI_SUCCESS) && found)
                   ? kept
                   : uci_mpi_comm_create(comm);
}

static int uci_mpi_place_by_host(const void *left, const void *right)
{
    const uci_mpi_place_t *a = left, *b = right;

    return (a->host != b->host) ? ((a->host < b->host) ? -1 : 1) : a->rank - b->rank;
}

static int uci_mpi_place_by_first(const void *left, const void *right)
{
    const uci_mpi_place_t *a = left, *b = right;

    return (a->first != b->first) ? a->first - b->first : a->rank - b->rank;
}

/* @param hosts  of all ranks */
static void uci_mpi_places_sort(uci_mpi_place_t *places, const uint64_t *hosts, int ranks)
{
    int i;

    for (i = 0; i < ranks; ++i) {
        places[i] = (uci_mpi_place_t){.host = hosts[i], .rank = i};
    }
    qsort(places, (size_t)ranks, sizeof(*places), uci_mpi_place_by_host);
    for (i = 0; i < ranks; ++i) {
        places[i].first = ((i > 0) && (places[i].host == places[i - 1].host)) ? places[i - 1].first : places[i].rank;
    }
    qsort(places, (size_t)ranks, sizeof(*places), uci_mpi_place_by_first);
}

/* One more node has these ranks */
static void uci_mpi_comm_add_node(uci_mpi_comm_t *kept, const uci_mpi_place_t *places, int count)
{
    int i;

    kept->leaders         = (kept->nodes == 0) ? count : uci_min(kept->leaders, count);
    kept->local_ranks_max = uci_max(kept->local_ranks_max, count);
    for (i = 0; (i < count) && (places[i].rank != kept->rank); ++i) {
    }
    if (i == count) {
        return;
    }
    kept->node        = kept->nodes;
    kept->local       = i;
    kept->local_ranks = count;
    for (i = 0; i < count; ++i) {
        kept->members[i] = places[i].rank;
    }
}

static void uci_mpi_comm_find_nodes(uci_mpi_comm_t *kept, uci_mpi_place_t *places, const uint64_t *hosts)
{
    int begin, end;

    uci_mpi_places_sort(places, hosts, kept->ranks);
    for (begin = 0; begin < kept->ranks; begin = end, ++kept->nodes) {
        for (end = begin; (end < kept->ranks) && (places[end].first == places[begin].first); ++end) {
        }
        uci_mpi_comm_add_node(kept, places + begin, end - begin);
    }
}

/* The first rank of a node makes it. Its name is empty if that can't be done, and memory NULL */
static void uci_mpi_memory_create(uci_mpi_window_t *window, char *name, size_t size)
{
    uint64_t random = 0;
    int fd, error;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    snprintf(name, size, "/uci_allreduce.%d.%016lx", (int)getpid(), (unsigned long)random);
    fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        name[0] = '\0';
        return;
    }
    error = posix_fallocate(fd, 0, (off_t)window->length); /* so that there is no SIGBUS when it is used */
    if (error == 0) {
        window->memory = mmap(NULL, window->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if ((error != 0) || (window->memory == MAP_FAILED)) {
        window->memory = NULL;
        shm_unlink(name);
        name[0] = '\0';
        return;
    }
    uci_mpi_window_format(window);
}

/* memory stays NULL if that can't be done */
static void uci_mpi_memory_open(uci_mpi_window_t *window, const char *name)
{
    struct stat found;
    int fd = (name[0] != '\0') ? shm_open(name, O_RDWR | O_CLOEXEC, 0) : -1;

    if (fd < 0) {
        return;
    }
    if ((fstat(fd, &found) == 0) && (found.st_uid == geteuid()) && ((size_t)found.st_size == window->length)) {
        window->memory = mmap(NULL, window->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        window->memory = (window->memory == MAP_FAILED) ? NULL : window->memory;
    }
    close(fd);
}

/* @return whether this rank has it; @a name, of the first one, is to be unlinked when all have */
static bool uci_mpi_window_map(uci_mpi_comm_t *kept, char name[UCI_MPI_NAME_MAX])
{
    uci_mpi_window_t *window = &kept->window;

    name[0] = '\0';
    if (kept->local_ranks == 1) {
        return true;
    }
    window->length = uci_mpi_window_size(window->ranks, window->leaders, window->slot);
    if (kept->local == 0) {
        uci_mpi_memory_create(window, name, UCI_MPI_NAME_MAX);
    }
    PMPI_Bcast(name, UCI_MPI_NAME_MAX, MPI_CHAR, 0, window->comm);
    if (kept->local != 0) {
        uci_mpi_memory_open(window, name);
    }
    return (window->memory != NULL) &&
           (__atomic_add_fetch(&uci_mpi_windows_length, window->length, __ATOMIC_RELAXED) <= UCI_MPI_WINDOWS_MAX);
}

static bool uci_mpi_buffers_alloc(uci_mpi_comm_t *kept)
{
    size_t block = uci_align_up(kept->piece_max / (size_t)kept->leaders + 1, UCI_MPI_BLOCK_UNIT);
    void *buffers;

    free(kept->buffers);
    kept->buffers = NULL;
    if (posix_memalign(&buffers, UCI_MPI_BLOCK_UNIT, 2 * block + UCI_MPI_CHUNK) != 0) {
        return false;
    }
    kept->buffers = buffers;
    kept->sums    = kept->buffers;
    kept->spare   = kept->sums + block;
    kept->chunk   = kept->spare + block;
    return true;
}

/* @return whether all say so */
static bool uci_mpi_comm_agree(MPI_Comm comm, bool says)
{
    int own = says, all = 0;

    return (PMPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS) && (all != 0);
}

/* Smaller and smaller, until there is room for it on all nodes: /dev/shm may be small. @return the same on all ranks */
static bool uci_mpi_comm_share(uci_mpi_comm_t *kept, MPI_Comm comm)
{
    size_t most = UCI_MPI_WINDOWS_MAX / 4 / (size_t)kept->local_ranks_max, size;
    char name[UCI_MPI_NAME_MAX];
    bool done = false;

    size = uci_min((size_t)kept->leaders * UCI_MPI_LEADER_MAX, most) & ~(UCI_MPI_CHUNK - 1);
    for (; !done && (size >= UCI_MPI_PIECE_MIN); size = size / 2 & ~(UCI_MPI_CHUNK - 1)) {
        kept->piece_max = kept->window.slot = size;
        done                                = uci_mpi_window_map(kept, name) && uci_mpi_buffers_alloc(kept);
        done                                = uci_mpi_comm_agree(comm, done);
        if ((kept->local == 0) && (name[0] != '\0')) {
            shm_unlink(name);
        }
        if (!done) {
            uci_mpi_window_unmap(&kept->window);
        }
    }
    return done;
}

static void uci_mpi_comm_set_window(uci_mpi_comm_t *kept)
{
    kept->window = (uci_mpi_window_t){.ranks   = (unsigned)kept->local_ranks,
                                      .rank    = (unsigned)kept->local,
                                      .leaders = (unsigned)kept->leaders,
                                      .comm    = kept->window.comm,
                                      .names   = kept->members,
                                      .served  = kept->window.served,
                                      .digest  = uci_digest_row(UCI_DIGEST_XXH3, uci_digest_isa_best()),
                                      .ops     = uci_mpi_comm_ops};
    uci_mpi_window_reset(&kept->window);
}

/* MPI_COMM_NULL for those whose @a color is MPI_UNDEFINED */
static bool uci_mpi_own_split(MPI_Comm comm, int color, int key, MPI_Comm *own)
{
    if (PMPI_Comm_split(comm, color, key, own) != MPI_SUCCESS) {
        return false;
    }
    if (*own != MPI_COMM_NULL) {
        PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
    }
    return true;
}

/* @return the same on all ranks */
static bool uci_mpi_comm_connect(uci_mpi_comm_t *kept, MPI_Comm comm)
{
    int leader = (kept->local < kept->leaders) ? kept->local : MPI_UNDEFINED;
    int node   = (kept->local_ranks > 1) ? kept->node : MPI_UNDEFINED;
    bool done;

    done = uci_mpi_own_split(comm, leader, kept->node, &kept->net.comm) &&
           uci_mpi_own_split(comm, node, kept->local, &kept->window.comm);
    if (!uci_mpi_comm_agree(comm, done)) {
        return false;
    }
    uci_mpi_comm_set_window(kept);
    done             = uci_mpi_comm_share(kept, comm);
    kept->net.nodes  = kept->nodes;
    kept->net.node   = kept->node;
    kept->net.window = (kept->window.memory != NULL) ? &kept->window : NULL;
    return done;
}

/* Settings, and what this process may have: what they say must be the same everywhere. @return the same on all ranks */
static bool uci_mpi_comm_agree_terms(MPI_Comm comm, bool can)
{
    int terms  = 2 * uci_mpi_comm_ops->use + uci_mpi_comm_ops->sealed;
    int own[3] = {can, terms, -terms}, all[3] = {0, 0, 0};
    bool is_wanted;

    if (PMPI_Allreduce(own, all, 3, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS) {
        return false;
    }
    is_wanted = (uci_mpi_comm_ops->use == UCI_ALLREDUCE_ON) ||
                ((uci_mpi_comm_ops->use == UCI_ALLREDUCE_AUTO) && uci_mpi_comm_ops->sealed);
    return all[0] && (all[1] == -all[2]) && is_wanted;
}

static bool uci_mpi_comm_build(uci_mpi_comm_t *kept, MPI_Comm comm, bool can)
{
    uci_mpi_place_t *places = calloc((size_t)kept->ranks, sizeof(*places));
    uint64_t *hosts         = calloc((size_t)kept->ranks, sizeof(*hosts));
    bool done               = false;

    kept->members       = calloc((size_t)kept->ranks, sizeof(*kept->members));
    kept->window.served = calloc((size_t)kept->ranks, sizeof(*kept->window.served));
    can = can && (uci_process_machine() != 0) && (places != NULL) && (hosts != NULL) && (kept->members != NULL) &&
          (kept->window.served != NULL) && (__atomic_load_n(&uci_mpi_comm_count, __ATOMIC_RELAXED) < UCI_MPI_COMMS_MAX);
    if (!uci_mpi_comm_agree_terms(comm, can)) {
        goto out;
    }
    hosts[kept->rank] = uci_process_machine();
    if (PMPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, hosts, 1, MPI_UINT64_T, comm) == MPI_SUCCESS) {
        uci_mpi_comm_find_nodes(kept, places, hosts);
        done = (kept->nodes > 1) && uci_mpi_comm_connect(kept, comm);
    }
out:
    free(hosts);
    free(places);
    return done;
}

void uci_mpi_comm_prepare(uci_mpi_comm_t *kept, MPI_Comm comm, bool can)
{
    if (!uci_mpi_comm_build(kept, comm, can)) {
        uci_mpi_comm_drop(kept);
        kept->state = UCI_MPI_COMM_MPI;
        return;
    }
    kept->sealed = uci_mpi_comm_ops->sealed;
    kept->state  = UCI_MPI_COMM_READY;
    __atomic_fetch_add(&uci_mpi_comm_count, 1, __ATOMIC_RELAXED);
}
