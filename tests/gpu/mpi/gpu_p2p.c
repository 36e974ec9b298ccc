/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages between memories of all kinds, a GPU's, managed and the host's, of all sizes: blocking, synchronous, several at once in both
 * directions, and found by a probe. MPI needs to know nothing of GPUs for that: UCX is given the addresses as they are.
 *
 * The scale is of the largest length. With "time" as its only argument: latency and bandwidth from kind to kind, a line each, "FROM TO BYTES MICROSECONDS MB/S".
 *
 * @ranks 2
 */
#include "../../mpi/check.h"

#include "../gpu.h"

enum { TAG = 90, WINDOW = 4, LARGEST = 16 << 20 };

typedef enum { BLOCKING, SYNCHRONOUS, BOTH_WAYS, PROBED, MODES } way_t;

static const char *const mode_names[MODES] = {"blocking", "synchronous", "both ways", "probed"};
static const size_t lengths[] = {0, 1, 8, 100, 1024, 4096, 8192, 8193, 65536, 70001, 262144, 1 << 20, 5000011, LARGEST};

static char *shadow; /* what a buffer holds, in the host's memory */
static uint64_t number;

typedef struct buffer {
    gpu_kind_t kind;
    char *memory, *data;
    size_t length;
} buffer_t;

static void buffer_make(buffer_t *buffer, gpu_kind_t kind, size_t length)
{
    size_t extent = length + (2 * CHECK_GUARD);

    *buffer = (buffer_t){.kind = kind, .memory = gpu_alloc(kind, extent), .length = length};
    CHECK(buffer->memory != NULL, "no memory");
    buffer->data = buffer->memory + CHECK_GUARD;
    memset(shadow, CHECK_GUARD_BYTE, extent);
    gpu_copy(buffer->memory, shadow, extent);
}

static void buffer_fill(const buffer_t *buffer, uint64_t index)
{
    check_fill(shadow, buffer->length, check.rank, TAG, index);
    gpu_copy(buffer->data, shadow, buffer->length);
}

static void buffer_set(const buffer_t *buffer, int byte)
{
    memset(shadow, byte, buffer->length);
    gpu_copy(buffer->data, shadow, buffer->length);
}

static void buffer_check(const buffer_t *buffer, uint64_t index)
{
    size_t i;

    gpu_copy(shadow, buffer->memory, buffer->length + (2 * CHECK_GUARD));
    check_bytes(shadow + CHECK_GUARD, buffer->length, 1 - check.rank, TAG, index);
    for (i = 0; i < CHECK_GUARD; ++i) {
        CHECK((unsigned char)shadow[i] == CHECK_GUARD_BYTE, "a byte in front of %zu was touched", buffer->length);
        CHECK((unsigned char)shadow[CHECK_GUARD + buffer->length + i] == CHECK_GUARD_BYTE,
              "a byte behind %zu was touched", buffer->length);
    }
}

static void buffer_free(const buffer_t *buffer)
{
    gpu_free(buffer->kind, buffer->memory);
}

static void send_one(const buffer_t *out, way_t mode)
{
    buffer_fill(out, number);
    if (mode == SYNCHRONOUS) {
        MPI_Ssend(out->data, (int)out->length, MPI_BYTE, 1 - check.rank, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Send(out->data, (int)out->length, MPI_BYTE, 1 - check.rank, TAG, MPI_COMM_WORLD);
    }
    buffer_set(out, CHECK_SCRIBBLE_BYTE);
}

static void receive_one(const buffer_t *in, way_t mode)
{
    MPI_Message message;
    MPI_Status status;
    int count;

    buffer_set(in, CHECK_POISON_BYTE);
    if (mode == PROBED) {
        MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in->data, (int)in->length, MPI_BYTE, &message, &status);
    } else {
        MPI_Recv(in->data, (int)in->length, MPI_BYTE, 1 - check.rank, TAG, MPI_COMM_WORLD, &status);
    }
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK((size_t)count == in->length, "%d bytes arrived of %zu", count, in->length);
    buffer_check(in, number);
}

