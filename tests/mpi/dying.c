/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A job that does not end as it should, to see what is left of its statistics. Pairs of ranks send each other messages of two sizes;
 * each rank notes in a file of its own how many, after each one, and rank 1 brings the job to its end. Run by run_live.sh:
 *
 *     dying SCALE SEED end=E folder=F [after=N]
 *
 *   end     kill (SIGKILL to itself), abort (MPI_Abort), exit (_exit), limit (goes on until it is killed), finish (MPI_Finalize)
 *   folder  for the notes: RANK has "sent received bytes_sent bytes_received"
 *   after   messages of each rank (default 500)
 */
#include "check.h"

enum { TAG = 191, SMALL = 1000, LARGE = 100000 };

static struct {
    char end[16], folder[1024];
    long after;
    int notes;
} dying = {.after = 500};

static unsigned char outgoing[LARGE], incoming[LARGE];
static long sent, received, bytes_sent, bytes_received;

static void parse_word(const char *word)
{
    CHECK((sscanf(word, "end=%15s", dying.end) == 1) || (sscanf(word, "folder=%1023s", dying.folder) == 1) ||
                  (sscanf(word, "after=%ld", &dying.after) == 1),
          "what is '%s'?", word);
}

static void open_notes(void)
{
    char path[2048];

    snprintf(path, sizeof(path), "%s/%d", dying.folder, check.rank);
    dying.notes = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(dying.notes >= 0, "%s: %m", path);
}

/* One write, of a fixed length: whoever is killed in between leaves the note before */
static void take_note(void)
{
    char text[128];
    int length = snprintf(text, sizeof(text), "%20ld %20ld %20ld %20ld\n", sent, received, bytes_sent, bytes_received);

    CHECK(pwrite(dying.notes, text, (size_t)length, 0) == length, "%m");
}

static void send_one(int partner, int length)
{
    MPI_Send(outgoing, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
    ++sent;
    bytes_sent += length;
    take_note();
}

static void receive_one(int partner, int length)
{
    MPI_Recv(incoming, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++received;
    bytes_received += length;
    take_note();
}

static void die(void)
{
    if (strcmp(dying.end, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(dying.end, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    } else if (strcmp(dying.end, "exit") == 0) {
        _exit(4);
    } else {
        CHECK(strcmp(dying.end, "finish") == 0, "end=%s?", dying.end);
    }
}

int main(int argc, char **argv)
{
    int partner, length, i;
    long n;

    check_init(&argc, &argv, "dying");
    for (i = 3; i < argc; ++i) {
        parse_word(argv[i]);
    }
    open_notes();
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "an even number of ranks is needed");
    for (n = 0; (n < dying.after) || (strcmp(dying.end, "limit") == 0); ++n) {
        length = (n % 2 == 0) ? SMALL : LARGE;
        if (check.rank % 2 == 0) {
            send_one(partner, length);
            receive_one(partner, length);
        } else {
            receive_one(partner, length);
            send_one(partner, length);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD); /* a rank that is killed before its partner came has no counts to compare */
    if (check.rank == 1) {
        die();
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the others wait for the end */
    MPI_Finalize();
    return 0;
}
