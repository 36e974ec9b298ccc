/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_folder.h"
#include "util/file.h"
#include "util/log.h"
#include "util/process.h"
#include "util/process_id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCI_TWIN_FOLDER_RANKS 256 /* in a folder of its own: file systems get slow with folders of many files */
#define UCI_TWIN_FOLDER_TRIES 10  /* others may remove a folder that they find empty while a file is made in it */

/* Names of folders are shorter than this (twin_spec.c) */
static void uci_twin_folder_path(const char *folder, unsigned twin, unsigned rank, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%u/%u.%u.twin", folder, rank / UCI_TWIN_FOLDER_RANKS, twin, rank);
}

/* "a/b" becomes "a" */
static void uci_twin_folder_cut(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash != NULL) {
        *slash = '\0';
    }
}

/* On NFS, opening a folder is what brings news of it; without that a file may be thought missing for a minute. */
static void uci_twin_folder_look(const char *path)
{
    char folder[PATH_MAX];
    int fd;

    strcpy(folder, path);
    uci_twin_folder_cut(folder);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
}

/* Of other hosts and other containers we know nothing, and believe the card */
bool uci_twin_card_is_gone(const uci_twin_card_t *card)
{
    if (strcmp(card->boot, uci_process_boot()) != 0) {
        return strcmp(card->host, uci_process_host()) == 0; /* the host has been booted since */
    }
    return (card->pid_space == uci_process_pid_space()) && !uci_process_lives(card->pid, card->start);
}

/* @param reason_p  on UCI_ERR_INVALID_PARAM and UCI_ERR_IO: why, a static text. */
static uci_status_t uci_twin_folder_load(const char *path, uci_twin_card_t *card_p, const char **reason_p)
{
    uci_status_t status;
    size_t length;
    char *text;

    uci_twin_folder_look(path);
    status = uci_file_read(path, UCI_TWIN_CARD_MAX, &text, &length);
    if (status != UCI_OK) {
        *reason_p = (status == UCI_ERR_NO_MEMORY) ? uci_status_string(status) : uci_file_error(errno);
        return status;
    }
    status = uci_twin_card_parse(text, length, card_p, reason_p);
    free(text);
    return status;
}

static void uci_twin_folder_complain(const char *path, const char *reason)
{
    static unsigned complaints;

    if (__atomic_fetch_add(&complaints, 1, __ATOMIC_RELAXED) == 0) {
        uci_error("cannot use %s, which a twin has left: %s", path, reason);
    }
}

uci_status_t uci_twin_card_read(const char *folder, unsigned twin, unsigned rank, uci_twin_card_t *card_p)
{
    const char *reason = "";
    char path[PATH_MAX];
    uci_status_t status;

    uci_twin_folder_path(folder, twin, rank, path);
    status = uci_twin_folder_load(path, card_p, &reason);
    if (status == UCI_ERR_NO_ELEM) {
        return status;
    }
    if ((status == UCI_OK) && ((card_p->twin != twin) || (card_p->rank != rank))) {
        reason = "it says that it is of another rank or twin than its name";
        status = UCI_ERR_INVALID_PARAM;
        uci_twin_card_cleanup(card_p);
    }
    if (status != UCI_OK) {
        uci_twin_folder_complain(path, reason);
    } else if (uci_twin_card_is_gone(card_p)) {
        uci_debug("%s is of process %d, which is gone", path, (int)card_p->pid);
        uci_twin_card_cleanup(card_p);
        status = UCI_ERR_NO_ELEM;
    }
    return status;
}

static bool uci_twin_folder_is_own(const uci_twin_card_t *found, const uci_twin_card_t *own)
{
    return (found->pid == own->pid) && (found->start == own->start) && (found->pid_space == own->pid_space) &&
           (strcmp(found->boot, own->boot) == 0);
}

/* Two jobs with the same UCI_TWINS, or processes that a rank has spawned, which are ranks of another MPI_COMM_WORLD.
 * Of those on other hosts nothing is known: the card may be an old one. */
static uci_status_t uci_twin_folder_check_free(const char *path, const uci_twin_card_t *card)
{
    uci_status_t status = UCI_OK;
    uci_twin_card_t found;
    const char *reason;

    if (uci_twin_folder_load(path, &found, &reason) != UCI_OK) {
        return UCI_OK;
    }
    if (!uci_twin_folder_is_own(&found, card) && !uci_twin_card_is_gone(&found) &&
        (strcmp(found.boot, card->boot) == 0)) {
        uci_error("process %d is rank %u of twin %u already (%s): each twin has a number of its own in UCI_TWINS",
                  (int)found.pid, card->rank, card->twin, path);
        status = UCI_ERR_BUSY;
    }
    uci_twin_card_cleanup(&found);
    return status;
}

static void uci_twin_folder_put(FILE *stream, const void *arg)
{
    fputs(arg, stream);
}

static uci_status_t uci_twin_folder_replace(const char *path, const char *text)
{
    unsigned tries;

    for (tries = 0; tries < UCI_TWIN_FOLDER_TRIES; ++tries) {
        if ((uci_file_make_folder(path) == UCI_OK) && (uci_file_replace(path, uci_twin_folder_put, text) == UCI_OK)) {
            return UCI_OK;
        }
        if (errno != ENOENT) {
            break;
        }
    }
    uci_error(
            "cannot write %s, by which twins find each other: %s. UCI_TWINS must name a folder that all of them can write to",
            path, uci_file_error(errno));
    return UCI_ERR_IO;
}

uci_status_t uci_twin_card_write(const char *folder, const uci_twin_card_t *card)
{
    char path[PATH_MAX], *text;
    uci_status_t status;
    size_t length;

    uci_twin_folder_path(folder, card->twin, card->rank, path);
    status = uci_twin_folder_check_free(path, card);
    if (status != UCI_OK) {
        return status;
    }
    status = uci_twin_card_format(card, &text, &length);
    if (status != UCI_OK) {
        uci_error("cannot write %s: %s", path, uci_status_string(status));
        return status;
    }
    status = uci_twin_folder_replace(path, text);
    free(text);
    return status;
}

void uci_twin_card_remove(const char *folder, const uci_twin_card_t *card)
{
    const char *reason;
    uci_twin_card_t found;
    char path[PATH_MAX];

    uci_twin_folder_path(folder, card->twin, card->rank, path);
    if (uci_twin_folder_load(path, &found, &reason) != UCI_OK) {
        return;
    }
    if (uci_twin_folder_is_own(&found, card)) {
        unlink(path);
        uci_twin_folder_cut(path);
        rmdir(path); /* as long as there are others in it, it stays */
    }
    uci_twin_card_cleanup(&found);
}