static void several(gpu_kind_t from, gpu_kind_t to, size_t length)
{
    MPI_Request requests[2 * WINDOW];
    buffer_t out[WINDOW], in[WINDOW];
    int i;

    for (i = 0; i < WINDOW; ++i) {
        buffer_make(&in[i], to, length);
        buffer_set(&in[i], CHECK_POISON_BYTE);
        MPI_Irecv(in[i].data, (int)length, MPI_BYTE, 1 - check.rank, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (i = 0; i < WINDOW; ++i) {
        buffer_make(&out[i], from, length);
        buffer_fill(&out[i], number + (uint64_t)i);
        MPI_Isend(out[i].data, (int)length, MPI_BYTE, 1 - check.rank, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < WINDOW; ++i) {
        buffer_check(&in[i], number++);
        buffer_free(&in[i]);
        buffer_free(&out[i]);
    }
}

static void one_each_way(gpu_kind_t from, gpu_kind_t to, size_t length, way_t mode)
{
    buffer_t out, in;
    int turn;

    buffer_make(&out, from, length);
    buffer_make(&in, to, length);
    for (turn = 0; turn < 2; ++turn, ++number) {
        if (check.rank == turn) {
            send_one(&out, mode);
        } else {
            receive_one(&in, mode);
        }
    }
    buffer_free(&out);
    buffer_free(&in);
}

static void all_lengths(gpu_kind_t from, gpu_kind_t to, way_t mode)
{
    char name[64];
    size_t i;

    snprintf(name, sizeof(name), "%s, %s to %s", mode_names[mode], gpu_kind_names[from], gpu_kind_names[to]);
    check_phase(name);
    for (i = 0; (i < CHECK_COUNT_OF(lengths)) && ((double)lengths[i] <= LARGEST * check.scale); ++i) {
        check.step = (long)lengths[i];
        if (mode == BOTH_WAYS) {
            several(from, to, lengths[i]);
        } else {
            one_each_way(from, to, lengths[i], mode);
        }
    }
    check_phase("between");
}

static void all_ways(void)
{
    gpu_kind_t from, to;
    way_t mode;

    for (from = 0; from < GPU_KINDS; ++from) {
        for (to = 0; to < GPU_KINDS; ++to) {
            for (mode = 0; mode < MODES; ++mode) {
                all_lengths(from, to, mode);
            }
        }
    }
}

/* ----------------------------------------------------------------- time */

static double ping_pong(char *out, char *in, int length, int times)
{
    double begin = 0;
    int i;

    for (i = -times / 10 - 1; i < times; ++i) {
        if (i == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
        }
        if (check.rank == 0) {
            MPI_Send(out, length, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(in, length, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - begin) / times / 2;
}

static double stream(char *out, char *in, int length, int times)
{
    enum { AT_ONCE = 16 };
    MPI_Request requests[AT_ONCE];
    double begin = 0;
    int i, j;

    for (i = -1; i < times; ++i) {
        if (i == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
        }
        for (j = 0; j < AT_ONCE; ++j) {
            if (check.rank == 0) {
                MPI_Isend(out, length, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[j]);
            } else {
                MPI_Irecv(in, length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[j]);
            }
        }
        MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / times / AT_ONCE;
}

static void time_all(gpu_kind_t from, gpu_kind_t to)
{
    static const int sizes[] = {8, 1024, 8192, 65536, 1 << 20, LARGEST};
    char *out = gpu_alloc(from, LARGEST), *in = gpu_alloc(to, LARGEST);
    double latency, each;
    size_t i;
    int times;

    for (i = 0; i < CHECK_COUNT_OF(sizes); ++i) {
        times   = (sizes[i] < 65536) ? 400 : (sizes[i] <= (1 << 20)) ? 60 : 10;
        latency = ping_pong(out, in, sizes[i], times);
        each    = stream(out, in, sizes[i], 1 + (times / 10));
        if (check.rank == 0) {
            printf("%s %s %d %.2f %.1f\n", gpu_kind_names[from], gpu_kind_names[to], sizes[i], latency * 1e6,
                   sizes[i] / each / 1e6);
        }
    }
    gpu_free(from, out);
    gpu_free(to, in);
}

int main(int argc, char **argv)
{
    bool timed = (argc > 1) && (strcmp(argv[1], "time") == 0);
    const char *why;

    MPI_Init(&argc, &argv);
    check_start(timed ? 1 : argc, argv, "gpu_p2p");
    why = gpu_start();
    CHECK(why == NULL, "%s", why);
    shadow = malloc(LARGEST + (2 * CHECK_GUARD));
    CHECK(shadow != NULL, "no memory");
    if (timed) {
        time_all(GPU_HOST, GPU_HOST);
        time_all(GPU_DEVICE, GPU_DEVICE);
        time_all(GPU_HOST, GPU_DEVICE);
    } else {
        all_ways();
        check_pass();
    }
    free(shadow);
    MPI_Finalize();
    return 0;
}
