/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Derived datatypes of every constructor, in every combination of two sides that have the same signature: the
 * same type, different types, non-contiguous only where it is sent or only where it is received; small, middle and
 * several megabytes. The whole extent is compared: what a type does not cover must stay as it was.
 *
 * @ranks 2
 */
#include "check.h"
#include <stddef.h>

enum { TAG = 100, UNIT = 24 /* doubles; every layout holds a multiple of it */, MAX_LAYOUTS = 24 };

/** A way to lay out N doubles in memory. */
typedef struct layout {
    const char *name;
    MPI_Datatype type;
    int count;
    MPI_Aint low, size; /* the bytes it reaches, from the address given to MPI */
} layout_t;

static layout_t layouts[MAX_LAYOUTS];
static int num_layouts;

/** Take over @a type. */
static void add(const char *name, MPI_Datatype type, int count)
{
    layout_t *layout = &layouts[num_layouts++];
    MPI_Aint low, extent, true_extent;

    CHECK(num_layouts <= MAX_LAYOUTS, "too many layouts");
    MPI_Type_commit(&type);
    MPI_Type_get_true_extent(type, &layout->low, &true_extent);
    MPI_Type_get_extent(type, &low, &extent);
    layout->name  = name;
    layout->type  = type;
    layout->count = count;
    layout->size  = true_extent + (count - 1) * extent;
}

/** Block lengths 1, 2, 3 repeated, with a gap behind each; in bytes or elements, forward or backward. */
static void add_indexed(int n, int backward, int bytes)
{
    int blocks = n / 2, i, at = 0;
    int *lengths        = malloc((size_t)blocks * sizeof(int));
    int *places         = malloc((size_t)blocks * sizeof(int));
    MPI_Aint *addresses = malloc((size_t)blocks * sizeof(MPI_Aint));
    MPI_Datatype type;

    for (i = 0; i < blocks; ++i) {
        lengths[i] = 1 + i % 3;
        places[i]  = at;
        at += lengths[i] + 1 + i % 2;
    }
    for (i = 0; i < blocks; ++i) {
        places[i]    = backward ? at - places[i] - lengths[i] : places[i];
        addresses[i] = (MPI_Aint)places[i] * 8;
    }
    if (bytes) {
        MPI_Type_create_hindexed(blocks, lengths, addresses, MPI_DOUBLE, &type);
    } else {
        MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &type);
    }
    add(bytes ? "hindexed" : backward ? "indexed backwards" : "indexed", type, 1);
    free(lengths);
    free(places);
    free(addresses);
}

static void add_indexed_block(int n, int bytes)
{
    int blocks          = n / 6, i;
    int *places         = malloc((size_t)blocks * sizeof(int));
    MPI_Aint *addresses = malloc((size_t)blocks * sizeof(MPI_Aint));
    MPI_Datatype type;

    for (i = 0; i < blocks; ++i) {
        places[i]    = (i ^ 1) * 9; /* neighbours exchanged */
        addresses[i] = (MPI_Aint)places[i] * 8 + 16;
    }
    if (bytes) {
        MPI_Type_create_hindexed_block(blocks, 6, addresses, MPI_DOUBLE, &type);
    } else {
        MPI_Type_create_indexed_block(blocks, 6, places, MPI_DOUBLE, &type);
    }
    add(bytes ? "hindexed_block" : "indexed_block", type, 1);
    free(places);
    free(addresses);
}

