/* The script of report.html: zoom, the calls of an action, what is alive at an instant.  The page reads well without it. */
(function () {
  "use strict";
  const holder = document.getElementById("data");
  const data = JSON.parse(holder.textContent);
  const all = (what, where) => Array.from((where || document).querySelectorAll(what));
  const SVG = "http://www.w3.org/2000/svg";
  document.documentElement.classList.add("script");

  const make = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const element = (tag, text, className) => {
    const node = document.createElement(tag);
    node.textContent = text;
    if (className) node.className = className;
    return node;
  };
  const units = [[1e10, 1e9, "s"], [1e6, 1e6, "ms"], [1e3, 1e3, "us"], [0, 1, "ns"]];
  const unitOf = (ns) => units.find((u) => ns >= u[0]) || units[3];
  const time = (ns) => {
    const [, unit, name] = unitOf(ns), x = ns / unit;
    return x.toFixed(unit === 1 ? 0 : x < 10 ? 3 : x < 100 ? 2 : 1) + " " + name;
  };
  const size = (n) => {
    for (const [k, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
      if (n >= k) return (n / k).toFixed(2) + " " + name;
    return n + " bytes";
  };

  /* ---- zoom: all plots of one scale move together ------------------------------------------------------------------ */

  const NEAR = 90, DEEPEST = 400;
  const scales = new Map();     /* length -> {zoom, plots} */
  for (const svg of all(".plot .scroll > div > svg")) {
    const length = +svg.dataset.length;
    if (!scales.has(length)) scales.set(length, {length, zoom: 1, plots: []});
    scales.get(length).plots.push({svg, box: svg.parentNode, scroll: svg.parentNode.parentNode});
  }
  const scaleOf = (svg) => scales.get(+svg.dataset.length);

  function drawAxis(plot, length) {
    const old = plot.svg.querySelector("g.axis"), wide = plot.box.clientWidth;
    if (!wide) return;
    const bottom = plot.svg.height.baseVal.value - 18, [, unit, name] = unitOf(length);
    let step = 1;
    for (let power = 1; step * wide / length < NEAR; power *= 10)
      for (const k of [1, 2, 5])
        if (step * wide / length < NEAR) step = k * power;
    const axis = make("g", {class: "axis"});
    for (let at = 0; at <= length; at += step) {
      const x = 100 * at / length + "%";
      axis.append(make("line", {class: "grid", x1: x, x2: x, y1: 0, y2: bottom}));
      if (wide * (1 - at / length) > 40)
        axis.append(make("text", {x: x, dx: 2, y: bottom + 14}, +(at / unit).toPrecision(9) + (at ? "" : " " + name)));
    }
    old.replaceWith(axis);
    for (const text of all("text.n", plot.svg))
      text.style.display = +text.dataset.w * wide / 100 > 7 * text.textContent.length + 4 ? "inline" : "none";
  }

  function zoom(scale, factor, share) {
    const first = scale.plots[0].scroll, width = first.clientWidth;
    const centre = (first.scrollLeft + share * width) / scale.zoom;
    scale.zoom = Math.min(DEEPEST, Math.max(1, factor ? scale.zoom * factor : 1));
    for (const plot of scale.plots) plot.box.style.width = 100 * scale.zoom + "%";
    for (const plot of scale.plots) {
      plot.scroll.scrollLeft = centre * scale.zoom - share * width;
      drawAxis(plot, scale.length);
    }
  }

  for (const scale of scales.values())
    for (const plot of scale.plots) {
      drawAxis(plot, scale.length);
      plot.scroll.addEventListener("scroll", () => {
        for (const other of scale.plots)
          if (other.scroll.scrollLeft !== plot.scroll.scrollLeft) other.scroll.scrollLeft = plot.scroll.scrollLeft;
      });
      plot.scroll.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        const box = plot.scroll.getBoundingClientRect();
        zoom(scale, event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
      }, {passive: false});
    }
  addEventListener("resize", () => {
    for (const scale of scales.values()) for (const plot of scale.plots) drawAxis(plot, scale.length);
  });
  for (const tools of all(".tools")) {
    const svg = tools.parentNode.querySelector("#" + tools.dataset.for), scale = scaleOf(svg);
    for (const [text, factor, title] of [["\u2212", 0.5, "zoom out"], ["+", 2, "zoom in"], ["all", 0, "show the whole step"]]) {
      const button = element("button", text);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-label", title + ", " + svg.getAttribute("aria-label"));
      button.onclick = () => zoom(scale, factor, 0.5);
      tools.append(button);
    }
    tools.append(element("span", "or the wheel with Ctrl"));
  }

  /* ---- the calls of an action ----------------------------------------------------------------------------------------- */

  const nameOf = (box) => {
    const text = box.firstElementChild.textContent, line = text.split("\n")[0], at = line.lastIndexOf(": ");
    return {name: line.slice(0, at), time: line.slice(at + 2)};
  };
  const known = new Map();      /* of the prediction, by stage and name */
  for (const box of all("svg.time [data-s]"))
    if ("c" in box.dataset) known.set(box.dataset.s + " " + nameOf(box).name, box);

  function tell(box, panel) {
    const {name, time: took} = nameOf(box), same = known.get(box.dataset.s + " " + name);
    let head = "Stage " + box.dataset.s + (name.startsWith("wait") ? " " : ": ") + name + ", " + took;
    if (box.dataset.measured)
      head += " measured" + (same ? ", " + nameOf(same).time + " predicted" : "");
    panel.replaceChildren(element("h4", head));
    const from = same || box, calls = "c" in from.dataset ? data.calls[+from.dataset.c] : [];
    if (calls.length) panel.append(element("p", "Calls, predicted times", "soft"));
    const list = element("ol", "");
    for (let i = 0; i < calls.length; i += 2) {
      const item = element("li", "");
      item.append(element("span", calls[i]), element("span", time(calls[i + 1])));
      list.append(item);
    }
    panel.append(list);
    for (const other of all(".chosen", box.parentNode)) other.classList.remove("chosen");
    box.classList.add("chosen");
  }
  for (const panel of all(".panel.calls")) {
    const svg = panel.parentNode.querySelector("#" + panel.dataset.for);
    const boxes = all("[data-s]", svg), row = (box) => box.dataset.s + " " + (box.dataset.measured || "");
    const rows = [...new Set(boxes.map(row))];
    svg.addEventListener("keydown", (event) => {
      const along = {ArrowRight: 1, ArrowLeft: -1}[event.key], down = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (!along && !down) return;
      event.preventDefault();
      const now = svg.querySelector(".chosen") || boxes[0], to = rows[rows.indexOf(row(now)) + (down || 0)];
      const line = boxes.filter((box) => row(box) === to), far = (box) => Math.abs(box.getBBox().x - now.getBBox().x);
      const next = along ? line[line.indexOf(now) + along] : line.sort((a, b) => far(a) - far(b))[0];
      tell(now.classList.contains("chosen") ? next || now : now, panel);
    });
    for (const kind of ["pointerover", "click"])
      svg.addEventListener(kind, (event) => {
        if (event.target.dataset && event.target.dataset.s) tell(event.target, panel);
      });
  }

  /* ---- what is alive at an instant ------------------------------------------------------------------------------------- */

  const ALWAYS = 5;
  data.stages.forEach((stage) => {
    let now = 0;
    stage.at = stage.t.map((step) => (now += step));
    stage.live = stage.at.map(() => 0);
    for (let i = 0; i < stage.lives.length; i += 5) {
      stage.live[stage.lives[i + 3]] += stage.bufs[stage.lives[i]][2];
      if (stage.lives[i + 4] + 1 < stage.live.length) stage.live[stage.lives[i + 4] + 1] -= stage.bufs[stage.lives[i]][2];
    }
    for (let t = 1; t < stage.live.length; t++) stage.live[t] += stage.live[t - 1];
  });

  /* The call between two times where most is alive; without one the last that has begun. */
  function callAt(stage, from, to) {
    let best = -1, last = 0;
    for (let t = 0; t + 1 < stage.at.length && stage.at[t] <= to; t++) {
      last = t;
      if (stage.at[t + 1] >= from && (best < 0 || stage.live[t] > stage.live[best])) best = t;
    }
    return best < 0 ? last : best;
  }

  function aliveAt(stage, t) {
    const found = [];
    for (const buf of stage.bufs)
      for (let slot = 0; slot < buf[ALWAYS]; slot++)
        found.push({name: buf[0], kind: buf[1], bytes: buf[2], at: buf[3] + slot * buf[4]});
    for (let i = 0; i < stage.lives.length; i += 5) {
      const [b, mb, slot, first, last] = stage.lives.slice(i, i + 5), buf = stage.bufs[b];
      if (first <= t && t <= last)
        found.push({name: buf[0] + ", micro-batch " + mb, kind: buf[1], bytes: buf[2], at: buf[3] + slot * buf[4]});
    }
    return found.sort((a, b) => b.bytes - a.bytes);
  }

  /* Boxes whose areas are as the bytes: rows of boxes that are as square as they get.  Bruls, Huizing, van Wijk, Squarified
   * Treemaps, 2000. */
  function squarify(items, x, y, w, h, put) {
    let sum = items.reduce((n, item) => n + item.bytes, 0);
    for (let i = 0; i < items.length && sum > 0;) {
      const short = Math.min(w, h), scale = w * h / sum;
      let row = 0, worst = Infinity, n = i;
      for (; n < items.length; n++) {
        const more = row + items[n].bytes, side = more * scale / short;
        const ratio = Math.max(items[i].bytes * scale / side / side, side * side / (items[n].bytes * scale));
        if (ratio > worst) break;
        worst = ratio;
        row = more;
      }
      const side = row * scale / short;
      for (let along = 0; i < n; i++) {
        const part = items[i].bytes * scale / side;
        if (w >= h) put(items[i], x, y + along, side, part);
        else put(items[i], x + along, y, part, side);
        along += part;
      }
      if (w >= h) { x += side; w -= side; } else { y += side; h -= side; }
      sum -= row;
    }
  }

  function drawTree(tree, found) {
    const w = tree.clientWidth, h = tree.clientHeight, sum = found.reduce((n, item) => n + item.bytes, 0);
    let x = 0;
    tree.replaceChildren();
    data.kinds.forEach((name, kind) => {
      const of = found.filter((item) => item.kind === kind), part = of.reduce((n, item) => n + item.bytes, 0) * w / sum;
      squarify(of, x, 0, part, h, (item, left, top, wide, tall) => {
        if (wide < 1 || tall < 1) return;
        const box = element("div", "", "k" + kind);
        if (wide > 24 && tall > 13) box.append(element("span", item.name));
        if (wide > 44 && tall > 28) box.append(element("span", size(item.bytes)));
        box.title = item.name + ": " + name + ", " + size(item.bytes);
        box.style.cssText = "left:" + left + "px;top:" + top + "px;width:" + wide + "px;height:" + tall + "px";
        tree.append(box);
      });
      x += part;
    });
  }

  all("section[data-stage]").forEach((section) => {
    const stage = data.stages[+section.dataset.stage], panel = section.querySelector(".alive");
    const plots = all("svg.bytes, svg.pack", section), head = element("h4", ""), tree = element("div", "", "tree");
    const cursors = plots.map((svg) => svg.appendChild(make("line", {class: "cursor", y1: 0, y2: svg.dataset.tall})));
    panel.append(head, tree);
    let current = stage.live.indexOf(Math.max(...stage.live));
    function show(t, under) {
      current = t;
      const found = aliveAt(stage, t), sum = found.reduce((n, item) => n + item.bytes, 0), x = stage.at[t];
      const hit = under === undefined ? null : found.find((item) => item.at <= under && under < item.at + item.bytes);
      head.textContent = "At " + time(x * data.length / 1e6) + ", call " + t + ": " + size(sum) + " in " + found.length +
        " buffers" +
        (stage.least ? " of " + size(stage.least) + " and more" : "") +
        (hit ? "; under the pointer " + hit.name + ", " + size(hit.bytes) + " at " + hit.at : "");
      for (const line of cursors) { line.setAttribute("x1", x / 1e4 + "%"); line.setAttribute("x2", x / 1e4 + "%"); }
      drawTree(tree, found);
    }
    plots.forEach((svg) => {
      const point = (event) => {
        const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width, near = 0.6 / box.width;
        const up = 1 - (event.clientY - box.top) / +svg.dataset.tall;
        const under = svg.classList.contains("pack") ? up * svg.dataset.top : undefined;
        show(callAt(stage, 1e6 * (x - near), 1e6 * (x + near)), under);
      };
      for (const kind of ["pointermove", "click"]) svg.addEventListener(kind, point);
      svg.addEventListener("keydown", (event) => {
        const to = current + ({ArrowRight: 1, ArrowLeft: -1}[event.key] || NaN);
        if (to >= 0 && to < stage.at.length - 1) { event.preventDefault(); show(to); }
      });
    });
    show(current);
    addEventListener("resize", () => show(current));
  });
})();
