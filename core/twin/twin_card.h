/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a process of a twin (UCI_TWINS) tells the others about itself, and what must be the same for messages to be compared. As text: a line
 * "uci-twin 1", lines "key value", and a last line "end" with the XXH3-64 of all before it.
 *
 * Cards of others are not trusted: what is in one that was parsed lies within its bounds and can be printed.
 */
#ifndef UCI_TWIN_CARD_H_
#define UCI_TWIN_CARD_H_

#include <sys/types.h>
#include "settings/twin_spec.h"

#define UCI_TWIN_PROTOCOL    1u           /**< of what twins send each other: both must speak the same */
#define UCI_TWIN_TEXT_MAX    257u         /**< bytes, with the 0 at the end; what is longer is cut */
#define UCI_TWIN_PATH_MAX    1025u        /**< the same, of a program */
#define UCI_TWIN_ADDRESS_MAX (64u * 1024) /**< bytes */
#define UCI_TWIN_RANKS_MAX   (1u << 24)
#define UCI_TWIN_CARD_MAX    (256u * 1024) /**< bytes, as text */

typedef struct uci_twin_card {
    char version[UCI_TWIN_TEXT_MAX]; /**< of UCI */
    unsigned protocol;               /**< UCI_TWIN_PROTOCOL */
    unsigned twin, of;               /**< twin counts from 0 */
    unsigned rank, ranks;            /**< in MPI_COMM_WORLD; ranks: 0 if the launcher does not tell */
    char host[UCI_TWIN_TEXT_MAX];    /**< short name */
    char boot[UCI_TWIN_TEXT_MAX];    /**< uci_process_boot() */
    uint64_t pid_space;              /**< uci_process_pid_space() */
    pid_t pid;
    uint64_t start;                    /**< uci_process_start() */
    char job[UCI_TWIN_TEXT_MAX];       /**< uci_process_job(), or "" */
    char program[UCI_TWIN_PATH_MAX];   /**< its file */
    uint64_t program_id;               /**< XXH3-64 of its size, first and last MiB; 0 if it can't be read */
    char arguments[UCI_TWIN_TEXT_MAX]; /**< how they begin, without the name of the program */
    uint64_t arguments_id;             /**< XXH3-64 of all of them */
    char digest[UCI_TWIN_TEXT_MAX];    /**< of which values are made */
    uint64_t chunk;                    /**< UCI_CHUNK_SIZE in bytes, or UCI_SIZE_AUTO */
    uci_twins_mode_t mode;
    void *address; /**< of the worker that talks to twins. Read: see uci_twin_card_cleanup(). One's own: the caller's */
    size_t address_length; /**< 0: there is none */
} uci_twin_card_t;

/**
 * Fill @a card for this process from its settings (UCI_TWINS must be set), its environment and /proc. The address is left empty: the caller
 * sets it before the card is written, and keeps it. Reads at most 2 MiB of the program's file.
 * @return UCI_OK, or UCI_ERR_UNSUPPORTED (logged): the launcher does not tell which rank this is.
 */
uci_status_t uci_twin_card_fill(uci_twin_card_t *card);

/**
 * Can the messages of these two be compared? Version, protocol, number of twins, ranks, mode, program, arguments, digest and chunk size must
 * be the same.
 * @param text  if not, a sentence that says what differs, ours first; cut at @a size bytes. @return whether something differs.
 */
bool uci_twin_card_differs(const uci_twin_card_t *ours, const uci_twin_card_t *theirs, char *text, size_t size);

/**
 * Write @a card as text, with a 0 behind it. What can't be printed becomes '?'.
 * @param text_p  to be freed. @return UCI_OK, or UCI_ERR_NO_MEMORY.
 */
uci_status_t uci_twin_card_format(const uci_twin_card_t *card, char **text_p, size_t *length_p);

/**
 * Read what uci_twin_card_format() has written. Keys that are not known are passed over; all that are must be there, once.
 * @param text      of @a length bytes, with a 0 behind them; is written to.
 * @param card_p    on UCI_OK to be given to uci_twin_card_cleanup(); undefined after an error.
 * @param reason_p  on UCI_ERR_INVALID_PARAM: why it is refused, a static text.
 * @return UCI_OK, UCI_ERR_INVALID_PARAM, UCI_ERR_NO_MEMORY; none is logged.
 */
uci_status_t uci_twin_card_parse(char *text, size_t length, uci_twin_card_t *card_p, const char **reason_p);

/** Free the address of a card that was parsed or read from a file. */
void uci_twin_card_cleanup(uci_twin_card_t *card);

#endif
