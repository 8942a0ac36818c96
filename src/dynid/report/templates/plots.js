"use strict";
// Plots of a page: each <div class="plot" data-spec="ID"> is drawn as SVG panels from the JSON with that id.
window.dynid = window.dynid || {};
(function (dynid) {
  const NS = "http://www.w3.org/2000/svg", CHAR = 6.3, FONT = 11.5;
  const groups = {}, figures = [];

  function unpack(v) {
    const bytes = atob(v.q), n = bytes.length / 2, out = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let k = bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8);
      if (k > 32767) { k -= 65536; }
      out[i] = k === -32768 ? NaN : v.o + v.s * k;
    }
    return out;
  }
  // A list, a packed series, or the name of one that plots share ("a+b": their sum).
  function values(v, shared) {
    if (v === undefined || v === null) { return []; }
    if (typeof v !== "string") { return Array.isArray(v) ? v.map(function (x) { return x === null ? NaN : x; }) : unpack(v); }
    const parts = v.split("+").map(function (key) { return unpack(shared[key]); });
    return parts[0].map(function (x, i) { return parts.reduce(function (sum, one) { return sum + one[i]; }, 0); });
  }
  function read(id) { return JSON.parse(document.getElementById(id).textContent); }
  dynid.unpack = unpack;

  function text(x, digits) {
    if (!isFinite(x)) { return "-"; }
    if (x === 0) { return "0"; }
    const size = Math.abs(x);
    const shown = size >= 1e5 || size < 1e-3 ? (+x.toPrecision(digits)).toExponential() : String(+x.toPrecision(digits));
    return shown.replace("-", "\u2212");
  }
  dynid.text = text;
  function ticks(low, high, most) {
    const span = high - low || 1, raw = span / Math.max(1, most), power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].find(function (k) { return k * power >= raw; }) * power, found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) { found.push(+(k * step).toPrecision(12)); }
    return found.length < 3 && most < 12 ? ticks(low, high, most + 2) : found;
  }
  function decades(low, high, most) {
    const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), found = [];
    if (last - first < 1) {
      for (let k = Math.floor(low); k <= high; k++) { [1, 2, 5].forEach(function (m) { const v = k + Math.log10(m); if (v >= low && v <= high) { found.push(v); } }); }
      return found.length > 1 ? found : ticks(Math.pow(10, low), Math.pow(10, high), 3).filter(function (v) { return v > 0; }).map(Math.log10);
    }
    const step = Math.max(1, Math.ceil((last - first) / most));
    for (let k = first; k <= last; k += step) { found.push(k); }
    return found;
  }
  function node(name, attributes, parent, content) {
    const made = document.createElementNS(NS, name);
    Object.keys(attributes || {}).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (content !== undefined) { made.textContent = content; }
    if (parent) { parent.appendChild(made); }
    return made;
  }
  function html(name, className, parent, content) {
    const made = document.createElement(name);
    if (className) { made.className = className; }
    if (content !== undefined) { made.textContent = content; }
    if (parent) { parent.appendChild(made); }
    return made;
  }
  dynid.html = html;
  function colour(name) { return "var(--p-" + (name || "blue") + ")"; }
  function fitted(label, room) {
    const most = Math.max(3, Math.floor(room / CHAR));
    return label.length <= most ? label : label.slice(0, most - 1) + "\u2026";
  }
  // All numbers of a series along an axis, in axis units (decades where it is logarithmic).
  function along(axis, v) { return axis.log ? Array.from(v, function (x) { return x > 0 ? Math.log10(x) : NaN; }) : v; }

  function Panel(spec, figure) {
    this.spec = spec; this.figure = figure; this.x = spec.x || {}; this.y = spec.y || {};
    const x = this.x, y = this.y, shared = figure.shared;
    this.series = spec.series.map(function (s) {
      const made = Object.assign({}, s);
      ["x", "low", "high", "half"].forEach(function (key) { if (s[key] !== undefined) { made[key] = along(key === "x" ? x : y, values(s[key], shared)); } });
      if (s.y !== undefined) { made.y = along(y, values(s.y, shared)); }
      if (s.kind === "stack") { made.parts = s.parts.map(function (p) { return { name: p.name, colour: p.colour, y: values(p.y, shared) }; }); }
      return made;
    });
  }
  Panel.prototype.shown = function () {
    const hidden = this.figure.hidden;
    return this.series.filter(function (s) { return !hidden[s.name]; });
  };
  Panel.prototype.rangeX = function () {
    const zoom = groups[this.figure.link] || this.figure.zoom;
    if (zoom && !this.x.names) { return zoom; }
    if (this.x.range) { return this.x.range; }
    if (this.x.names) { return [-0.6, this.x.names.length - 0.4]; }
    let low = Infinity, high = -Infinity;
    this.series.forEach(function (s) {
      (s.x || []).forEach(function (v) { if (v < low) { low = v; } if (v > high) { high = v; } });
      if (s.kind === "bars" && s.flat) { low = Math.min(low, 0); }
    });
    if (!(high > low)) { low = isFinite(low) ? low - 1 : 0; high = low + 2; }
    const pad = this.x.tight ? 0 : 0.03 * (high - low);
    return [low - pad, high + pad];
  };
  Panel.prototype.rangeY = function (range) {
    if (this.y.range) { return this.y.range; }
    if (this.y.names) { return [this.y.names.length - 0.4, -0.6]; }
    let low = Infinity, high = -Infinity;
    function see(v) { if (v < low) { low = v; } if (v > high) { high = v; } }
    this.shown().forEach(function (s) {
      const n = s.x ? s.x.length : 0;
      for (let i = 0; i < n; i++) {
        if (!(s.x[i] >= range[0] && s.x[i] <= range[1])) { continue; }
        if (s.kind === "stack") {
          let up = 0, down = 0;
          s.parts.forEach(function (p) { const v = p.y[i]; if (v > 0) { up += v; } else if (v < 0) { down += v; } });
          see(up); see(down);
        } else if (s.kind === "band") { see(s.low[i]); see(s.high[i]); } else if (s.y) { see(s.y[i]); if (s.kind === "bars") { see(0); } }
      }
    });
    (this.spec.marks || []).forEach(function (m) { if (m.band) { see(m.band[0]); see(m.band[1]); } });
    if (!(high >= low)) { return [-1, 1]; }
    if (high === low) { return [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5]; }
    const pad = 0.07 * (high - low);
    return [low - pad, high + pad];
  };
  Panel.prototype.draw = function (box) {
    const width = Math.max(220, Math.floor(box.clientWidth || 300)), spec = this.spec, x = this.x, y = this.y, self = this;
    const rx = this.rangeX(), ry = this.rangeY(rx);
    const rows = y.names ? y.names.length : 0;
    const height = spec.square ? Math.min(1.15 * width, Math.max(620, rows * 12 + 190)) : rows ? Math.max(90, rows * (spec.row || 18) + 60) : spec.height || 190;
    const yTicks = y.names ? y.names.map(function (_, i) { return i; }) : y.log ? decades(ry[0], ry[1], 5) : y.ticks ? y.ticks.filter(function (v) { return v >= ry[0] && v <= ry[1]; }) : ticks(ry[0], ry[1], Math.max(3, Math.round(height / 45)));
    const yLabel = function (v) { return y.names ? y.names[v] : text(y.log ? Math.pow(10, v) : v, 4); };
    const longest = Math.max.apply(null, yTicks.map(function (v) { return yLabel(v).length; }).concat([1]));
    const left = Math.min((y.title ? 20 : 6) + longest * CHAR + 8, 0.42 * width), right = 12, top = 8;
    const inner = width - left - right;
    const xTicks = x.names ? x.names.map(function (_, i) { return i; }) : x.log ? decades(rx[0], rx[1], 6) : ticks(rx[0], rx[1], Math.max(2, Math.min(9, Math.floor(inner / 62))));
    const slanted = Boolean(x.names) && x.names.some(function (n) { return n.length * CHAR > inner / x.names.length; });
    const most = slanted ? Math.min(spec.square ? 30 : 14, Math.max.apply(null, x.names.map(function (n) { return n.length; }))) : 0;
    const bottom = (slanted ? most * CHAR * 0.8 + 14 : 20) + (x.title ? 17 : 0);
    const innerY = Math.max(40, height - top - bottom), whole = top + innerY + bottom;
    const px = function (v) { return left + (v - rx[0]) / (rx[1] - rx[0]) * inner; };
    const py = function (v) { return top + (ry[1] - v) / (ry[1] - ry[0]) * innerY; };
    const svg = node("svg", { viewBox: "0 0 " + width + " " + whole, width: width, height: whole, role: "img", "aria-label": spec.title || this.figure.label });
    svg.style.fontSize = FONT + "px";
    const clip = "clip" + Math.random().toString(36).slice(2);
    node("rect", { x: left, y: top, width: inner, height: innerY }, node("clipPath", { id: clip }, svg));
    const grid = node("g", { style: "stroke:var(--p-grid);stroke-width:1" }, svg), labels = node("g", { style: "fill:var(--muted)" }, svg);
    yTicks.forEach(function (v) {
      if (!y.names && !spec.square) { node("line", { x1: left, x2: left + inner, y1: py(v), y2: py(v) }, grid); }
      const label = yLabel(v), step = innerY / Math.max(1, rows);
      if (rows && step < 11 && v % Math.ceil(11 / step)) { return; }
      const made = node("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, labels, fitted(label, left - 10));
      node("title", {}, made, label);
    });
    xTicks.forEach(function (v) {
      if (!x.names && !spec.square) { node("line", { x1: px(v), x2: px(v), y1: top, y2: top + innerY }, grid); }
      const label = x.names ? x.names[v] : text(x.log ? Math.pow(10, v) : v, 4);
      if (slanted) {
        if (inner / x.names.length < 9 && v % Math.ceil(10 / (inner / x.names.length))) { return; }
        const at = px(v) + 3, made = node("text", { x: at, y: top + innerY + 9, "text-anchor": "end", transform: "rotate(-55 " + at + " " + (top + innerY + 9) + ")" }, labels, fitted(label, most * CHAR));
        node("title", {}, made, label);
      } else { node("text", { x: Math.min(px(v), width - label.length * CHAR / 2), y: top + innerY + 15, "text-anchor": "middle" }, labels, label); }
    });
    if (x.title) { node("text", { x: left + inner / 2, y: whole - 4, "text-anchor": "middle" }, labels, x.title); }
    if (y.title) { node("text", { transform: "translate(12 " + (top + innerY / 2) + ") rotate(-90)", "text-anchor": "middle" }, labels, fitted(y.title, innerY + 40)); }
    const body = node("g", { "clip-path": "url(#" + clip + ")" }, svg);
    (spec.marks || []).forEach(function (m) {
      if (m.band) { node("rect", { x: left, width: inner, y: py(m.band[1]), height: Math.max(0, py(m.band[0]) - py(m.band[1])), style: "fill:" + colour(m.colour) + ";opacity:0.13" }, body); }
      if (m.x !== undefined) { node("line", { x1: px(m.x), x2: px(m.x), y1: top, y2: top + innerY, style: "stroke:" + colour(m.colour) + ";stroke-width:1.3;stroke-dasharray:3 3" }, body); }
      if (m.y !== undefined) { node("line", { x1: left, x2: left + inner, y1: py(m.y), y2: py(m.y), style: "stroke:" + colour(m.colour) + ";stroke-width:1.2" + (m.solid ? "" : ";stroke-dasharray:4 3") }, body); }
    });
    if (!y.names && !y.log && ry[0] < 0 && ry[1] > 0) { node("line", { x1: left, x2: left + inner, y1: py(0), y2: py(0), style: "stroke:var(--p-axis);stroke-width:1" }, body); }
    this.shown().forEach(function (s) { KINDS[s.kind](self, s, body, px, py); });
    node("rect", { x: left, y: top, width: inner, height: innerY, style: "fill:none;stroke:var(--p-axis);stroke-width:1" }, svg);
    box.replaceChildren(svg);
    this.place = { left: left, inner: inner, top: top, innerY: innerY, px: px, py: py, rx: rx, ry: ry, width: width, svg: svg };
  };
  function path(xs, ys, px, py) {
    let d = "", pen = false;
    for (let i = 0; i < xs.length; i++) {
      if (isFinite(xs[i]) && isFinite(ys[i])) { d += (pen ? "L" : "M") + px(xs[i]).toFixed(1) + " " + py(ys[i]).toFixed(1); pen = true; } else { pen = false; }
    }
    return d;
  }
  function area(xs, low, high, px, py) {
    let d = "", start = -1;
    for (let i = 0; i <= xs.length; i++) {
      const fine = i < xs.length && isFinite(xs[i]) && isFinite(low[i]) && isFinite(high[i]);
      if (fine && start < 0) { start = i; }
      if (!fine && start >= 0) {
        for (let k = start; k < i; k++) { d += (k === start ? "M" : "L") + px(xs[k]).toFixed(1) + " " + py(high[k]).toFixed(1); }
        for (let k = i - 1; k >= start; k--) { d += "L" + px(xs[k]).toFixed(1) + " " + py(low[k]).toFixed(1); }
        d += "Z"; start = -1;
      }
    }
    return d;
  }
  function symbol(parent, kind, x, y, r, style) {
    if (kind === "square") { return node("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, style: style }, parent); }
    if (kind === "triangle") { return node("path", { d: "M" + x + " " + (y - r) + "L" + (x + r) + " " + (y + r) + "L" + (x - r) + " " + (y + r) + "Z", style: style }, parent); }
    if (kind === "diamond") { return node("path", { d: "M" + x + " " + (y - r - 1) + "L" + (x + r + 1) + " " + y + "L" + x + " " + (y + r + 1) + "L" + (x - r - 1) + " " + y + "Z", style: style }, parent); }
    if (kind === "cross") { return node("path", { d: "M" + (x - r) + " " + (y - r) + "L" + (x + r) + " " + (y + r) + "M" + (x - r) + " " + (y + r) + "L" + (x + r) + " " + (y - r), style: style + ";stroke-width:2" }, parent); }
    if (kind === "bar") { return node("path", { d: "M" + x + " " + (y - r - 2) + "L" + x + " " + (y + r + 2), style: style + ";stroke-width:2.4" }, parent); }
    return node("circle", { cx: x, cy: y, r: r, style: style }, parent);
  }
  const KINDS = {
    line: function (panel, s, g, px, py) {
      node("path", { d: path(s.x, s.y, px, py), style: "fill:none;stroke-linejoin:round;stroke:" + colour(s.colour) + ";stroke-width:" + (s.width || 1.5) + (s.dash ? ";stroke-dasharray:5 4" : "") }, g);
      if (s.dots) { for (let i = 0; i < s.x.length; i++) { if (isFinite(s.y[i])) { node("circle", { cx: px(s.x[i]), cy: py(s.y[i]), r: 2.6, style: "fill:" + colour(s.colour) }, g); } } }
    },
    band: function (panel, s, g, px, py) { node("path", { d: area(s.x, s.low, s.high, px, py), style: "stroke:none;opacity:0.25;fill:" + colour(s.colour) }, g); },
    stack: function (panel, s, g, px, py) {
      const n = s.x.length, up = new Float64Array(n), down = new Float64Array(n);
      s.parts.forEach(function (p) {
        if (panel.figure.hidden[p.name]) { return; }
        const low = [], high = [];
        for (let i = 0; i < n; i++) {
          const v = p.y[i];
          if (v >= 0) { low.push(up[i]); up[i] += v; high.push(up[i]); } else { high.push(down[i]); down[i] += isFinite(v) ? v : 0; low.push(isFinite(v) ? down[i] : NaN); }
        }
        node("path", { d: area(s.x, low, high, px, py), style: "stroke:none;opacity:0.72;fill:" + colour(p.colour) }, g);
      });
    },
    points: function (panel, s, g, px, py) {
      const style = "fill:" + colour(s.colour) + ";stroke:" + colour(s.colour) + ";opacity:" + (s.opacity || 1);
      const open = "fill:none;stroke-width:1.6;stroke:" + colour(s.colour);
      for (let i = 0; i < s.x.length; i++) {
        if (!isFinite(s.x[i]) || !isFinite(s.y[i])) { continue; }
        if (s.half) { node("line", { x1: px(s.x[i] - s.half[i]), x2: px(s.x[i] + s.half[i]), y1: py(s.y[i]), y2: py(s.y[i]), style: "stroke-width:3;stroke:" + colour(s.colour) }, g); }
        symbol(g, s.symbol, px(s.x[i]), py(s.y[i]), s.size || 4, s.open ? open : style);
      }
    },
    bars: function (panel, s, g, px, py) {
      for (let i = 0; i < s.x.length; i++) {
        const fill = "fill:" + colour(s.colours ? s.colours[i] : s.colour);
        if (s.flat) {
          const zero = px(panel.x.log ? panel.rangeX()[0] : 0), end = px(s.x[i]);
          node("rect", { x: Math.min(zero, end), width: Math.max(1, Math.abs(end - zero)), y: py(s.y[i]) - 6, height: 12, style: fill }, g);
        } else {
          const zero = py(0), end = py(s.y[i]), w = Math.max(2, 0.7 * Math.abs(px(1) - px(0)));
          node("rect", { x: px(s.x[i]) - w / 2, width: w, y: Math.min(zero, end), height: Math.max(1, Math.abs(end - zero)), style: fill }, g);
        }
      }
    },
    heat: function (panel, s, g, px, py) {
      const n = panel.y.names.length, v = values(s.values), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
      canvas.width = n; canvas.height = n;
      const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
      const paper = dark ? [24, 30, 38] : [255, 255, 255], plus = dark ? [255, 140, 60] : [200, 70, 0], minus = dark ? [80, 170, 230] : [0, 100, 170];
      const image = pen.createImageData(n, n);
      for (let i = 0; i < n * n; i++) {
        const k = Math.min(1, Math.abs(v[i] || 0)), end = v[i] > 0 ? plus : minus;
        for (let c = 0; c < 3; c++) { image.data[4 * i + c] = paper[c] + (end[c] - paper[c]) * k; }
        image.data[4 * i + 3] = 255;
      }
      pen.putImageData(image, 0, 0);
      const x = px(-0.5), y = py(-0.5);
      node("image", { x: x, y: y, width: px(n - 0.5) - x, height: py(n - 0.5) - y, href: canvas.toDataURL(), preserveAspectRatio: "none", style: "image-rendering:pixelated" }, g);
    }
  };
  Panel.prototype.tip = function (at, down) {
    const p = this.place, wanted = p.rx[0] + (at - p.left) / p.inner * (p.rx[1] - p.rx[0]), lines = [], x = this.x, y = this.y;
    const raw = function (axis, v) { return axis.log ? Math.pow(10, v) : v; };
    let head = "", best = null, near = 18 * 18;
    this.shown().forEach(function (s) {
      if (s.kind === "heat") {
        const n = y.names.length, i = Math.round(p.ry[1] + (down - p.top) / p.innerY * (p.ry[0] - p.ry[1])), j = Math.round(wanted);
        if (i >= 0 && j >= 0 && i < n && j < n) { lines.push(y.names[i] + " and " + x.names[j] + ": " + text(values(s.values)[i * n + j], 3)); }
      } else if (s.tips || s.kind === "points" || s.kind === "bars") {
        for (let i = 0; i < s.x.length; i++) {
          const dx = s.kind === "bars" && s.flat ? 0 : p.px(s.x[i]) - at, dy = s.kind === "bars" && !s.flat ? 0 : p.py(s.y[i]) - down;
          const far = s.half || s.kind === "bars" ? Math.min(dx * dx, 1) + dy * dy : dx * dx + dy * dy;
          if (far < near) { near = far; best = s.tips ? s.tips[i] : (s.name ? s.name + ": " : "") + (y.names ? y.names[s.y[i]] + " " + text(raw(x, s.x[i]), 4) : (x.names ? x.names[s.x[i]] : text(raw(x, s.x[i]), 4)) + ", " + text(raw(y, s.y[i]), 4)); }
        }
      } else if (s.x && s.x.length && (s.y || s.parts)) {
        let k = -1, gap = Infinity;
        for (let i = 0; i < s.x.length; i++) { const d = Math.abs(s.x[i] - wanted); if (d < gap) { gap = d; k = i; } }
        if (k < 0) { return; }
        head = (x.title ? x.title + ": " : "") + text(raw(x, s.x[k]), 4);
        (s.parts || [s]).forEach(function (one) { lines.push((one.name || "value") + ": " + text(raw(y, one.y[k]), 4)); });
      }
    });
    if (best) { return best; }
    return lines.length ? (head ? [head] : []).concat(lines).join("\n") : "";
  };

  function Figure(target) {
    const spec = read(target.dataset.spec), self = this;
    this.spec = spec; this.shared = spec.borrows ? read(spec.borrows).shared : spec.shared; this.target = target; this.link = spec.link || ""; this.zoom = null; this.hidden = {}; this.label = target.getAttribute("aria-label") || "";
    this.drawn = false; this.width = 0;
    target.replaceChildren();
    this.bar = html("div", "plotbar", target);
    this.legend();
    this.grid = html("div", "panels", target);
    this.grid.style.setProperty("--columns", spec.columns || 1);
    this.panels = spec.panels.map(function (one) {
      const cell = html("div", "panel", self.grid);
      if (one.title) { const title = html("p", "paneltitle", cell, one.title); if (one.badge) { html("span", "badge " + (one.level || "care"), title, one.badge); } }
      const box = html("div", "canvas", cell), panel = new Panel(one, self);
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", (one.title || self.label) + ". Arrow keys move, plus and minus zoom, 0 shows all.");
      self.listen(panel, box);
      return [panel, box];
    });
  }
  Figure.prototype.legend = function () {
    const names = {}, self = this, keys = html("span", "keys", this.bar);
    this.spec.panels.forEach(function (panel) {
      panel.series.forEach(function (s) { (s.parts || [s]).forEach(function (one) { if (one.name && !s.quiet && !names[one.name]) { names[one.name] = [one.colour || "blue", s.kind, s.symbol]; } }); });
    });
    if (Object.keys(names).length > 1) {
      Object.keys(names).forEach(function (name) {
        const key = html("button", "key", keys, name), mark = document.createElement("i");
        key.type = "button"; mark.style.background = colour(names[name][0]); mark.className = names[name][1] + " " + (names[name][2] || "");
        key.setAttribute("aria-pressed", "true"); key.title = "show or hide";
        key.prepend(mark);
        key.addEventListener("click", function () { self.hidden[name] = !self.hidden[name]; key.setAttribute("aria-pressed", String(!self.hidden[name])); self.draw(); });
      });
    }
    const tools = html("span", "tools", this.bar);
    [["all", "show the whole range again", function () { self.setZoom(null); }], ["SVG", "download these plots as SVG", function () { self.saveSvg(); }], ["CSV", "download the numbers of these plots", function () { dynid.save(self.target.id + ".csv", self.csv(), "text/csv"); }]].forEach(function (one) {
      if (one[0] === "all" && self.spec.fixed) { return; }
      const made = html("button", "tool", tools, one[0]);
      made.type = "button"; made.title = one[1]; made.setAttribute("aria-label", one[0] + ": " + one[1] + ", " + self.label);
      made.addEventListener("click", one[2]);
    });
  };
  Figure.prototype.setZoom = function (range) {
    if (this.spec.fixed) { return; }
    if (!this.link) { this.zoom = range; this.draw(); return; }
    groups[this.link] = range;
    const link = this.link;
    figures.forEach(function (one) { if (one.link === link && one.drawn) { one.draw(); } });
  };
  Figure.prototype.draw = function () {
    this.drawn = true; this.width = this.target.clientWidth;
    this.panels.forEach(function (pair) { pair[0].draw(pair[1]); });
  };
  Figure.prototype.listen = function (panel, box) {
    const self = this, tip = tooltip();
    let from = null, mark = null;
    function place(e) { const r = box.getBoundingClientRect(), k = panel.place.width / r.width; return [(e.clientX - r.left) * k, (e.clientY - r.top) * k]; }
    function value(x) { const p = panel.place; return p.rx[0] + (Math.max(p.left, Math.min(p.left + p.inner, x)) - p.left) / p.inner * (p.rx[1] - p.rx[0]); }
    box.addEventListener("pointerdown", function (e) { if (panel.place && !self.spec.fixed && e.button === 0) { from = place(e)[0]; } });
    box.addEventListener("pointermove", function (e) {
      if (!panel.place) { return; }
      const at = place(e), p = panel.place;
      if (from !== null && Math.abs(at[0] - from) > 4) {
        if (!mark) { mark = node("rect", { y: p.top, height: p.innerY, style: "fill:var(--blue);opacity:0.15" }, p.svg); }
        mark.setAttribute("x", Math.min(from, at[0])); mark.setAttribute("width", Math.abs(at[0] - from));
      }
      const inside = at[0] >= p.left && at[0] <= p.left + p.inner && at[1] >= p.top && at[1] <= p.top + p.innerY;
      tip.show(inside ? panel.tip(at[0], at[1]) : "", e.clientX, e.clientY);
    });
    function end(e) {
      if (from === null || !panel.place) { from = null; return; }
      const at = place(e)[0], low = value(Math.min(from, at)), high = value(Math.max(from, at));
      if (mark && Math.abs(at - from) > 8) { self.setZoom([low, high]); } else if (mark) { mark.remove(); }
      from = null; mark = null;
    }
    box.addEventListener("pointerup", end);
    box.addEventListener("pointerleave", function (e) { tip.show(""); if (mark) { end(e); } from = null; });
    box.addEventListener("dblclick", function () { self.setZoom(null); });
    box.addEventListener("keydown", function (e) {
      if (!panel.place) { return; }
      const r = panel.place.rx, w = r[1] - r[0], m = (r[0] + r[1]) / 2;
      const next = { ArrowLeft: [r[0] - 0.2 * w, r[1] - 0.2 * w], ArrowRight: [r[0] + 0.2 * w, r[1] + 0.2 * w], "+": [m - 0.3 * w, m + 0.3 * w], "=": [m - 0.3 * w, m + 0.3 * w], "-": [m - 0.8 * w, m + 0.8 * w], "0": null }[e.key];
      if (next !== undefined) { e.preventDefault(); self.setZoom(next); }
    });
  };
  // Of panels: lists of a heading and numbers; `bare`: headings without the title of the panel.
  Figure.prototype.columns = function (panels, bare) {
    let last = "";
    const columns = [];
    panels.forEach(function (pair) {
      const panel = pair[0], title = bare ? "" : panel.spec.title || "";
      panel.series.forEach(function (s) {
        if (s.kind === "heat") { panel.y.names.forEach(function (n, i) { columns.push([n].concat(Array.from(values(s.values)).slice(i * panel.y.names.length, (i + 1) * panel.y.names.length))); }); return; }
        const shown = function (axis, v) { return Array.from(v, function (k) { return axis.names ? axis.names[k] : axis.log ? Math.pow(10, k) : k; }); };
        const x = [panel.x.title || "x"].concat(shown(panel.x, s.x)), key = x.join();
        if (key !== last) { columns.push(x); last = key; } // one column for all series after it
        (s.parts || [s]).forEach(function (one) { if (one.y) { const name = one.name || panel.y.title || "value"; columns.push([(title.includes(name) ? title : title + " " + name).trim()].concat(shown(panel.y, one.y))); } });
        if (s.half) { columns.push([(title + " half of the interval").trim()].concat(Array.from(s.half))); }
        if (s.low) { columns.push([(title + " low").trim()].concat(Array.from(s.low))); columns.push([(title + " high").trim()].concat(Array.from(s.high))); }
      });
    });
    return columns;
  };
  Figure.prototype.csv = function () {
    const columns = this.columns(this.panels), quote = function (v) { return '"' + String(v).replace(/"/g, '""') + '"'; };
    const n = Math.max.apply(null, columns.map(function (c) { return c.length; }).concat([0])), lines = [];
    for (let i = 0; i < n; i++) {
      lines.push(columns.map(function (c) { const v = c[i]; return v === undefined || v !== v ? "" : typeof v === "number" ? String(+v.toPrecision(7)) : quote(v); }).join(","));
    }
    return lines.join("\n") + "\n";
  };
  Figure.prototype.saveSvg = function () {
    if (!this.drawn) { this.draw(); }
    const frame = this.grid.getBoundingClientRect(), style = getComputedStyle(document.documentElement);
    let inner = "";
    this.grid.querySelectorAll(".panel").forEach(function (cell) {
      const svg = cell.querySelector("svg"), at = cell.getBoundingClientRect(), title = cell.querySelector(".paneltitle"), copy = svg.cloneNode(true);
      const y = svg.getBoundingClientRect().top - frame.top, t = node("text", { x: at.left - frame.left + 4, y: y - 5, style: "fill:var(--ink);font-weight:600" });
      copy.setAttribute("x", at.left - frame.left); copy.setAttribute("y", y);
      t.textContent = title ? title.textContent : "";
      inner += new XMLSerializer().serializeToString(t) + new XMLSerializer().serializeToString(copy);
    });
    inner = inner.replace(/var\((--[\w-]+)\)/g, function (_, name) { return style.getPropertyValue(name).trim(); });
    const size = 'width="' + Math.ceil(frame.width) + '" height="' + Math.ceil(frame.height) + '"';
    const whole = '<svg xmlns="' + NS + '" ' + size + ' font-family="system-ui, sans-serif" font-size="' + FONT + '"><rect width="100%" height="100%" fill="' + style.getPropertyValue("--paper").trim() + '"/>' + inner + "</svg>";
    dynid.save(this.target.id + ".svg", whole, "image/svg+xml");
  };
  let shared = null;
  function tooltip() {
    if (!shared) {
      const box = html("div", "tip", document.body);
      box.hidden = true; box.setAttribute("aria-hidden", "true");
      shared = { show: function (content, x, y) {
        box.hidden = !content;
        if (!content) { return; }
        box.textContent = content;
        box.style.left = Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - box.offsetWidth - 8)) + "px";
        box.style.top = Math.max(4, y - box.offsetHeight - 10) + "px";
      } };
    }
    return shared;
  }
  dynid.save = function (name, content, type) {
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([content], { type: type + ";charset=utf-8" }));
    link.href = address; link.download = name;
    document.body.appendChild(link); link.click(); link.remove();
    setTimeout(function () { URL.revokeObjectURL(address); }, 1000);
  };
  // A table behind every plot, made when it is opened: of all panels if that fits, else of one that is chosen.
  document.querySelectorAll("details.behind").forEach(function (fold) {
    fold.addEventListener("toggle", function () {
      const figure = figures.find(function (one) { return one.target.id === fold.dataset.plot; });
      if (!fold.open || fold.querySelector("table") || !figure) { return; }
      const panels = figure.panels, all = figure.columns(panels), chosen = panels.length < 2 || all.length * 110 > fold.clientWidth;
      const names = panels.map(function (pair, i) { return pair[0].spec.title || String(i + 1); }), choice = chosen && panels.length > 1 && html("select", "", fold);
      const box = html("div", "scroll", fold);
      box.tabIndex = 0; box.setAttribute("role", "group"); box.setAttribute("aria-label", "numbers: " + fold.dataset.caption);
      function fill(k) {
        const columns = chosen ? figure.columns([panels[k]], true) : all, table = html("table", "");
        const size = columns.map(function (c) { return c.reduce(function (m, v) { return Math.max(m, Math.abs(v) || 0); }, 0); }), largest = Math.max.apply(null, size);
        const steps = columns.map(function (c) { return Math.max(1, Math.ceil((c.length - 1) / 40)); }), thin = Math.max.apply(null, steps);
        html("caption", "", table, fold.dataset.caption + (choice ? ": " + names[k] : "") + (thin > 1 ? ", one value in " + thin : ""));
        const n = Math.max.apply(null, columns.map(function (c, i) { return Math.ceil((c.length - 1) / steps[i]); }));
        for (let i = -1; i < n; i++) {
          const tr = html("tr", "", table);
          columns.forEach(function (c, j) {
            // Rounding errors beside the largest value are zero.
            const v = c[i < 0 ? 0 : 1 + i * steps[j]], cell = html(i < 0 ? "th" : "td", "n", tr, typeof v !== "number" ? v : v !== v ? "" : Math.abs(v) < 1e-9 * (chosen ? largest : size[j]) ? "0" : String(+v.toPrecision(5)));
            if (i < 0) { cell.scope = "col"; }
          });
        }
        box.replaceChildren(table);
      }
      if (choice) {
        choice.setAttribute("aria-label", "plot of these numbers");
        names.forEach(function (name, k) { html("option", "", choice, name).value = k; });
        choice.addEventListener("change", function () { fill(+choice.value); });
      }
      fill(0);
    });
  });
  dynid.redraw = function () { figures.forEach(function (one) { if (one.drawn) { one.draw(); } }); };
  dynid.drawAll = function () { figures.forEach(function (one) { if (!one.drawn || one.width !== one.target.clientWidth) { one.draw(); } }); };
  document.querySelectorAll(".plot[data-spec]").forEach(function (target) { figures.push(new Figure(target)); });
  const watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      const figure = figures.find(function (one) { return one.target === entry.target; });
      if (entry.isIntersecting && !figure.drawn) { figure.draw(); }
    });
  }, { rootMargin: "300px" });
  const resized = new ResizeObserver(function (entries) {
    entries.forEach(function (entry) {
      const figure = figures.find(function (one) { return one.target === entry.target; });
      if (figure.drawn && entry.target.clientWidth && Math.abs(figure.width - entry.target.clientWidth) > 3) { figure.draw(); }
    });
  });
  figures.forEach(function (one) { watch.observe(one.target); resized.observe(one.target); });
  // Figures further down, one by one once the page is there: nothing moves later while one reads.
  (function next(i) {
    if (i >= figures.length) { return; }
    const one = figures[i];
    setTimeout(function () { if (!one.drawn && one.target.clientWidth) { one.draw(); } next(i + 1); }, 20);
  })(0);
})(window.dynid);
