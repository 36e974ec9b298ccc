/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How processes of twins find each other: each leaves its card (twin_card.h) in a folder that all share, and removes it when it ends.
 *
 *     FOLDER/<rank / 256>/<twin>.<rank>.twin
 *
 * A card appears as a whole, by a rename. All functions are thread safe.
 */
#ifndef UCI_TWIN_FOLDER_H_
#define UCI_TWIN_FOLDER_H_

#include "twin_card.h"

/**
 * Leave @a card in @a folder, which is made if it is not there. A card of a process that is gone is replaced.
 * @return UCI_OK; UCI_ERR_BUSY (logged): another process of this host is this rank of this twin; UCI_ERR_IO (logged); UCI_ERR_NO_MEMORY (logged).
 */
uci_status_t uci_twin_card_write(const char *folder, const uci_twin_card_t *card);

/**
 * Read the card of rank @a rank of twin @a twin. Cheap as long as it is not there: ask again and again.
 * @param card_p  on UCI_OK to be given to uci_twin_card_cleanup(); undefined otherwise.
 * @return UCI_OK; UCI_ERR_NO_ELEM (not logged): it is not there, or was left by a process of this host that is gone; UCI_ERR_INVALID_PARAM: it is
 *         damaged, or not of whom it should be; UCI_ERR_IO; UCI_ERR_NO_MEMORY. The first such error of a process is logged.
 */
uci_status_t uci_twin_card_read(const char *folder, unsigned twin, unsigned rank, uci_twin_card_t *card_p);

/** Remove the card of this process, if it is still there and its own, and its folder below @a folder if that is empty then. Nothing is logged. */
void uci_twin_card_remove(const char *folder, const uci_twin_card_t *card);

/** Has the process that left this card ended? @return false also of one on another host, or in another container, of which nothing can be
 *  told. */
bool uci_twin_card_is_gone(const uci_twin_card_t *card);

#endif