/** A third contiguous, a third in a nested vector, a third in resized pieces. */
static void add_struct(int n)
{
    MPI_Datatype vector, resized, type;
    int lengths[3] = {n / 3, 1, n / 3};
    MPI_Aint places[3];
    MPI_Datatype types[3];

    MPI_Type_vector(n / 12, 4, 7, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(MPI_DOUBLE, 0, 24, &resized);
    places[0] = 8;
    places[1] = places[0] + (MPI_Aint)n / 3 * 8 + 40;
    places[2] = places[1] + (MPI_Aint)n / 12 * 56 + 64;
    types[0]  = MPI_DOUBLE;
    types[1]  = vector;
    types[2]  = resized;
    MPI_Type_create_struct(3, lengths, places, types, &type);
    MPI_Type_free(&vector);
    MPI_Type_free(&resized);
    add("struct", type, 1);
}

static void add_arrays(int n)
{
    int k        = n / UNIT;
    int sizes[2] = {k + 3, UNIT + 5}, parts[2] = {k, UNIT}, starts[2] = {2, 3};
    int sizes3[3] = {8, k + 1, 7}, parts3[3] = {6, k, 4}, starts3[3] = {1, 1, 3};
    int globals[2] = {2 * k, 2 * UNIT}, grid[2] = {2, 2};
    int block[2]   = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
        no_args[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    int cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, args[2] = {1, 4};
    MPI_Datatype type;

    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    add("subarray in C order", type, 1);
    MPI_Type_create_subarray(3, sizes3, parts3, starts3, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
    add("subarray in Fortran order", type, 1);
    MPI_Type_create_darray(4, 1, 2, globals, block, no_args, grid, MPI_ORDER_C, MPI_DOUBLE, &type);
    add("darray by blocks", type, 1);
    MPI_Type_create_darray(4, 2, 2, globals, cyclic, args, grid, MPI_ORDER_C, MPI_DOUBLE, &type);
    add("darray cyclic", type, 1);
}

static void add_simple(int n)
{
    MPI_Datatype type, inner;

    add("double", MPI_DOUBLE, n);
    MPI_Type_contiguous(n, MPI_DOUBLE, &type);
    add("contiguous", type, 1);
    MPI_Type_vector(n / 2, 2, 5, MPI_DOUBLE, &type);
    add("vector", type, 1);
    MPI_Type_vector(n / UNIT, UNIT, UNIT + 1, MPI_DOUBLE, &type);
    add("vector of long blocks", type, 1);
    MPI_Type_vector(n / 3, 3, -4, MPI_DOUBLE, &type);
    add("vector with negative stride", type, 1);
    MPI_Type_create_hvector(n / 4, 4, 56, MPI_DOUBLE, &type);
    add("hvector", type, 1);
    MPI_Type_contiguous(3, MPI_DOUBLE, &inner);
    MPI_Type_create_resized(inner, -8, 40, &type);
    MPI_Type_free(&inner);
    add("resized", type, n / 3);
    MPI_Type_vector(2, 3, 4, MPI_DOUBLE, &inner);
    MPI_Type_dup(inner, &type);
    MPI_Type_free(&inner);
    add("dup of vector", type, n / 6);
}

static void make_layouts(int n)
{
    num_layouts = 0;
    add_simple(n);
    add_indexed(n, 0, 0);
    add_indexed(n, 1, 0);
    add_indexed(n, 1, 1);
    add_indexed_block(n, 0);
    add_indexed_block(n, 1);
    add_struct(n);
    add_arrays(n);
}

static void free_layouts(void)
{
    int i;

    for (i = 1; i < num_layouts; ++i) { /* not MPI_DOUBLE */
        MPI_Type_free(&layouts[i].type);
    }
}

/** @a buffer gets gaps of poison and the contents of message @a index laid out. Local, no message. */
static void lay_out(const layout_t *layout, unsigned char *buffer, void *stream, int n, int source, uint64_t index)
{
    int position = 0;

    check_fill(stream, (size_t)n * 8, source, TAG, index);
    memset(buffer, CHECK_POISON_BYTE, (size_t)layout->size);
    MPI_Unpack(stream, n * 8, &position, buffer - layout->low, layout->count, layout->type, MPI_COMM_WORLD);
}

static void send_layout(const layout_t *layout, int n, uint64_t index, int dest)
{
    unsigned char *buffer = malloc((size_t)layout->size);
    void *stream          = malloc((size_t)n * 8);
    MPI_Request request;

    lay_out(layout, buffer, stream, n, check.rank, index);
    switch (index % 3) {
    case 0:
        MPI_Send(buffer - layout->low, layout->count, layout->type, dest, TAG, MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Isend(buffer - layout->low, layout->count, layout->type, dest, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Ssend(buffer - layout->low, layout->count, layout->type, dest, TAG, MPI_COMM_WORLD);
        break;
    }
    check_scribble(buffer, (size_t)layout->size);
    free(buffer);
    free(stream);
}

static void receive_layout(const layout_t *layout, const char *from, int n, uint64_t index, int source)
{
    check_buffer_t in, want;
    void *stream = malloc((size_t)n * 8);
    MPI_Request request;
    MPI_Status status;
    int count;

    check_buffer_make(&in, (size_t)layout->size, 0);
    check_buffer_make(&want, (size_t)layout->size, 0);
    if (index % 2) {
        MPI_Irecv(in.data - layout->low, layout->count, layout->type, source, TAG, MPI_COMM_WORLD, &request);
        lay_out(layout, want.data, stream, n, source, index);
        MPI_Wait(&request, &status);
    } else {
        lay_out(layout, want.data, stream, n, source, index);
        MPI_Recv(in.data - layout->low, layout->count, layout->type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
    }
    check_status(&status, source, TAG, (size_t)n * 8);
    MPI_Get_count(&status, layout->type, &count);
    CHECK(count == layout->count, "%d of %d elements of '%s' came", count, layout->count, layout->name);
    MPI_Get_elements(&status, MPI_DOUBLE, &count);
    CHECK(count == n, "MPI_Get_elements says %d, not %d", count, n);
#if MPI_VERSION < 4 /* later deprecated */
    MPI_Count elements;

    MPI_Get_elements_x(&status, MPI_DOUBLE, &elements);
    CHECK(elements == n, "MPI_Get_elements_x says %lld, not %d", (long long)elements, n);
#endif
    for (count = 0; (count < layout->size) && (in.data[count] == want.data[count]); ++count) {
    }
    CHECK(count == layout->size, "wrong contents: %d doubles from '%s' into '%s': offset %d of %ld is %02x, not %02x",
          n, from, layout->name, count, (long)layout->size, in.data[count], want.data[count]);
    check.messages += 1;
    check.bytes += (uint64_t)n * 8;
    check_buffer_free(&in);
    check_buffer_free(&want);
    free(stream);
}

/** All pairs for small messages, else the same type, contiguous on one side, and each type's neighbour. */
static void test_size(int n, int every_pair)
{
    static uint64_t index;
    int partner = check_partner();
    int s, r;

    make_layouts(n);
    for (s = 0; s < num_layouts; ++s) {
        for (r = 0; r < num_layouts; ++r) {
            if (!every_pair && (s != r) && (s != 0) && (r != 0) && (r != (s + 1) % num_layouts)) {
                continue;
            }
            check.step = s * 100 + r;
            if ((check.rank < partner) == (int)(index / 2 % 2)) {
                send_layout(&layouts[s], n, index, partner);
            } else {
                receive_layout(&layouts[r], layouts[s].name, n, index, partner);
            }
            ++index;
        }
    }
    free_layouts();
}

/** Several types in one struct, padded as the compiler does at one side and packed tightly at the other. */
static void test_mixed_struct(int count)
{
    typedef struct record {
        char name[3];
        int number;
        double value;
        short shorts[5];
    } record_t;
    enum { PACKED = 3 + 4 + 8 + 10 };
    static uint64_t index;
    int lengths[4]        = {3, 1, 1, 5};
    MPI_Datatype types[4] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT};
    MPI_Aint natural[4]   = {offsetof(record_t, name), offsetof(record_t, number), offsetof(record_t, value),
                             offsetof(record_t, shorts)};
    MPI_Aint tight[4]     = {0, 3, 7, 15};
    MPI_Datatype padded, packed, inner;
    record_t *records    = malloc((size_t)count * sizeof(*records));
    unsigned char *bytes = malloc((size_t)count * PACKED);
    int partner          = check_partner();
    MPI_Status status;
    int i, elements;

    MPI_Type_create_struct(4, lengths, natural, types, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(record_t), &padded);
    MPI_Type_free(&inner);
    MPI_Type_create_struct(4, lengths, tight, types, &inner);
    MPI_Type_create_resized(inner, 0, PACKED, &packed); /* MPI pads a struct as a compiler would */
    MPI_Type_free(&inner);
    MPI_Type_commit(&padded);
    MPI_Type_commit(&packed);
    check_fill(bytes, (size_t)count * PACKED, check.rank, TAG, index);
    for (i = 0; i < count; ++i) {
        memcpy(records[i].name, bytes + i * PACKED, 3);
        memcpy(&records[i].number, bytes + i * PACKED + 3, 4);
        memcpy(&records[i].value, bytes + i * PACKED + 7, 8);
        memcpy(records[i].shorts, bytes + i * PACKED + 15, 10);
    }
    if (check.rank < partner) {
        MPI_Send(records, count, padded, partner, TAG, MPI_COMM_WORLD);
        memset(bytes, CHECK_POISON_BYTE, (size_t)count * PACKED);
        MPI_Recv(bytes, count, packed, partner, TAG, MPI_COMM_WORLD, &status);
    } else {
        void *in = malloc((size_t)count * PACKED);

        MPI_Recv(in, count, packed, partner, TAG, MPI_COMM_WORLD, &status);
        MPI_Send(records, count, padded, partner, TAG, MPI_COMM_WORLD);
        memcpy(bytes, in, (size_t)count * PACKED);
        free(in);
    }
    check_status(&status, partner, TAG, (size_t)count * PACKED);
    MPI_Get_count(&status, padded, &elements);
    CHECK(elements == count, "%d of %d records", elements, count);
    check_bytes(bytes, (size_t)count * PACKED, partner, TAG, index++);
    MPI_Type_free(&padded);
    MPI_Type_free(&packed);
    free(records);
    free(bytes);
}

/** Absolute addresses from MPI_BOTTOM, and a receive that could hold more than what comes. */
static void test_bottom_and_partial(int n)
{
    unsigned char *pieces[3];
    int lengths[3] = {n, 2 * n, n}, partner = check_partner();
    MPI_Aint addresses[3];
    MPI_Datatype type, vector;
    MPI_Status status;
    int i, elements, count;

    for (i = 0; i < 3; ++i) {
        pieces[i] = malloc((size_t)lengths[i]);
        memset(pieces[i], CHECK_POISON_BYTE, (size_t)lengths[i]);
        MPI_Get_address(pieces[i], &addresses[i]);
        if (check.rank < partner) {
            check_fill(pieces[i], (size_t)lengths[i], check.rank, TAG, (uint64_t)i);
        }
    }
    MPI_Type_create_hindexed(3, lengths, addresses, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (check.rank < partner) {
        MPI_Send(MPI_BOTTOM, 1, type, partner, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(MPI_BOTTOM, 1, type, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 0; i < 3; ++i) {
            check_bytes(pieces[i], (size_t)lengths[i], partner, TAG, (uint64_t)i);
        }
    }
    MPI_Type_free(&type);

    /* vectors of 3 x 4 bytes; 2 1/3 of them come into room for more */
    MPI_Type_vector(3, 4, 8, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    memset(pieces[1], CHECK_POISON_BYTE, (size_t)lengths[1]);
    if (check.rank < partner) {
        check_fill(pieces[0], 28, check.rank, TAG, 9);
        MPI_Send(pieces[0], 28, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(pieces[1], 4, vector, partner, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_elements(&status, vector, &elements);
        MPI_Get_count(&status, vector, &count);
        CHECK((elements == 28) && (count == MPI_UNDEFINED), "partial receive: %d elements, count %d", elements, count);
        CHECK(check_all(pieces[1] + 4, CHECK_POISON_BYTE, 4) && check_all(pieces[1] + 44, CHECK_POISON_BYTE, 60),
              "a partial receive wrote more than what came");
    }
    MPI_Type_free(&vector);
    for (i = 0; i < 3; ++i) {
        free(pieces[i]);
    }
}

int main(int argc, char **argv)
{
    int i;

    check_init(&argc, &argv, "datatypes");
    CHECK(check_partner() != MPI_PROC_NULL, "needs an even number of ranks");
    for (i = check_scaled(2); i > 0; --i) {
        check_phase("192 bytes, all pairs");
        test_size(UNIT, 1);
        check_phase("around the eager limit");
        test_size(UNIT * 42, 1); /* 8064 bytes */
        test_size(UNIT * 44, 1); /* 8448 bytes */
        check_phase("67 KiB");
        test_size(UNIT * 360, 0);
    }
    check_phase("megabytes");
    test_size(UNIT * 14000, 0); /* 2.7 MB */
    check_phase("mixed struct");
    for (i = 1; i < 300000; i *= 4) {
        check.step = i;
        test_mixed_struct(i);
    }
    check_phase("MPI_BOTTOM and partial receives");
    test_bottom_and_partial(100);
    test_bottom_and_partial(100000);
    check.messages += 1;
    return check_finish();
}
