/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bandwidth by size as SVG that needs nothing else: one chart of the digests, one of the paths of each transport list.
 * Both axes are logarithmic. Dots show what is chosen.
 */
#include "util/parse_size.h"
#include "tune.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define PLOT_WIDTH  900
#define PLOT_HEIGHT 440
#define PLOT_LEFT   76
#define PLOT_RIGHT  210
#define PLOT_TOP    40
#define PLOT_BOTTOM 50

#define PLOT_TITLE   88 /* characters that fit */
#define PLOT_X_LABEL 36 /* from one label to the next, at least */
#define PLOT_Y_LABEL 15

/* Colours that people tell apart, those with red-green blindness too (M. Okabe, K. Ito, 2008; then P. Tol, 2012). As many as
 * there are candidates, and a few more; beyond, lines differ in their dashes */
static const char *const plot_colours[] = {"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                           "#56b4e9", "#8c564b", "#7f7f7f", "#bcbd22", "#332288", "#882255",
                                           "#44aa99", "#aa4499", "#117733", "#661100"};
static const char *const plot_dashes[]  = {"", " stroke-dasharray=\"5 4\"", " stroke-dasharray=\"2 3\"",
                                           " stroke-dasharray=\"9 3 2 3\""};

typedef struct plot {
    FILE *stream;
    unsigned top; /* of the chart being drawn */
    unsigned series;
    double x_min, x_max, y_min, y_max; /* log2 of bytes, log10 of GB/s */
} plot_t;

static double plot_x(const plot_t *plot, uint64_t size)
{
    return PLOT_LEFT +
           (log2((double)size) - plot->x_min) / (plot->x_max - plot->x_min) * (PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT);
}

static double plot_y(const plot_t *plot, double rate)
{
    double part = (log10(rate) - plot->y_min) / (plot->y_max - plot->y_min);

    return plot->top + PLOT_HEIGHT - PLOT_BOTTOM - part * (PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM);
}

static double plot_rate(const uci_cost_point_t *point)
{
    return uci_max((double)point->size, 1.0) / point->ns;
}

/* Text may come from a file: nothing in it is markup */
static void plot_text(FILE *stream, const char *text)
{
    for (; *text != '\0'; ++text) {
        switch (*text) {
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '&':
            fputs("&amp;", stream);
            break;
        default:
            fputc(((unsigned char)*text < ' ') ? ' ' : *text, stream);
        }
    }
}

static void plot_include(plot_t *plot, const uci_cost_t *cost)
{
    unsigned i;

    for (i = 0; i < cost->count; ++i) {
        plot->x_min = fmin(plot->x_min, log2(uci_max((double)cost->points[i].size, 1.0)));
        plot->x_max = fmax(plot->x_max, log2(uci_max((double)cost->points[i].size, 1.0)));
        plot->y_min = fmin(plot->y_min, log10(plot_rate(&cost->points[i])));
        plot->y_max = fmax(plot->y_max, log10(plot_rate(&cost->points[i])));
    }
}

static void plot_begin(plot_t *plot, unsigned number)
{
    plot->top    = number * PLOT_HEIGHT;
    plot->series = 0;
    plot->x_min = plot->y_min = INFINITY;
    plot->x_max = plot->y_max = -INFINITY;
}

static void plot_x_axis(const plot_t *plot)
{
    unsigned last = (unsigned)plot->x_max, bottom = plot->top + PLOT_HEIGHT - PLOT_BOTTOM, i;
    double x, before                              = -PLOT_X_LABEL;
    char text[24];

    for (i = (unsigned)ceil(plot->x_min); i <= last; i += 2) {
        x = plot_x(plot, 1ul << i);
        if (x - before < PLOT_X_LABEL) {
            continue;
        }
        before = x;
        fprintf(plot->stream,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%u\" y2=\"%u\" stroke=\"#dddddd\"/>"
                "<text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%s</text>\n",
                x, x, plot->top + PLOT_TOP, bottom, x, bottom + 18, uci_size_text(1ul << i, text));
    }
    fprintf(plot->stream, "<text x=\"%d\" y=\"%u\" text-anchor=\"middle\">bytes</text>\n",
            (PLOT_LEFT + PLOT_WIDTH - PLOT_RIGHT) / 2, bottom + 36);
}

