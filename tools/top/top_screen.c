/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_views.h"

#include <curses.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCI_TOP_HELP "q: end   arrows, PgUp, PgDn, Home, End: move   p: pause   "

typedef struct uci_top_row {
    uci_top_style_t style;
    char *text;
} uci_top_row_t;

typedef struct uci_top_screen {
    uci_top_row_t *rows;
    int count, room;
    int first; /* row at the top */
    int left;  /* column at the left */
    bool paused;
    bool ended;
} uci_top_screen_t;

static void uci_top_screen_clear(uci_top_screen_t *screen)
{
    while (screen->count > 0) {
        free(screen->rows[--screen->count].text);
    }
}

static void uci_top_screen_add(void *arg, uci_top_style_t style, const char *text)
{
    uci_top_screen_t *screen = arg;
    uci_top_row_t *rows      = screen->rows;

    if (screen->count == screen->room) {
        rows = realloc(rows, (size_t)(2 * screen->room + 64) * sizeof(*rows));
        if (rows == NULL) {
            return; /* the rest is not shown */
        }
        screen->rows = rows;
        screen->room = 2 * screen->room + 64;
    }
    rows[screen->count].style = style;
    rows[screen->count].text  = strdup(text);
    screen->count += (rows[screen->count].text != NULL);
}

static attr_t uci_top_screen_attributes(uci_top_style_t style)
{
    switch (style) {
    case UCI_TOP_TITLE:
        return A_BOLD;
    case UCI_TOP_HEADING:
        return A_BOLD | (has_colors() ? (attr_t)COLOR_PAIR(UCI_TOP_HEADING) : A_UNDERLINE);
    case UCI_TOP_DAMAGE:
        return A_BOLD | (has_colors() ? (attr_t)COLOR_PAIR(UCI_TOP_DAMAGE) : A_REVERSE);
    case UCI_TOP_OVER:
        return A_DIM;
    default:
        return A_NORMAL;
    }
}

static void uci_top_screen_draw(uci_top_screen_t *screen)
{
    int lines = LINES - 1, i;
    const uci_top_row_t *row;

    screen->first = uci_max(0, uci_min(screen->first, screen->count - lines));
    erase();
    for (i = 0; (i < lines) && (screen->first + i < screen->count); ++i) {
        row = &screen->rows[screen->first + i];
        (void)attrset(uci_top_screen_attributes(row->style));
        if ((int)strlen(row->text) > screen->left) {
            mvaddnstr(i, 0, row->text + screen->left, COLS);
        }
    }
    (void)attrset(A_REVERSE);
    mvaddnstr(LINES - 1, 0, UCI_TOP_HELP, COLS);
    addnstr(screen->paused ? "PAUSED" : "", 6);
    (void)attrset(A_NORMAL);
    refresh();
}

static void uci_top_screen_key(uci_top_screen_t *screen, int key)
{
    switch (key) {
    case 'q':
        screen->ended = true;
        break;
    case 'p':
        screen->paused = !screen->paused;
        break;
    case KEY_UP:
        --screen->first;
        break;
    case KEY_DOWN:
        ++screen->first;
        break;
    case KEY_PPAGE:
        screen->first -= LINES - 2;
        break;
    case KEY_NPAGE:
        screen->first += LINES - 2;
        break;
    case KEY_HOME:
        screen->first = screen->left = 0;
        break;
    case KEY_END:
        screen->first = screen->count;
        break;
    case KEY_LEFT:
        screen->left = uci_max(0, screen->left - 16);
        break;
    case KEY_RIGHT:
        screen->left += 16;
        break;
    default:
        break;
    }
}

/* Of a terminal that is gone getch() says at once that there is no key. SIGHUP ends us, but for those who ignore it */
static bool uci_top_screen_has_hung_up(void)
{
    struct pollfd input = {.fd = STDIN_FILENO};

    return (poll(&input, 1, 0) > 0) && (input.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Keys, until it is time for another look */
static void uci_top_screen_wait(uci_top_screen_t *screen, double seconds)
{
    uint64_t end = uci_live_time() + (uint64_t)(seconds * 1e9), now;
    int key;

    while (!screen->ended) {
        now = uci_live_time();
        if (!screen->paused && (now >= end)) {
            break;
        }
        timeout(screen->paused ? 200 : (int)uci_min((end - now) / 1000000 + 1, 200ul));
        key = getch();
        if (key != ERR) {
            uci_top_screen_key(screen, key);
            uci_top_screen_draw(screen);
        } else if (uci_top_screen_has_hung_up()) {
            screen->ended = true;
        }
    }
}

static void uci_top_screen_open(void)
{
    initscr();
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    (void)curs_set(0);
    if (has_colors()) {
        start_color();
        use_default_colors();
        init_pair(UCI_TOP_HEADING, COLOR_CYAN, -1);
        init_pair(UCI_TOP_DAMAGE, COLOR_RED, -1);
    }
}

uci_status_t uci_top_show(const uci_top_scope_t *scope, double seconds)
{
    uci_top_screen_t screen = {0};
    uci_top_look_t before   = {0}, look;
    uci_status_t status     = uci_top_look(scope, NULL, &look); /* what can't be read is said without a screen */

    if (status != UCI_OK) {
        return status;
    }
    uci_top_screen_open();
    while (!screen.ended) {
        uci_top_screen_clear(&screen);
        uci_top_for_each_line(&look, uci_top_screen_add, &screen);
        uci_top_screen_draw(&screen);
        uci_top_screen_wait(&screen, seconds);
        if (screen.ended) {
            break;
        }
        uci_top_look_cleanup(&before);
        before = look;
        status = uci_top_look(scope, &before, &look);
        if (status != UCI_OK) {
            memset(&look, 0, sizeof(look));
            break;
        }
    }
    endwin();
    if (status != UCI_OK) {
        fprintf(stderr, "uci_top: a folder can't be read any more\n");
    }
    uci_top_screen_clear(&screen);
    free(screen.rows);
    uci_top_look_cleanup(&before);
    uci_top_look_cleanup(&look);
    return status;
}
