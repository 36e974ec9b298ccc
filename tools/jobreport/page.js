// SPDX-License-Identifier: BSD-3-Clause
// Draws what uci_report has added up: the time line, the maps, what twins differ in, the damaged places of messages; and opens details.
"use strict";
(() => {
    const drawn = JSON.parse(document.getElementById("drawn").textContent);
    const HEATS = 6;
    const count = d3.format(",");
    const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

    // Keys move a cursor in a drawing, and its output says what is there.
    function makeSteerable(svg, label, steps, move) {
        svg.attr("tabindex", 0).attr("role", "application").attr("aria-label", label).on("keydown", () => {
            const step = steps[d3.event.key];
            if (step !== undefined && !d3.event.ctrlKey && !d3.event.metaKey && !d3.event.altKey) {
                d3.event.preventDefault();
                move(step);
            }
        });
    }

    // A cursor in a grid: keys move it to its neighbours, and from one of CELLS, in the order of their PLACE, to the next.
    function steerGrid(svg, label, rows, columns, cells, place, describe) {
        let row = -1, column = 0;
        const show = (toRow, toColumn) => {
            row = Math.max(0, Math.min(rows - 1, toRow));
            column = Math.max(0, Math.min(columns - 1, toColumn));
            describe(row, column);
        };
        const order = [...cells].sort((one, other) => place(one[0], one[1]) - place(other[0], other[1]));
        const jump = forward => {
            const at = row < 0 ? -1 : place(row, column);
            const next = forward ? order.find(cell => place(cell[0], cell[1]) > at) : [...order].reverse().find(cell => place(cell[0], cell[1]) < at);
            const target = next || order[forward ? 0 : order.length - 1];
            if (target) {
                show(target[0], target[1]);
            }
        };
        const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], n: true, p: false, N: true, P: false};
        makeSteerable(svg, label, moves, move => typeof move === "boolean" ? jump(move) : row < 0 ? show(0, 0) : show(row + move[0], column + move[1]));
        return show;
    }

    // Colours and what they stand for.
    function drawLegend(list, entries) {
        list.selectAll("li").remove();
        list.selectAll("li").data(entries).enter().append("li").each(function ([kind, text]) {
            d3.select(this).append("i").attr("class", kind);
            d3.select(this).append("span").text(text);
        });
    }

    // The numbers of a drawing: a row for each of BINS.
    function fillTable(table, names, bins, time, texts) {
        table.selectAll("*").remove();
        const head = table.append("thead").append("tr"), body = table.append("tbody");
        head.append("th").attr("scope", "col").text("From (UTC)");
        names.forEach(name => head.append("th").attr("scope", "col").attr("class", "number").text(name));
        bins.forEach(bin => {
            const row = body.append("tr");
            row.append("th").attr("scope", "row").text(time(bin));
            texts(bin).forEach(text => row.append("td").attr("class", "number").text(text));
        });
    }

    // --- time line ---

    // What became of messages has colours of its own; other series take theirs by rank.
    const OUTCOMES = {"not repaired": "lost", "repaired": "repaired", "source changed": "source"};
    const seriesClass = (name, index) => name in OUTCOMES ? `outcome-${OUTCOMES[name]}` : `series-${index}`;

    const timeFormat = length => d3.utcFormat(length >= 86400 ? "%Y-%m-%d" : length >= 60 ? "%Y-%m-%d %H:%M" : length >= 1 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M:%S.%L");

    function drawTimeline(figure, time) {
        const width = 1100, height = 250, left = 56, right = 12, top = 10, bottom = 28;
        const series = time.views[figure.querySelector("input:checked").value];
        const instant = bin => new Date(1000 * (time.begin + bin * time.length));
        const total = bin => series.reduce((sum, one) => sum + one[1][bin], 0);
        const most = d3.max(d3.range(time.bins), total) || 1;
        const x = d3.scaleUtc().domain([instant(0), instant(time.bins)]).range([left, width - right]);
        const y = d3.scaleLinear().domain([0, most]).nice().range([height - bottom, top]);
        const step = (width - right - left) / time.bins;
        const drawing = d3.select(figure).select(".drawing");
        drawing.selectAll("*").remove();
        const svg = drawing.append("svg").attr("viewBox", `0 0 ${width} ${height}`);
        svg.append("g").attr("transform", `translate(${left},0)`)
            .call(d3.axisLeft(y).ticks(Math.min(5, most)).tickFormat(count).tickSize(right + left - width).tickPadding(6)).select(".domain").remove();
        svg.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(9));
        const heights = new Array(time.bins).fill(0);
        series.forEach(([name, numbers], index) => {
            svg.append("g").attr("class", seriesClass(name, index)).selectAll("rect")
                .data(numbers.map((number, bin) => ({number, bin, from: heights[bin]})).filter(bar => bar.number > 0)).enter().append("rect")
                .attr("class", "stacked").attr("x", bar => left + bar.bin * step + Math.min(.5, step / 8))
                .attr("width", Math.max(step - Math.min(1, step / 4), .5))
                .attr("y", bar => y(bar.from + bar.number)).attr("height", bar => y(bar.from) - y(bar.from + bar.number));
            numbers.forEach((number, bin) => heights[bin] += number);
        });
        drawLegend(d3.select(figure).select(".legend"), series.map(([name, numbers], index) => [seriesClass(name, index), `${name} (${count(d3.sum(numbers))})`]));
        const cursor = svg.append("rect").attr("class", "cursor").attr("y", top).attr("height", height - bottom - top).attr("width", step).style("display", "none");
        const format = timeFormat(time.length);
        let at = -1;
        const show = bin => {
            at = Math.max(0, Math.min(time.bins - 1, bin));
            cursor.style("display", null).attr("x", left + at * step);
            const parts = series.filter(one => one[1][at]).map(one => `${one[0]} ${count(one[1][at])}`);
            figure.querySelector("output").textContent = `${format(instant(at))} UTC: ${plural(total(at), "message")}${parts.length ? " (" + parts.join(", ") + ")" : ""}`;
        };
        svg.on("mousemove", () => show(Math.floor((d3.mouse(svg.node())[0] - left) / step)));
        makeSteerable(svg, `Time line of damaged messages, ${plural(time.bins, "bar")}; at most ${count(most)} in one. Left and right go from bar to bar.`,
            {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity},
            move => show(at < 0 && move === 1 ? 0 : Number.isFinite(move) ? at + move : move < 0 ? 0 : time.bins - 1));
        fillTable(d3.select(figure).select("table"), series.map(one => one[0]), d3.range(time.bins).filter(bin => series.some(one => one[1][bin])),
            bin => format(instant(bin)), bin => series.map(one => count(one[1][bin])));
    }

    // --- maps ---

    // Each colour stands for a range of numbers: single ones as long as that is enough, else each a multiple of the one before
    function heatScale(most) {
        const limits = most <= HEATS ? d3.range(2, most + 1) : d3.range(1, HEATS).map(step => Math.round(Math.pow(most, step / HEATS)));
        return d3.scaleThreshold().domain([...new Set(limits.filter(limit => limit > 1))]).range(d3.range(1, HEATS + 1));
    }

    function drawMap(figure, map) {
        const length = map.labels.length, longest = d3.max(map.labels, label => Math.min(label.length, 16));
        const left = Math.max(44, 24 + 7.6 * longest), isTilted = 7.6 * longest > 20 && 7.6 * longest > Math.min(500 / length, 56) * Math.ceil(13 / Math.min(500 / length, 56));
        const top = isTilted ? 30 + 6 * longest : 40, inner = 500;
        const side = Math.min(inner / length, 56), edge = side * length, gap = side > 8 ? 1 : side > 4 ? .5 : 0;
        const width = Math.max(left + edge + 30, 320), height = top + edge + 6;
        const heat = heatScale(map.most);
        const svg = d3.select(figure).select(".drawing").append("svg").attr("viewBox", `0 0 ${width} ${height}`).style("max-width", `${width}px`);
        const cells = new Map(map.cells.map(cell => [cell[0] * length + cell[1], cell]));
        svg.append("rect").attr("class", "grid").attr("x", left).attr("y", top).attr("width", edge).attr("height", edge);
        svg.append("g").selectAll("rect").data(map.cells).enter().append("rect")
            .attr("class", cell => `cell heat-${heat(cell[2])}`).attr("x", cell => left + cell[1] * side + gap / 2).attr("y", cell => top + cell[0] * side + gap / 2)
            .attr("width", side - gap).attr("height", side - gap);
        svg.append("g").selectAll("path").data(map.cells.filter(cell => cell[3] > 0)).enter().append("path")
            .attr("class", cell => `cross${heat(cell[2]) > 3 ? " on-dark" : ""}`)
            .attr("d", cell => {
                const x = left + cell[1] * side, y = top + cell[0] * side, a = side * .28, b = side * .72;
                return `M${x + a},${y + a}L${x + b},${y + b}M${x + a},${y + b}L${x + b},${y + a}`;
            });
        drawLabels(svg, map.labels, side, left, top, isTilted);
        drawScale(d3.select(figure).select(".scale"), heat, map);
        const cursor = svg.append("rect").attr("class", "cursor").attr("width", side).attr("height", side).style("display", "none");
        const place = (row, column) => row * length + column, words = wordsOf(map);
        const show = steerGrid(svg, `${figure.querySelector("figcaption").textContent}. ${plural(map.cells.length, "square")} of ${count(length * length)} with ${words.any}. ` +
            `Arrow keys move; N and P go to the next and previous one with ${words.any}.`, length, length, map.cells, place, (row, column) => {
            cursor.style("display", null).attr("x", left + column * side).attr("y", top + row * side);
            figure.querySelector("output").textContent = describeCell(map, row, column, cells.get(place(row, column)));
        });
        svg.on("mousemove", () => {
            const [x, y] = d3.mouse(svg.node());
            if (x >= left && y >= top && x < left + edge && y < top + edge) {
                show(Math.floor((y - top) / side), Math.floor((x - left) / side));
            }
        });
    }

    function describeCell(map, row, column, cell) {
        const what = map.ranks_per_cell > 1 ? "ranks " : figureOf(map);
        const ends = `${what}${map.labels[row]} to ${what}${map.labels[column]}: `;
        if (!cell) {
            return ends + wordsOf(map).none;
        }
        const [, , number, lost, pairs, worst, most] = cell;
        return ends + wordsOf(map).some(number) + (lost ? `, ${count(lost)} not repaired` : "") +
            (pairs > 1 ? `, of ${plural(pairs, "pair")}; most from ${worst} (${count(most)})` : "");
    }

    const figureOf = map => map === drawn.maps.hosts ? "" : "rank ";
    const DAMAGE = {any: "damage", none: "no damage", some: number => plural(number, "damaged message")};
    const DIFFERENCE = {any: "a difference", none: "no difference", some: number => `${plural(number, "message")} differed`};
    const wordsOf = map => map === drawn.maps.twins ? DIFFERENCE : DAMAGE;

    function drawLabels(svg, labels, side, left, top, isTilted) {
        const every = Math.ceil(13 / side), shown = labels.map((label, index) => ({label, index})).filter(one => one.index % every === 0);
        const short = label => label.length > 16 ? label.slice(0, 15) + "…" : label;
        const middle = one => (one.index + .5) * side;
        svg.append("g").selectAll("text").data(shown).enter().append("text").attr("text-anchor", "end").attr("dominant-baseline", "central")
            .attr("x", left - 5).attr("y", one => top + middle(one)).text(one => short(one.label));
        svg.append("g").selectAll("text").data(shown).enter().append("text").attr("text-anchor", isTilted ? "start" : "middle")
            .attr("transform", one => `translate(${left + middle(one)},${top - 6})${isTilted ? " rotate(-50)" : ""}`).text(one => short(one.label));
        const edge = labels.length * side;
        svg.append("text").attr("class", "title").attr("x", left).attr("y", 12).text("receiver →");
        svg.append("text").attr("class", "title").attr("text-anchor", "end").attr("transform", `translate(12,${top}) rotate(-90)`).text(edge > 60 ? "← sender" : "");
    }

    function drawScale(list, heat, map) {
        const limits = heat.domain();
        const names = [0, ...limits].map((limit, index) => [Math.max(limit, 1), limits[index] ? limits[index] - 1 : map.most]);
        drawLegend(list, names.map(([from, to], index) => [`heat-${index + 1}`, from === to ? count(from) : `${count(from)} to ${count(to)}`]));
        if (map.cells.some(cell => cell[3] > 0)) {
            list.append("li").text("× some not repaired");
        }
    }

    // --- what twins differ in: ranks against time, and the share of all above ---

    const SHARES = [.01, .05, .2, .5, 1];  // below the last of them, and all: a colour each
    const SHARE_NAMES = ["below 1 %", "1 to 5 %", "5 to 20 %", "20 to 50 %", "50 % and more", "all"];
    const percent = (part, whole) => !part ? "0 %" : part === whole ? "100 %" : 100 * part < whole ? "< 1 %" : `${Math.min(99, Math.round(100 * part / whole))} %`;

    function drawSpread(figure, spread) {
        const width = 1100, left = 64, right = 12, bars = 90, gap = 14, bottom = 28, rows = spread.labels.length;
        const side = Math.max(Math.min(320 / rows, 26), 5), top = 10, grid = top + bars + gap, height = grid + rows * side + bottom;
        const step = (width - right - left) / spread.columns, inset = step > 4 ? .5 : 0;
        const instant = column => new Date(1000 * (spread.begin + column * spread.length));
        const x = d3.scaleUtc().domain([instant(0), instant(spread.columns)]).range([left, width - right]);
        const y = d3.scaleLinear().domain([0, 1]).range([top + bars, top]);
        const heat = d3.scaleThreshold().domain(SHARES).range(d3.range(1, HEATS + 1));
        const svg = d3.select(figure).select(".drawing").append("svg").attr("viewBox", `0 0 ${width} ${height}`);
        svg.append("g").attr("transform", `translate(${left},0)`)
            .call(d3.axisLeft(y).ticks(2).tickFormat(d3.format(".0%")).tickSize(right + left - width).tickPadding(6)).select(".domain").remove();
        svg.append("g").attr("class", "series-0").selectAll("rect").data(d3.range(spread.columns).filter(column => spread.differed[column])).enter().append("rect")
            .attr("class", "stacked").attr("x", column => left + column * step + inset).attr("width", Math.max(step - 2 * inset, .5))
            .attr("y", column => y(spread.differed[column] / spread.compared[column])).attr("height", column => top + bars - y(spread.differed[column] / spread.compared[column]));
        svg.append("rect").attr("class", "grid").attr("x", left).attr("y", grid).attr("width", width - right - left).attr("height", rows * side);
        svg.append("g").selectAll("rect").data(spread.cells).enter().append("rect").attr("class", cell => `cell heat-${heat(cell[2] / cell[3])}`)
            .attr("x", cell => left + cell[1] * step + inset).attr("y", cell => grid + cell[0] * side + inset)
            .attr("width", Math.max(step - 2 * inset, .5)).attr("height", Math.max(side - 2 * inset, .5));
        const every = Math.ceil(13 / side);
        svg.append("g").selectAll("text").data(spread.labels.map((label, index) => ({label, index})).filter(one => one.index % every === 0)).enter().append("text")
            .attr("text-anchor", "end").attr("dominant-baseline", "central").attr("x", left - 5).attr("y", one => grid + (one.index + .5) * side).text(one => one.label);
        svg.append("text").attr("class", "title").attr("text-anchor", "end").attr("transform", `translate(12,${grid}) rotate(-90)`).text(rows * side > 40 ? "rank" : "");
        svg.append("g").attr("transform", `translate(0,${grid + rows * side})`).call(d3.axisBottom(x).ticks(9));
        drawLegend(d3.select(figure).select(".scale"), SHARE_NAMES.map((name, index) => [`heat-${index + 1}`, name]));
        steerSpread(figure, svg, spread, {left, grid, step, side, instant});
        fillTable(d3.select(figure).select("table"), ["compared", "differed", "share", "ranks with differences"],
            d3.range(spread.columns).filter(column => spread.compared[column]), column => timeFormat(spread.length)(instant(column)), column =>
                [count(spread.compared[column]), count(spread.differed[column]), percent(spread.differed[column], spread.compared[column]), count(spread.tainted[column])]);
    }

    function steerSpread(figure, svg, spread, {left, grid, step, side, instant}) {
        const cells = new Map(spread.cells.map(cell => [cell[0] * spread.columns + cell[1], cell]));
        const cursor = svg.append("rect").attr("class", "cursor").attr("width", Math.max(step, 3)).attr("height", side).style("display", "none");
        const format = timeFormat(spread.length);
        const rows = spread.labels.length;
        const show = steerGrid(svg, `${figure.querySelector("figcaption").textContent}. ${plural(rows, "row")} of ${plural(spread.columns, "column")}. Arrow keys move; N and P go to the next and previous difference in time.`,
            rows, spread.columns, spread.cells, (row, column) => column * rows + row, (row, column) => {
            cursor.style("display", null).attr("x", left + column * step).attr("y", grid + row * side);
            const cell = cells.get(row * spread.columns + column);
            figure.querySelector("output").textContent = `${spread.ranks_per_row > 1 ? "ranks" : "rank"} ${spread.labels[row]}, ${format(instant(column))} UTC: ` +
                (cell ? `${count(cell[2])} of ${plural(cell[3], "message")} differed` : "no difference") +
                `; all ranks: ${count(spread.differed[column])} of ${count(spread.compared[column])} (${percent(spread.differed[column], spread.compared[column])}), at ${plural(spread.tainted[column], "rank")}`;
        });
        svg.on("mousemove", () => {
            const [x, y] = d3.mouse(svg.node());
            show(Math.floor((y - grid) / side), Math.floor((x - left) / step));
        });
    }

    // --- damaged places of a message ---

    function drawChunks(figure, record) {
        const width = 1000, height = 34, x = d3.scaleLinear().domain([0, record.length]).range([0, width]);
        const svg = d3.select(figure).select(".drawing").append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img")
            .attr("aria-label", `${plural(record.chunks.length, "damaged place")} in ${count(record.length)} bytes; the first: bytes ${count(record.chunks[0][0])} to ${count(record.chunks[0][1])}`);
        svg.append("rect").attr("class", "grid").attr("width", width).attr("height", 16);
        svg.append("g").attr("class", "series-0").selectAll("rect").data(record.chunks).enter().append("rect").attr("class", "stacked").attr("height", 16)
            .attr("x", chunk => Math.min(x(chunk[0]), width - 3)).attr("width", chunk => Math.max(x(chunk[1] + 1) - x(chunk[0]), 3))
            .append("title").text(chunk => `bytes ${count(chunk[0])} to ${count(chunk[1])}: ${chunk[2]}`);
        svg.append("text").attr("y", 31).text("0");
        svg.append("text").attr("x", width).attr("y", 31).attr("text-anchor", "end").text(`${count(record.length)} bytes`);
    }

    // --- details of messages: all there without a script, closed with one ---

    function closeDetails() {
        const all = document.getElementById("all"), buttons = [...document.querySelectorAll(".open")];
        const set = (button, isOpen) => {
            button.setAttribute("aria-expanded", isOpen);
            document.getElementById(button.getAttribute("aria-controls")).hidden = !isOpen;
        };
        buttons.forEach((button, index) => {
            set(button, index === 0);
            button.addEventListener("click", () => set(button, button.getAttribute("aria-expanded") !== "true"));
        });
        if (all) {
            all.hidden = false;
            all.addEventListener("click", () => {
                const isOpen = all.getAttribute("aria-pressed") !== "true";
                all.setAttribute("aria-pressed", isOpen);
                all.textContent = isOpen ? "Close all" : "Open all";
                buttons.forEach(button => set(button, isOpen));
            });
        }
    }

    const timeline = document.getElementById("timeline");
    if (timeline) {
        timeline.addEventListener("change", () => drawTimeline(timeline, drawn.time));
        drawTimeline(timeline, drawn.time);
    }
    const spread = document.getElementById("spread");
    if (spread) {
        drawSpread(spread, drawn.spread);
    }
    document.querySelectorAll(".map").forEach(figure => drawMap(figure, drawn.maps[figure.dataset.map]));
    document.querySelectorAll(".chunks").forEach(figure => drawChunks(figure, drawn.chunks[figure.dataset.record]));
    closeDetails();
    document.documentElement.dataset.ready = Math.round(performance.now());
})();