static void plot_y_axis(const plot_t *plot)
{
    static const int digits[] = {1, 2, 5};
    int last                  = (int)floor(plot->y_max), exponent;
    unsigned middle           = plot->top + PLOT_HEIGHT / 2, i;
    double rate, y;
    /* of many decades only the powers of ten have room */
    double decade = (PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM) / (plot->y_max - plot->y_min);
    unsigned step = (decade * log10(2) >= PLOT_Y_LABEL) ? 1 : uci_array_size(digits);

    for (exponent = (int)floor(plot->y_min); exponent <= last; ++exponent) {
        for (i = 0; i < uci_array_size(digits); i += step) {
            rate = digits[i] * pow(10, exponent);
            if ((log10(rate) < plot->y_min) || (log10(rate) > plot->y_max)) {
                continue;
            }
            y = plot_y(plot, rate);
            fprintf(plot->stream,
                    "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    PLOT_LEFT, PLOT_WIDTH - PLOT_RIGHT, y, y, PLOT_LEFT - 6, y + 4, rate);
        }
    }
    fprintf(plot->stream,
            "<text x=\"16\" y=\"%u\" transform=\"rotate(-90 16 %u)\" text-anchor=\"middle\">GB/s</text>\n", middle,
            middle);
}

static void plot_axes(plot_t *plot, const char *title)
{
    char text[PLOT_TITLE + 4];

    plot->x_max = fmax(plot->x_max, plot->x_min + 1);
    plot->y_min = floor(plot->y_min * 4) / 4;
    plot->y_max = fmax(ceil(plot->y_max * 4) / 4, plot->y_min + 0.25);
    fprintf(plot->stream, "<text x=\"%d\" y=\"%u\" font-size=\"15\" font-weight=\"bold\">", PLOT_LEFT, plot->top + 24);
    snprintf(text, sizeof(text), "%.*s%s", PLOT_TITLE, title, (strlen(title) > PLOT_TITLE) ? "..." : "");
    plot_text(plot->stream, text);
    fprintf(plot->stream, "</text>\n");
    plot_x_axis(plot);
    plot_y_axis(plot);
}

static void plot_line(plot_t *plot, const char *name, const uci_cost_t *cost, bool dashed)
{
    const char *colour = plot_colours[plot->series % uci_array_size(plot_colours)];
    unsigned turn      = plot->series / uci_array_size(plot_colours) + (dashed ? 1 : 0);
    const char *dashes = plot_dashes[uci_min(turn, uci_array_size(plot_dashes) - 1)];
    int y              = (int)(plot->top + PLOT_TOP + 12 + 18 * plot->series);
    int x              = PLOT_WIDTH - PLOT_RIGHT + 12;
    unsigned i;

    fprintf(plot->stream, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s points=\"", colour, dashes);
    for (i = 0; i < cost->count; ++i) {
        fprintf(plot->stream, "%.1f,%.1f ", plot_x(plot, uci_max(cost->points[i].size, 1ul)),
                plot_y(plot, plot_rate(&cost->points[i])));
    }
    fprintf(plot->stream,
            "\"/>\n<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"1.8\"%s/>"
            "<text x=\"%d\" y=\"%d\">",
            x, x + 24, y, y, colour, dashes, x + 30, y + 4);
    plot_text(plot->stream, name);
    fprintf(plot->stream, "</text>\n");
    ++plot->series;
}

static void plot_dot(plot_t *plot, uint64_t size, double ns)
{
    if (ns > 0) {
        fprintf(plot->stream,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"none\" stroke=\"#000000\" stroke-width=\"1.5\"/>\n",
                plot_x(plot, size), plot_y(plot, (double)size / ns));
    }
}

static void plot_legend_of_dots(plot_t *plot)
{
    int y = (int)(plot->top + PLOT_TOP + 12 + 18 * plot->series);

    fprintf(plot->stream,
            "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"none\" stroke=\"#000000\" stroke-width=\"1.5\"/>"
            "<text x=\"%d\" y=\"%d\">chosen</text>\n",
            PLOT_WIDTH - PLOT_RIGHT + 24, y, PLOT_WIDTH - PLOT_RIGHT + 42, y + 4);
}

static const uci_cost_t *plot_kernel(const uci_profile_t *profile, uci_digest_id_t id)
{
    return uci_profile_find_kernel(profile, id,
                                   (id == UCI_DIGEST_NONE) ? UCI_DIGEST_ISA_SCALAR : uci_tuner_best_isa(profile, id),
                                   UCI_FORM_FUSED, true);
}

static void plot_kernels(plot_t *plot, const uci_profile_t *profile)
{
    const uci_cost_t *costs[UCI_DIGEST_LAST], *copy, *cost;
    uci_plan_t plan = {0};
    unsigned id, i;

    for (id = 0; id < UCI_DIGEST_LAST; ++id) {
        costs[id] = plot_kernel(profile, (uci_digest_id_t)id);
        if (costs[id] != NULL) {
            plot_include(plot, costs[id]);
        }
    }
    plot_axes(plot, "copy with digest fused in, one core, data in cache where it fits");
    for (id = 0; id < UCI_DIGEST_LAST; ++id) {
        if (costs[id] != NULL) {
            plot_line(plot, (id == 0) ? "memcpy" : uci_digest_table[id].name, costs[id], id == 0);
        }
    }
    uci_tuner_make_plan(profile, "", 0, &plan);
    copy = costs[UCI_DIGEST_NONE];
    for (i = 0; (copy != NULL) && (i < copy->count); ++i) {
        cost = costs[uci_plan_choose(&plan, copy->points[i].size)->digest->id];
        plot_dot(plot, copy->points[i].size, (cost != NULL) ? uci_cost_at(cost, copy->points[i].size) : 0);
    }
    plot_legend_of_dots(plot);
}

/* All candidates of one list of transports, which are neighbours in the profile */
static void plot_paths(plot_t *plot, const uci_profile_t *profile, unsigned first, unsigned end)
{
    const uci_profile_path_t *path;
    const uci_choice_t *choice;
    char text[300], size_text[24];
    uci_plan_t plan = {0};
    unsigned i, j;

    for (i = first; i < end; ++i) {
        plot_include(plot, &profile->paths[i].cost);
    }
    snprintf(text, sizeof(text), "messages one way over \"%s\"", profile->paths[first].transports);
    plot_axes(plot, text);
    uci_tuner_make_plan(profile, profile->paths[first].transports, UINT32_MAX, &plan);
    for (i = first; i < end; ++i) {
        path = &profile->paths[i];
        snprintf(text, sizeof(text), "%s%s%s", uci_path_names[path->path], (path->chunk > 0) ? ", chunks of " : "",
                 (path->chunk > 0) ? uci_size_text(path->chunk, size_text) : "");
        plot_line(plot, text, &path->cost, path->path == UCI_PATH_EAGER);
        for (j = 0; j < path->cost.count; ++j) {
            choice = uci_plan_choose(&plan, path->cost.points[j].size);
            if ((uci_plan_path(&plan, path->cost.points[j].size) == path->path) &&
                ((path->chunk == 0) || (choice->chunk_size == path->chunk))) {
                plot_dot(plot, uci_max(path->cost.points[j].size, 1ul), path->cost.points[j].ns);
            }
        }
    }
    plot_legend_of_dots(plot);
}

static unsigned plot_end_of_transports(const uci_profile_t *profile, unsigned first)
{
    unsigned end = first;

    while ((end < profile->paths_count) &&
           (strcmp(profile->paths[end].transports, profile->paths[first].transports) == 0)) {
        ++end;
    }
    return end;
}

static unsigned plot_count(const uci_profile_t *profile)
{
    unsigned count = (profile->kernels_count > 0), i;

    for (i = 0; i < profile->paths_count; i = plot_end_of_transports(profile, i)) {
        ++count;
    }
    return count;
}

static void plot_all(plot_t *plot, const uci_profile_t *profile)
{
    unsigned number = 0, i, end;

    fprintf(plot->stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            PLOT_WIDTH, PLOT_HEIGHT * plot_count(profile) + 24);
    if (profile->kernels_count > 0) {
        plot_begin(plot, number++);
        plot_kernels(plot, profile);
    }
    for (i = 0; i < profile->paths_count; i = end) {
        end = plot_end_of_transports(profile, i);
        plot_begin(plot, number++);
        plot_paths(plot, profile, i, end);
    }
    fprintf(plot->stream, "<text x=\"%d\" y=\"%u\" fill=\"#555555\">", PLOT_LEFT, PLOT_HEIGHT * number + 12);
    plot_text(plot->stream, profile->machine.cpu);
    fprintf(plot->stream, ", %u cores, UCX ", profile->machine.cores);
    plot_text(plot->stream, profile->machine.ucx);
    fprintf(plot->stream, ", ");
    plot_text(plot->stream, profile->created);
    fprintf(plot->stream, "</text>\n</svg>\n");
}

uci_status_t tune_write_plot(const tune_result_t *result, const char *path)
{
    plot_t plot = {.stream = fopen(path, "we")};
    bool failed = (plot.stream == NULL);

    if (!failed) {
        plot_all(&plot, &result->profile);
        failed = ferror(plot.stream);
        failed |= (fclose(plot.stream) != 0);
    }
    if (failed) {
        fprintf(stderr, "uci_tune: cannot write %s: %s\n", path, strerror(errno));
        return UCI_ERR_IO;
    }
    return UCI_OK;
}
